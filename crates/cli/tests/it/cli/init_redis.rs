//! `mingle init` over keys of Redis.

use std::fs;
use std::path::Path;

use mingle_services::{Engine, Server};
use redis::aio::MultiplexedConnection;
use tokio::runtime::Runtime;

use super::{Run, folder, mingle};

/// A server of one test.
struct Keys {
    tokio: Runtime,
    connection: MultiplexedConnection,
    server: Server,
}

impl Keys {
    /// Starts a server with some keys, one command a line; none if Redis is not installed.
    fn new(commands: &str) -> Option<Self> {
        let tokio = Runtime::new().expect("a runtime");
        let server = tokio.block_on(mingle_services::private(Engine::Redis))?;
        let client = redis::Client::open(server.url()).expect("an address");
        let connection = tokio.block_on(client.get_multiplexed_async_connection());
        let mut keys = Self { tokio, connection: connection.expect("the server is there"), server };
        for line in commands.lines().map(str::trim).filter(|line| !line.is_empty()) {
            keys.run(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        }
        Some(keys)
    }

    fn run(&mut self, words: &[&[u8]]) -> redis::Value {
        let mut command = redis::Cmd::new();
        command.arg(words);
        let answer = self.tokio.block_on(command.query_async(&mut self.connection));
        answer.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    fn text(&mut self, command: &str) -> String {
        match self.run(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>()) {
            redis::Value::BulkString(bytes) => String::from_utf8(bytes).expect("text"),
            redis::Value::Int(number) => number.to_string(),
            other => format!("{other:?}"),
        }
    }

    fn url(&self) -> &str {
        self.server.url()
    }
}

fn ok(path: &Path, args: &[&str]) -> Run {
    let run = mingle(path, args);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}: {}", run.stdout);
    run
}

fn table_of(said: &str) -> &str {
    let from = said.find("in the database").expect("a table");
    let to = said[from..].find("\n\n").expect("an end") + from;
    &said[from..=to]
}

/// The keys of a shop.
const SHOP: &str = "
    HSET user:1 name Ana age 33 e-mail ana@x.org active true born 1990-02-03 seen 2026-01-31T07:08:09Z id 1
    HSET user:2 name Bo age 44 active false credit 19.90
    SADD user:1:friends 2 3
    SADD user:2:friends 1
    RPUSH user:1:inbox hello there
    HSET user:1:settings theme dark size 12
    HSET user:2:settings theme light size 14
    SET visits:2026-01-30 7
    SET visits:2026-01-31 12
    EXPIRE visits:2026-01-31 86400
    HSET cart:0e37df36-f698-11e6-8dd4-cb9ced3df976 17 2 4711 1
    HSET cart:9e37df36-f698-11e6-8dd4-cb9ced3df976 99 5
    SADD cart:0e37df36-f698-11e6-8dd4-cb9ced3df976:codes SAVE10
    SET doc:5 {\"a\":[1,2]}
    SET name:tea green
    SET name:milk white
    SET name:rum brown
    SET name:ale pale
    SET name:gin clear
    SET name:rye dark
    ZADD board:1 10 ana
    XADD events:1 * k v
    PFADD seen:1 a b
    SET mixed:1 a
    SADD mixed:2 b
    SET {tag}:1 x
    SET motd hello
    SET config:mail on
    SET config:theme dark
    SET room:3:seat:4 ana
    SET room:5:seat:6 bo
    SET 7:x y
    SET mingle:feed:!commits 3
";

const WRITES: &str = r#"
transaction befriend(one: ref User, other: int) -> int {
    one.friends.insert(other);
    one.inbox.append("a friend");
    one.age = one.age + 1;
    one.e_mail = "new@x.org";
    Visit["2026-01-31"].value = Visit["2026-01-31"].value + 1;
    Cart["0e37df36-f698-11e6-8dd4-cb9ced3df976"].entries.put(18, 3);
    return one.friends.size();
}
"#;

#[test]
fn keys_become_a_program_that_runs() {
    let Some(mut keys) = Keys::new(SHOP) else { return };
    keys.run(&[b"SET", b"\xff\xfe", b"odd"]);
    let folder = folder(&[]);
    let path = folder.path();
    let said = ok(path, &["init", keys.url(), "--name", "cache"]).stdout;
    assert_eq!(table_of(&said), include_str!("schemas/keys.txt"), "{said}");
    assert!(
        said.contains("This is a guess from 33 of 33 keys, and from a part of the contents of "),
        "{said}"
    );
    assert_eq!(ok(path, &["check", "--config", "mingle.toml", "cache.mingle"]).stdout, "");
    assert_eq!(ok(path, &["fmt", "--check", "cache.mingle"]).stdout, "");
    let program = fs::read_to_string(path.join("cache.mingle")).expect("it was written");
    fs::write(path.join("cache.mingle"), format!("{program}{WRITES}")).expect("it is written");
    let user = ok(path, &["show", "cache.mingle", "User", "1"]).stdout;
    for part in [
        "\"name\":\"Ana\"",
        "\"age\":33",
        "\"e_mail\":\"ana@x.org\"",
        "\"active\":true",
        "\"born\":\"1990-02-03\"",
        "\"seen\":\"2026-01-31T07:08:09Z\"",
        "\"friends\":[2,3]",
        "\"inbox\":[\"hello\",\"there\"]",
    ] {
        assert!(user.contains(part), "{part} is not in {user}");
    }
    let doc = ok(path, &["show", "cache.mingle", "Doc", "5"]).stdout;
    assert!(doc.contains("{\"a\":[1,2]}"), "{doc}");
    let name = ok(path, &["show", "cache.mingle", "Name", "rum"]).stdout;
    assert!(name.contains("\"value\":\"brown\""), "{name}");
    let run = ok(path, &["run", "cache.mingle", "befriend", "one=1", "other=9"]).stdout;
    assert_eq!(run, "3\n");
    for (command, expected) in [
        ("HGET user:1 age", "34"),
        ("HGET user:1 e-mail", "new@x.org"),
        ("SISMEMBER user:1:friends 9", "1"),
        ("LINDEX user:1:inbox -1", "a friend"),
        ("GET visits:2026-01-31", "13"),
        ("HGET cart:0e37df36-f698-11e6-8dd4-cb9ced3df976 18", "3"),
    ] {
        assert_eq!(keys.text(command), expected, "{command}");
    }
}

#[test]
fn what_cannot_be_begun_with_is_said() {
    let Some(mut keys) = Keys::new("") else { return };
    let folder = folder(&[]);
    let path = folder.path();
    let refused = |url: &str, code: i32, words: &str| {
        let run = mingle(path, &["init", url]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "{url}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{words:?} is not in {}", run.stderr);
    };
    let url = keys.url().to_owned();
    refused(&url, 2, "the database has no keys");
    refused("redis://127.0.0.1:1/0", 4, "cannot reach Redis");
    refused("redis://127.0.0.1:1/x", 2, "url: ");
    keys.run(&[b"SET", b"motd", b"x"]);
    keys.run(&[b"SET", b"a\nb", b"x"]);
    refused(
        &url,
        2,
        "the sample has no keys that could be an object\n  string a\u{fffd}b: no part of the key varies",
    );
    let (_, place) = url.split_once("://").expect("a scheme");
    for rights in ["blind +@all -scan", "deaf +@all -type", "mute -@all"] {
        let words: Vec<&str> = rights.split(' ').collect();
        let mut command: Vec<&[u8]> =
            vec![b"ACL", b"SETUSER", words[0].as_bytes(), b"on", b">s3cr3t", b"~*"];
        command.extend(words[1..].iter().map(|word| word.as_bytes()));
        keys.run(&command);
    }
    let of = |user: &str| format!("redis://{user}:s3cr3t@{place}");
    refused(&of("blind"), 2, "the server refuses SCAN, which is needed to look at its keys");
    refused(&of("deaf"), 2, "the server refuses TYPE for all 2 keys of the sample");
    refused(&of("mute"), 2, "the server refuses INFO");
    keys.run(&[b"CONFIG", b"SET", b"maxmemory-policy", b"allkeys-lru"]);
    refused(&url, 2, "maxmemory-policy allkeys-lru");
    keys.run(&[b"CONFIG", b"SET", b"maxmemory-policy", b"noeviction"]);
    assert_eq!(fs::read_dir(path).expect("the folder is there").count(), 0, "nothing is written");

    // A password stays out of the files, and a server that may lose writes is no reason not to begin.
    keys.run(&[b"SET", b"user:1", b"x"]);
    keys.run(&[b"ACL", b"SETUSER", b"app", b"on", b">s3cr3t", b"~*", b"+@all"]);
    keys.run(&[b"CONFIG", b"SET", b"appendfsync", b"everysec"]);
    let run = mingle(path, &["init", &of("app")]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("export REDIS_PASSWORD=…"), "{}", run.stdout);
    assert!(run.stderr.starts_with("note: the store does not open as long as"), "{}", run.stderr);
    let binding = fs::read_to_string(path.join("mingle.toml")).expect("it was written");
    assert!(binding.contains("redis://app:${REDIS_PASSWORD}@"), "{binding}");
    assert!(!(binding + &run.stdout).contains("s3cr3t"));
}
