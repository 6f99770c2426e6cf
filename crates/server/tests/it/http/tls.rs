//! TLS.

use std::io::Write as _;
use std::sync::Arc;

use mingle_server::tls;
use rcgen::CertifiedKey;
use serde_json::json;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::http::client::{Answer, Request, Served, TEXT, read_all};

#[test]
fn a_call_over_tls_and_what_is_no_tls() {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("it can be made");
    let folder = tempfile::tempdir().expect("there is a folder");
    let (chain, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&chain, cert.pem()).expect("it is written");
    std::fs::write(&key, signing_key.serialize_pem()).expect("it is written");
    let config = tls::load(&chain, &key).unwrap_or_else(|error| panic!("{error}"));
    assert!(tls::load(&key, &chain).is_err(), "they are the wrong way round");
    assert!(tls::load(&folder.path().join("none.pem"), &key).is_err());

    let served = Served::with(TEXT, "", |changed| changed.tls = Some(config));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(cert.der().to_vec())).expect("it is a certificate");
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the versions are there")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("it is a name");
    let connection = ClientConnection::new(Arc::new(client), name).expect("the client is right");
    let mut stream = StreamOwned::new(connection, served.connect());
    let add = Request::call("add", &json!({ "item": "tea", "count": 1 }));
    stream.write_all(&add.bytes()).expect("it listens");
    let answer = Answer::parse(&read_all(&mut stream));
    assert_eq!((answer.status, answer.json()), (200, json!({ "result": 1 })));

    // A connection without TLS gets a TLS alert, or no answer.
    let mut plain = served.connect();
    plain.write_all(&add.bytes()).expect("it listens");
    let mut told = Vec::new();
    let _ = std::io::Read::read_to_end(&mut plain, &mut told);
    assert!(!told.starts_with(b"HTTP"), "{told:?}");
}
