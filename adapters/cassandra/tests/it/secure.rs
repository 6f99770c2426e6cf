//! Nodes that require a password, and encrypted connections to them.

use mingle_model::Level;
use mingle_services::{Engine, Options, Server};
use mingle_store::conformance::schema::{TEXT, at, store_schema};
use mingle_store::{Data, Read, Write};
use mingle_store_cassandra::{CassandraConfig, OpenError};
use scylla::client::session_builder::SessionBuilder;

use crate::support::{config, connect, data, write};

/// The initial superuser, as in the documentation of Cassandra.
const FIRST: &str = "cassandra";

const NAME: &str = "shop";
const PASSWORD: &str = "of the \u{e9}picerie";

/// Starts nodes that require a password, and creates a role.
async fn asking(options: Options) -> Option<Server> {
    // Roles have one copy, at one of the nodes.
    let options = options
        .setting("authenticator", "PasswordAuthenticator")
        .setting("auth_read_consistency_level", "ONE")
        .setting("auth_write_consistency_level", "ONE");
    let server = mingle_services::private_with(Engine::Cassandra, options).await?;
    let first = SessionBuilder::new().known_nodes(server.url().split(',')).user(FIRST, FIRST);
    let first = first.build().await.expect("the first role is let in");
    let role = format!("CREATE ROLE {NAME} WITH LOGIN = true AND PASSWORD = '{PASSWORD}'");
    first.query_unpaged(role, ()).await.expect("a role is made");
    Some(server)
}

fn known(url: &str) -> CassandraConfig {
    CassandraConfig { credentials: Some((NAME.to_owned(), PASSWORD.to_owned())), ..config(url) }
}

/// Returns the reason why a store cannot be opened with this configuration.
async fn refused(config: CassandraConfig) -> String {
    let opened = connect(config, store_schema(Level::Eventual)).await.map(|_| ());
    let Err(OpenError::Unavailable { .. }) = &opened else { panic!("{opened:?}") };
    opened.expect_err("it was seen").to_string()
}

/// Opens a store, writes and reads.
async fn works(config: CassandraConfig) {
    let opened = connect(config, store_schema(Level::Eventual)).await;
    let store = opened.unwrap_or_else(|error| panic!("{error}"));
    let text = mingle_model::Value::from("seen");
    write(&store, "dc2", vec![Write::Assign(at("one", TEXT), text.clone())])
        .await
        .expect("a write");
    assert_eq!(
        data(&store, "dc2", Read::Register(at("one", TEXT))).await,
        Data::Register(Some(text))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_ask_who_we_are_are_told() {
    let Some(server) = asking(Options::default()).await else { return };
    let url = server.url();
    let wrong = (NAME.to_owned(), "of another".to_owned());
    for credentials in [None, Some(wrong)] {
        let why = refused(CassandraConfig { credentials, ..config(url) }).await;
        assert!(why.to_lowercase().contains("auth") || why.contains("credentials"), "{why}");
        assert!(!why.contains("of another"), "{why}");
    }
    works(known(url)).await;
}

#[cfg(feature = "tls")]
#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_to_nodes_that_an_authority_vouches_for() {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

    let authority = || {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        CertifiedIssuer::self_signed(params, key).expect("a certificate")
    };
    let (ours, theirs) = (authority(), authority());
    let hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(str::to_owned).to_vec();
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(hosts).expect("addresses");
    let certificate = params.signed_by(&key, &ours).expect("a certificate");
    // The process that starts the nodes connects to them without encryption.
    let factory = format!(
        "{{enabled: true, optional: true, ssl_context_factory: {{class_name: \
         org.apache.cassandra.security.PEMBasedSslContextFactory, parameters: {{private_key: {:?}}}}}}}",
        key.serialize_pem() + &certificate.pem()
    );
    let options = Options::default().setting("client_encryption_options", &factory);
    let Some(server) = asking(options).await else { return };
    let with = |pem: String| CassandraConfig {
        tls: true,
        root_certificates: Some(pem.into_bytes()),
        ..known(server.url())
    };
    works(with(ours.pem())).await;
    refused(with(theirs.pem())).await;
}
