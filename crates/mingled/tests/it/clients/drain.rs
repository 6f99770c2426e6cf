//! A server that stops.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_geo::DcId;
use mingled::process::{Process, Settings};
use mingled::server::{self, Server};

use super::{Raw, shown};

/// Each request that was executed has its reply: the counter is the number of replies that its client got.
#[test]
fn requests_that_have_come_get_their_replies() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings =
        Settings { is_founding: true, ..Settings::new(folder.path().join("data"), 7, DcId(0), 1) };
    let clients = server::Settings::new(&settings);
    let listener = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let process = Arc::new(Process::start(settings, listener()).expect("it starts"));
    let started =
        || Server::start(clients.clone(), process.clone(), listener()).expect("it starts");
    let server = started();
    let address = server.address();
    let replies = AtomicU64::new(0);
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|number| {
                let replies = &replies;
                scope.spawn(move || {
                    let mut client = Raw::connect(address);
                    let request = format!("INCR c{number}\r\n");
                    let mut count = 0;
                    // Two are always on their way.
                    client.send(&request);
                    loop {
                        // The server may have closed the connection.
                        let _ = std::io::Write::write_all(&mut client.stream, request.as_bytes());
                        let Some(reply) = client.next() else { return count };
                        count += 1;
                        assert_eq!(shown(&reply), format!(":{count}"));
                        replies.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        super::serving::until("all clients have replies", || replies.load(Ordering::Relaxed) > 100);
        server.stop();
        clients.into_iter().map(|client| client.join().expect("it ends")).collect()
    });
    let server = started();
    let mut client = Raw::connect(server.address());
    for (number, count) in counts.iter().enumerate() {
        assert_eq!(client.ask(&format!("GET c{number}")), format!("\"{count}\""));
    }
    // A transaction that is open is given up.
    client.expect("BEGIN => +OK\nSET open 1 => +OK");
    server.stop();
    assert_eq!(client.next(), None);
    let server = started();
    assert_eq!(Raw::connect(server.address()).ask("GET open"), "nil");
    server.stop();
}
