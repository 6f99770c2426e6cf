//! The servers, the program over them, and reads of their data in SQL, CQL and commands of Redis.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mingle_proxy::Proxy;
use mingle_services::{Engine, Server};
use redis::aio::MultiplexedConnection;
use rustix::process::{Pid, Signal, kill_process};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session as Nodes;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::statement::{Consistency, Statement};

use super::judge::{Held, INITIAL, OBJECTS, Store};
use super::plan::Engines;
use crate::stores::servers::{connect, failed, through};

/// The node that is away at times: in the third data center, at which no server stays.
const AWAY: usize = 2;

/// The servers.
pub struct World {
    engines: Engines,
    postgres: Server,
    proxy: Proxy,
    redis: Option<Server>,
    cassandra: Option<Server>,
    nodes: Option<Nodes>,
}

impl World {
    /// Starts the servers, and fills them.
    pub async fn start(engines: Engines, seed: u64) -> Result<Self, String> {
        let start = async |engine: Engine, is_wanted: bool| {
            if !is_wanted {
                return Ok(None);
            }
            Server::start(engine).await.map(Some).map_err(|error| error.to_string())
        };
        let (postgres, redis, cassandra) = tokio::try_join!(
            start(Engine::Postgres, true),
            start(Engine::Redis, engines.redis),
            start(Engine::Cassandra, engines.cassandra)
        )?;
        let postgres = postgres.ok_or("PostgreSQL is needed")?;
        let address = *postgres.addresses().first().ok_or("PostgreSQL has no address")?;
        let proxy = Proxy::start(address, seed).await.map_err(|error| error.to_string())?;
        let nodes = match &cassandra {
            Some(server) => Some(open_nodes(server).await?),
            None => None,
        };
        let world = Self { engines, postgres, proxy, redis, cassandra, nodes };
        world.fill().await?;
        Ok(world)
    }

    async fn fill(&self) -> Result<(), String> {
        let client = connect(self.postgres.url()).await?;
        let sql = format!(
            "CREATE SCHEMA soak; \
             CREATE TABLE soak.account (number bigint PRIMARY KEY, balance bigint NOT NULL); \
             CREATE TABLE soak.line (account bigint NOT NULL, call bigint NOT NULL, \
             position bigserial PRIMARY KEY); CREATE INDEX ON soak.line (account, position); \
             INSERT INTO soak.account SELECT n, {INITIAL} FROM generate_series(0, {}) AS n",
            OBJECTS - 1
        );
        client.batch_execute(&sql).await.map_err(failed)?;
        if let Some(mut redis) = self.redis_connection().await? {
            let mut pipe = redis::pipe();
            for number in 0..OBJECTS {
                pipe.hset(format!("slot:{number}"), "balance", INITIAL).ignore();
            }
            pipe.exec_async(&mut redis).await.map_err(|error| error.to_string())?;
        }
        if let Some(nodes) = &self.nodes {
            for cql in [
                "CREATE KEYSPACE soak WITH replication = \
                 {'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1, 'dc3': 1}",
                "CREATE TABLE soak.page (number bigint PRIMARY KEY, title text)",
                "CREATE TABLE soak.line (page bigint, at timeuuid, call bigint, PRIMARY KEY (page, at))",
            ] {
                nodes.query_unpaged(cql, ()).await.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// The program.
    pub fn program(&self) -> String {
        let mut text = String::from(
            "store bank: linearizable;\n\
             object Account in bank { key number: int; balance: int; lines: log<int>; }\n",
        );
        let mut call = |name: &str, parameters: &str, body: &str| {
            let _ = writeln!(
                text,
                "transaction {name}(from: ref Account, {parameters}, amount: int, call: int) {{ {body} }}"
            );
        };
        let from = "from.balance -= amount; from.lines.append(call);";
        let to = "to.balance += amount; to.lines.append(call);";
        call("bank", "to: ref Account", &format!("{from} {to}"));
        if self.engines.redis {
            call("two", "to: ref Slot", &format!("{from} {to}"));
        }
        if self.engines.cassandra && self.engines.redis {
            let from = from.replace("-= amount", "-= amount + amount");
            let body = format!("{from} {to} page.lines.append(call);");
            call("three", "to: ref Slot, page: ref Page", &body);
        }
        if self.engines.redis {
            text.push_str(
                "store cache: linearizable;\n\
                 object Slot in cache { key number: int; balance: int; lines: log<int>; }\n",
            );
        }
        if self.engines.cassandra {
            text.push_str(
                "store feed: eventual;\n\
                 object Page in feed { key number: int; title: string; lines: log<int>; }\n",
            );
        }
        text
    }

    /// The binding; PostgreSQL is behind a proxy.
    pub fn binding(&self) -> String {
        let mut text = format!(
            "[stores.bank]\nengine = \"postgres\"\nurl = \"{}\"\n\
             [stores.bank.objects.Account]\ntable = \"soak.account\"\nkey = \"number\"\n\
             fields.lines = {{ table = \"soak.line\", key = \"account\", value = \"call\", order = \"position\" }}\n",
            through(self.postgres.url(), &self.proxy)
        );
        if let Some(redis) = &self.redis {
            let _ = write!(
                text,
                "[stores.cache]\nengine = \"redis\"\nurl = \"{}\"\n\
                 [stores.cache.objects.Slot]\nkey = \"slot:{{number}}\"\n\
                 fields.lines = {{ key = \"lines:{{number}}\", type = \"list\" }}\n",
                redis.url()
            );
        }
        if let Some(cassandra) = &self.cassandra {
            let nodes: Vec<String> =
                cassandra.url().split(',').map(|node| format!("\"{node}\"")).collect();
            let _ = write!(
                text,
                "[stores.feed]\nengine = \"cassandra\"\nnodes = [{}]\n\
                 datacenters = [\"dc1\", \"dc2\", \"dc3\"]\n\
                 replication = {{ dc1 = 1, dc2 = 1, dc3 = 1 }}\n\
                 [stores.feed.objects.Page]\ntable = \"soak.page\"\nkey = \"number\"\n\
                 fields.lines = {{ table = \"soak.line\", key = \"page\", value = \"call\", order = \"at\" }}\n",
                nodes.join(", ")
            );
        }
        text
    }

    /// Cuts all connections to PostgreSQL.
    pub fn cut_postgres(&self) {
        self.proxy.cut();
    }

    /// Kills Redis.
    pub async fn kill_redis(&self) -> Result<(), String> {
        let Some(redis) = &self.redis else { return Ok(()) };
        redis.kill9().await.map_err(|error| error.to_string())
    }

    /// Starts Redis again, over its data.
    pub async fn restart_redis(&self) -> Result<(), String> {
        let Some(redis) = &self.redis else { return Ok(()) };
        redis.restart().await.map_err(|error| error.to_string())
    }

    /// Stops the node of the third data center, or lets it go on.
    pub fn pause_node(&self, is_stopped: bool) -> Result<(), String> {
        let Some(cassandra) = &self.cassandra else { return Ok(()) };
        let process = *cassandra.processes().get(AWAY).ok_or("a node has ended")?;
        let pid = Pid::from_raw(process.pid).ok_or("the node has no number")?;
        let signal = if is_stopped { Signal::STOP } else { Signal::CONT };
        kill_process(pid, signal).map_err(|error| format!("{process}: {error}"))
    }

    async fn redis_connection(&self) -> Result<Option<MultiplexedConnection>, String> {
        let Some(server) = &self.redis else { return Ok(None) };
        let client = redis::Client::open(server.url()).map_err(|error| error.to_string())?;
        let connection = client.get_multiplexed_async_connection().await;
        connection.map(Some).map_err(|error| error.to_string())
    }

    /// Witness rows in all stores.
    pub async fn witness_rows(&self) -> Result<i64, String> {
        let client = connect(self.postgres.url()).await?;
        let row = client.query_one("SELECT count(*) FROM mingle_bank.mingle_witnesses", &[]).await;
        let mut rows: i64 = row.map_err(failed)?.get(0);
        if let Some(mut redis) = self.redis_connection().await? {
            let mut command = redis::cmd("ZCARD");
            let asked = command.arg("mingle:cache:!witnesses:order").query_async::<i64>(&mut redis);
            rows += asked.await.map_err(|error| error.to_string())?;
        }
        if let Some(nodes) = &self.nodes {
            let mut statement = Statement::new("SELECT count(*) FROM mingle.rows");
            statement.set_consistency(Consistency::LocalOne);
            let found =
                nodes.query_unpaged(statement, ()).await.map_err(|error| error.to_string())?;
            let found = found.into_rows_result().map_err(|error| error.to_string())?;
            rows += found.single_row::<(i64,)>().map_err(|error| error.to_string())?.0;
        }
        Ok(rows)
    }

    /// All data that the calls have written.
    pub async fn held(&self) -> Result<Held, String> {
        let mut held = Held::default();
        let client = connect(self.postgres.url()).await?;
        let lines =
            client.query("SELECT account, call FROM soak.line", &[]).await.map_err(failed)?;
        for row in lines {
            *held.lines.entry((Store::Bank, row.get(0), row.get(1))).or_default() += 1;
        }
        let rows = client.query("SELECT number, balance FROM soak.account", &[]).await;
        for row in rows.map_err(failed)? {
            held.balances.insert((Store::Bank, row.get(0)), row.get(1));
        }
        if let Some(mut redis) = self.redis_connection().await? {
            for number in 0..OBJECTS as i64 {
                let mut pipe = redis::pipe();
                pipe.hget(format!("slot:{number}"), "balance");
                pipe.lrange(format!("lines:{number}"), 0, -1);
                let found = pipe.query_async::<(i64, Vec<i64>)>(&mut redis).await;
                let (balance, lines) = found.map_err(|error| error.to_string())?;
                held.balances.insert((Store::Cache, number), balance);
                for call in lines {
                    *held.lines.entry((Store::Cache, number, call)).or_default() += 1;
                }
            }
        }
        if let Some(nodes) = &self.nodes {
            lines_in(nodes, &mut held.lines).await?;
        }
        Ok(held)
    }
}

/// Lines at all replicas together.
async fn lines_in(
    nodes: &Nodes,
    lines: &mut BTreeMap<(Store, i64, i64), usize>,
) -> Result<(), String> {
    let mut statement = Statement::new("SELECT page, call FROM soak.line");
    statement.set_consistency(Consistency::All);
    let found = nodes.query_unpaged(statement, ()).await.map_err(|error| error.to_string())?;
    let found = found.into_rows_result().map_err(|error| error.to_string())?;
    for row in found.rows::<(i64, Option<i64>)>().map_err(|error| error.to_string())? {
        let (page, call) = row.map_err(|error| error.to_string())?;
        *lines.entry((Store::Feed, page, call.unwrap_or(-1))).or_default() += 1;
    }
    Ok(())
}

/// A client that stays at the first data center.
async fn open_nodes(server: &Server) -> Result<Nodes, String> {
    let near = DefaultPolicy::builder().prefer_datacenter("dc1".to_owned()).build();
    let profile = ExecutionProfile::builder().load_balancing_policy(near).build();
    let first = server.url().split(',').next().unwrap_or_default();
    let builder = SessionBuilder::new().known_node(first);
    let builder = builder.default_execution_profile_handle(profile.into_handle());
    builder.build().await.map_err(|error| error.to_string())
}

impl Drop for World {
    fn drop(&mut self) {
        // A stopped node would not react to a request to end.
        let _ = self.pause_node(false);
    }
}
