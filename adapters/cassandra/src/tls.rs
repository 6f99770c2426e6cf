//! Encrypted connections: nodes must have certificates of a known authority, for their addresses.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::config::CassandraConfig;

/// Returns the TLS configuration of connections.
///
/// # Errors
///
/// When the certificates of authorities cannot be read.
pub fn config(config: &CassandraConfig) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let mut add = |certificate| roots.add(certificate).map_err(|error| format!("tls: {error}"));
    match &config.root_certificates {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                add(certificate.map_err(|error| format!("root_certificates: {error}"))?)?;
            }
        }
        None => {
            for certificate in rustls_native_certs::load_native_certs().certs {
                // Systems have some certificates that this library does not understand.
                let _ = add(certificate);
            }
        }
    }
    if roots.is_empty() {
        return Err("tls: no certificate of an authority is known".into());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("tls: {error}"))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
