//! Encrypted connections to a worker that proves its identity, and to one that cannot.

use std::sync::Arc;

use mingle::{Binding, Database, Session};
use mingle_server::tls;
use rcgen::CertifiedKey;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::worker::site::{TEXT, Working, beside};

/// A certificate for this machine, and its key, as files.
fn certified(folder: &std::path::Path, name: &str) -> (std::path::PathBuf, std::path::PathBuf) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("it can be made");
    let (chain, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}-key.pem")));
    std::fs::write(&chain, cert.pem()).expect("it is written");
    std::fs::write(&key, signing_key.serialize_pem()).expect("it is written");
    (chain, key)
}

async fn open(url: &str, more: &str) -> Result<Arc<Database>, String> {
    let program = mingle::compile(TEXT).unwrap_or_else(|errors| panic!("{errors}"));
    let binding = format!("[stores.feed]\n[stores.bank]\nworker = \"{url}\"\n{more}");
    let binding = Binding::parse(&binding).expect("the test's binding is right");
    let opened = Database::open(program, &binding, None).await;
    opened.map(Arc::new).map_err(|error| error.to_string())
}

#[test]
fn phases_go_to_a_worker_over_tls_and_nothing_to_one_that_nobody_vouches_for() {
    let folder = tempfile::tempdir().expect("there is a folder");
    let (chain, key) = certified(folder.path(), "worker");
    let (other, _) = certified(folder.path(), "other");
    let config = tls::load(&chain, &key).unwrap_or_else(|error| panic!("{error}"));
    let runtime = Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let change = |changed: &mut mingle_server::Config| changed.tls = Some(config);
        let working = Working::start(beside(TEXT, "").await, change).await;
        let port = working.address.port();
        let root = |path: &std::path::Path| {
            format!("root_certificates = {:?}", path.to_str().expect("it is text"))
        };
        let url = format!("https://localhost:{port}");
        let client = open(&url, &root(&chain)).await.unwrap_or_else(|error| panic!("{error}"));
        for (name, arguments) in [
            ("fill", vec![("a", "ana"), ("n", "10")]),
            ("pay", vec![("from", "ana"), ("to", "bob"), ("inbox", "bob"), ("n", "4")]),
        ] {
            let arguments = client.arguments(name, arguments).expect("they fit");
            let report = client.call(name, arguments, Session::default()).await;
            let report = report.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(report.phases[0].round_trips, 1, "{name}: the phase went as a whole");
        }
        let paid = client.arguments("paid", [("inbox", "bob")]).expect("they fit");
        let paid = client.call("paid", paid, Session::default()).await.expect("it is near");
        assert_eq!(client.result_json("paid", &paid), json!(4));

        // Another root vouches; no known root does; the name differs; the connection is not encrypted.
        for (url, more) in [
            (url.clone(), root(&other)),
            (url.clone(), String::new()),
            (format!("https://127.0.0.1:{port}"), root(&chain)),
        ] {
            let error = open(&url, &more).await.map(drop).expect_err("nobody vouches for it");
            assert!(error.contains("cannot be reached: tls: "), "{url}, {more}: {error}");
        }
        let error = open(&format!("http://localhost:{port}"), "")
            .await
            .map(drop)
            .expect_err("it is no TLS");
        assert!(error.contains("the worker of store bank"), "{error}");
    });
}
