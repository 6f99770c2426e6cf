//! Small transactions at one store in PostgreSQL, without a distance, against the same statements
//! sent by hand through the same driver: prepared, pipelined, at the same isolation level.
//!
//! The statements are not listed here but observed: a proxy records the statements that the adapter
//! sends for each transaction, and at the beginning of a connection, which sets the level at which a
//! single statement runs. Data statements are those that concern the object's table; the others serve
//! Mingle's guarantees: outcomes, witness rows, versions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle::{Binding, Database, Session};
use mingle_model::random::Random;
use mingle_model::{Ref, Value};
use mingle_proxy::Watch;
use mingle_proxy::statements::Trip;
use mingle_runtime::TokioWorld;
use mingle_store::{Address, Write};

use super::by_hand::{Account, Hand, Script};
use super::servers::{Servers, connect, failed, through};
use super::{Options, Progress, mixed};
use crate::rounds::Rounds;

const PROGRAM: &str = "\
store bank: linearizable;

object Account in bank {
    key number: int;
    balance: int;
}

transaction look(account: ref Account) -> int {
    return account.balance;
}

transaction add(account: ref Account) -> int {
    account.balance += 1;
    return account.balance;
}

transaction set(account: ref Account, balance: int) {
    account.balance = balance;
}
";

/// The transactions, and their descriptions.
pub const TRANSACTIONS: [(&str, &str); 3] = [
    ("look", "a read of one object"),
    ("add", "a read-modify-write of one"),
    ("set", "a blind write of one"),
];

/// The sides of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Mingle,
    /// All statements that the adapter sends, in the same round trips.
    Replayed,
    /// The data statements alone, in as few round trips as possible.
    Data,
    /// The statements that a developer would write for a table of the application's own.
    Plain,
}

impl Side {
    pub const ALL: [Self; 4] = [Self::Mingle, Self::Replayed, Self::Data, Self::Plain];

    pub fn title(self) -> &'static str {
        match self {
            Self::Mingle => "Mingle",
            Self::Replayed => "all of its statements by hand",
            Self::Data => "those for data by hand",
            Self::Plain => "a table of one's own",
        }
    }
}

/// The measurements of one transaction under one load.
pub struct Cell {
    /// Index into [`TRANSACTIONS`].
    pub transaction: usize,
    pub clients: usize,
    /// True if commits wait for the disk.
    pub is_durable: bool,
    /// The time of Mingle divided by the time of each side.
    pub ratios: [Rounds; 4],
}

/// The statements sent for each transaction, and the measurements.
pub struct Outcome {
    pub cells: Vec<Cell>,
    /// The statements by transaction, then by side.
    pub sent: Vec<[Vec<Trip>; 4]>,
}

pub async fn measure(
    options: &Options,
    servers: &Servers,
    progress: &Progress,
) -> Result<Outcome, String> {
    progress.say("filling");
    let database = Arc::new(open(servers.near(), 16).await?);
    let accounts = Arc::new(fill(&database, servers, options.accounts()).await?);
    let (setup, sent) = scripts(servers).await?;
    servers.settle().await?;
    let mut cells = Vec::new();
    for (transaction, _) in TRANSACTIONS.iter().enumerate() {
        for is_durable in [true, false] {
            // A transaction that only reads does not wait for the disk.
            if is_durable || (transaction > 0 && !options.quick) {
                cells.extend([1, 8].map(|clients| Cell {
                    transaction,
                    clients,
                    is_durable,
                    ratios: Default::default(),
                }));
            }
        }
    }
    for round in 0..options.rounds {
        for cell in &mut cells {
            set_durable(servers, cell.is_durable).await?;
            let (database, accounts, setup) = (&database, &accounts, &*setup);
            let bench = Bench { options, servers, database, accounts, setup };
            bench.round(cell, &sent[cell.transaction], round, progress).await?;
        }
    }
    set_durable(servers, true).await?;
    Ok(Outcome { cells, sent })
}

async fn open(url: &str, pool: usize) -> Result<Database, String> {
    let text = format!("[stores.bank]\nengine = \"postgres\"\nurl = \"{url}\"\npool = {pool}\n");
    let binding = Binding::parse(&text).map_err(|error| error.to_string())?;
    let (program, world) = (mingle::compile(PROGRAM)?, Arc::new(TokioWorld::new()));
    // No sweeps, so that only the statements of transactions are sent.
    let opened = Database::open_idle(program, &binding, None, world, |_, store| store).await;
    opened.map_err(|error| error.to_string())
}

fn account(number: usize) -> Ref {
    Ref::new("Account", Value::Int(number as i64))
}

/// Makes the accounts, and a table for the same data without Mingle.
async fn fill(
    database: &Database,
    servers: &Servers,
    count: usize,
) -> Result<Vec<Account>, String> {
    let store = database.program().checked.objects[0].store;
    let writes = (0..count)
        .map(|number| Write::Assign(Address { object: account(number), field: 0 }, Value::Int(1)));
    mixed::write(database.runtime().store(store), writes.collect()).await?;
    let client = connect(servers.near()).await?;
    let plain = format!(
        "CREATE SCHEMA plain; \
         CREATE TABLE plain.account (number bigint PRIMARY KEY, balance bigint NOT NULL); \
         INSERT INTO plain.account SELECT n, 1 FROM generate_series(0, {}) AS n",
        count - 1
    );
    client.batch_execute(&plain).await.map_err(failed)?;
    let own = "SELECT \"number\", mingle_id FROM mingle_bank.\"Account\"";
    let rows = client.query(own, &[]).await.map_err(failed)?;
    Ok(rows.iter().map(|row| Account { number: row.get(0), id: row.get(1) }).collect())
}

/// Sets whether commits wait for the disk from now on.
async fn set_durable(servers: &Servers, is_durable: bool) -> Result<(), String> {
    let client = connect(servers.near()).await?;
    let fsync = if is_durable { "on" } else { "off" };
    let set = format!("ALTER SYSTEM SET fsync = {fsync}");
    client.batch_execute(&set).await.map_err(failed)?;
    client.batch_execute("SELECT pg_reload_conf()").await.map_err(failed)?;
    // Each server process reads its settings at its next statement.
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let row = client.query_one("SHOW fsync", &[]).await.map_err(failed)?;
        if row.get::<_, &str>(0) == fsync {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("the server does not turn fsync {fsync}"));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The statements that begin a connection, and those that each side sends for each transaction.
async fn scripts(servers: &Servers) -> Result<(String, Vec<[Vec<Trip>; 4]>), String> {
    let (address, url) = (servers.address()?, servers.near().to_owned());
    // On one thread, so that statements sent together are seen together.
    let watching = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let mut watch = Watch::start(address).await.map_err(|error| error.to_string())?;
            let database = open(&through(&url, &watch.proxy), 1).await?;
            let (mut setup, mut sent) = (None, Vec::new());
            for (name, _) in TRANSACTIONS {
                let mut arguments = vec![Value::Ref(account(1))];
                if name == "set" {
                    arguments.push(Value::Int(1));
                }
                // The first run prepares the statements.
                for _ in 0..2 {
                    let before = watch.take().into_iter().flatten();
                    setup = setup.or(before.rev().find(|sql| sql.starts_with("SET ")));
                    let called = database.call(name, arguments.clone(), Session::default()).await;
                    called.map_err(|error| error.to_string())?;
                }
                let all = watch.take();
                let data = super::by_hand::data_of(&all);
                sent.push([all.clone(), all, data, super::by_hand::plain(name)]);
            }
            let setup = setup.ok_or("nothing was seen of how a connection begins")?;
            Ok((setup, sent))
        })
    });
    watching.await.map_err(|error| error.to_string())?
}

struct Bench<'a> {
    options: &'a Options,
    servers: &'a Servers,
    database: &'a Arc<Database>,
    accounts: &'a Arc<Vec<Account>>,
    /// The statements that begin a connection.
    setup: &'a str,
}

impl Bench<'_> {
    async fn round(
        &self,
        cell: &mut Cell,
        sent: &[Vec<Trip>; 4],
        round: usize,
        progress: &Progress,
    ) -> Result<(), String> {
        let mut of_round = [(0, 0.0); 4];
        let there_and_back = Side::ALL.into_iter().chain(Side::ALL.into_iter().rev());
        for (place, side) in there_and_back.enumerate() {
            let (name, _) = TRANSACTIONS[cell.transaction];
            progress.say(&format!("{name}, {} clients: {}", cell.clients, side.title()));
            let number = (round * 2 + place / Side::ALL.len()) as u64;
            let (calls, seconds) = self.block(cell, side, &sent[side as usize], number).await?;
            of_round[side as usize].0 += calls;
            of_round[side as usize].1 += seconds;
            progress.step();
        }
        let per_second = of_round.map(|(calls, seconds): (u64, f64)| calls as f64 / seconds);
        for (side, ratios) in cell.ratios.iter_mut().enumerate() {
            ratios.push(per_second[side] / per_second[Side::Mingle as usize]);
        }
        Ok(())
    }

    /// The number of calls made, and the seconds they took.
    async fn block(
        &self,
        cell: &Cell,
        side: Side,
        trips: &[Trip],
        number: u64,
    ) -> Result<(u64, f64), String> {
        let mut callers = Vec::new();
        for client in 0..cell.clients {
            let hand = match side {
                Side::Mingle => None,
                _ => {
                    let script = Script::new(trips)?;
                    Some(Hand::open(self.servers.near(), self.setup, script).await?)
                }
            };
            let seed = number.wrapping_mul(1_000_003).wrapping_add(client as u64);
            callers.push(Caller {
                hand,
                transaction: TRANSACTIONS[cell.transaction].0,
                database: self.database.clone(),
                accounts: self.accounts.clone(),
                random: Random::new(self.options.seed.wrapping_mul(1_000_000_007) ^ seed),
            });
        }
        let from = Instant::now() + Duration::from_secs_f64(self.options.short_warm_up);
        let until = from + Duration::from_secs_f64(self.options.short);
        let clients: Vec<_> =
            callers.into_iter().map(|caller| tokio::spawn(caller.run(from, until))).collect();
        let mut calls = 0;
        for client in clients {
            calls += client.await.map_err(|error| error.to_string())??;
        }
        Ok((calls, self.options.short))
    }
}

struct Caller {
    /// None for the side that calls Mingle.
    hand: Option<Hand>,
    transaction: &'static str,
    database: Arc<Database>,
    accounts: Arc<Vec<Account>>,
    random: Random,
}

impl Caller {
    async fn run(mut self, from: Instant, until: Instant) -> Result<u64, String> {
        let mut calls = 0;
        loop {
            let account = &self.accounts[self.random.below(self.accounts.len())];
            let value = (self.random.bits() >> 32) as i64;
            match &mut self.hand {
                Some(hand) => hand.call(account, value).await?,
                None => {
                    let object = Ref::new("Account", Value::Int(account.number));
                    let mut arguments = vec![Value::Ref(object)];
                    if self.transaction == "set" {
                        arguments.push(Value::Int(value));
                    }
                    let session = Session::default();
                    let called = self.database.call(self.transaction, arguments, session).await;
                    called.map_err(|error| error.to_string())?;
                }
            }
            let now = Instant::now();
            if now >= until {
                return Ok(calls);
            }
            calls += u64::from(now >= from);
        }
    }
}
