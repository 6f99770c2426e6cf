//! The connection: one for all transactions, reopened after a loss.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_store::World;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, RedisError, ServerErrorKind, Value,
};
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use crate::config::RedisConfig;
use crate::limits::RECONNECT_AFTER;
use crate::request::Request;
use crate::script::Script;

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The request was not sent.
    Unsent(String),
    /// The request was sent, and no answer came.
    Lost(String),
    /// The server did not run it for now.
    Later(String),
    /// The server refuses.
    No(String),
}

impl Failed {
    /// Returns the reason as text.
    pub fn reason(&self) -> &str {
        match self {
            Self::Unsent(reason) | Self::Lost(reason) | Self::Later(reason) | Self::No(reason) => {
                reason
            }
        }
    }
}

/// The connection to the server.
pub struct Link {
    answer_timeout: Duration,
    way: Arc<Way>,
}

/// The shared state that opens connections.
struct Way {
    client: Client,
    config: AsyncConnectionConfig,
    world: Arc<dyn World>,
    state: Mutex<State>,
    /// Held by the task that connects.
    turn: AsyncMutex<()>,
}

#[derive(Default)]
struct State {
    current: Option<(u64, MultiplexedConnection)>,
    /// The number of connections so far.
    count: u64,
    /// The time of the last failed attempt, and its reason.
    failed: Option<(Duration, String)>,
}

impl Link {
    /// Returns the server's address.
    pub fn place(&self) -> String {
        self.way.client.get_connection_info().addr().to_string()
    }

    /// Creates the link without a connection.
    ///
    /// # Errors
    ///
    /// When the address is invalid.
    pub fn new(config: &RedisConfig, world: Arc<dyn World>) -> Result<Self, String> {
        let client = client(config)?;
        let answer_timeout = config.answer_timeout;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(config.connect_timeout))
            .set_response_timeout(Some(answer_timeout));
        let (state, turn) = (Mutex::default(), AsyncMutex::default());
        let way = Way { client, config, world, state, turn };
        Ok(Self { answer_timeout, way: Arc::new(way) })
    }

    /// Runs one command that changes nothing, or that may be repeated.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub async fn ask(&self, words: &[&str]) -> Result<Value, Failed> {
        let mut command = Cmd::new();
        for word in words {
            command.arg(word);
        }
        self.send(&command).await
    }

    /// Runs commands that change nothing, in one request. A command that the server refuses has an error among the
    /// answers.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub async fn ask_all(&self, commands: &[Cmd]) -> Result<Vec<Value>, Failed> {
        let mut pipeline = redis::pipe();
        for command in commands {
            pipeline.add_command(command.clone());
        }
        let (_, mut connection) = self.connection().await.map_err(Failed::Unsent)?;
        let answers = connection.send_packed_commands(&pipeline, 0, commands.len()).await;
        answers.map_err(|error| failed(&error))
    }

    /// Runs a script.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub async fn run(&self, script: &Script, request: &Request) -> Result<Value, Failed> {
        let command = |name: &str, script: &str| {
            let mut command = Cmd::new();
            command.arg(name).arg(script).arg(0).arg(request.words());
            command
        };
        match self.send(&command("EVALSHA", &script.digest)).await {
            Err(Failed::No(reason)) if reason.contains("NOSCRIPT") => {
                self.send(&command("EVAL", &script.text)).await
            }
            answer => answer,
        }
    }

    /// Runs a script that changes nothing. If the connection proves broken (for example, the server
    /// restarted while it was idle), the script is run once more over a new one.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub async fn look(&self, script: &Script, request: &Request) -> Result<Value, Failed> {
        let world = &self.way.world;
        let asked = world.elapsed();
        match self.run(script, request).await {
            // If it took longer, the server was too slow, and the connection was not broken.
            Err(Failed::Lost(_)) if world.elapsed() < asked + self.answer_timeout => {
                self.run(script, request).await
            }
            answer => answer,
        }
    }

    async fn send(&self, command: &Cmd) -> Result<Value, Failed> {
        let (number, mut connection) = self.connection().await.map_err(Failed::Unsent)?;
        let error = match connection.send_packed_command(command).await {
            Ok(Value::ServerError(error)) => RedisError::from(error),
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let failed = failed(&error);
        // The server has become a replica: the address may lead to another server by now.
        let is_replica = is_replica(&error);
        if is_replica || matches!(failed, Failed::Lost(_)) {
            let mut state = self.way.state();
            if state.current.as_ref().is_some_and(|(current, _)| *current == number) {
                state.current = None;
            }
        }
        Err(failed)
    }

    /// Returns the connection, or a new one. A separate task opens it, because other callers wait
    /// for it too, and the caller may drop its future, or not poll it for long.
    async fn connection(&self) -> Result<(u64, MultiplexedConnection), String> {
        if let Some(current) = &self.way.state().current {
            return Ok(current.clone());
        }
        let (way, (done, waiting)) = (Arc::clone(&self.way), oneshot::channel());
        self.way.world.spawn(Box::pin(async move {
            // The caller may have stopped waiting.
            let _ = done.send(way.connect().await);
        }));
        waiting.await.unwrap_or_else(|_| Err("whoever was about to connect was stopped".into()))
    }
}

impl Way {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<(u64, MultiplexedConnection), String> {
        let _turn = self.turn.lock().await;
        {
            let state = self.state();
            if let Some(current) = &state.current {
                return Ok(current.clone());
            }
            let now = self.world.elapsed();
            if let Some((at, reason)) = &state.failed
                && now < *at + RECONNECT_AFTER
            {
                return Err(reason.clone());
            }
        }
        let made = self.client.get_multiplexed_async_connection_with_config(&self.config).await;
        let mut state = self.state();
        match made {
            Ok(connection) => {
                state.count += 1;
                state.failed = None;
                let current = (state.count, connection);
                state.current = Some(current.clone());
                Ok(current)
            }
            Err(error) => {
                let reason = error.to_string();
                state.failed = Some((self.world.elapsed(), reason.clone()));
                Err(reason)
            }
        }
    }
}

/// Parses the address, but sets the protocol: replies are parsed in RESP version 2.
fn address(config: &RedisConfig) -> Result<ConnectionInfo, String> {
    let parsed = config.url.as_str().into_connection_info().map_err(|error| {
        // The whole address could show a password.
        let scheme = config.url.split_once("://").map_or("no scheme", |(scheme, _)| scheme);
        let expected = "redis://user:password@host:port/database, or rediss:// for TLS";
        format!("url: expected {expected}, found {scheme:?}: {error}")
    })?;
    let settings = parsed.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
    Ok(parsed.set_redis_settings(settings))
}

#[cfg(not(feature = "tls"))]
fn client(config: &RedisConfig) -> Result<Client, String> {
    Client::open(address(config)?).map_err(|error| error.to_string())
}

#[cfg(feature = "tls")]
fn client(config: &RedisConfig) -> Result<Client, String> {
    // The driver takes the process's default provider; one that is already installed works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let root_cert = config.root_certificates.clone();
    let built = match root_cert.filter(|_| config.url.starts_with("rediss:")) {
        None => Client::open(address(config)?),
        root_cert => {
            let certificates = redis::TlsCertificates { client_tls: None, root_cert };
            Client::build_with_tls(address(config)?, certificates)
        }
    };
    built.map_err(|error| error.to_string())
}

fn is_replica(error: &RedisError) -> bool {
    let kinds = [ServerErrorKind::ReadOnly, ServerErrorKind::MasterDown];
    kinds.iter().any(|kind| error.kind() == ErrorKind::Server(*kind))
}

fn failed(error: &RedisError) -> Failed {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::NoScript) => Failed::No(format!("NOSCRIPT {text}")),
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly
            | ServerErrorKind::TryAgain,
        ) => Failed::Later(text),
        ErrorKind::Server(_) | ErrorKind::Extension => {
            let waits = ["OOM", "BUSY", "MISCONF", "NOREPLICAS"];
            let code = error.code().unwrap_or_default();
            if waits.contains(&code) { Failed::Later(text) } else { Failed::No(text) }
        }
        ErrorKind::Client | ErrorKind::InvalidClientConfig => Failed::Unsent(text),
        _ => Failed::Lost(text),
    }
}
