//! New connections.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use mingle_store::World;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::config::PostgresConfig;
use crate::error::message;
use crate::line::Line;
use crate::session::Connection;
use crate::tls::MakeTls;

/// A factory of connections to one server.
pub struct Connector {
    config: Config,
    tls: MakeTls,
    setup: String,
}

impl Connector {
    /// Creates the connector to the server that `config` names.
    ///
    /// # Errors
    ///
    /// When the address is wrong.
    pub fn new(config: &PostgresConfig, alone: Isolation) -> Result<Self, String> {
        let (url, mut tls) = MakeTls::new(&config.url, config.root_certificates.as_deref())?;
        let mut server: Config =
            url.parse().map_err(|error| format!("url: {}", message(&error)))?;
        if server.get_application_name().is_none() {
            server.application_name("mingle");
        }
        tls.take_over(&mut server);
        server.keepalives_idle(Duration::from_secs(30));
        Ok(Self { config: server, tls, setup: setup(config, alone) })
    }

    /// Returns host and port, or several joined by "or".
    pub fn place(&self) -> String {
        let (hosts, ports) = (self.config.get_hosts(), self.config.get_ports());
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let named = hosts.iter().enumerate().map(|(at, host)| match host {
            Host::Tcp(host) => format!("{host}:{}", port(at)),
            Host::Unix(path) => path.display().to_string(),
        });
        named.collect::<Vec<_>>().join(" or ")
    }

    /// Opens a connection, ready for transactions.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be opened.
    pub async fn connect(&self, world: &Arc<dyn World>) -> Result<Connection, String> {
        let (client, connection) =
            self.config.connect(self.tls.clone()).await.map_err(|error| message(&error))?;
        // The tasks that wait for answers receive the error.
        let line = Line::new(Box::pin(connection.map(|_| ())));
        let connection = Connection::new(client, line, Arc::clone(world));
        connection.say(&self.setup).await.map_err(|error| message(&error))?;
        Ok(connection)
    }
}

/// The isolation of a statement that is sent alone.
#[derive(Clone, Copy, Debug)]
pub enum Isolation {
    /// The statement is a transaction like any other.
    Serializable,
    /// The statement takes part in no serializability conflict.
    ReadCommitted,
}

/// Returns the statements that set up a connection. Without sequential scans a read of one row
/// locks that row and not its table; PostgreSQL still scans where it must.
fn setup(config: &PostgresConfig, alone: Isolation) -> String {
    let isolation = match alone {
        Isolation::Serializable => "serializable",
        Isolation::ReadCommitted => "read committed",
    };
    let (statement, lock) =
        (config.statement_timeout.as_millis().max(1), config.lock_timeout.as_millis().max(1));
    let idle = config.keep_outcomes.as_millis().max(1);
    format!(
        "SET statement_timeout = {statement}; SET lock_timeout = {lock}; \
         SET idle_in_transaction_session_timeout = {idle}; \
         SET enable_seqscan = off; SET client_min_messages = error; \
         SET default_transaction_read_only = off; \
         SET default_transaction_isolation = '{isolation}'; \
         SET TimeZone = 'UTC'; SET plan_cache_mode = force_generic_plan; \
         SELECT set_config('synchronous_commit', 'on', false) \
         WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    )
}
