//! Three servers, and the operations of tests on them.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mingle_services::{Engine, Options, Server};
use mingle_store_postgres::PostgresConfig;
use tokio_postgres::Client;

use crate::support::client;

/// Maximum time to wait for an event that must happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The names of the servers.
pub const NAMES: [&str; 3] = ["r1", "r2", "r3"];

/// Three servers that can replicate to each other.
pub struct Cluster {
    pub servers: Vec<Server>,
    /// The test's own connection to each server.
    pub clients: Vec<Client>,
}

impl Cluster {
    /// Starts servers; none if PostgreSQL is not installed here.
    pub async fn start() -> Option<Self> {
        let options = [
            ("wal_level", "logical"),
            ("max_worker_processes", "40"),
            ("max_logical_replication_workers", "32"),
            ("max_replication_slots", "40"),
            ("max_wal_senders", "40"),
            ("wal_retrieve_retry_interval", "100ms"),
            // To files that SQL can read.
            ("logging_collector", "on"),
        ];
        let options = options
            .into_iter()
            .fold(Options::default(), |all, (name, value)| all.setting(name, value));
        let mut cluster = Self { servers: Vec::new(), clients: Vec::new() };
        for _ in NAMES {
            let server = mingle_services::private_with(Engine::Postgres, options.clone()).await?;
            cluster.clients.push(client(server.url()).await);
            cluster.servers.push(server);
        }
        Some(cluster)
    }

    /// Returns the configuration of a store on the servers, in this schema.
    pub fn config(&self, schema: &str) -> PostgresConfig {
        let mut config = PostgresConfig::at("");
        for (name, server) in NAMES.iter().zip(&self.servers) {
            config.servers.insert((*name).to_owned(), server.url().to_owned());
        }
        config.schema = Some(schema.to_owned());
        config
    }

    /// Holds back arriving updates from now on until they are let through.
    pub async fn hold(&self, schema: &str) {
        for client in &self.clients {
            let sql = format!("UPDATE \"{schema}\".mingle_state SET is_held = true");
            client.batch_execute(&sql).await.expect("the state is there");
        }
    }

    /// Returns the number of updates that each server has made.
    pub async fn made(&self, schema: &str) -> Vec<i64> {
        let mut made = Vec::new();
        for client in &self.clients {
            let sql = format!("SELECT vector[own] FROM \"{schema}\".mingle_state");
            made.push(client.query_one(&sql, &[]).await.expect("the state is there").get(0));
        }
        made
    }

    /// Waits until a query returns true at every server; it may name the schema as `@`.
    pub async fn wait(&self, schema: &str, query: &str) {
        let deadline = Instant::now() + PATIENCE;
        let query = query.replace('@', &format!("\"{schema}\""));
        for (client, name) in self.clients.iter().zip(NAMES) {
            loop {
                let found = client.query_one(&query, &[]).await.expect("the query is right");
                if found.get::<_, Option<bool>>(0) == Some(true) {
                    break;
                }
                if Instant::now() > deadline {
                    let state = self.state(schema).await;
                    panic!("{name}: it is not true in time that {query}\n{state}");
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    }

    /// Returns the updates that every server has and waits for, for messages.
    async fn state(&self, schema: &str) -> String {
        let mut all = String::new();
        for (client, name) in self.clients.iter().zip(NAMES) {
            let sql = format!(
                "SELECT (SELECT s::text FROM \"{schema}\".mingle_state AS s), (SELECT string_agg( \
                 format('%s.%s', origin, number), ' ') FROM \"{schema}\".mingle_inbox), \
                 (SELECT string_agg(format('%s.%s', origin, number), ' ') FROM \"{schema}\".mingle_log), \
                 (SELECT string_agg(s::text, ' ') FROM pg_stat_subscription AS s)"
            );
            let row = client.query_one(&sql, &[]).await.expect("the tables are there");
            let column = |index| row.get::<_, Option<String>>(index).unwrap_or_default();
            let _ = writeln!(
                all,
                "{name}: {}; waiting: {}; kept: {}; {}",
                column(0),
                column(1),
                column(2),
                column(3)
            );
        }
        all + &self.complaints(&["ERROR", "WARNING", "conflict"]).await.join("\n")
    }

    /// Waits until every server has received all updates made so far, applied or not.
    pub async fn arrived(&self, schema: &str) {
        let mut query = "SELECT true".to_owned();
        for (server, number) in (1..).zip(self.made(schema).await) {
            let _ = write!(
                query,
                " AND (SELECT s.own = {server} OR s.vector[{server}] + (SELECT count(*) \
                 FROM @.mingle_inbox WHERE origin = {server}) >= {number} FROM @.mingle_state AS s)"
            );
        }
        self.wait(schema, &query).await;
    }

    /// Waits until every server has applied all updates made so far.
    pub async fn applied(&self, schema: &str) {
        let made: Vec<String> = self.made(schema).await.iter().map(ToString::to_string).collect();
        let query =
            format!("SELECT @.mingle_covers(vector, '{{{}}}') FROM @.mingle_state", made.join(","));
        self.wait(schema, &query).await;
    }

    /// Lets through at most `most` updates at one server; all if it is none.
    pub async fn drain(&self, schema: &str, server: usize, most: Option<i64>) {
        let most = most.map_or("NULL".to_owned(), |most| most.to_string());
        let sql = format!(
            "BEGIN; SELECT FROM \"{schema}\".mingle_state FOR UPDATE; \
             SELECT \"{schema}\".mingle_drain({most}); COMMIT"
        );
        self.clients[server].batch_execute(&sql).await.expect("updates are applied");
    }

    /// Makes every server know the updates of all others.
    pub async fn acknowledged(&self, schema: &str) {
        for client in &self.clients {
            let sql = format!("SELECT \"{schema}\".mingle_acknowledge()");
            client.batch_execute(&sql).await.expect("an acknowledgement");
        }
        self.wait(schema, &self.acknowledgements(schema).await).await;
    }

    /// Returns a query that is true if a server has received the latest report of each other one.
    async fn acknowledgements(&self, schema: &str) -> String {
        let mut query = "SELECT true".to_owned();
        for (server, client) in (1..).zip(&self.clients) {
            let sql = format!("SELECT acknowledgements FROM \"{schema}\".mingle_state");
            let number: i64 = client.query_one(&sql, &[]).await.expect("the state").get(0);
            let _ = write!(
                query,
                " AND ((SELECT own = {server} FROM @.mingle_state) OR \
                 (SELECT number >= {number} FROM @.mingle_known WHERE server = {server}))"
            );
        }
        query
    }

    /// Reconnects to a server after it was away.
    pub async fn reconnect(&mut self, server: usize) {
        self.clients[server] = client(self.servers[server].url()).await;
    }

    /// Makes a server reach another one at this port from now on.
    pub async fn reroute(&self, at: usize, from: usize, port: u16) {
        let url = self.servers[from].url();
        let sql = "SELECT subname::text FROM pg_subscription WHERE subconninfo = $1";
        let rows = self.clients[at].query(sql, &[&url]).await.expect("subscriptions");
        let name: String = rows.first().expect("a subscription to it").get(0);
        let own = self.servers[from].addresses()[0].port();
        let url = url.replace(&format!(":{own}/"), &format!(":{port}/"));
        // A worker that is just starting would still use the old address.
        self.slot_is(from, &name, true).await;
        let off = format!("ALTER SUBSCRIPTION {name} DISABLE");
        self.clients[at].batch_execute(&off).await.expect("it is off");
        self.slot_is(from, &name, false).await;
        let sql = format!(
            "ALTER SUBSCRIPTION {name} CONNECTION '{url}'; ALTER SUBSCRIPTION {name} ENABLE"
        );
        self.clients[at].batch_execute(&sql).await.expect("it is moved");
    }

    /// Waits until a slot is active, or inactive.
    async fn slot_is(&self, at: usize, name: &str, is_active: bool) {
        let sql = "SELECT active FROM pg_replication_slots WHERE slot_name = $1";
        let deadline = Instant::now() + PATIENCE;
        loop {
            let row = self.clients[at].query_one(sql, &[&name]).await.expect("a slot");
            if row.get::<_, bool>(0) == is_active {
                return;
            }
            assert!(Instant::now() < deadline, "the slot {name}: is it used? {}", !is_active);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Returns the lines of the servers' logs that contain these words.
    pub async fn complaints(&self, words: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for client in &self.clients {
            let sql = "SELECT pg_read_file('log/' || name) FROM pg_ls_logdir()";
            for row in client.query(sql, &[]).await.expect("logs can be read") {
                let text: String = row.get(0);
                let lines =
                    text.lines().filter(|line| words.iter().any(|word| line.contains(word)));
                found.extend(lines.map(str::to_owned));
            }
        }
        found
    }

    /// Waits until no server keeps an update any more, because all have applied it. A store that
    /// has committed causes this.
    pub async fn emptied(&self, schema: &str) {
        self.applied(schema).await;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut left = 0;
            for client in &self.clients {
                let sql = format!(
                    "SELECT (SELECT count(*) FROM \"{schema}\".mingle_log) + \
                     (SELECT count(*) FROM \"{schema}\".mingle_inbox)"
                );
                left += client.query_one(&sql, &[]).await.expect("tables").get::<_, i64>(0);
            }
            if left == 0 {
                return;
            }
            assert!(Instant::now() < deadline, "{left} updates are kept");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Removes a store, with its subscriptions.
    pub async fn remove(&self, schema: &str) {
        let mut slots: Vec<String> = Vec::new();
        for client in &self.clients {
            let sql = format!(
                "SELECT subname::text FROM pg_subscription WHERE '{schema}' = ANY (subpublications)"
            );
            for row in client.query(&sql, &[]).await.expect("subscriptions") {
                let name: String = row.get(0);
                let sql = format!(
                    "ALTER SUBSCRIPTION {name} DISABLE; \
                     ALTER SUBSCRIPTION {name} SET (slot_name = NONE); DROP SUBSCRIPTION {name}"
                );
                client.batch_execute(&sql).await.expect("no subscription");
                slots.push(name);
            }
        }
        let deadline = Instant::now() + PATIENCE;
        for client in &self.clients {
            for slot in &slots {
                let sql = format!(
                    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots \
                     WHERE slot_name = '{slot}'"
                );
                // The last user may not have disconnected yet.
                while client.batch_execute(&sql).await.is_err() {
                    assert!(Instant::now() < deadline, "the slot {slot} is still used");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            let sql = format!("DROP PUBLICATION \"{schema}\"; DROP SCHEMA \"{schema}\" CASCADE");
            client.batch_execute(&sql).await.expect("no tables");
        }
    }
}
