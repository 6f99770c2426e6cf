//! Clients of Redis in other languages, unchanged: the program of each uses Redis and `mingled`.

use std::net::SocketAddr;
use std::path::Path;

use mingle_services::{Engine, Library};

use super::Started;

/// The programs, beside this file.
const PROGRAMS: [(Library, &str); 3] = [
    (Library::NodeRedis, "check.js"),
    (Library::RedisPy, "check.py"),
    (Library::Jedis, "Check.java"),
];

/// Runs the program of a library against a server, with both versions of the protocol.
fn check(library: Library, server: SocketAddr) -> bool {
    let program = PROGRAMS.iter().find(|(of, _)| *of == library).expect("it has a program").1;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients/libraries");
    for protocol in ["2", "3"] {
        let Some(mut command) = mingle_services::library(library) else { return false };
        command.arg(folder.join(program));
        command.args([&server.ip().to_string(), &server.port().to_string(), protocol]);
        let output = command.output().expect("the language is there");
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let is_well = output.status.success() && text == "ok\n";
        assert!(is_well, "{library} at {server}, RESP{protocol}: {text}{errors}");
    }
    true
}

fn check_mingled(library: Library) {
    let mut started = Started::new();
    check(library, started.address());
    started.stop();
}

#[test]
fn node_redis_works() {
    check_mingled(Library::NodeRedis);
}

#[test]
fn redis_py_works() {
    check_mingled(Library::RedisPy);
}

#[test]
fn jedis_works() {
    check_mingled(Library::Jedis);
}

/// What the programs expect is what Redis does.
#[tokio::test]
async fn the_programs_of_the_libraries_hold_for_redis() {
    let Some(server) = mingle_services::private(Engine::Redis).await else { return };
    let url = server.url();
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    let address: SocketAddr = address.split('/').next().and_then(|it| it.parse().ok()).expect(url);
    for (library, _) in PROGRAMS {
        check(library, address);
    }
}
