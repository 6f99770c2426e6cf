//! TLS: the servers that each mode accepts.

use std::sync::Arc;

use crate::support::{RealWorld, notes, server, unique};
use mingle_model::Level;
use mingle_store_postgres::{OpenError, Postgres, PostgresConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// An authority with its certificate.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// Puts a TLS front for this name before the server.
    async fn front(&self, name: &str, upstream: String) -> u16 {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
            )
            .expect("a certificate and its key");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (acceptor, upstream) = (acceptor.clone(), upstream.clone());
                tokio::spawn(async move {
                    let mut request = [0; 8];
                    stream.read_exact(&mut request).await?;
                    // A client that does not ask for TLS is rejected.
                    if request != [0, 0, 0, 8, 4, 210, 22, 47] {
                        return Ok(());
                    }
                    stream.write_all(b"S").await?;
                    let mut stream = acceptor.accept(stream).await?;
                    let mut server = TcpStream::connect(upstream).await?;
                    copy_bidirectional(&mut stream, &mut server).await.map(|_| ())
                });
            }
        });
        port
    }
}

async fn connect(url: String, authorities: Option<Vec<u8>>) -> Result<(), OpenError> {
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("tls"));
    config.root_certificates = authorities;
    Postgres::connect(config, notes(Level::Linearizable), RealWorld::make()).await.map(|_| ())
}

#[tokio::test]
async fn each_mode_takes_the_servers_that_it_should() {
    let Some(url) = server().await else { return };
    let (before, rest) = url.split_once('@').expect("a user");
    let (upstream, database) = rest.split_once('/').expect("a database");
    let (ours, theirs) = (Authority::new(), Authority::new());
    let right = ours.front("127.0.0.1", upstream.to_owned()).await;
    let other = ours.front("elsewhere.example", upstream.to_owned()).await;
    let plain: u16 = upstream.rsplit_once(':').expect("a port").1.parse().expect("a number");
    let cases = [
        ("prefer", right, None, None),
        ("require", right, None, None),
        ("require", other, Some(&ours), None),
        ("require", right, Some(&theirs), Some("invalid peer certificate")),
        ("verify-ca", other, Some(&ours), None),
        ("verify-ca", other, Some(&theirs), Some("invalid peer certificate")),
        ("verify-full", right, Some(&ours), None),
        ("verify-full", other, Some(&ours), Some("not valid for")),
        ("verify-full", right, Some(&theirs), Some("invalid peer certificate")),
        ("disable", plain, None, None),
        ("disable", right, None, Some("")),
        ("require", plain, None, Some("does not support TLS")),
        ("verify-full", plain, Some(&ours), Some("does not support TLS")),
    ];
    for (mode, port, authority, refused) in cases {
        let url = format!("{before}@127.0.0.1:{port}/{database}?sslmode={mode}");
        let found = connect(url, authority.map(Authority::pem)).await;
        match (found, refused) {
            (Ok(()), None) => {}
            (Err(error), Some(words)) if error.to_string().contains(words) => {}
            (found, refused) => panic!("{mode} at {port} gave {found:?}, expected {refused:?}"),
        }
    }
}
