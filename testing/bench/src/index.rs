//! Reads of an index in PostgreSQL, against the same SQL sent by hand.
//!
//! A page of 20 orders of a customer, of 10,000 orders: from a table of Mingle's own, from an existing table, and by a
//! prepared statement through the same driver, at the same isolation level, with its `BEGIN` and `COMMIT` in the same
//! round trip. The sides take turns, forwards and backwards.

use std::time::Instant;

use clap::Args;
use futures_util::future::try_join3;
use mingle::{Binding, Database, Session};
use mingle_model::random::Random;
use mingle_model::{Ref, Value};
use mingle_store::{Address, Write};
use tokio_postgres::{Client, Statement};

use crate::rounds::Rounds;
use crate::stores::servers::{Servers, connect, failed};

/// The options of the measurement.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Rounds; each runs the three sides forwards and then backwards.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Calls of a side in one turn.
    #[arg(long, default_value_t = 1_000)]
    calls: usize,
    /// Customers, each with 20 orders.
    #[arg(long, default_value_t = 500)]
    customers: usize,
    /// The greatest time of a read, as a multiple of the time by hand.
    #[arg(long, default_value_t = 1.3)]
    at_most: f64,
    /// Seed of the calls.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One round of a few calls, with a lenient bar: enough to see that everything runs.
    #[arg(long)]
    quick: bool,
}

/// Orders of a customer, and so of a page.
const PAGE: usize = 20;

const PROGRAM: &str = "\
store own: linearizable;
store mapped: linearizable;

object Order in own {
    key number: int;
    customer: int;
    index by customer;
}

object Bill in mapped {
    key number: int;
    customer: int;
    index by customer;
}

transaction orders(customer: int) -> list<ref Order> {
    return Order.by_customer(customer).first(20);
}

transaction bills(customer: int) -> list<ref Bill> {
    return Bill.by_customer(customer).first(20);
}
";

/// The sides of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Own,
    Mapped,
    Hand,
}

impl Side {
    const ALL: [Self; 3] = [Self::Own, Self::Mapped, Self::Hand];

    fn title(self) -> &'static str {
        match self {
            Self::Own => "a table of Mingle's own",
            Self::Mapped => "an existing table",
            Self::Hand => "SQL by hand",
        }
    }
}

/// Measures, and prints the ratios.
///
/// # Errors
///
/// When something does not run, or the bar is missed.
pub fn run(options: &Options) -> Result<(), String> {
    let mut options = options.clone();
    if options.quick {
        (options.rounds, options.calls, options.customers) = (1, 20, 50);
        options.at_most = 20.0;
    }
    if options.rounds == 0 || options.calls == 0 || options.customers == 0 {
        return Err("there must be rounds, calls and customers".into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ratios = runtime.map_err(|error| error.to_string())?.block_on(measure(&options))?;
    println!(
        "a page of {PAGE} refs, time divided by that of SQL by hand (median, lowest, highest)"
    );
    let mut missed = Vec::new();
    for (side, ratios) in Side::ALL.iter().zip(&ratios).take(2) {
        let (median, title) = (ratios.median(), side.title());
        println!("  {title}: {}", ratios.as_ratio());
        if median.is_nan() || median > options.at_most {
            missed.push(format!("{title}: {median:.2}, at most {} is allowed", options.at_most));
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

async fn measure(options: &Options) -> Result<[Rounds; 3], String> {
    let servers = Servers::start(options.seed).await?;
    let site = Site::open(&servers, options).await?;
    for side in Side::ALL {
        site.turn(side, options, 0).await?;
    }
    let mut ratios: [Rounds; 3] = Default::default();
    for round in 0..options.rounds {
        let mut seconds = [0.0; 3];
        for side in Side::ALL.into_iter().chain(Side::ALL.into_iter().rev()) {
            seconds[side as usize] += site.turn(side, options, round as u64 + 1).await?;
        }
        for (ratios, taken) in ratios.iter_mut().zip(seconds) {
            ratios.push(taken / seconds[Side::Hand as usize]);
        }
    }
    Ok(ratios)
}

/// What the sides use.
struct Site {
    database: Database,
    client: Client,
    select: Statement,
}

impl Site {
    async fn open(servers: &Servers, options: &Options) -> Result<Self, String> {
        let client = connect(servers.near()).await?;
        let rows = options.customers * PAGE;
        let sql = format!(
            "CREATE SCHEMA plain; \
             CREATE TABLE plain.bill (number bigint PRIMARY KEY, customer bigint NOT NULL); \
             CREATE INDEX ON plain.bill (customer, number); \
             INSERT INTO plain.bill SELECT n, n % {} FROM generate_series(0, {}) AS n",
            options.customers,
            rows - 1
        );
        client.batch_execute(&sql).await.map_err(failed)?;
        let url = servers.near();
        let text = format!(
            "[stores.own]\nengine = \"postgres\"\nurl = \"{url}\"\n\
             [stores.mapped]\nengine = \"postgres\"\nurl = \"{url}\"\n\
             [stores.mapped.objects.Bill]\ntable = \"plain.bill\"\nkey = \"number\"\n"
        );
        let binding = Binding::parse(&text).map_err(|error| error.to_string())?;
        let opened = Database::open(mingle::compile(PROGRAM)?, &binding, None).await;
        let database = opened.map_err(|error| error.to_string())?;
        let store = database.program().checked.objects[0].store;
        let order = |number: usize| Ref::new("Order", Value::Int(number as i64));
        let writes = (0..rows).map(|number| {
            let customer = Value::Int((number % options.customers) as i64);
            Write::Assign(Address { object: order(number), field: 0 }, customer)
        });
        crate::stores::write(database.runtime().store(store), writes.collect()).await?;
        servers.settle().await?;
        let select = "SELECT number FROM plain.bill WHERE customer = $1 ORDER BY number LIMIT 20";
        let select = client.prepare(select).await.map_err(failed)?;
        Ok(Self { database, client, select })
    }

    /// Returns the seconds that a number of calls take.
    async fn turn(&self, side: Side, options: &Options, round: u64) -> Result<f64, String> {
        let mut random = Random::new(options.seed.wrapping_mul(1_000_003).wrapping_add(round));
        let begin = Instant::now();
        for _ in 0..options.calls {
            let customer = random.below(options.customers) as i64;
            let found = match side {
                Side::Own => self.called("orders", customer).await?,
                Side::Mapped => self.called("bills", customer).await?,
                Side::Hand => self.by_hand(customer).await?,
            };
            if found != PAGE {
                return Err(format!("{}: {found} refs, not {PAGE}", side.title()));
            }
        }
        Ok(begin.elapsed().as_secs_f64())
    }

    async fn called(&self, name: &str, customer: i64) -> Result<usize, String> {
        let called = self.database.call(name, vec![Value::Int(customer)], Session::default()).await;
        let called = called.map_err(|error| error.to_string())?;
        match called.result {
            Some(Value::List(found)) => Ok(found.len()),
            other => Err(format!("{name} gave {other:?}")),
        }
    }

    async fn by_hand(&self, customer: i64) -> Result<usize, String> {
        let begin = self.client.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE");
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&customer];
        let select = self.client.query(&self.select, &parameters);
        let end = self.client.batch_execute("COMMIT");
        let ((), rows, ()) = try_join3(begin, select, end).await.map_err(failed)?;
        let numbers: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        Ok(numbers.len())
    }
}
