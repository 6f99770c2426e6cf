//! Required and wrong keys of a binding, as checked without asking any server.

use mingle::{Binding, Database, check_binding};

const PROGRAM: &str = "
    store strong: linearizable { query total() -> int; }
    store weak: causal { query names() -> list<string>; }
    store logs: eventual;
    object A in strong { key k: string; n: int; tags: set<string>; }
    object B in weak { key k: string; n: int; }
    object C in logs { key k: string; n: int; }
    transaction t(a: ref A, b: ref B, c: ref C) { a.n = 1; b.n = 2; c.n = 3; }";

/// The error that both the check and the opening give for a binding; none if the check accepts it.
fn refused(binding: &str) -> Option<String> {
    let program = mingle::compile(PROGRAM).unwrap_or_else(|errors| panic!("{errors}"));
    let binding = match Binding::parse(binding) {
        Ok(binding) => binding,
        Err(error) => return Some(error.to_string()),
    };
    let error = check_binding(&program, &binding).err()?;
    assert!(error.is_misconfiguration(), "{error}");
    let runtime = tokio::runtime::Runtime::new().expect("it starts");
    let opened = runtime.block_on(Database::open(program, &binding, None));
    assert_eq!(opened.err().as_ref(), Some(&error));
    Some(error.to_string())
}

#[track_caller]
fn check(binding: &str, expected: Option<&str>) {
    match (refused(binding), expected) {
        (None, None) => {}
        (Some(found), Some(part)) => assert!(found.contains(part), "{binding}\n{found}"),
        (found, expected) => panic!("{binding}\n{found:?}, expected {expected:?}"),
    }
}

#[test]
fn a_store_that_is_forgotten_is_named_with_the_line_to_add() {
    check("", None);
    check("[runtime]\ndeadline = \"1s\"", None);
    check("[stores.strong]\n[stores.weak]\n[stores.logs]", None);
    check("[stores.strong]\n[stores.logs]", Some("stores.weak: the binding does not say"));
    check("[stores.strong]\n[stores.logs]", Some("add `[stores.weak]`"));
    let both = refused("[stores.weak]\nreplicas = 3").expect("two are forgotten");
    assert!(both.contains("stores.strong: ") && both.contains("stores.logs: "), "{both}");
}

#[test]
fn what_opening_refuses_without_a_server_a_check_refuses() {
    let with = |store: &str, lines: &str| {
        let others = ["strong", "weak", "logs"].into_iter().filter(|other| *other != store);
        let others: Vec<String> = others.map(|other| format!("[stores.{other}]\n")).collect();
        format!("{}[stores.{store}]\n{lines}", others.concat())
    };
    let postgres = "engine = \"postgres\"\nurl = \"postgres://db/shop\"\n";
    let servers =
        "engine = \"postgres\"\nservers = { a = \"postgres://a/x\", b = \"postgres://b/x\" }\n";
    let redis = "engine = \"redis\"\nurl = \"redis://cache\"\n";
    let cassandra = "engine = \"cassandra\"\nnodes = [\"c:9042\"]\ndatacenters = [\"dc1\"]\n";
    for (store, lines, part) in [
        // The embedded engine.
        ("strong", "replicas = 3".to_owned(), "has one replica, not 3"),
        ("weak", "replicas = [\"r\", \"r\"]".into(), "stores.weak.replicas: r is there twice"),
        ("strong", "operations = { total = \"builtin:size Nope.n\" }".into(), "Nope"),
        ("strong", "operations = { total = \"SELECT 1\" }".into(), "builtin:size"),
        ("weak", "operations = { nothing = \"builtin:keys B\" }".into(), "no such operation"),
        // One server of PostgreSQL, and several.
        ("strong", format!("{postgres}pool = 0"), "pool: expected at least 1"),
        ("strong", format!("{postgres}schema = \"{}\"", "x".repeat(70)), "longer than 63 bytes"),
        ("strong", "engine = \"postgres\"\nurl = \"nonsense:\\\\\"".into(), "store strong"),
        (
            "strong",
            format!("{postgres}[stores.strong.objects.X]\ntable = \"t\"\nkey = \"k\""),
            "no object of this name",
        ),
        (
            "strong",
            format!(
                "{postgres}[stores.strong.objects.A]\ntable = \"t\"\nkey = \"k\"\ncolumns = {{ z = \"z\" }}"
            ),
            "it has no field z",
        ),
        (
            "strong",
            format!("{postgres}[stores.strong.objects.A]\ntable = \"t\"\nkey = \"k\""),
            "A.tags is set<string>, which needs a table of its own",
        ),
        ("strong", servers.into(), "several servers give the levels causal and eventual"),
        ("weak", servers.into(), "has no operations of its own"),
        (
            "logs",
            format!("{servers}links = {{ c = \"host=c\" }}"),
            "links.c: there is no such server",
        ),
        // Redis.
        ("strong", format!("{redis}prefix = \"\""), "the prefix of its keys is empty"),
        (
            "strong",
            format!("{redis}[stores.strong.objects.A]\nkey = \"a:{{k}}\""),
            "field tags is not mapped to any key",
        ),
        (
            "strong",
            format!("{redis}[stores.strong.objects.X]\nkey = \"a:{{k}}\""),
            "no such object lives here",
        ),
        // Cassandra.
        ("weak", cassandra.into(), "but Cassandra is eventual"),
        ("logs", format!("{cassandra}keyspace = \"a b\""), "a keyspace is called by"),
        ("logs", format!("{cassandra}replicas = [\"x\", \"y\"]"), "2 replicas, but 1 data centers"),
        (
            "logs",
            format!("{cassandra}[stores.logs.objects.C]\ntable = \"t\"\nkey = \"k\""),
            "expected KEYSPACE.TABLE",
        ),
        (
            "logs",
            format!(
                "{cassandra}[stores.logs.objects.C]\ntable = \"s.t\"\nkey = \"k\"\ncolumns = {{ z = \"z\" }}"
            ),
            "it has no field z",
        ),
        // A worker.
        ("strong", "worker = \"ftp://bank\"".into(), "expected http://HOST:PORT"),
    ] {
        check(&with(store, &lines), Some(part));
    }
}

#[test]
fn two_objects_in_one_place_are_refused_where_both_are_written() {
    let program = "store shop: linearizable;
        object A in shop { key k: string; n: int; }
        object B in shop { key k: string; n: int; }
        transaction t(a: ref A, b: ref B) { a.n = 1; b.n = 2; }";
    let binding = "[stores.shop]\nengine = \"postgres\"\nurl = \"postgres://db/shop\"\n\
        [stores.shop.objects]\nA = { table = \"t\", key = \"id\" }\nB = { table = \"t\", key = \"id\" }";
    let binding = Binding::parse(binding).expect("each by itself is right");
    let program = mingle::compile(program).unwrap_or_else(|errors| panic!("{errors}"));
    let error = check_binding(&program, &binding).expect_err("both are written");
    assert!(error.is_misconfiguration(), "{error}");
    assert!(error.to_string().contains("A.n and B.n are both kept in column n"), "{error}");
}
