//! `mingle migrate`.

use serde_json::{Value, json};

use super::postgres::Database;
use super::{folder, mingle};

const SHOP: &str = "\
store shop: linearizable;
store feed: causal;

object Item in shop {
    key name: string;
    left: int;
}

object Page in feed {
    key name: string;
    lines: log<string>;
}

transaction take(item: ref Item) -> int {
    item.left -= 1;
    Page[item.name].lines.append(\"taken\");
    return item.left;
}
";

#[test]
fn stores_of_other_engines_need_none() {
    let folder = folder(&[("shop.mingle", SHOP)]);
    let run = mingle(folder.path(), &["migrate", "shop.mingle"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        run.stdout,
        "-- store shop (embedded): needs no migration\n-- store feed (embedded): needs no migration\n"
    );
    assert!(!folder.path().join(".mingle").exists(), "it opens no store");
}

#[test]
fn what_is_missing_is_shown_and_then_made() {
    let Some(database) = Database::new("") else { return };
    let bound = format!(
        "[stores.feed]\n[stores.shop]\nengine = \"postgres\"\nurl = \"{}\"\nmigrate = \"refuse\"\n",
        database.url
    );
    let folder = folder(&[("shop.mingle", SHOP), ("mingle.toml", &bound)]);
    let path = folder.path();
    let migrate = |args: &[&str]| mingle(path, &[&["migrate", "shop.mingle"], args].concat());
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mingle_shop'";

    let shown = migrate(&[]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""));
    assert!(shown.stdout.starts_with("-- store shop (postgres): "), "{}", shown.stdout);
    assert!(shown.stdout.contains(" statements, not applied\n"), "{}", shown.stdout);
    assert!(shown.stdout.contains("CREATE TABLE \"mingle_shop\".\"Item\""), "{}", shown.stdout);
    assert!(shown.stdout.ends_with("-- store feed (embedded): needs no migration\n"));
    assert_eq!(database.number(schemas), 0, "it only shows");
    let refused = mingle(path, &["run", "shop.mingle", "take", "item=tea"]);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    assert!(refused.stderr.contains("tables are missing"), "{}", refused.stderr);

    let planned = migrate(&["--format", "json"]);
    let planned: Value = serde_json::from_str(&planned.stdout).expect("it is JSON");
    assert_eq!(planned["applied"], json!(false));
    assert_eq!(planned["stores"][0]["store"], json!("shop"));
    assert_eq!(
        planned["stores"][1],
        json!({ "store": "feed", "engine": "embedded", "statements": [] })
    );
    let applied = migrate(&["--apply", "--format", "json"]);
    let applied: Value = serde_json::from_str(&applied.stdout).expect("it is JSON");
    assert_eq!((&applied["applied"], &applied["stores"]), (&json!(true), &planned["stores"]));
    assert_eq!(database.number(schemas), 1);
    let again = migrate(&["--apply"]);
    assert!(again.stdout.starts_with("-- store shop (postgres): nothing is missing\n"));
    let run = mingle(path, &["run", "shop.mingle", "take", "item=tea"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "-1\n"), "{}", run.stderr);
}

#[test]
fn the_sql_that_is_shown_does_it_too() {
    let Some(database) = Database::new("") else { return };
    let bound = format!(
        "[stores.feed]\n[stores.shop]\nengine = \"postgres\"\nurl = \"{}\"\nmigrate = \"refuse\"\n",
        database.url
    );
    let folder = folder(&[("shop.mingle", SHOP), ("mingle.toml", &bound)]);
    let path = folder.path();
    database.execute(&mingle(path, &["migrate", "shop.mingle"]).stdout);
    let run = mingle(path, &["run", "shop.mingle", "take", "item=tea"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "-1\n"), "{}", run.stderr);
}

#[test]
fn what_would_lose_data_is_refused_with_what_was_and_what_is() {
    let Some(database) = Database::new("") else { return };
    let bound = format!(
        "[stores.feed]\n[stores.shop]\nengine = \"postgres\"\nurl = \"{}\"\n",
        database.url
    );
    let folder = folder(&[("shop.mingle", SHOP), ("mingle.toml", &bound)]);
    let path = folder.path();
    let run = mingle(path, &["run", "shop.mingle", "take", "item=tea"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let more = SHOP.replace("left: int;", "left: int;\n    color: string;");
    std::fs::write(path.join("more.mingle"), &more).expect("the file is written");
    let other = more.replace("left: int;", "left: counter;").replace(" -= 1", ".add(-1)");
    let other = other.replace("return item.left;", "return item.left.value();");
    std::fs::write(path.join("other.mingle"), other).expect("the file is written");
    for args in [&["migrate", "other.mingle"][..], &["migrate", "other.mingle", "--apply"]] {
        let run = mingle(path, args);
        assert_eq!((run.code, run.stdout.as_str()), (Some(4), ""), "{args:?}");
        assert_eq!(
            run.stderr,
            "error: store shop keeps field Item.left as `int`, but the program says `counter`\n"
        );
    }
    let run = mingle(path, &["migrate", "more.mingle", "--apply"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.contains("ADD COLUMN \"color\""), "{}", run.stdout);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let bound = "[stores.feed]\n[stores.shop]\nengine = \"postgres\"\nurl = \"postgres://app@127.0.0.1:1/shop\"\n";
    let folder = folder(&[("shop.mingle", SHOP), ("mingle.toml", bound)]);
    let run = mingle(folder.path(), &["migrate", "shop.mingle"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(4), ""));
    assert!(run.stderr.contains("store shop: cannot reach PostgreSQL"), "{}", run.stderr);
}
