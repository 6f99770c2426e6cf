//! TLS, with certificates that change while the server runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

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
    config: Arc<ServerConfig>,
    stamps: Vec<Option<(SystemTime, u64)>>,
    looked: Instant,
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
        let state = State { config: load(&files)?, stamps, looked: Instant::now() };
        Ok(Self { files, state: Mutex::new(state) })
    }

    /// Returns the settings for a new connection. Files that have changed are read again; if they do not
    /// fit together, which may be so while they are replaced, the last ones count. The second value tells of a
    /// change.
    pub fn config(&self) -> (Arc<ServerConfig>, Option<Changed>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() < LOOK {
            return (state.config.clone(), None);
        }
        state.looked = Instant::now();
        let stamps = self.files.stamps();
        if stamps == state.stamps {
            return (state.config.clone(), None);
        }
        let changed = match load(&self.files) {
            Ok(config) => {
                state.config = config;
                Ok(())
            }
            Err(why) => Err(why),
        };
        // Files that are wrong are read again once they change.
        state.stamps = stamps;
        (state.config.clone(), Some(changed))
    }
}

fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
    let wrong = |file: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(&files.certificate)?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&files.certificate, &error))?;
    let builder = match &files.client_ca {
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(file)? {
                roots.add(root).map_err(|error| wrong(file, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier.build().map_err(|error| wrong(file, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
        None => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(chain, key).map_err(|error| wrong(&files.key, &error))?;
    Ok(Arc::new(config))
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
