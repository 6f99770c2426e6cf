//! TLS, by the rules of libpq's `sslmode`.
//!
//! | `sslmode` | encrypted | the server's certificate |
//! | --- | --- | --- |
//! | `disable` | no | |
//! | `prefer`, the default | if the server can | any, unless authorities are given |
//! | `require` | yes | any, unless authorities are given |
//! | `verify-ca` | yes | from an authority, whatever its name |
//! | `verify-full` | yes | from an authority, for this host |

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::pipeline::OneSync;

/// The parts of the server's certificate that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    Nothing,
    Authority,
    Full,
}

/// The client's message that asks for TLS.
const REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Replaces `verify-ca` and `verify-full`, which the driver does not support, by `require` in an
/// address. Returns the check to make; none if the mode does not determine it.
fn split_mode(url: &str) -> (String, Option<Check>) {
    for (mode, check) in [("verify-full", Check::Full), ("verify-ca", Check::Authority)] {
        for text in [format!("sslmode={mode}"), format!("sslmode='{mode}'")] {
            if url.contains(&text) {
                return (url.replace(&text, "sslmode=require"), Some(check));
            }
        }
    }
    (url.to_owned(), None)
}

/// The factory of the TLS side of connections.
#[derive(Clone)]
pub struct MakeTls {
    config: Arc<ClientConfig>,
    mode: SslMode,
    negotiation: SslNegotiation,
}

impl MakeTls {
    /// Creates it for an address, with certificates of authorities in PEM or those of the system.
    /// Also returns the address in a form that the driver understands.
    ///
    /// # Errors
    ///
    /// When the certificates cannot be read.
    pub fn new(url: &str, authorities: Option<&[u8]>) -> Result<(String, Self), String> {
        let (url, mode) = split_mode(url);
        // Like libpq: given authorities are always checked.
        let check = match (mode, authorities) {
            (Some(check), _) => check,
            (None, Some(_)) => Check::Authority,
            (None, None) => Check::Nothing,
        };
        let provider = Arc::new(ring::default_provider());
        let failed = |error: Error| format!("tls: {error}");
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(failed)?;
        let inner = match check {
            Check::Nothing => None,
            _ => {
                let roots = Arc::new(roots(authorities)?);
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
                Some(verifier.build().map_err(|error| format!("tls: {error}"))?)
            }
        };
        let verifier = Arc::new(Verifier { check, inner, provider });
        let config =
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        let (mode, negotiation) = (SslMode::Disable, SslNegotiation::Postgres);
        Ok((url, Self { config: Arc::new(config), mode, negotiation }))
    }

    /// Takes over the TLS negotiation from the driver, by the driver's configuration. The driver
    /// then takes each stream for an encrypted one, and passes it to this type, encrypted or not.
    pub fn take_over(&mut self, driver: &mut Config) {
        (self.mode, self.negotiation) = (driver.get_ssl_mode(), driver.get_ssl_negotiation());
        driver.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    }
}

fn roots(authorities: Option<&[u8]>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate =
                    certificate.map_err(|error| format!("root_certificates: {error}"))?;
                let added = roots.add(certificate);
                added.map_err(|error| format!("root_certificates: {error}"))?;
            }
            if roots.is_empty() {
                return Err("root_certificates: expected certificates in PEM, found none".into());
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err("the system has no certificates of authorities: give them in \
                            root_certificates"
                    .into());
            }
        }
    }
    Ok(roots)
}

/// Checks a certificate as far as the mode demands; it always checks that the server has its key.
#[derive(Debug)]
struct Verifier {
    check: Check,
    /// None if nothing is checked.
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        let verified =
            inner.verify_server_cert(certificate, intermediates, server_name, ocsp_response, now);
        match verified {
            // The verifier checks the name last.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == Check::Authority => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl<S> MakeTlsConnect<S> for MakeTls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = OneSync<Stream<S>>;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Connect, io::Error> {
        let name = ServerName::try_from(domain.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        Ok(Connect { connector, name, mode: self.mode, negotiation: self.negotiation })
    }
}

/// The TLS side of one connection.
pub struct Connect {
    connector: TlsConnector,
    name: ServerName<'static>,
    mode: SslMode,
    negotiation: SslNegotiation,
}

impl Connect {
    async fn connect<S>(self, mut stream: S) -> io::Result<Stream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if self.mode == SslMode::Disable {
            return Ok(Stream::Plain(stream));
        }
        if self.negotiation == SslNegotiation::Postgres {
            stream.write_all(&REQUEST).await?;
            if stream.read_u8().await? != b'S' {
                return match self.mode {
                    SslMode::Require => Err(io::Error::other("server does not support TLS")),
                    _ => Ok(Stream::Plain(stream)),
                };
            }
        }
        let stream = self.connector.connect(self.name, stream).await?;
        Ok(Stream::Encrypted(Box::new(stream)))
    }
}

impl<S> TlsConnect<S> for Connect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = OneSync<Stream<S>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Stream>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { Ok(OneSync::new(Self::connect(self, stream).await?)) })
    }
}

/// A stream with or without encryption.
pub enum Stream<S> {
    /// Unencrypted, as the server or the address demands.
    Plain(S),
    /// With TLS.
    Encrypted(Box<tokio_rustls::client::TlsStream<S>>),
}

impl<S> TlsStream for Stream<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_the_driver_does_not_know_are_ours() {
        let check = |url: &str, expected: &str, check: Option<Check>| {
            assert_eq!(split_mode(url), (expected.to_owned(), check), "{url}");
        };
        check("postgres://h/d", "postgres://h/d", None);
        check("postgres://h/d?sslmode=disable", "postgres://h/d?sslmode=disable", None);
        let full = Some(Check::Full);
        check("postgres://h/d?sslmode=verify-full", "postgres://h/d?sslmode=require", full);
        check("host=h sslmode='verify-full'", "host=h sslmode=require", full);
        let authority = Some(Check::Authority);
        check(
            "postgres://h/d?sslmode=verify-ca&x=1",
            "postgres://h/d?sslmode=require&x=1",
            authority,
        );
    }

    #[test]
    fn authorities_that_are_none_are_refused() {
        let error = MakeTls::new("postgres://h/d?sslmode=verify-full", Some(b"no PEM"));
        let error = error.map(|_| ()).unwrap_err();
        assert!(error.contains("root_certificates"), "{error}");
    }
}
