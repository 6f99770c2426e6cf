//! Each engine starts, answers, and keeps acknowledged data when it is killed.

use crate::wire;
use mingle_services::{Engine, Options, Server, private, private_with, shared};

/// Returns the rows of PostgreSQL's answer.
fn ask(server: &Server, query: &str) -> Vec<Vec<String>> {
    wire::postgres(server.addresses()[0], query).unwrap()
}

/// Returns the answer of Redis.
fn tell(server: &Server, words: &[&str]) -> Option<String> {
    wire::redis(server.addresses()[0], words).unwrap()
}

#[tokio::test]
async fn postgres_keeps_what_it_acknowledged_when_it_is_killed() {
    let Some(server) = private(Engine::Postgres).await else { return };
    let address = server.addresses()[0];
    ask(&server, "create table kept (n int)");
    for round in 1..=3_i32 {
        ask(&server, &format!("insert into kept values ({round})"));
        let processes = server.processes();
        server.kill9().await.unwrap();
        assert!(server.processes().is_empty());
        assert!(wire::postgres(address, "select 1").is_err(), "nobody should listen");
        server.restart().await.unwrap();
        assert_eq!(server.addresses(), [address]);
        assert_ne!(server.processes(), processes);
        let count = ask(&server, "select count(*), sum(n) from kept");
        assert_eq!(count, [[round.to_string(), (1..=round).sum::<i32>().to_string()]]);
    }
    assert!(wire::postgres(address, "select nonsense").is_err());
}

#[tokio::test]
async fn redis_keeps_what_it_acknowledged_when_it_is_killed() {
    let Some(server) = private(Engine::Redis).await else { return };
    let address = server.addresses()[0];
    for round in 1..=3 {
        assert_eq!(tell(&server, &["INCR", "kept"]), Some(round.to_string()));
        server.kill9().await.unwrap();
        assert!(server.processes().is_empty());
        assert!(wire::redis(address, &["PING"]).is_err(), "nobody should listen");
        server.restart().await.unwrap();
        assert_eq!(server.addresses(), [address]);
        assert_eq!(tell(&server, &["GET", "kept"]), Some(round.to_string()));
    }
    assert_eq!(tell(&server, &["GET", "absent"]), None);
}

#[tokio::test]
async fn servers_of_their_own_are_apart_and_take_settings() {
    let options = Options::default().setting("max_connections", "33");
    let Some(first) = private_with(Engine::Postgres, options).await else { return };
    let Some(second) = private(Engine::Postgres).await else { return };
    assert_ne!(first.url(), second.url());
    assert_eq!(ask(&first, "show max_connections"), [["33"]]);
    assert_eq!(ask(&second, "show fsync"), [["on"]]);
    ask(&first, "create table apart (n int)");
    assert_eq!(ask(&second, "select to_regclass('apart') is null"), [["t"]]);
    let processes = first.processes();
    drop(first);
    assert!(processes.iter().all(|process| !process.is_running()));
    assert_eq!(ask(&second, "select 1"), [["1"]]);

    let options = Options::default().setting("maxmemory-policy", "noeviction").setting("hz", "17");
    let Some(server) = private_with(Engine::Redis, options).await else { return };
    let info = tell(&server, &["INFO", "server"]).unwrap();
    assert!(info.contains("configured_hz:17\r\n"), "{info}");
}

#[tokio::test]
async fn a_setting_that_there_is_not_is_an_error_with_the_servers_own_words() {
    for engine in [Engine::Postgres, Engine::Redis] {
        if private(engine).await.is_none() {
            continue;
        }
        let options = Options::default().setting("nonsense", "1");
        let error = Server::start_with(engine, options).await.unwrap_err().to_string();
        assert!(error.contains("ended at once") && error.contains("nonsense"), "{error}");
    }
}

#[tokio::test]
async fn all_tests_of_a_process_share_one_server() {
    for engine in [Engine::Postgres, Engine::Redis] {
        let Some(server) = shared(engine).await else { continue };
        let Some(again) = shared(engine).await else { continue };
        assert_eq!(server.url(), again.url());
        assert_eq!(server.processes().len(), usize::from(engine.told().is_none()));
    }
}
