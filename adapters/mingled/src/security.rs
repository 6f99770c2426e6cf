//! The user and the encryption of connections.

use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, Error, InvalidMessage, RootCertStore,
};

use crate::limits::{PASSWORD_BYTES_MAX, USER_BYTES_MAX};
use crate::wire::SignIn;

/// A key of the binding that is wrong, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongKey {
    /// The key.
    pub key: &'static str,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for WrongKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

fn wrong(key: &'static str, reason: impl fmt::Display) -> WrongKey {
    WrongKey { key, reason: reason.to_string() }
}

/// A password.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// The password itself.
    Text(String),
    /// A file whose only line is the password. It is read for each connection, so that the password can change.
    File(PathBuf),
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(…)"),
            Self::File(file) => write!(f, "File({})", file.display()),
        }
    }
}

/// A user of the data centers, with its password.
///
/// # Examples
///
/// ```
/// use mingle_store_mingled::{Credentials, Password};
///
/// let credentials = Credentials::new("shop", Password::Text("secret".into()));
/// assert!(credentials.check().is_ok());
/// assert!(!format!("{credentials:?}").contains("secret"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The name of the user.
    pub user: String,
    /// The password.
    pub password: Password,
}

impl Credentials {
    /// Creates the credentials of a user.
    pub fn new(user: impl Into<String>, password: Password) -> Self {
        Self { user: user.into(), password }
    }

    /// Checks the lengths of the name and the password; a file is read.
    ///
    /// # Errors
    ///
    /// The key of the binding, and the reason.
    pub fn check(&self) -> Result<(), WrongKey> {
        self.sign_in().map(|_| ())
    }

    /// Returns the user and the password as they are sent.
    pub(crate) fn sign_in(&self) -> Result<SignIn, WrongKey> {
        let user = self.user.clone();
        if user.is_empty() || user.len() > USER_BYTES_MAX {
            let length = user.len();
            let why = format!("expected a name of 1 to {USER_BYTES_MAX} bytes, found {length}");
            return Err(wrong("user", why));
        }
        let (key, password) = match &self.password {
            Password::Text(text) => ("password", text.clone()),
            Password::File(file) => {
                let text = fs::read_to_string(file).map_err(|error| {
                    wrong("password_file", format!("cannot read {}: {error}", file.display()))
                })?;
                let line = text.strip_suffix('\n').unwrap_or(&text);
                let line = line.strip_suffix('\r').unwrap_or(line);
                if line.contains(['\n', '\r']) {
                    let why = "expected a file with one line, the password, and found several";
                    return Err(wrong("password_file", why));
                }
                ("password_file", line.to_owned())
            }
        };
        if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
            let length = password.len();
            let why =
                format!("expected a password of 1 to {PASSWORD_BYTES_MAX} bytes, found {length}");
            return Err(wrong(key, why));
        }
        Ok(SignIn { user, password })
    }
}

/// A certificate of the program and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those between it and a root.
    pub certificate: Vec<u8>,
    /// The key.
    pub key: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(…)")
    }
}

/// The encryption of connections, with TLS 1.2 or 1.3.
///
/// # Examples
///
/// ```
/// use mingle_store_mingled::TlsConfig;
///
/// let system = TlsConfig::default();
/// assert!(system.check(["db.example.com:6398", "10.0.0.1:6398"]).is_ok());
/// let wrong = TlsConfig { root_certificates: Some(b"nothing".to_vec()), ..system };
/// assert_eq!(wrong.check(["db.example.com:6398"]).unwrap_err().key, "root_certificates");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// Certificates of authorities in PEM, of which one must have issued that of the data center; those of the system
    /// if there are none here.
    pub root_certificates: Option<Vec<u8>>,
    /// The name in the certificates of the data centers; the host of the address if there is none here.
    pub server_name: Option<String>,
    /// The certificate of the program, if the data centers want one.
    pub identity: Option<Identity>,
}

impl TlsConfig {
    /// Checks the certificates and names, as far as that is possible without a data center.
    ///
    /// # Errors
    ///
    /// The key of the binding, and the reason.
    pub fn check<'a>(&self, addresses: impl IntoIterator<Item = &'a str>) -> Result<(), WrongKey> {
        let roots = match &self.root_certificates {
            Some(pem) => given_roots(pem)?,
            None => RootCertStore::empty(),
        };
        self.client(roots)?;
        addresses.into_iter().try_for_each(|address| self.name_at(address).map(|_| ()))
    }

    /// Returns the other end of connections.
    pub(crate) fn connector(&self) -> Result<TlsConnector, WrongKey> {
        let roots = match &self.root_certificates {
            Some(pem) => given_roots(pem)?,
            None => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    let why =
                        "the system has no certificates of authorities: name a file with them";
                    return Err(wrong("root_certificates", why));
                }
                roots
            }
        };
        Ok(TlsConnector::from(Arc::new(self.client(roots)?)))
    }

    fn client(&self, roots: RootCertStore) -> Result<ClientConfig, WrongKey> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("tls", error))?
            .with_root_certificates(roots);
        let Some(Identity { certificate, key }) = &self.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates("client_certificate", certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| wrong("client_key", format!("expected a key in PEM: {error}")))?;
        builder.with_client_auth_cert(chain, key).map_err(|error| {
            wrong("client_key", format!("it does not fit client_certificate: {error}"))
        })
    }

    /// Returns the name that the certificate of the data center at an address must have.
    pub(crate) fn name_at(&self, address: &str) -> Result<ServerName<'static>, WrongKey> {
        let (key, name) = match &self.server_name {
            Some(name) => ("server_name", name.as_str()),
            None => ("address", host(address)),
        };
        ServerName::try_from(name.to_owned()).map_err(|_| {
            wrong(key, format!("expected a name or an address for a certificate, found {name:?}"))
        })
    }
}

fn certificates(key: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, WrongKey> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| wrong(key, error))?;
    if found.is_empty() {
        return Err(wrong(key, "expected certificates in PEM, found none"));
    }
    Ok(found)
}

fn given_roots(pem: &[u8]) -> Result<RootCertStore, WrongKey> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("root_certificates", pem)? {
        roots.add(certificate).map_err(|error| wrong("root_certificates", error))?;
    }
    Ok(roots)
}

/// Returns the host of an address, without the brackets of IPv6.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// True if an address leads to this machine.
pub(crate) fn is_loopback(address: &str) -> bool {
    let host = host(address);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the meaning of an error of TLS, with what to do; none if TLS is not at fault.
pub(crate) fn explain(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(reason) => distrust(reason),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "it does not speak TLS: set [tls] at the data center, or take `tls` out of the binding"
                .into()
        }
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => {
                "it wants a certificate of the program: set client_certificate and client_key"
                    .into()
            }
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::DecryptError
            | AlertDescription::CertificateUnknown => format!(
                "it does not accept the certificate in client_certificate ({alert:?}): use one by a root in its \
                 client_ca"
            ),
            alert => format!("it ended the handshake of TLS: {alert:?}"),
        },
        error => format!("TLS: {error}"),
    })
}

fn distrust(reason: &CertificateError) -> String {
    use CertificateError as Reason;
    match reason {
        // A root with the name of a known one and another key.
        Reason::UnknownIssuer | Reason::BadSignature => {
            "its certificate is by no known authority: name a file with the authority's certificate in \
             root_certificates"
                .into()
        }
        Reason::NotValidForName | Reason::NotValidForNameContext { .. } => format!(
            "its certificate has another name ({reason}): set server_name to a name that the certificate has"
        ),
        Reason::Expired | Reason::ExpiredContext { .. } => {
            format!("its certificate has expired ({reason}): renew it at the data center")
        }
        Reason::NotValidYet | Reason::NotValidYetContext { .. } => {
            format!("its certificate is not valid yet ({reason}): compare the clocks of both machines")
        }
        reason => format!("its certificate is not accepted: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_file_has_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("password");
        let credentials = Credentials::new("app", Password::File(file.clone()));
        let error = credentials.check().expect_err("there is no file");
        assert!(error.to_string().starts_with("password_file: cannot read "), "{error}");
        for (text, expected) in [
            ("secret", Ok("secret")),
            ("secret\n", Ok("secret")),
            ("secret \r\n", Ok("secret ")),
            ("", Err("password_file: expected a password of 1 to 1024 bytes, found 0")),
            ("\n", Err("password_file: expected a password of 1 to 1024 bytes, found 0")),
            ("a\nb\n", Err("password_file: expected a file with one line")),
        ] {
            fs::write(&file, text).expect("room");
            let found = credentials.sign_in().map(|it| it.password);
            let found = found.map_err(|error| error.to_string());
            match expected {
                Ok(password) => assert_eq!(found.as_deref(), Ok(password)),
                Err(start) => {
                    assert!(found.as_ref().is_err_and(|it| it.starts_with(start)), "{found:?}");
                }
            }
        }
        for (user, password) in [("", "a"), ("app", "")] {
            Credentials::new(user, Password::Text(password.into())).check().expect_err("too short");
        }
        let long = "x".repeat(PASSWORD_BYTES_MAX + 1);
        let error = Credentials::new("app", Password::Text(long.clone())).check();
        let error = error.expect_err("it is too long").to_string();
        assert!(error.contains("found 1025") && !error.contains(&long), "{error}");
    }

    #[test]
    fn hosts_on_this_machine_are_known() {
        for near in ["localhost:1", "LOCALHOST:1", "127.0.0.1:1", "127.8.0.1:1", "[::1]:1"] {
            assert!(is_loopback(near), "{near}");
        }
        for far in ["10.0.0.1:1", "[fe80::1]:1", "db.example.com:1", "localhost.example:1"] {
            assert!(!is_loopback(far), "{far}");
        }
        let name = TlsConfig::default().name_at("[::1]:6398").expect("an address");
        assert_eq!(name, ServerName::from(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1_u16])));
    }
}
