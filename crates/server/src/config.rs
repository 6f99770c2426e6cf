//! The configuration of a server: access, TLS and bounds.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mingle::{Session, SessionKey};
use tokio_rustls::rustls::ServerConfig;

use crate::access::Tokens;
use crate::crash::Crash;
use crate::limits;
use crate::worker::WorkerBounds;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The program's name, which the page and the OpenAPI document show.
    pub name: String,
    /// The API tokens and their rights; without them every caller may call everything.
    pub tokens: Option<Tokens>,
    /// True if the server may listen for other machines although no tokens are set.
    pub is_open: bool,
    /// The bounds for phases that run for clients elsewhere; none if this server is no worker.
    pub worker: Option<WorkerBounds>,
    /// The TLS configuration for encrypted connections.
    pub tls: Option<Arc<ServerConfig>>,
    /// The key that signs the sessions of clients.
    pub session_key: SessionKey,
    /// The replica at which clients without a session begin.
    pub replica: Option<mingle_model::Name>,
    /// The maximum size of a body, in bytes.
    pub body_bytes_max: usize,
    /// The memory for the bodies of all requests and the arguments decoded from them, in bytes.
    pub body_memory_max: usize,
    /// The maximum number of calls that run at a time.
    pub concurrent_max: usize,
    /// True if calls are also refused when calls of the same transaction take much longer than one
    /// that runs alone.
    pub is_adaptive: bool,
    /// The maximum number of open connections.
    pub connections_max: usize,
    /// The longest deadline that a caller may ask for.
    pub deadline_max: Duration,
    /// The time that running calls have to end after the server is told to stop.
    pub shutdown_after: Duration,
    /// The time within which the head of a request must arrive.
    pub head_within: Duration,
    /// The time within which the body of a request must arrive.
    pub body_within: Duration,
    /// The longest time for which a client may accept no bytes of an answer.
    pub write_within: Duration,
    /// Ends the process if a call asks for it; none if calls cannot.
    pub crash: Option<Crash>,
}

impl Default for Config {
    /// All callers on this machine may call everything, and sessions end with the process.
    fn default() -> Self {
        Self {
            name: "program".to_owned(),
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
            crash: None,
        }
    }
}

impl Config {
    /// Returns the session of a client that brings none.
    pub(crate) fn new_session(&self) -> Session {
        self.replica.clone().map_or_else(Session::default, Session::at)
    }

    /// Checks that a server with this configuration may listen at `address`.
    ///
    /// # Errors
    ///
    /// When other machines could reach a server without tokens.
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

    /// True if only programs on this machine are served, and all of them without tokens.
    pub(crate) fn is_local(&self) -> bool {
        self.tokens.is_none() && !self.is_open
    }
}

/// Returns a random session key; sessions signed with it end with the process.
pub fn random_session_key() -> SessionKey {
    SessionKey::new(random_key_bytes())
}

/// Returns the bytes of a random session key.
pub fn random_key_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    let provider = tokio_rustls::rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// The reason why a server cannot be set up with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Other machines could reach a server without tokens.
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
