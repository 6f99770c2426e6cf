//! The listener for programs: senders that do not keep to its protocol, and bindings that do not fit.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use mingle_model::Level;
use mingle_runtime::TokioWorld;
use mingle_store::conformance::schema::store_schema;
use mingle_store_mingled::wire::{HELLO, Hello, PROTOCOL, Welcome, decode, framed};
use mingle_store_mingled::{Cluster, MingledConfig, OpenError};

use super::block_on;
use super::conformance::Place;

/// Sends bytes, and returns all that comes until the end of the connection.
fn answer(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).expect("it listens");
    stream.write_all(bytes).expect("it reads");
    stream.shutdown(std::net::Shutdown::Write).expect("it is connected");
    let mut answer = Vec::new();
    // The end may be a reset, if it has not read everything.
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Opens a store, and returns the error.
fn refusal(config: MingledConfig) -> OpenError {
    block_on(async {
        let schema = store_schema(Level::Causal);
        let opened = Cluster::open(config, &[schema], Arc::new(TokioWorld::new())).await;
        opened.map(|_| ()).expect_err("it is refused")
    })
}

#[test]
fn senders_that_do_not_keep_to_the_protocol_are_refused() {
    let place = Place::found(&[]);
    let redis = answer(place.address(), b"*1\r\n$4\r\nPING\r\n");
    assert!(redis.starts_with(b"-ERR this is the listener for Mingle's programs"), "{redis:?}");
    let hello = |hello: &Hello| [HELLO.as_slice(), &framed(hello)].concat();
    let other = Hello {
        protocol: PROTOCOL + 1,
        cluster: None,
        program: [0; 32],
        user: None,
        examined: None,
    };
    let refused = answer(place.address(), &hello(&other));
    let Some(Welcome::Refused { reason, .. }) = decode(&refused[4..]) else {
        panic!("{refused:?}")
    };
    let (own, other) = (PROTOCOL, PROTOCOL + 1);
    let start = format!("it speaks version {own} of the protocol, and the program version {other}");
    assert!(reason.starts_with(&start), "{reason}");

    let good = hello(&Hello {
        protocol: PROTOCOL,
        cluster: None,
        program: [7; 32],
        user: None,
        examined: None,
    });
    // Declarations with another digest.
    let found = answer(place.address(), &[&*good, &framed(&vec![1_u8])].concat());
    let first = 4 + u32::from_be_bytes(found[..4].try_into().expect("four bytes")) as usize;
    assert!(matches!(decode(&found[4..first]), Some(Welcome::Unknown { cluster: 1, .. })));
    let Some(Welcome::Refused { reason, .. }) = decode(&found[first + 4..]) else {
        panic!("{found:?}")
    };
    assert_eq!(reason, "the declarations are not those of the digest");
    // A length beyond the bound, and one that no bytes follow.
    for length in [u32::MAX, 1 << 20] {
        let found = answer(place.address(), &[&*good, &length.to_be_bytes()].concat());
        assert_eq!(found.len(), first, "nothing after the first answer");
    }
    // It serves others still.
    block_on(async { place.open(store_schema(Level::Causal)).await });
    place.stop();
}

#[test]
fn a_wrong_address_or_cluster_is_named() {
    let place = Place::found(&["\u{1}*"]);
    let config = MingledConfig::at(place.address().to_string());
    let error = refusal(config.clone()).to_string();
    assert!(error.contains("only strong transactions may write names that match"), "{error}");

    let other = MingledConfig { cluster: Some(2), ..config };
    let error = refusal(other);
    let expected = format!(
        "the data center at {} refuses: it is of cluster {:032x}, and the program expects {:032x}",
        place.address(),
        1,
        2
    );
    assert_eq!(error.to_string(), expected);
    let address = place.address().to_string();
    place.stop();
    let error = refusal(MingledConfig::at(address.clone()));
    assert!(matches!(&error, OpenError::Unavailable { .. }), "{error}");
    assert!(error.to_string().starts_with(&format!("the data center at {address} cannot be")));

    // A server of another protocol, such as Redis.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(b"-ERR unknown command 'mingle'\r\n").expect("it reads");
        let _ = stream.read(&mut [0; 64]);
    });
    let error = refusal(MingledConfig::at(address)).to_string();
    assert!(error.contains("is this its listener for programs?"), "{error}");
    server.join().expect("it ends");
}
