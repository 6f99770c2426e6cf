//! `mingle doctor`: embedded stores, servers that fit or not, and servers that are away.

use std::net::TcpListener;
use std::path::Path;

use serde_json::Value as Json;

use super::postgres::Database;
use super::{Run, folder, mingle};

const PROGRAM: &str = "store office: linearizable;
store feeds: eventual;
object Order in office { key id: string; total: int; }
object Feed in feeds { key name: string; items: log<string>; }
transaction order(feed: ref Feed, order: ref Order) {
    feed.items.append(\"1\");
    order.total = 1;
}
";

/// Returns the address of a port at which no server listens.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

fn examine(folder: &Path) -> (Run, Json) {
    let run = mingle(folder, &["doctor", "shop.mingle", "--format", "json"]);
    let found = serde_json::from_str(&run.stdout);
    let found = found.unwrap_or_else(|error| panic!("{error}: {} {}", run.stdout, run.stderr));
    (run, found)
}

/// Returns the judgement and text of a store's finding.
fn finding<'a>(found: &'a Json, store: usize, subject: &str) -> (&'a str, &'a str) {
    let findings = found["stores"][store]["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["subject"] == subject);
    let found = found.unwrap_or_else(|| panic!("{subject}: {findings:?}"));
    (found["judgement"].as_str().unwrap(), found["text"].as_str().unwrap())
}

#[test]
fn embedded_stores_are_examined_without_making_anything() {
    let folder = folder(&[("shop.mingle", PROGRAM)]);
    let run = mingle(folder.path(), &["doctor", "shop.mingle"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("store office (embedded)\n  ok      data: "), "{}", run.stdout);
    assert!(run.stdout.ends_with("2 stores examined: 0 wrong, 0 warnings\n"), "{}", run.stdout);
    let left: Vec<_> =
        folder.path().read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["shop.mingle"], "it changes nothing");
}

#[test]
fn a_server_that_is_away_does_not_keep_the_others_from_being_examined() {
    let (postgres, redis) = (free_port(), free_port());
    let binding = format!(
        "[stores.office]\nengine = \"postgres\"\nurl = \"postgres://app@127.0.0.1:{postgres}/shop\"\n\
         [stores.feeds]\nengine = \"redis\"\nurl = \"redis://127.0.0.1:{redis}\"\n"
    );
    let folder = folder(&[("shop.mingle", PROGRAM), ("mingle.toml", &binding)]);
    let (run, found) = examine(folder.path());
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    for (store, port) in [(0, postgres), (1, redis)] {
        let (judgement, text) = finding(&found, store, "connection");
        assert_eq!(judgement, "wrong");
        assert!(text.contains(&format!("127.0.0.1:{port}")), "{text}");
    }
    // An address that cannot be read is a mistake in the binding, which names the store.
    let binding = binding.replace("redis://", "gopher://");
    std::fs::write(folder.path().join("mingle.toml"), binding).unwrap();
    let run = mingle(folder.path(), &["doctor", "shop.mingle"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("feeds") && run.stderr.contains("gopher"), "{}", run.stderr);
}

#[test]
fn a_database_is_examined_with_its_rights_and_its_constraints() {
    let tables =
        "CREATE TABLE orders (id text PRIMARY KEY, total bigint NOT NULL CHECK (total > 0));";
    let Some(database) = Database::new(tables) else { return };
    let binding = |url: &str| {
        format!(
            "[stores.office]\nengine = \"postgres\"\nurl = \"{url}\"\n\
             [stores.office.objects.Order]\ntable = \"orders\"\nkey = \"id\"\n\
             [stores.feeds]\nengine = \"embedded\"\n"
        )
    };
    let folder = folder(&[("shop.mingle", PROGRAM), ("mingle.toml", &binding(&database.url))]);
    let (run, found) = examine(folder.path());
    assert_eq!(run.code, Some(0), "{found:#}");
    for subject in ["connection", "version", "clock", "connections", "rights", "table", "tables"] {
        assert_eq!(finding(&found, 0, subject).0, "ok", "{subject}: {found:#}");
    }
    assert!(finding(&found, 0, "tables").1.contains("the first start runs them"), "{found:#}");
    // The order is written first: no other store has committed when its table refuses it.
    let subjects = found["stores"][0]["findings"].as_array().unwrap();
    assert!(subjects.iter().all(|finding| finding["subject"] != "constraints"), "{found:#}");

    let name = &database.name;
    database.execute(&format!(
        "DROP ROLE IF EXISTS {name}_clerk; CREATE ROLE {name}_clerk LOGIN; GRANT SELECT ON orders TO {name}_clerk"
    ));
    let (scheme, rest) = database.url.split_once("://").unwrap();
    let (_, host) = rest.rsplit_once('@').unwrap_or(("", rest));
    let url = format!("{scheme}://{name}_clerk@{host}");
    std::fs::write(folder.path().join("mingle.toml"), binding(&url)).unwrap();
    let (run, found) = examine(folder.path());
    database.execute(&format!("DROP OWNED BY {name}_clerk; DROP ROLE {name}_clerk"));
    assert_eq!(run.code, Some(4), "{found:#}");
    let (judgement, text) = finding(&found, 0, "rights");
    assert!(judgement == "wrong" && text.contains("GRANT CREATE ON DATABASE"), "{text}");
    let (judgement, text) = finding(&found, 0, "table");
    assert!(judgement == "warning" && text.contains("INSERT, UPDATE, DELETE on orders"), "{text}");
}

#[test]
fn a_constraint_that_comes_too_late_is_a_warning() {
    let tables = "CREATE TABLE feeds (name text PRIMARY KEY, items bigint NOT NULL DEFAULT 0 CHECK (items < 3));";
    let Some(database) = Database::new(tables) else { return };
    let program = "store office: linearizable;
store feeds: snapshot;
object Order in office { key id: string; total: int; }
object Feed in feeds { key name: string; items: int; }
transaction order(feed: ref Feed, order: ref Order) {
    order.total = 1;
    feed.items = 1;
}
";
    let binding = format!(
        "[stores.office]\nengine = \"embedded\"\n\
         [stores.feeds]\nengine = \"postgres\"\nurl = \"{}\"\n\
         [stores.feeds.objects.Feed]\ntable = \"feeds\"\nkey = \"name\"\n",
        database.url
    );
    let folder = folder(&[("shop.mingle", program), ("mingle.toml", &binding)]);
    let (run, found) = examine(folder.path());
    assert_eq!(run.code, Some(0), "{found:#}");
    let (judgement, text) = finding(&found, 1, "constraints");
    assert_eq!(judgement, "warning");
    assert!(text.contains("order has committed elsewhere") && text.contains("items"), "{text}");
}
