//! The library `redis`, unchanged.

use redis::{Commands as _, Value};

use super::Started;

fn check(started: &Started, parameters: &str) {
    let url = format!("redis://{}/{parameters}", started.address());
    let client = redis::Client::open(url).expect("an address");
    let mut connection = client.get_connection().expect("it connects");
    let () = connection.flushall().expect("it deletes");
    let () = connection.set("name", "ana").expect("it sets");
    assert_eq!(connection.get::<_, String>("name"), Ok("ana".into()));
    assert_eq!(connection.get::<_, Option<String>>("none"), Ok(None));
    assert_eq!(connection.incr::<_, _, i64>("count", 5), Ok(5));
    let () = connection.hset_multiple("hash", &[("a", 1), ("b", 2)]).expect("it sets");
    let hash: std::collections::BTreeMap<String, i64> = connection.hgetall("hash").expect("a map");
    assert_eq!(hash.into_iter().collect::<Vec<_>>(), [("a".into(), 1), ("b".into(), 2)]);
    let _: i64 =
        connection.zadd_multiple("scores", &[(1.5, "one"), (2.0, "two")]).expect("it adds");
    let scores: Vec<(String, f64)> = connection.zrange_withscores("scores", 0, -1).expect("pairs");
    assert_eq!(scores, [("one".into(), 1.5), ("two".into(), 2.0)]);
    let _: i64 = connection.rpush("list", &["a", "b", "c"]).expect("it adds");
    assert_eq!(connection.lpop::<_, Option<String>>("list", None), Ok(Some("a".into())));
    let done: (String, i64) = redis::pipe()
        .atomic()
        .set("name", "bob")
        .incr("count", 1)
        .query(&mut connection)
        .expect("it commits");
    assert_eq!(done, ("OK".into(), 6));
    let new: (i64,) = redis::transaction(&mut connection, &["count"], |connection, pipe| {
        let old: i64 = connection.get("count")?;
        pipe.set("count", old * 2).ignore().get("count").query(connection)
    })
    .expect("it commits");
    assert_eq!(new, (12,));
    let mut found: Vec<String> =
        connection.scan().expect("it scans").map(|it| it.expect("text")).collect();
    found.sort();
    assert_eq!(found, ["count", "hash", "list", "name", "scores"]);
    let wrong: redis::RedisResult<Value> = connection.lpush("name", 1);
    assert_eq!(wrong.expect_err("it is a string").code(), Some("WRONGTYPE"));
}

#[test]
fn the_library_works_with_both_versions() {
    let mut started = Started::new();
    check(&started, "");
    check(&started, "?protocol=resp3");
    started.stop();
}

#[test]
fn a_scan_of_many_names_returns_each_once_from_any_connection() {
    let mut started = Started::new();
    let mut client = started.client();
    let mut expected: Vec<String> = (0..700).map(|number| format!("\"key:{number}\"")).collect();
    expected.sort();
    for number in 0..700 {
        client.send(format!("SET key:{number} 1\r\n"));
    }
    for _ in 0..700 {
        client.reply();
    }
    let (mut found, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        // Each step may come to another connection, which has no memory of the scan.
        if found.len() > 300 {
            client = started.client();
        }
        let step = client.ask(&format!("SCAN {cursor} COUNT 50"));
        let (next, names) = step[1..].split_once(", [").expect("a cursor and names");
        let names = names.trim_end_matches(']').split(", ").filter(|name| !name.is_empty());
        found.extend(names.map(str::to_owned));
        cursor = next.trim_matches('"').to_owned();
        if cursor == "0" {
            break;
        }
    }
    found.sort();
    assert_eq!(found, expected);
    let members: Vec<String> = (0..300).map(|number| format!("m{number}")).collect();
    let add: Vec<&str> =
        ["SADD", "s"].into_iter().chain(members.iter().map(String::as_str)).collect();
    client.call(&add);
    let (mut count, mut cursor) = (0, "0".to_owned());
    loop {
        let step = client.ask(&format!("SSCAN s {cursor} COUNT 7"));
        let (next, names) = step[1..].split_once(", [").expect("a cursor and members");
        count += names.matches("\"m").count();
        cursor = next.trim_matches('"').to_owned();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(count, 300, "each member once");
    started.stop();
}
