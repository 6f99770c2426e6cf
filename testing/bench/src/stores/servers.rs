//! The server of the measurements, and the connections to it.

use std::net::SocketAddr;
use std::time::Duration;

use mingle_proxy::{Delay, Proxy};
use mingle_services::{Engine, Options, Server};
use mingle_store::wrap::distance::Distance;
use tokio_postgres::{Client, NoTls};

/// A PostgreSQL server that the benchmark starts, and a proxy that can simulate a distance to it.
pub struct Servers {
    server: Server,
    proxy: Proxy,
}

impl Servers {
    /// Starts the server and the proxy, without a distance.
    ///
    /// # Errors
    ///
    /// That PostgreSQL was not fetched, or the reason why it does not start.
    pub async fn start(seed: u64) -> Result<Self, String> {
        // Each side has its own connections, all of them open all the time.
        let options = Options::default().setting("max_connections", "500");
        let server = Server::start_with(Engine::Postgres, options).await;
        Self::before(server.map_err(|error| error.to_string())?, seed).await
    }

    /// Starts a proxy before a running server.
    pub async fn before(server: Server, seed: u64) -> Result<Self, String> {
        let address = *server.addresses().first().ok_or("the server has no address")?;
        let proxy = Proxy::start(address, seed).await.map_err(|error| error.to_string())?;
        Ok(Self { server, proxy })
    }

    /// The server's own URL, without the proxy.
    pub fn near(&self) -> &str {
        self.server.url()
    }

    /// The server's own address, without user and database.
    pub fn address(&self) -> Result<SocketAddr, String> {
        self.server.addresses().first().copied().ok_or_else(|| "the server has no address".into())
    }

    /// The URL through the proxy.
    pub fn far(&self) -> String {
        through(self.server.url(), &self.proxy)
    }

    /// Sets the duration of a round trip through the proxy.
    pub fn set_distance(&self, distance: Distance) {
        self.proxy.set_round_trip(Delay::new(distance.mean, distance.jitter));
    }

    /// Updates the planner's statistics of the tables, and removes deleted rows.
    pub async fn settle(&self) -> Result<(), String> {
        let client = connect(self.near()).await?;
        // Neither may share a batch with another statement.
        for sql in ["VACUUM ANALYZE", "CHECKPOINT"] {
            client.batch_execute(sql).await.map_err(failed)?;
        }
        Ok(())
    }
}

/// The URL of a server through a proxy.
pub fn through(url: &str, proxy: &Proxy) -> String {
    let after = url.rfind('@').map_or(0, |at| at + 1);
    let end = url[after..].find('/').map_or(url.len(), |at| after + at);
    format!("{}{}{}", &url[..after], proxy.address(), &url[end..])
}

/// The server's message, without the driver's prefix.
pub fn failed(error: tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Opens a connection with the same settings for planning and timeouts as the adapter's.
pub async fn connect(url: &str) -> Result<Client, String> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(failed)?;
    tokio::spawn(connection);
    let setup = format!(
        "SET statement_timeout = {}; SET enable_seqscan = off; SET TimeZone = 'UTC'; \
         SET plan_cache_mode = force_generic_plan",
        Duration::from_secs(30).as_millis()
    );
    client.batch_execute(&setup).await.map_err(failed)?;
    Ok(client)
}
