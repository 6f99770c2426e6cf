//! Encrypted connections between data centers.

use std::path::{Path, PathBuf};

use super::Raw;
use super::configured::{CLUSTER, Configured, file};
use super::serving::{field, free_addresses, until};
use super::tls::Authority;

/// Writes the file of a data center with `[peer_tls]` and the certificate of this name.
fn with_tls(folder: &Path, dc: usize, peers: &[std::net::SocketAddr], name: &str) -> PathBuf {
    let path = file(folder, dc, CLUSTER, peers);
    let text = std::fs::read_to_string(&path).expect("it was written");
    let table = format!(
        "[peer_tls]\ncertificate = \"{name}.pem\"\nkey = \"{name}.key\"\nca = \"ca.pem\"\n"
    );
    std::fs::write(&path, text + &table).expect("room");
    path
}

fn folder_of(authority: &Authority) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("key"), "a key that all of them have").expect("room");
    std::fs::write(folder.path().join("ca.pem"), authority.pem()).expect("room");
    folder
}

#[test]
fn data_centers_are_encrypted_and_have_certificates() {
    let authority = Authority::new();
    let folder = folder_of(&authority);
    let peers = free_addresses(2);
    for dc in ["d0", "d1"] {
        authority.issue(folder.path(), dc, dc);
    }
    let files = [0, 1].map(|dc| with_tls(folder.path(), dc, &peers, &format!("d{dc}")));
    let mut started = files.each_ref().map(|file| Configured::start(file));
    until("they are connected", || field(&mut started[0].1, 1, "state") == "connected");
    // Messages of many records, in both directions.
    let long = "x".repeat(1 << 20);
    for number in 0..8 {
        let (first, key) = (&mut started[number % 2].1, format!("k{number}"));
        assert_eq!(super::shown(&first.call(&["SET", &key, &long])), "+OK");
    }
    for client in started.iter_mut().map(|(_, client)| client) {
        for number in 0..8 {
            let strlen = format!("STRLEN k{number}");
            until("the item arrives", || client.ask(&strlen) == format!(":{}", 1 << 20));
        }
        assert_eq!(client.ask(&format!("SETNX lock:{} me", long.len())).len(), 2);
    }
    // A new certificate counts for the next connection.
    authority.issue(folder.path(), "d1", "d1");
    let [first, second] = started;
    drop(second);
    let (mut second, mut client) = Configured::start(&files[1]);
    until("it is connected again", || field(&mut client, 0, "state") == "connected");
    assert_eq!(client.ask("STRLEN k0"), format!(":{}", 1 << 20));
    let (first, mut client_of_first) = first;
    assert_eq!(client_of_first.ask("SET last 1"), "+OK");
    until("it arrives", || client.ask("GET last") == "\"1\"");
    second.kill();
    let errors = first.errors();
    assert!(!errors.contains("certificate"), "{errors}");
}

/// Starts two data centers of which one has another certificate, and returns why they are not connected.
fn refused(
    prepare: impl FnOnce(&Authority, &Path, &[std::net::SocketAddr]) -> PathBuf,
) -> (String, String) {
    let authority = Authority::new();
    let folder = folder_of(&authority);
    let peers = free_addresses(2);
    authority.issue(folder.path(), "d0", "d0");
    let first = with_tls(folder.path(), 0, &peers, "d0");
    let second = prepare(&authority, folder.path(), &peers);
    let (first, _client) = Configured::start(&first);
    let (second, mut of_second): (Configured, Raw) = Configured::start(&second);
    let mut why = String::new();
    until("it is refused", || {
        why = field(&mut of_second, 0, "why");
        assert_eq!(field(&mut of_second, 0, "state"), "away");
        why != "nil" && !why.is_empty() && !why.contains("refused (os error")
    });
    drop(second);
    (why, first.errors())
}

#[test]
fn a_stranger_is_refused() {
    // A certificate by another root.
    let (why, errors) = refused(|_, folder, peers| {
        Authority::new().issue(folder, "d1", "d1");
        with_tls(folder, 1, peers, "d1")
    });
    assert!(errors.contains("has no right certificate"), "{why} / {errors}");
    // No encryption.
    let (why, errors) = refused(|_, folder, peers| file(folder, 1, CLUSTER, peers));
    assert!(errors.contains("has no right certificate"), "{why} / {errors}");
    // The name of another data center.
    let (why, errors) = refused(|authority, folder, peers| {
        authority.issue(folder, "d1", "d7");
        with_tls(folder, 1, peers, "d1")
    });
    let expected = "it says that it is d1, and its certificate names no data center";
    assert!(errors.contains(expected), "{why} / {errors}");
    let (why, errors) = refused(|authority, folder, peers| {
        authority.issue(folder, "d1", "d0");
        with_tls(folder, 1, peers, "d1")
    });
    let expected = "it says that it is d1, and its certificate names d0";
    assert!(errors.contains(expected), "{why} / {errors}");
}
