//! Deletions and writes by which the database itself changes other objects.

use serde_json::{Value as Json, json};

use super::Legacy;
use crate::engines::site::RealSite;
use crate::support::scenarios::Site;

const CLINIC: &str = "
CREATE TABLE legacy.owners (
    id bigint PRIMARY KEY,
    name text NOT NULL,
    friend bigint REFERENCES legacy.owners ON DELETE SET NULL
);
CREATE TABLE legacy.phones (
    owner bigint REFERENCES legacy.owners ON DELETE CASCADE,
    phone text,
    PRIMARY KEY (owner, phone)
);
CREATE TABLE legacy.pets (
    id bigint PRIMARY KEY,
    owner bigint NOT NULL REFERENCES legacy.owners ON DELETE CASCADE
);
CREATE TABLE legacy.visits (
    id bigint PRIMARY KEY,
    pet bigint NOT NULL DEFAULT 0 REFERENCES legacy.pets ON DELETE CASCADE
);
CREATE TABLE legacy.bills (
    id bigint PRIMARY KEY,
    visit bigint DEFAULT NULL REFERENCES legacy.visits ON DELETE SET DEFAULT
);
CREATE TABLE legacy.unmapped (owner bigint REFERENCES legacy.owners ON DELETE CASCADE);
INSERT INTO legacy.owners VALUES (1, 'Ana', NULL), (2, 'Eve', 1);
INSERT INTO legacy.phones VALUES (1, '555');
INSERT INTO legacy.pets VALUES (10, 1), (20, 2);
INSERT INTO legacy.visits VALUES (100, 10), (200, 20);
INSERT INTO legacy.bills VALUES (1000, 100), (2000, 200);
";

const TABLES: &str = "\
[stores.clinic.objects.Owner]
table = \"legacy.owners\"
key = \"id\"
fields.phones = { table = \"legacy.phones\", key = \"owner\", value = \"phone\" }

[stores.clinic.objects.Pet]
table = \"legacy.pets\"
key = \"id\"

[stores.clinic.objects.Visit]
table = \"legacy.visits\"
key = \"id\"

[stores.clinic.objects.Bill]
table = \"legacy.bills\"
key = \"id\"

[runtime]
deadline = \"30s\"
";

const PROGRAM: &str = "\
store clinic: linearizable;

object Owner in clinic {
    key id: int;
    name: string;
    friend: option<ref Owner>;
    phones: set<string>;
}
object Pet in clinic { key id: int; owner: ref Owner; }
object Visit in clinic { key id: int; pet: ref Pet; }
object Bill in clinic { key id: int; visit: option<ref Visit>; }

transaction leave(owner: ref Owner) {
    owner.delete();
}

/// Nothing refers to a bill.
transaction pay(bill: ref Bill) {
    bill.delete();
}

transaction rename(owner: ref Owner, name: string) {
    owner.name = name;
}
";

#[test]
fn what_a_deletion_reaches_is_said_at_the_start() {
    let Some(legacy) = Legacy::new(CLINIC) else { return };
    let form = legacy.form();
    let site = RealSite::new(PROGRAM, &legacy.binding("clinic", TABLES));
    let [warning] = site.database.warnings() else { panic!("{:#?}", site.database.warnings()) };
    // The schema has a name of its own for each run.
    let words = warning.split(' ').map(|word| word.rsplit_once("legacy.").map_or(word, |it| it.1));
    let warning = words.collect::<Vec<_>>().join(" ");
    let expected = "when leave deletes Owner, store clinic itself \
        deletes Pet (FOREIGN KEY pets_owner_fkey of pets); \
        deletes Visit (FOREIGN KEY visits_pet_fkey of visits); \
        sets columns of Bill to their defaults (FOREIGN KEY bills_visit_fkey of bills); \
        sets columns of Owner to null (FOREIGN KEY owners_friend_fkey of owners)";
    assert!(warning.starts_with(expected), "{warning}");

    site.ok("leave", &[("owner", "1")]);
    for (kind, key) in [("Owner", "1"), ("Pet", "10"), ("Visit", "100")] {
        assert_eq!(site.show(kind, key), Json::Null, "{kind}");
    }
    assert_eq!(site.show("Owner", "2")["friend"], Json::Null);
    assert_eq!(site.show("Bill", "1000")["visit"], Json::Null);
    assert_eq!(site.show("Bill", "2000")["visit"], json!(200));
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.phones"), 0);
    assert_eq!(legacy.form(), form, "the form of the tables");
}

const CLUB: &str = "
CREATE TABLE legacy.members (id bigint PRIMARY KEY, login text NOT NULL UNIQUE, mail text UNIQUE, age bigint NOT NULL);
CREATE TABLE legacy.logins (
    id bigint PRIMARY KEY,
    login text UNIQUE REFERENCES legacy.members (login) ON UPDATE CASCADE,
    mail text DEFAULT NULL REFERENCES legacy.members (mail) ON UPDATE SET DEFAULT
);
CREATE TABLE legacy.seats (id bigint PRIMARY KEY, login text REFERENCES legacy.logins (login) ON UPDATE SET NULL);
CREATE TABLE legacy.notes (id bigint PRIMARY KEY, login text REFERENCES legacy.members (login));
INSERT INTO legacy.members VALUES (1, 'ana', 'a@x.org', 33);
INSERT INTO legacy.logins VALUES (10, 'ana', 'a@x.org');
INSERT INTO legacy.seats VALUES (100, 'ana');
";

const MEMBERS: &str = "\
store club: linearizable;

object Member in club { key id: int; login: string; mail: option<string>; age: int; }
object Login in club { key id: int; login: option<string>; mail: option<string>; }
object Seat in club { key id: int; login: option<string>; }

transaction rename(member: ref Member, login: string) { member.login = login; }
transaction replace(id: int, mail: string) { put Member { id: id, login: \"bo\", mail: some(mail), age: 1 }; }
transaction join(id: int, login: string) { new Member { id: id, login: login, mail: none, age: 1 }; }
transaction grow(member: ref Member) { member.age = member.age + 1; }
";

#[test]
fn what_a_write_reaches_is_said_at_the_start() {
    let Some(legacy) = Legacy::new(CLUB) else { return };
    let tables =
        [("Member", "members"), ("Login", "logins"), ("Seat", "seats")].map(|(object, table)| {
            format!("[stores.club.objects.{object}]\ntable = \"legacy.{table}\"\nkey = \"id\"\n\n")
        });
    let tables = tables.concat() + "[runtime]\ndeadline = \"30s\"\n";
    let site = RealSite::new(MEMBERS, &legacy.binding("club", &tables));
    let [login, mail] = site.database.warnings() else { panic!("{:#?}", site.database.warnings()) };
    let plain = |warning: &str| {
        let words =
            warning.split(' ').map(|word| word.rsplit_once("legacy.").map_or(word, |it| it.1));
        words.collect::<Vec<_>>().join(" ")
    };
    let expected = "when rename, replace writes Member.login, store club itself \
        changes columns of Login (FOREIGN KEY logins_login_fkey of logins); \
        sets columns of Seat to null (FOREIGN KEY seats_login_fkey of seats): the transaction does not see that";
    assert!(plain(login).starts_with(expected), "{login}");
    let expected = "when replace writes Member.mail, store club itself \
        sets columns of Login to their defaults (FOREIGN KEY logins_mail_fkey of logins): ";
    assert!(plain(mail).starts_with(expected), "{mail}");

    site.ok("rename", &[("member", "1"), ("login", "eve")]);
    assert_eq!(site.show("Login", "10")["login"], json!("eve"));
    assert_eq!(site.show("Seat", "100")["login"], Json::Null);
}
