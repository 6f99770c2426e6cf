//! A read-modify-write of one row in PostgreSQL and one in Cassandra, in one transaction, against
//! two plain writes sent one after the other by hand, without any coordination; and against reading
//! both rows first and then writing them by hand, also without coordination.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures_util::future::try_join;
use hdrhistogram::Histogram;
use mingle::{Binding, Database, Session};
use mingle_model::random::Random;
use mingle_model::{Ref, Value};
use mingle_services::{Engine, Options as NodeOptions, Server};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session as Nodes;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use super::servers::{Servers, connect, failed};
use super::{Options, Progress};
use crate::rounds::Rounds;

const PROGRAM: &str = "\
store accounts: linearizable;
store pages: eventual;

object Account in accounts {
    key number: int;
    balance: int;
}

object Page in pages {
    key number: int;
    total: int;
}

transaction change(account: ref Account, page: ref Page, amount: int) {
    account.balance += amount;
    page.total += amount;
}
";

/// Rows at each store.
const KEYS: usize = 1_000;

/// The number of turns that each side takes while the nodes warm up.
const WARM_TURNS: usize = 3;

/// The numbers of clients, each with one call at a time.
pub const CLIENTS: [usize; 2] = [1, 8];

/// The sides of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Mingle,
    /// Both rows are read and written, one store after the other.
    Reading,
    Plain,
}

/// The number of sides.
pub const SIDES: usize = 3;

impl Side {
    pub const ALL: [Self; SIDES] = [Self::Mingle, Self::Reading, Self::Plain];

    pub fn title(self) -> &'static str {
        match self {
            Self::Mingle => "one transaction",
            Self::Reading => "two reads, then two writes",
            Self::Plain => "two plain writes",
        }
    }
}

/// The measurements of one side.
pub struct Measured {
    /// Latencies in µs.
    latencies: Histogram<u64>,
    seconds: f64,
}

impl Measured {
    fn new() -> Result<Self, String> {
        // From 1 µs to 10 minutes with three digits.
        let latencies = Histogram::new_with_bounds(1, 600_000_000, 3);
        Ok(Self { latencies: latencies.map_err(|error| error.to_string())?, seconds: 0.0 })
    }

    fn add(&mut self, other: &Self) -> Result<(), String> {
        self.latencies.add(&other.latencies).map_err(|error| error.to_string())
    }

    /// Calls per second.
    pub fn throughput(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds
    }

    /// A quantile of the latency, in ms.
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / 1e3
    }
}

/// The measurements with one number of clients.
pub struct Cell {
    pub clients: usize,
    pub measured: [Measured; SIDES],
    /// The throughput of each side divided by the throughput of the plain writes.
    pub ratios: [Rounds; SIDES],
}

/// The measurements.
pub struct Outcome {
    pub cells: Vec<Cell>,
}

pub async fn measure(
    options: &Options,
    servers: &Servers,
    progress: &Progress,
) -> Result<Outcome, String> {
    progress.say("three nodes of Cassandra start");
    let options_of_nodes = NodeOptions::default().for_load();
    let nodes = Server::start_with(Engine::Cassandra, options_of_nodes).await;
    let nodes = nodes.map_err(|error| error.to_string())?;
    let site = Arc::new(Site::open(servers, nodes.url()).await?);
    warm(options, &site, progress).await?;
    let mut cells = Vec::new();
    for clients in CLIENTS {
        cells.push(Cell { clients, measured: nothing_yet()?, ratios: Default::default() });
    }
    for round in 0..options.rounds {
        for cell in &mut cells {
            let mut of_round = nothing_yet()?;
            let there_and_back = Side::ALL.into_iter().chain(Side::ALL.into_iter().rev());
            for (place, side) in there_and_back.enumerate() {
                progress.say(&format!("{}, {} clients", side.title(), cell.clients));
                let number = (round * 2 * SIDES + place) as u64;
                let block = block(options, &site, side, cell.clients, number).await?;
                of_round[side as usize].add(&block)?;
                of_round[side as usize].seconds += block.seconds;
                progress.step();
            }
            let plain = of_round[Side::Plain as usize].throughput();
            for (ratios, one) in cell.ratios.iter_mut().zip(&of_round) {
                ratios.push(one.throughput() / plain);
            }
            for (all, one) in cell.measured.iter_mut().zip(&of_round) {
                all.add(one)?;
                all.seconds += one.seconds;
            }
        }
    }
    drop(nodes);
    Ok(Outcome { cells })
}

/// Puts the nodes under load of all sides, until they have compiled the code for it.
async fn warm(options: &Options, site: &Arc<Site>, progress: &Progress) -> Result<(), String> {
    let turn = Options { seconds: options.node_warm_up / WARM_TURNS as f64, ..options.clone() };
    for number in 0..WARM_TURNS {
        for side in Side::ALL {
            progress.say(&format!("warming up: {}", side.title()));
            block(&turn, site, side, CLIENTS[1], (number * SIDES + side as usize) as u64).await?;
        }
    }
    Ok(())
}

fn nothing_yet() -> Result<[Measured; SIDES], String> {
    Ok([Measured::new()?, Measured::new()?, Measured::new()?])
}

/// The connections to the servers that all sides share.
struct Site {
    database: Database,
    url: String,
    nodes: Nodes,
    read: PreparedStatement,
    write: PreparedStatement,
}

impl Site {
    async fn open(servers: &Servers, nodes: &str) -> Result<Self, String> {
        let listed: Vec<String> = nodes.split(',').map(|node| format!("\"{node}\"")).collect();
        let text = format!(
            "[stores.accounts]\nengine = \"postgres\"\nurl = \"{}\"\npool = 24\n\
             [stores.pages]\nengine = \"cassandra\"\nnodes = [{}]\n\
             datacenters = [\"dc1\", \"dc2\", \"dc3\"]\n\
             replication = {{ dc1 = 1, dc2 = 1, dc3 = 1 }}\n",
            servers.near(),
            listed.join(", ")
        );
        let binding = Binding::parse(&text).map_err(|error| error.to_string())?;
        let opened = Database::open(mingle::compile(PROGRAM)?, &binding, None).await;
        let database = opened.map_err(|error| error.to_string())?;
        let url = servers.near().to_owned();
        // Sessions of Mingle stay there too: at the node beside the client, which has a copy.
        let near = DefaultPolicy::builder().prefer_datacenter("dc1".to_owned()).build();
        let profile = ExecutionProfile::builder().load_balancing_policy(near).build();
        let builder = SessionBuilder::new().known_nodes(nodes.split(','));
        let builder = builder.default_execution_profile_handle(profile.into_handle());
        let session = builder.build().await;
        let session = session.map_err(|error| error.to_string())?;
        for sql in [
            "CREATE KEYSPACE plain WITH replication = \
             {'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1, 'dc3': 1}",
            "CREATE TABLE plain.page (number bigint PRIMARY KEY, total bigint)",
        ] {
            session.query_unpaged(sql, ()).await.map_err(|error| error.to_string())?;
        }
        let prepare = async |cql: &str| {
            let mut prepared = session.prepare(cql).await.map_err(|error| error.to_string())?;
            prepared.set_consistency(Consistency::LocalQuorum);
            Ok::<_, String>(prepared)
        };
        let read = prepare("SELECT total FROM plain.page WHERE number = ?").await?;
        let write = prepare("UPDATE plain.page SET total = ? WHERE number = ?").await?;
        let site = Self { database, url, nodes: session, read, write };
        site.fill().await?;
        servers.settle().await?;
        Ok(site)
    }

    /// Writes all rows of both sides.
    async fn fill(&self) -> Result<(), String> {
        let client = connect(&self.url).await?;
        let plain = format!(
            "CREATE SCHEMA IF NOT EXISTS plain; \
             CREATE TABLE plain.changed (number bigint PRIMARY KEY, balance bigint NOT NULL); \
             INSERT INTO plain.changed SELECT n, 1 FROM generate_series(0, {}) AS n",
            KEYS - 1
        );
        client.batch_execute(&plain).await.map_err(failed)?;
        for number in 0..KEYS {
            self.change(number, 1).await?;
            self.write(number, 1).await?;
        }
        Ok(())
    }

    async fn change(&self, number: usize, amount: i64) -> Result<(), String> {
        let key = || Value::Int(number as i64);
        let arguments = vec![
            Value::Ref(Ref::new("Account", key())),
            Value::Ref(Ref::new("Page", key())),
            Value::Int(amount),
        ];
        let called = self.database.call("change", arguments, Session::default()).await;
        called.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn read(&self, number: usize) -> Result<i64, String> {
        let values = (CqlValue::BigInt(number as i64),);
        let found = self.nodes.execute_unpaged(&self.read, values).await;
        let rows = found.map_err(|error| error.to_string())?.into_rows_result();
        let rows = rows.map_err(|error| error.to_string())?;
        let (total,) = rows.single_row::<(i64,)>().map_err(|error| error.to_string())?;
        Ok(total)
    }

    async fn write(&self, number: usize, total: i64) -> Result<(), String> {
        let values = (CqlValue::BigInt(total), CqlValue::BigInt(number as i64));
        let written = self.nodes.execute_unpaged(&self.write, values).await;
        written.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// A client that does not use Mingle.
struct Hand {
    client: Client,
    add: Statement,
    read: Statement,
    write: Statement,
}

impl Hand {
    async fn open(url: &str) -> Result<Self, String> {
        let client = connect(url).await?;
        let prepare = async |sql: &str| client.prepare(sql).await.map_err(failed);
        let add = "UPDATE plain.changed SET balance = balance + $2 WHERE number = $1";
        let read = "SELECT balance FROM plain.changed WHERE number = $1 FOR UPDATE";
        let write = "UPDATE plain.changed SET balance = $2 WHERE number = $1";
        let (add, read, write) = (prepare(add).await?, prepare(read).await?, prepare(write).await?);
        Ok(Self { client, add, read, write })
    }

    /// The two plain writes.
    async fn write(&self, site: &Site, number: usize, amount: i64) -> Result<(), String> {
        let added = self.client.execute(&self.add, &[&(number as i64), &amount]).await;
        added.map_err(failed)?;
        site.write(number, amount).await
    }

    /// Reads both rows, then writes them, in as few round trips as possible.
    async fn read_and_write(&self, site: &Site, key: usize, amount: i64) -> Result<(), String> {
        let number = key as i64;
        let total = site.read(key).await? + amount;
        let begin = self.client.batch_execute("BEGIN");
        let values: [&(dyn ToSql + Sync); 1] = [&number];
        let read = self.client.query_one(&self.read, &values);
        let ((), row) = try_join(begin, read).await.map_err(failed)?;
        let balance = row.get::<_, i64>(0) + amount;
        let values: [&(dyn ToSql + Sync); 2] = [&number, &balance];
        let write = self.client.execute(&self.write, &values);
        try_join(write, self.client.batch_execute("COMMIT")).await.map_err(failed)?;
        site.write(key, total).await
    }
}

/// A client of one side.
enum Caller {
    Mingle,
    Reading(Hand),
    Plain(Hand),
}

impl Caller {
    async fn open(site: &Site, side: Side) -> Result<Self, String> {
        Ok(match side {
            Side::Mingle => Self::Mingle,
            Side::Reading => Self::Reading(Hand::open(&site.url).await?),
            Side::Plain => Self::Plain(Hand::open(&site.url).await?),
        })
    }

    async fn call(&self, site: &Site, key: usize, amount: i64) -> Result<(), String> {
        match self {
            Self::Mingle => site.change(key, amount).await,
            Self::Reading(hand) => hand.read_and_write(site, key, amount).await,
            Self::Plain(hand) => hand.write(site, key, amount).await,
        }
    }
}

async fn block(
    options: &Options,
    site: &Arc<Site>,
    side: Side,
    clients: usize,
    number: u64,
) -> Result<Measured, String> {
    let is_over = Arc::new(AtomicBool::new(false));
    let counts_from = Instant::now() + std::time::Duration::from_secs_f64(options.warm_up);
    let mut running = Vec::new();
    for client in 0..clients {
        let seed = options.seed ^ (number << 8) ^ client as u64;
        let (site, is_over) = (Arc::clone(site), Arc::clone(&is_over));
        running.push(tokio::spawn(async move {
            let caller = Caller::open(&site, side).await?;
            let mut random = Random::new(seed.wrapping_mul(1_000_003));
            let mut measured = Measured::new()?;
            while !is_over.load(Ordering::Relaxed) {
                let (key, amount) = (random.below(KEYS), random.below(100) as i64);
                let begin = Instant::now();
                caller.call(&site, key, amount).await?;
                if begin >= counts_from {
                    let took = begin.elapsed().as_micros() as u64;
                    measured.latencies.saturating_record(took);
                }
            }
            Ok::<_, String>(measured)
        }));
    }
    let seconds = options.warm_up + options.seconds;
    tokio::time::sleep(std::time::Duration::from_secs_f64(seconds)).await;
    is_over.store(true, Ordering::Relaxed);
    let mut all = Measured::new()?;
    for client in running {
        all.add(&client.await.map_err(|error| error.to_string())??)?;
    }
    all.seconds = counts_from.elapsed().as_secs_f64();
    Ok(all)
}
