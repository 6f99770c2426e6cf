//! `unique` over tables of another application: the database must keep it.

use mingle::{Binding, Database, Error, Session};
use serde_json::json;

use super::Legacy;
use crate::engines::site::{RealSite, block_on};
use crate::engines::uniques::{passes_on, race};
use crate::support::scenarios::Site;

const ITEMS: &str = "
CREATE TABLE legacy.items (
    name text PRIMARY KEY,
    color text,
    shelf integer,
    place integer,
    UNIQUE (place, shelf)
);
";

const TABLES: &str = "\
[stores.shop.objects.Item]
table = \"legacy.items\"
key = \"name\"
columns = { color = \"color\" }

[runtime]
deadline = \"60s\"
";

const PROGRAM: &str = "store shop: linearizable;
object Item in shop {
    key name: string;
    color: option<string>;
    shelf: option<int>;
    place: option<int>;
    unique color;
    unique shelf, place as spot;
}
transaction paint(item: ref Item, color: string) { item.color = some(color); }
transaction make(name: string, color: string) { let _ = new Item { name: name, color: some(color) }; }
transaction put_at(item: ref Item, shelf: int, place: int) { item.shelf = some(shelf); item.place = some(place); }
transaction follow(item: ref Item, from: ref Item) {
    let color = from.color;
    item.shelf = some(8);
    from.color = none;
    item.color = color;
    from.color = some(\"last\");
}
transaction swap(one: ref Item, other: ref Item) {
    let color = one.color;
    let next = other.color;
    one.color = none;
    other.color = color;
    one.color = next;
}
transaction drop(item: ref Item) { item.delete(); }
transaction of_color(color: string) -> int { return Item.by_color(color).count(9); }
transaction at(shelf: int) -> int { return Item.spot(shelf).count(9); }
";

/// Returns the reason why the program is not opened.
fn refusal(legacy: &Legacy) -> String {
    let program = mingle::compile(PROGRAM).unwrap_or_else(|errors| panic!("{errors}"));
    let binding = Binding::parse(&legacy.binding("shop", TABLES)).expect("a binding");
    match block_on(Database::open(program, &binding, None)) {
        Ok(_) => panic!("it is not refused"),
        Err(error) => {
            assert!(error.is_misconfiguration(), "{error}");
            error.to_string()
        }
    }
}

#[test]
fn the_database_must_keep_it_for_all_rows_and_as_the_program_compares() {
    let Some(legacy) = Legacy::new(ITEMS) else { return };
    let statement = format!("CREATE UNIQUE INDEX ON \"{}\".\"items\" (\"color\")", legacy.name);
    let no_index = |made: &str| {
        let error = refusal(&legacy);
        assert!(error.contains("the database does not keep `unique color`"), "{made}: {error}");
        assert!(error.contains(&statement), "{made}: {error}");
    };
    no_index("nothing");
    for made in [
        "CREATE INDEX extra ON legacy.items (color)",
        "CREATE UNIQUE INDEX extra ON legacy.items (color, shelf)",
        "CREATE UNIQUE INDEX extra ON legacy.items (color) WHERE shelf > 0",
        "CREATE UNIQUE INDEX extra ON legacy.items (lower(color))",
    ] {
        legacy.execute(made);
        no_index(made);
        legacy.execute("DROP INDEX legacy.extra");
    }
    legacy.execute("ALTER TABLE legacy.items ADD CONSTRAINT extra UNIQUE (color) DEFERRABLE");
    no_index("a constraint that is checked later");
    legacy.execute("ALTER TABLE legacy.items DROP CONSTRAINT extra");
    if legacy.number("SELECT current_setting('server_version_num')::bigint") >= 150_000 {
        legacy.execute("CREATE UNIQUE INDEX extra ON legacy.items (color) NULLS NOT DISTINCT");
        no_index("nulls that are equal");
        legacy.execute("DROP INDEX legacy.extra");
    }
    legacy.execute("CREATE UNIQUE INDEX extra ON legacy.items (color) INCLUDE (shelf)");
    let site = RealSite::new(PROGRAM, &legacy.binding("shop", TABLES));
    site.ok("paint", &[("item", "a"), ("color", "red")]);
}

#[test]
fn a_column_that_takes_different_texts_for_equal_is_refused() {
    let folding = "CREATE COLLATION legacy.folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false);";
    let items = ITEMS.replace("color text,", "color text COLLATE legacy.folding UNIQUE,");
    let Some(legacy) = Legacy::new(&format!("{folding}{items}")) else { return };
    let error = refusal(&legacy);
    assert!(error.contains("takes different texts for equal"), "{error}");
}

#[test]
fn two_processes_never_give_two_rows_one_value() {
    let Some(legacy) = Legacy::new(&ITEMS.replace("color text,", "color text UNIQUE,")) else {
        return;
    };
    let binding = legacy.binding("shop", TABLES);
    let sites = [RealSite::new(PROGRAM, &binding), RealSite::new(PROGRAM, &binding)];
    race(&sites, 20);
    passes_on(&sites[0]);
}

/// Another program writes the same values meanwhile: one of both gets each, and a call of ours says that it is taken.
#[test]
fn another_program_and_ours_never_give_two_rows_one_value() {
    let Some(legacy) = Legacy::new(&ITEMS.replace("color text,", "color text UNIQUE,")) else {
        return;
    };
    let site = RealSite::new(PROGRAM, &legacy.binding("shop", TABLES));
    let client = block_on(legacy.connect());
    let (mut ours, mut theirs) = (0, 0);
    for round in 0..40 {
        let color = format!("color {round}");
        let insert =
            format!("INSERT INTO items (name, color) VALUES ('sql {round}', 'color {round}')");
        let name = format!("ours {round}");
        let arguments = [("name", &*name), ("color", &*color)];
        let arguments = site.database.arguments("make", arguments).expect("they fit");
        let (made, inserted) = block_on(async {
            tokio::join!(
                site.database.call("make", arguments, Session::default()),
                client.batch_execute(&insert)
            )
        });
        match made {
            Ok(_) => ours += 1,
            Err(Error::Taken(taken)) => {
                assert_eq!(taken.to_string(), format!("another Item has color \"{color}\""));
            }
            Err(error) => panic!("round {round}: {error}"),
        }
        theirs += i64::from(inserted.is_ok());
        let count = format!("SELECT count(*) FROM legacy.items WHERE color = 'color {round}'");
        assert_eq!(legacy.number(&count), 1, "round {round}");
        let found = site.ok("of_color", &[("color", &color)]);
        assert_eq!(found, json!(1), "round {round}");
    }
    assert_eq!(ours + theirs, 40);
}
