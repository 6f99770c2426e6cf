//! What is served, to whom, and within which bounds.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mingle::{Session, SessionKey};
use tokio_rustls::rustls::ServerConfig;

use crate::access::Tokens;
use crate::limits;
use crate::worker::WorkerBounds;

/// What a server is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who may call what; none lets everybody call everything.
    pub tokens: Option<Tokens>,
    /// Whether it may listen for other machines although everybody may call everything.
    pub is_open: bool,
    /// Runs phases for clients elsewhere, within these bounds; none does not.
    pub worker: Option<WorkerBounds>,
    /// Encrypts connections.
    pub tls: Option<Arc<ServerConfig>>,
    /// Signs the sessions of clients.
    pub session_key: SessionKey,
    /// Where clients begin that bring no session.
    pub replica: Option<mingle_model::Name>,
    /// Bytes of a body.
    pub body_bytes_max: usize,
    /// Bytes of memory that the bodies of all requests take, and the arguments decoded from them.
    pub body_memory_max: usize,
    /// Calls that run at a time.
    pub concurrent_max: usize,
    /// Whether calls are refused, too, where calls of the same transaction take much longer than one alone.
    pub is_adaptive: bool,
    /// Connections that are open at a time.
    pub connections_max: usize,
    /// The longest deadline that a caller may ask for.
    pub deadline_max: Duration,
    /// How long calls may go on once the server is told to stop.
    pub shutdown_after: Duration,
    /// How long the head of a request may take.
    pub head_within: Duration,
    /// How long the body of a request may take.
    pub body_within: Duration,
    /// How long a client may take nothing of an answer.
    pub write_within: Duration,
}

impl Default for Config {
    /// Everybody on this machine may call everything, and sessions end with the process.
    fn default() -> Self {
        Self {
            tokens: None,
            is_open: false,
            worker: None,
            tls: None,
            session_key: random_session_key(),
            replica: None,
            body_bytes_max: limits::BODY_BYTES_MAX,
            body_memory_max: limits::BODY_MEMORY_MAX,
            concurrent_max: limits::CONCURRENT_MAX,
            is_adaptive: true,
            connections_max: limits::CONNECTIONS_MAX,
            deadline_max: limits::DEADLINE_MAX,
            shutdown_after: limits::SHUTDOWN_AFTER,
            head_within: limits::HEAD_WITHIN,
            body_within: limits::BODY_WITHIN,
            write_within: limits::WRITE_WITHIN,
        }
    }
}

impl Config {
    /// The session of a client that brings none.
    pub(crate) fn new_session(&self) -> Session {
        self.replica.clone().map_or_else(Session::default, Session::at)
    }

    /// Whether a server may listen there.
    ///
    /// # Errors
    ///
    /// When others could reach what nothing protects.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_server::Config;
    ///
    /// let config = Config::default();
    /// assert!(config.may_listen("127.0.0.1:8080".parse().unwrap()).is_ok());
    /// assert!(config.may_listen("0.0.0.0:8080".parse().unwrap()).is_err());
    /// let open = Config { is_open: true, ..config };
    /// assert!(open.may_listen("0.0.0.0:8080".parse().unwrap()).is_ok());
    /// ```
    pub fn may_listen(&self, address: SocketAddr) -> Result<(), ConfigError> {
        if self.tokens.is_some() || self.is_open || address.ip().is_loopback() {
            return Ok(());
        }
        Err(ConfigError::Exposed(address))
    }

    /// Whether only programs on this machine are served, and everybody there.
    pub(crate) fn is_local(&self) -> bool {
        self.tokens.is_none() && !self.is_open
    }
}

/// Sessions that are signed with this end with the process.
pub fn random_session_key() -> SessionKey {
    let mut bytes = [0; 32];
    let provider = tokio_rustls::rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).expect("the system gives random bytes");
    SessionKey::new(bytes)
}

/// Why a server cannot be set up so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Others could reach what nothing protects.
    Exposed(SocketAddr),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exposed(address) => write!(
                f,
                "{address} can be reached from other machines, and without tokens everybody may call everything there"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_than_this_machine_are_served_with_tokens_or_where_it_is_said_to_be_open() {
        let (here, anywhere) = (([127, 0, 0, 1], 80).into(), ([0, 0, 0, 0], 80).into());
        for (has_tokens, is_open, may) in
            [(false, false, false), (true, false, true), (false, true, true), (true, true, true)]
        {
            let tokens = has_tokens.then(Tokens::default);
            let config = Config { tokens, is_open, ..Config::default() };
            assert_eq!(config.may_listen(anywhere).is_ok(), may, "{has_tokens}, {is_open}");
            assert!(config.may_listen(here).is_ok());
            assert_eq!(config.is_local(), !may);
        }
    }
}
