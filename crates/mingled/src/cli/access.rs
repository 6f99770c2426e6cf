//! The files of users, certificates and the audit log.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use mingled::access::{Audit, Tls, TlsFiles, Users};

/// The files, as arguments or members of the file with the settings.
#[derive(Clone, Debug, Default, Args)]
pub struct AccessFiles {
    /// File of users, with the lines of an aclfile of Redis. Without it all clients and programs may do everything.
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// File of PEM with the certificate of the server: clients and programs connect with TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// File of PEM with the key of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// File of PEM with the roots of certificates that clients and programs must have.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_client_ca: Option<PathBuf>,
    /// File to which a line of JSON is added for each event that concerns security.
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// Accept passwords and data of other machines without TLS.
    #[arg(long)]
    pub plain_text: bool,
    /// The files of connections between data centers, which only a file of settings has.
    #[arg(skip)]
    pub peers_tls: Option<TlsFiles>,
}

/// The users and the encryption of a server.
#[derive(Debug)]
pub struct Access {
    pub users: Option<Arc<Users>>,
    pub tls: Option<Arc<Tls>>,
    pub peers_tls: Option<Arc<Tls>>,
}

impl AccessFiles {
    /// Opens the files of users and certificates.
    ///
    /// # Errors
    ///
    /// The file, and why it cannot be used.
    pub fn open(&self) -> Result<Access, String> {
        let users = self.users.clone().map(Users::open).transpose();
        let users = users.map_err(|error| error.to_string())?.map(Arc::new);
        let files = match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                client_ca: self.tls_client_ca.clone(),
            }),
            _ => None,
        };
        let open = |files: Option<TlsFiles>| {
            Ok::<_, String>(files.map(Tls::open).transpose()?.map(Arc::new))
        };
        Ok(Access { users, tls: open(files)?, peers_tls: open(self.peers_tls.clone())? })
    }

    /// Opens the audit log.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn audit(&self) -> Result<Arc<Audit>, String> {
        let Some(file) = &self.audit else { return Ok(Arc::default()) };
        let opened = Audit::open(file).map(Arc::new);
        opened
            .map_err(|error| format!("the audit log {} cannot be written: {error}", file.display()))
    }

    /// Returns the arguments that redis-cli needs besides the port.
    pub fn more(&self) -> &'static str {
        match (&self.tls_certificate, &self.users) {
            (Some(_), Some(_)) => " --tls --cacert FILE --user NAME --askpass",
            (Some(_), None) => " --tls --cacert FILE",
            (None, Some(_)) => " --user NAME --askpass",
            (None, None) => "",
        }
    }

    /// Returns the words that tell if programs of Mingle have encryption and users.
    pub fn guard(&self) -> &'static str {
        match (&self.tls_certificate, &self.users) {
            (Some(_), Some(_)) => "encrypted, with users",
            (Some(_), None) => "encrypted, without users",
            (None, Some(_)) => "not encrypted, with users",
            (None, None) => "not encrypted, without users",
        }
    }

    /// Returns the last lines of the summary of settings.
    pub fn summary(&self) -> String {
        let shown = |file: &Option<PathBuf>| {
            file.as_ref().map_or("none".to_owned(), |file| file.display().to_string())
        };
        let tls = match &self.tls_client_ca {
            Some(roots) => format!(
                "{}, certificates of clients by {}",
                shown(&self.tls_certificate),
                roots.display()
            ),
            None => shown(&self.tls_certificate),
        };
        let peers = self.peers_tls.as_ref().map(|files| files.certificate.clone());
        format!(
            "users         {}\ntls           {tls}\npeer tls      {}\naudit log     {}",
            shown(&self.users),
            shown(&peers),
            shown(&self.audit)
        )
    }
}

impl Access {
    /// Checks that clients, programs and data centers of other machines have passwords or certificates, and that these are
    /// encrypted.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub fn check(
        &self,
        listen: SocketAddr,
        engine: Option<SocketAddr>,
        peers: &[SocketAddr],
        files: &AccessFiles,
    ) -> Result<(), String> {
        let far = peers.iter().find(|peer| !peer.ip().is_loopback());
        if let Some(far) = far.filter(|_| self.peers_tls.is_none() && !files.plain_text) {
            return Err(format!(
                "the data center at {far} is not on loopback, and data would cross the network as it is: set \
                 [peer_tls], or plain_text = true (--plain-text) where the network is trusted"
            ));
        }
        self.check_listener(listen, "clients", files)?;
        engine.map_or(Ok(()), |engine| self.check_listener(engine, "programs", files))
    }

    /// Checks that `senders` of other machines have passwords, and that these are encrypted.
    fn check_listener(
        &self,
        address: SocketAddr,
        senders: &str,
        files: &AccessFiles,
    ) -> Result<(), String> {
        if address.ip().is_loopback() {
            return Ok(());
        }
        let Some(users) = &self.users else {
            return Err(format!(
                "{address} is not on loopback: {senders} of other machines need passwords, in a file of users \
                 (--users, or users_file)"
            ));
        };
        if let Some(user) = users.all().iter().find(|user| user.needs_no_password()) {
            return Err(format!(
                "{address} is not on loopback, and the user {} of {} needs no password: take `nopass` away",
                user.name(),
                users.file().display()
            ));
        }
        if self.tls.is_none() && !files.plain_text {
            return Err(format!(
                "{address} is not on loopback, and passwords would cross the network as they are: set \
                 --tls-certificate and --tls-key ([tls] in a file), or --plain-text (plain_text = true) where \
                 the network is trusted"
            ));
        }
        Ok(())
    }
}
