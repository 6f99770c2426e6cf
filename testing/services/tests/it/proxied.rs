//! The effects of a proxy's faults: the client cannot know the outcome, but the server does.

use crate::wire;
use std::net::SocketAddr;

use mingle_proxy::{Fault, Proxy};
use mingle_services::{Engine, private, shared};

/// Uses a server through a proxy with each fault, and checks the outcome. `write` adds one to the
/// result of `read`, with a text that contains `mark`.
async fn go_through(
    direct: SocketAddr,
    mark: &str,
    write: impl Fn(SocketAddr) -> std::io::Result<()>,
    read: impl Fn(SocketAddr) -> String,
) {
    let proxy = Proxy::start(direct, 1).await.unwrap();
    write(proxy.address()).unwrap();
    assert_eq!(read(direct), "1");

    proxy.once_containing(mark.as_bytes(), Fault::LoseAnswer);
    write(proxy.address()).unwrap_err();
    assert_eq!(read(direct), "2", "it took effect, and nobody was told");

    proxy.once_containing(mark.as_bytes(), Fault::CutRequest);
    write(proxy.address()).unwrap_err();
    assert_eq!(read(direct), "2", "it did not take effect");

    proxy.down().await;
    write(proxy.address()).unwrap_err();
    proxy.up().await.unwrap();
    write(proxy.address()).unwrap();
    assert_eq!(read(proxy.address()), "3");
    let counts = proxy.counts();
    assert_eq!((counts.answers_lost, counts.never_answered, counts.requests_cut), (1, 0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_commits_what_the_client_does_not_hear_of() {
    let Some(server) = private(Engine::Postgres).await else { return };
    let direct = server.addresses()[0];
    wire::postgres(direct, "create table counted (n int)").unwrap();
    let write = |at| wire::postgres(at, "insert into counted values (1)").map(|_| ());
    let read = |at| wire::postgres(at, "select count(*) from counted").unwrap()[0][0].clone();
    go_through(direct, "insert", write, read).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_does_what_the_client_does_not_hear_of() {
    let Some(server) = shared(Engine::Redis).await else { return };
    // A server with an address in the environment may have other users.
    let Some(direct) = server.addresses().first().copied() else { return };
    let write = |at| wire::redis(at, &["INCR", "counted"]).map(|_| ());
    let read = |at| wire::redis(at, &["GET", "counted"]).unwrap().unwrap();
    go_through(direct, "INCR", write, read).await;
}
