//! Encrypted connections.

use std::net::{Ipv4Addr, TcpListener};

use mingle_services::{Engine, Options};
use mingle_store::conformance::schema::{COUNT, at};
use mingle_store::{Data, Read, Write};
use mingle_store_redis::{OpenError, RedisConfig};

use crate::support::{config, data, fresh_prefix, open, write};

#[tokio::test]
async fn a_server_is_believed_by_its_certificate() {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let folder = std::env::temp_dir().join(fresh_prefix().replace(':', "-"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("it writes");
        path.to_string_lossy().into_owned()
    };
    let certificate = file("certificate.pem", made.cert.pem());
    let key = file("key.pem", made.signing_key.serialize_pem());
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = free.local_addr().expect("it has one").port();
    drop(free);
    let options = Options::default()
        .setting("tls-port", &port.to_string())
        .setting("tls-cert-file", &certificate)
        .setting("tls-key-file", &key)
        .setting("tls-ca-cert-file", &certificate)
        .setting("tls-auth-clients", "no");
    let Some(_server) = mingle_services::private_with(Engine::Redis, options).await else { return };
    let url = format!("rediss://127.0.0.1:{port}");
    let known =
        RedisConfig { root_certificates: Some(made.cert.pem().into_bytes()), ..config(&url) };
    let store = open(known).await;
    write(&store, vec![Write::Add(at("a", COUNT), 3)]).await.expect("it writes");
    assert_eq!(data(&store, Read::Counter(at("a", COUNT))).await, Data::Counter(3));
    // Without the authority, the server cannot be authenticated.
    let schema = mingle_store::conformance::schema::store_schema(mingle_model::Level::Linearizable);
    let unknown = crate::support::connect(config(&url), schema).await;
    assert!(matches!(unknown, Err(OpenError::Unavailable { .. })));
    std::fs::remove_dir_all(&folder).expect("it removes");
}
