//! The server that all is measured on, and the ways to it.

use std::net::SocketAddr;
use std::time::Duration;

use mingle_proxy::{Delay, Proxy};
use mingle_services::{Engine, Options, Server};
use mingle_store::wrap::distance::Distance;
use tokio_postgres::{Client, NoTls};

/// A PostgreSQL server of our own, and a proxy that can put it at a distance.
pub struct Servers {
    server: Server,
    proxy: Proxy,
}

impl Servers {
    /// Starts them, without a distance.
    ///
    /// # Errors
    ///
    /// That PostgreSQL was not fetched, or why it does not start.
    pub async fn start(seed: u64) -> Result<Self, String> {
        // Each side has its own connections, all of them open all the time.
        let options = Options::default().setting("max_connections", "500");
        let server = Server::start_with(Engine::Postgres, options).await;
        Self::before(server.map_err(|error| error.to_string())?, seed).await
    }

    /// A server that is there, and a proxy before it.
    pub async fn before(server: Server, seed: u64) -> Result<Self, String> {
        let address = *server.addresses().first().ok_or("the server has no address")?;
        let proxy = Proxy::start(address, seed).await.map_err(|error| error.to_string())?;
        Ok(Self { server, proxy })
    }

    /// Where the server listens itself.
    pub fn near(&self) -> &str {
        self.server.url()
    }

    /// The same, without name and database.
    pub fn address(&self) -> Result<SocketAddr, String> {
        self.server.addresses().first().copied().ok_or_else(|| "the server has no address".into())
    }

    /// The way through the proxy.
    pub fn far(&self) -> String {
        through(self.server.url(), &self.proxy)
    }

    /// From now on a round trip through the proxy takes so long.
    pub fn set_distance(&self, distance: Distance) {
        self.proxy.set_round_trip(Delay::new(distance.mean, distance.jitter));
    }

    /// What tables hold is known to the server's planner, and what was deleted is gone.
    pub async fn settle(&self) -> Result<(), String> {
        let client = connect(self.near()).await?;
        // Neither may stand beside another statement.
        for sql in ["VACUUM ANALYZE", "CHECKPOINT"] {
            client.batch_execute(sql).await.map_err(failed)?;
        }
        Ok(())
    }
}

/// The address of a server as one reaches it through a proxy.
pub fn through(url: &str, proxy: &Proxy) -> String {
    let after = url.rfind('@').map_or(0, |at| at + 1);
    let end = url[after..].find('/').map_or(url.len(), |at| after + at);
    format!("{}{}{}", &url[..after], proxy.address(), &url[end..])
}

/// What the server said, without the error's own head.
pub fn failed(error: tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}

/// A connection whose statements are planned, and given up, as those of the adapter are.
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
