//! TLS, with certificates that change while the server runs.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ConnectionCommon, RootCertStore, ServerConfig, SideData};

/// The time for which the files are taken to be unchanged.
const LOOK: Duration = Duration::from_secs(1);

/// The files of PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, and those between it and a root.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// The roots of certificates that clients must have; without it they need none.
    pub client_ca: Option<PathBuf>,
}

impl TlsFiles {
    fn all(&self) -> impl Iterator<Item = &Path> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).map(PathBuf::as_path)
    }

    /// Returns the times and lengths of the files.
    fn stamps(&self) -> Vec<Option<(SystemTime, u64)>> {
        let stamp = |file: &Path| {
            let found = fs::metadata(file).ok()?;
            Some((found.modified().ok()?, found.len()))
        };
        self.all().map(stamp).collect()
    }
}

/// The settings of TLS, as the files have them.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    configs: Configs,
    stamps: Vec<Option<(SystemTime, u64)>>,
    looked: Instant,
}

/// The settings for new connections.
#[derive(Clone, Debug)]
pub struct Configs {
    /// Of connections that are accepted.
    pub accepted: Arc<ServerConfig>,
    /// Of connections to servers with certificates by the roots, if there are roots.
    pub dialed: Option<Arc<ClientConfig>>,
}

/// The news of certificates that have changed.
pub type Changed = Result<(), String>;

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// The file, and why it cannot be used.
    pub fn open(files: TlsFiles) -> Result<Self, String> {
        let stamps = files.stamps();
        let state = State { configs: load(&files)?, stamps, looked: Instant::now() };
        Ok(Self { files, state: Mutex::new(state) })
    }

    /// Returns the settings for a new connection. Files that have changed are read again; if they do not
    /// fit together, which may be so while they are replaced, the last ones count. The second value tells of a
    /// change.
    pub fn configs(&self) -> (Configs, Option<Changed>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() < LOOK {
            return (state.configs.clone(), None);
        }
        state.looked = Instant::now();
        let stamps = self.files.stamps();
        if stamps == state.stamps {
            return (state.configs.clone(), None);
        }
        let changed = match load(&self.files) {
            Ok(configs) => {
                state.configs = configs;
                Ok(())
            }
            Err(why) => {
                Err(format!("the changed certificates cannot be used, the last ones count: {why}"))
            }
        };
        // Files that are wrong are read again once they change.
        state.stamps = stamps;
        (state.configs.clone(), Some(changed))
    }
}

fn load(files: &TlsFiles) -> Result<Configs, String> {
    let wrong = |file: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(&files.certificate)?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&files.certificate, &error))?;
    let Some(file) = &files.client_ca else {
        let accepted = builder.with_no_client_auth().with_single_cert(chain, key);
        let accepted = accepted.map_err(|error| wrong(&files.key, &error))?;
        return Ok(Configs { accepted: Arc::new(accepted), dialed: None });
    };
    let mut roots = RootCertStore::empty();
    for root in certificates(file)? {
        roots.add(root).map_err(|error| wrong(file, &error))?;
    }
    let roots = Arc::new(roots);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
    let verifier = verifier.build().map_err(|error| wrong(file, &error))?;
    let accepted = builder.with_client_cert_verifier(verifier);
    let accepted = accepted.with_single_cert(chain.clone(), key.clone_key());
    let accepted = accepted.map_err(|error| wrong(&files.key, &error))?;
    let dialed = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_root_certificates(roots).with_client_auth_cert(chain, key))
        .map_err(|error| wrong(&files.key, &error))?;
    Ok(Configs { accepted: Arc::new(accepted), dialed: Some(Arc::new(dialed)) })
}

/// Completes a handshake within a time. After an error the other end is told the reason as far as TLS has
/// words for it.
///
/// # Errors
///
/// If the other end closes the connection, is too slow, or has no right certificate.
pub fn shake_hands<S: SideData>(
    connection: &mut ConnectionCommon<S>,
    tcp: &mut TcpStream,
    within: Duration,
) -> io::Result<()> {
    let until = Instant::now() + within;
    loop {
        while connection.wants_write() {
            connection.write_tls(tcp)?;
        }
        if !connection.is_handshaking() {
            return Ok(());
        }
        let left = until.saturating_duration_since(Instant::now());
        let late = || io::Error::new(ErrorKind::TimedOut, "the handshake of TLS took too long");
        if left.is_zero() {
            return Err(late());
        }
        tcp.set_read_timeout(Some(left))?;
        match connection.read_tls(tcp) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(late());
            }
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        if let Err(error) = connection.process_new_packets() {
            // The alert; the connection ends anyway.
            let _ = connection.write_tls(tcp);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| format!("{}: {error}", file.display()))?;
    if found.is_empty() {
        return Err(format!("{}: there is no certificate in it", file.display()));
    }
    Ok(found)
}
