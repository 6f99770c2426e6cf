//! Deletions by which the database itself changes other objects.

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
