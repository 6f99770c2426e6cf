//! The table of commands, versions of the protocol, descriptions of the server.

use super::{Started, shown};

/// Every command is in a script of these files.
#[test]
fn every_command_is_tested() {
    let scripts = [
        include_str!("table.rs"),
        include_str!("transactions.rs"),
        include_str!("centers.rs"),
        include_str!("sessions.rs"),
        include_str!("slow.rs"),
        include_str!("access.rs"),
        include_str!("backup/mod.rs"),
    ];
    let scripts = scripts.concat();
    let words: std::collections::BTreeSet<&str> =
        scripts.split(|it: char| !it.is_ascii_alphanumeric()).collect();
    let untested = mingled::commands::all().map(|command| command.name.to_uppercase());
    // Those are in tests of their own.
    let known = ["INFO", "TIME", "QUIT"];
    let untested: Vec<String> = untested
        .filter(|name| !words.contains(name.as_str()) && !known.contains(&name.as_str()))
        .collect();
    assert!(untested.is_empty(), "{untested:?}");
}

/// The page is written by `MINGLE_BLESS=1`.
#[test]
fn the_page_of_commands_is_that_of_the_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mingled.md");
    let found = std::fs::read_to_string(page).expect("the page");
    let mark = "<!-- The rest is generated from the table of commands. -->\n";
    let (head, _) = found.split_once(mark).expect("the mark");
    let expected = format!("{head}{mark}\n{}", mingled::commands::table_page());
    if std::env::var_os("MINGLE_BLESS").is_some() {
        std::fs::write(page, &expected).expect("the page");
    }
    let is_same = found == expected || std::env::var_os("MINGLE_BLESS").is_some();
    assert!(is_same, "docs/mingled.md is old: run this test with MINGLE_BLESS=1");
}

#[test]
fn version_three_has_maps_sets_doubles_and_one_null() {
    let mut started = Started::new();
    let mut client = started.client();
    assert!(shown(&client.call(&["SADD", "s", "m"])).starts_with(':'));
    for (request, expected) in [
        ("HSET h f v\r\n", ":1\r\n"),
        ("ZADD z 1.5 a\r\n", ":1\r\n"),
        ("HGETALL h\r\n", "*2\r\n$1\r\nf\r\n$1\r\nv\r\n"),
        ("GET none\r\n", "$-1\r\n"),
        ("LPOP none 1\r\n", "*-1\r\n"),
    ] {
        assert_eq!(client.exactly(request, expected.len()), expected, "{request}");
    }
    client.send("HELLO 3 SETNAME me\r\n");
    let hello =
        "%7 $6 server $7 mingled $7 version $5 7.2.4 $5 proto :3 $2 id :1 $4 mode $10 standalone \
                 $4 role $6 master $7 modules *0 "
            .replace(' ', "\r\n");
    assert_eq!(client.exactly("", hello.len()), hello);
    for (request, expected) in [
        ("PING\r\n", "+PONG\r\n"),
        ("HGETALL h\r\n", "%1\r\n$1\r\nf\r\n$1\r\nv\r\n"),
        ("SMEMBERS s\r\n", "~1\r\n$1\r\nm\r\n"),
        ("ZSCORE z a\r\n", ",1.5\r\n"),
        ("ZRANGE z 0 -1 WITHSCORES\r\n", "*1\r\n*2\r\n$1\r\na\r\n,1.5\r\n"),
        ("ZPOPMIN z\r\n", "*2\r\n$1\r\na\r\n,1.5\r\n"),
        ("GET none\r\n", "_\r\n"),
        ("LPOP none 1\r\n", "_\r\n"),
        ("CONFIG GET databases\r\n", "%1\r\n$9\r\ndatabases\r\n$1\r\n1\r\n"),
        ("*2\r\n+echo\r\n:12\r\n", "$2\r\n12\r\n"),
    ] {
        assert_eq!(client.exactly(request, expected.len()), expected, "{request}");
    }
    started.stop();
}

#[test]
fn the_server_describes_itself_and_its_commands() {
    let mut started = Started::new();
    let mut client = started.client();
    client.expect("CLIENT SETNAME me => +OK");
    let info = client.ask("INFO server clients");
    assert!(info.contains("# Server") && info.contains("connected_clients:1"), "{info}");
    assert!(!info.contains("# Replication"), "{info}");
    assert!(client.ask("INFO").contains("data_centers:1"));
    let list = client.ask("CLIENT LIST");
    assert!(list.contains(" name=me ") && list.contains(" cmd=client "), "{list}");
    let time = client.ask("TIME");
    let seconds: Vec<u64> = time.split('"').filter_map(|word| word.parse().ok()).collect();
    assert!(seconds.len() == 2 && seconds[0] > 1_700_000_000, "{time}");
    let count = mingled::commands::all().count();
    assert_eq!(client.ask("COMMAND COUNT"), format!(":{count}"));
    let get = "[[\"get\", :2, [+readonly], :1, :1, :1, [+@fast, +@read, +@string], [], [], []]]";
    assert_eq!(client.ask("COMMAND INFO get"), get);
    let docs = client.ask("COMMAND DOCS incr");
    assert!(docs.contains("\"consistency\", \"causal\""), "{docs}");
    let list = client.ask("COMMAND LIST");
    assert_eq!(list.matches('"').count(), 2 * count);
    started.stop();
}

#[test]
fn requests_that_come_together_have_the_replies_that_each_has_alone() {
    let mut started = Started::new();
    let mut client = started.client();
    client.expect("MSET a 1 b 2 => +OK\nRPUSH l x y => :2\nHSET h f v => :1");
    let requests = [
        ("GET a", "\"1\""),
        ("GET l", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("LRANGE l 0 -1", "[\"x\", \"y\"]"),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
        ("MGET a none b", "[\"1\", nil, \"2\"]"),
        ("SET a 5", "+OK"),
        // A read sees the write before it, and not the one after it.
        ("GET a", "\"5\""),
        ("STRLEN b", ":1"),
        ("INCR n", ":1"),
        ("INCR n", ":2"),
        ("RPUSH a x", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("RPUSH l z", ":3"),
        ("DEL n none", ":1"),
        ("SETNX n 7", ":1"),
        ("MSET n 8 m 9", "+OK"),
        ("MGET n m", "[\"8\", \"9\"]"),
        ("SET strong-k 1", "+OK"),
        ("GET strong-k", "\"1\""),
        ("MULTI", "+OK"),
        ("GET a", "+QUEUED"),
        ("GET b", "+QUEUED"),
        ("EXEC", "[\"5\", \"2\"]"),
        ("HGETALL h", "[\"f\", \"v\"]"),
        ("LINDEX l x", "-ERR value is not an integer or out of range"),
        ("INCR a", ":6"),
        ("GET a", "\"6\""),
        ("GET b", "\"2\""),
        ("QUIT", "+OK"),
    ];
    // More than are answered from one snapshot.
    let many = "GET b\r\n".repeat(200);
    let lines: Vec<String> = requests.iter().map(|(request, _)| format!("{request}\r\n")).collect();
    client.send(many + &lines.concat());
    for _ in 0..200 {
        assert_eq!(shown(&client.reply()), "\"2\"");
    }
    for (request, expected) in requests {
        assert_eq!(shown(&client.reply()), expected, "{request}");
    }
    started.stop();
}
