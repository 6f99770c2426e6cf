//! Rows named by several columns are objects whose keys are structs.

use mingle_services::Engine;
use serde_json::{Value as Json, json};

use super::Legacy;
use crate::engines::site::RealSite;
use crate::support::scenarios::Site;

const HALL: &str = "
CREATE TABLE legacy.shows (name text PRIMARY KEY);
CREATE TABLE legacy.seats (
    show text REFERENCES legacy.shows,
    letter char(1) CHECK (letter >= 'A'),
    number integer,
    price bigint NOT NULL,
    guest text,
    PRIMARY KEY (show, letter, number)
);
CREATE TABLE legacy.seat_remarks (
    show text, letter text, number integer, remark text,
    PRIMARY KEY (show, letter, number, remark)
);
ALTER TABLE legacy.seats ALTER letter TYPE text;
INSERT INTO legacy.shows VALUES ('lear');
INSERT INTO legacy.seats (show, letter, number, price) VALUES ('lear', 'A', 1, 30), ('lear', 'B', 1, 20);
INSERT INTO legacy.seat_remarks VALUES ('lear', 'B', 1, 'behind a pillar');
";

const TABLES: &str = "\
[stores.hall.objects.Show]
table = \"legacy.shows\"
key = \"name\"

[stores.hall.objects.Seat]
table = \"legacy.seats\"
key = [\"show\", \"letter\", \"number\"]

[stores.hall.objects.Seat.fields.remarks]
table = \"legacy.seat_remarks\"
key = [\"show\", \"letter\", \"number\"]
value = \"remark\"
";

const PROGRAM: &str = "\
store hall: linearizable;
store feed: causal;

struct Place {
    show: ref Show,
    letter: string,
    number: int,
}

object Show in hall { key name: string; }

object Seat in hall {
    key place: Place;
    price: int;
    guest: option<string>;
    remarks: set<string>;
}

object Page in feed {
    key seat: ref Seat;
    lines: log<string>;
    seats: set<ref Seat>;
}

transaction book(seat: ref Seat, guest: string) -> int {
    require seat.exists() else \"there is no such seat\" as missing;
    require seat.guest == none else \"it is taken\" as taken;
    seat.guest = some(guest);
    Page[seat].lines.append(guest + \" in row \" + seat.place.letter);
    Page[seat].seats.insert(seat);
    return seat.price;
}

transaction add(show: string, letter: string, number: int, price: int) -> ref Seat {
    let seat = new Seat {
        place: Place { show: Show[show], letter: letter, number: number },
        price: price,
    };
    seat.remarks.insert(\"new\");
    return seat;
}
";

fn seat(letter: &str) -> String {
    json!({ "show": "lear", "letter": letter, "number": 1 }).to_string()
}

#[test]
fn rows_that_several_columns_name_are_objects() {
    let Some(legacy) = Legacy::new(HALL) else { return };
    let form = legacy.form();
    let binding = legacy.binding("hall", TABLES) + &legacy.beside("feed", Engine::Redis);
    let site = RealSite::new(PROGRAM, &binding);
    let (a, b, c) = (seat("A"), seat("B"), seat("C"));
    site.ok("book", &[("seat", &a), ("guest", "ana")]);
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.seats WHERE guest = 'ana'"), 1);
    assert_eq!(legacy.number("SELECT count(*) FROM legacy.seats WHERE guest IS NULL"), 1);
    assert_eq!(site.show("Seat", &b)["remarks"], json!(["behind a pillar"]));
    assert_eq!(site.show("Seat", &c), Json::Null);
    let new = [("show", "lear"), ("letter", "C"), ("number", "1"), ("price", "5")];
    site.ok("add", &new);
    let row = "SELECT price FROM legacy.seats WHERE letter = 'C' AND number = 1 AND guest IS NULL";
    assert_eq!(legacy.number(row), 5);
    assert_eq!(site.show("Seat", &c)["remarks"], json!(["new"]));
    assert!(site.settles(), "it does not come to rest");
    // The other store names the row by the same key.
    let page = site.show("Page", &a);
    assert_eq!(page["lines"], json!(["ana in row A"]));
    assert_eq!(page["seats"][0]["letter"], json!("A"));
    legacy.execute("DELETE FROM legacy.seats WHERE letter = 'B'");
    assert_eq!(site.show("Seat", &b), Json::Null);
    assert_eq!(legacy.form(), form, "the form of the tables");
}
