//! Encrypted connections.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mingled::access::{Tls, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::serving::until;
use super::{PATIENCE, Started};

/// A root of certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a root"))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Writes a certificate of a host and its key to files of this name, and returns the certificate.
    pub fn issue(&self, folder: &Path, name: &str, host: &str) -> Vec<u8> {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![host.to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        fs::write(folder.join(format!("{name}.pem")), certificate.pem()).expect("room");
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).expect("room");
        certificate.der().to_vec()
    }
}

type Client = StreamOwned<ClientConnection, TcpStream>;

/// Connects with TLS; `name` is the client's certificate in the folder, if it has one.
fn connect(address: SocketAddr, roots: &Authority, name: Option<&Path>) -> Client {
    let mut store = RootCertStore::empty();
    store.add(roots.0.der().clone()).expect("a root");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(store);
    let config = match name {
        Some(path) => {
            let chain = CertificateDer::pem_file_iter(path.with_extension("pem")).expect("a file");
            let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
            let key = PrivateKeyDer::from_pem_file(path.with_extension("key")).expect("a key");
            builder.with_client_auth_cert(chain, key).expect("they belong together")
        }
        None => builder.with_no_client_auth(),
    };
    let stream = TcpStream::connect(address).expect("the server accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("it is connected");
    let name = "localhost".try_into().expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    StreamOwned::new(connection, stream)
}

/// Sends a line, and returns the reply, which has so many bytes.
fn ask(client: &mut Client, line: &str, length: usize) -> std::io::Result<String> {
    client.write_all(format!("{line}\r\n").as_bytes())?;
    let mut reply = vec![0; length];
    client.read_exact(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

fn files(folder: &Path, client_ca: bool) -> TlsFiles {
    TlsFiles {
        certificate: folder.join("server.pem"),
        key: folder.join("server.key"),
        client_ca: client_ca.then(|| folder.join("ca.pem")),
    }
}

fn started(files: TlsFiles) -> Started {
    let tls = Tls::open(files).expect("the files fit");
    Started::with(|settings| {
        settings.tls = Some(Arc::new(tls));
        settings.request = Duration::from_secs(5);
    })
}

#[test]
fn clients_are_encrypted() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    authority.issue(folder.path(), "server", "localhost");
    let started = started(files(folder.path(), false));
    let mut client = connect(started.address(), &authority, None);
    assert_eq!(ask(&mut client, "SET a 1", 5).expect("a reply"), "+OK\r\n");
    // Replies of many records, and a request of many.
    let long = "x".repeat(100_000);
    client
        .write_all(format!("*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$100000\r\n{long}\r\n").as_bytes())
        .expect("sent");
    let mut reply = [0; 5];
    client.read_exact(&mut reply).expect("a reply");
    assert_eq!(&reply, b"+OK\r\n");
    let reply = ask(&mut client, "GET b", 100_000 + 11).expect("a reply");
    assert_eq!(reply, format!("$100000\r\n{long}\r\n"));
    // Its end is told, so that it is not taken for a cut.
    assert_eq!(ask(&mut client, "QUIT", 5).expect("a reply"), "+OK\r\n");
    assert_eq!(client.read(&mut [0; 16]).expect("a proper end"), 0);

    // A client without TLS gets nothing, and others go on.
    let mut plain = TcpStream::connect(started.address()).expect("the server accepts");
    plain.set_read_timeout(Some(PATIENCE)).expect("it is connected");
    plain.write_all(b"GET a\r\n").expect("sent");
    let mut bytes = Vec::new();
    // An alert of TLS, or a reset.
    let _ = plain.read_to_end(&mut bytes);
    assert!(!bytes.contains(&b'$'), "{bytes:?}");
    let mut client = connect(started.address(), &authority, None);
    assert_eq!(ask(&mut client, "GET a", 7).expect("a reply"), "$1\r\n1\r\n");
}

#[test]
fn certificates_of_clients_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (authority, stranger) = (Authority::new(), Authority::new());
    authority.issue(folder.path(), "server", "localhost");
    authority.issue(folder.path(), "client", "localhost");
    stranger.issue(folder.path(), "stranger", "localhost");
    fs::write(folder.path().join("ca.pem"), authority.pem()).expect("room");
    let started = started(files(folder.path(), true));
    let with = |name: Option<&str>| {
        let path = name.map(|name| folder.path().join(name));
        ask(&mut connect(started.address(), &authority, path.as_deref()), "PING", 7)
    };
    assert_eq!(with(Some("client")).expect("a reply"), "+PONG\r\n");
    with(None).expect_err("a certificate is required");
    with(Some("stranger")).expect_err("another root");
}

#[test]
fn certificates_change_without_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let first = authority.issue(folder.path(), "server", "localhost");
    let started = started(files(folder.path(), false));
    let seen = || {
        let mut client = connect(started.address(), &authority, None);
        assert_eq!(ask(&mut client, "PING", 7).expect("a reply"), "+PONG\r\n");
        client.conn.peer_certificates().expect("the server's")[0].to_vec()
    };
    let mut old = connect(started.address(), &authority, None);
    assert_eq!(ask(&mut old, "PING", 7).expect("a reply"), "+PONG\r\n");
    assert_eq!(seen(), first);
    // Files that do not belong together: the last ones count.
    fs::write(folder.path().join("server.key"), "nothing").expect("room");
    let broken = std::time::Instant::now();
    until("the files were looked at", || {
        assert_eq!(seen(), first);
        broken.elapsed() > Duration::from_millis(1_500)
    });
    let second = authority.issue(folder.path(), "server", "localhost");
    until("the new certificate counts", || seen() == second);
    assert_eq!(ask(&mut old, "PING", 7).expect("a reply"), "+PONG\r\n", "older connections go on");
}

#[test]
fn wrong_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    authority.issue(folder.path(), "server", "localhost");
    authority.issue(folder.path(), "other", "localhost");
    let open = |certificate: &str, key: &str| {
        let files = TlsFiles {
            certificate: folder.path().join(certificate),
            key: folder.path().join(key),
            client_ca: None,
        };
        Tls::open(files).expect_err("wrong files")
    };
    assert!(open("none.pem", "server.key").contains("none.pem"));
    assert!(open("server.key", "server.key").contains("there is no certificate in it"));
    assert!(open("server.pem", "server.pem").contains("server.pem"));
    assert!(open("server.pem", "other.key").contains("other.key"));
}
