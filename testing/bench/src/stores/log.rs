//! Appends to a log in a table of the application. Lines commit in the order of their positions: a commit that appends
//! holds the log until it has ended. This measures the cost: all clients at one log, against one log per client, and
//! against an `INSERT` by hand that takes no lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle::{Binding, Database, Session};
use mingle_model::{Ref, Value};
use mingle_runtime::TokioWorld;

use super::servers::{Servers, connect, failed};
use super::{Options, Progress};
use crate::rounds::Rounds;

const PROGRAM: &str = "\
store books: linearizable;

object Book in books {
    key id: int;
    lines: log<string>;
}

transaction append(book: ref Book, line: string) {
    book.lines.append(line);
}
";

/// The sides of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// All clients append to one log.
    Shared,
    /// Each client appends to a log of its own.
    Own,
    /// Each client inserts a row by hand.
    Plain,
}

impl Side {
    pub const ALL: [Self; 3] = [Self::Shared, Self::Own, Self::Plain];
}

/// The numbers of clients.
pub const CLIENTS: [usize; 2] = [1, 8];

/// The measurements with one number of clients.
pub struct Cell {
    pub clients: usize,
    /// The throughput of each side divided by the throughput of the first.
    pub ratios: [Rounds; 3],
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
    let client = connect(servers.near()).await?;
    let tables = "CREATE SCHEMA legacy; \
                  CREATE TABLE legacy.book (id bigint PRIMARY KEY); \
                  INSERT INTO legacy.book SELECT generate_series(0, 8); \
                  CREATE TABLE legacy.line (book bigint NOT NULL, position bigserial PRIMARY KEY, line text NOT NULL); \
                  CREATE INDEX ON legacy.line (book, position)";
    client.batch_execute(tables).await.map_err(failed)?;
    let database = Arc::new(open(servers.near()).await?);
    let mut cells = CLIENTS.map(|clients| Cell { clients, ratios: Default::default() });
    for _ in 0..options.rounds {
        for cell in &mut cells {
            let mut calls = [0; 3];
            for side in Side::ALL.into_iter().chain(Side::ALL.into_iter().rev()) {
                progress.say(&format!("append, {} clients: {side:?}", cell.clients));
                calls[side as usize] +=
                    block(options, servers, &database, side, cell.clients).await?;
                progress.step();
            }
            for (side, ratios) in cell.ratios.iter_mut().enumerate() {
                ratios.push(f64::from(calls[side]) / f64::from(calls[Side::Shared as usize]));
            }
        }
    }
    Ok(Outcome { cells: cells.into() })
}

async fn open(url: &str) -> Result<Database, String> {
    let text = format!(
        "[stores.books]\nengine = \"postgres\"\nurl = \"{url}\"\n\
         objects.Book = {{ table = \"legacy.book\", key = \"id\", fields.lines = {{ table = \"legacy.line\", \
         key = \"book\", value = \"line\", order = \"position\" }} }}\n"
    );
    let binding = Binding::parse(&text).map_err(|error| error.to_string())?;
    let (program, world) = (mingle::compile(PROGRAM)?, Arc::new(TokioWorld::new()));
    let opened = Database::open_idle(program, &binding, None, world, |_, store| store).await;
    opened.map_err(|error| error.to_string())
}

/// The number of lines that were appended in the measured time.
async fn block(
    options: &Options,
    servers: &Servers,
    database: &Arc<Database>,
    side: Side,
    clients: usize,
) -> Result<u32, String> {
    let from = Instant::now() + Duration::from_secs_f64(options.short_warm_up);
    let until = from + Duration::from_secs_f64(options.short);
    let mut running = Vec::new();
    for client in 0..clients {
        let book = if side == Side::Own { client as i64 + 1 } else { 0 };
        running.push(match side {
            Side::Plain => {
                let connection = connect(servers.near()).await?;
                tokio::spawn(insert(connection, book, from, until))
            }
            _ => tokio::spawn(append(Arc::clone(database), book, from, until)),
        });
    }
    let mut calls = 0;
    for client in running {
        calls += client.await.map_err(|error| error.to_string())??;
    }
    Ok(calls)
}

async fn append(
    database: Arc<Database>,
    book: i64,
    from: Instant,
    until: Instant,
) -> Result<u32, String> {
    let mut calls = 0;
    loop {
        let object = Value::Ref(Ref::new("Book", Value::Int(book)));
        let arguments = vec![object, Value::from("a line")];
        let called = database.call("append", arguments, Session::default()).await;
        called.map_err(|error| error.to_string())?;
        let now = Instant::now();
        if now >= until {
            return Ok(calls);
        }
        calls += u32::from(now >= from);
    }
}

async fn insert(
    connection: tokio_postgres::Client,
    book: i64,
    from: Instant,
    until: Instant,
) -> Result<u32, String> {
    let sql = "INSERT INTO legacy.line (book, line) VALUES ($1, $2)";
    let statement = connection.prepare(sql).await.map_err(failed)?;
    let mut calls = 0;
    loop {
        connection.execute(&statement, &[&book, &"a line"]).await.map_err(failed)?;
        let now = Instant::now();
        if now >= until {
            return Ok(calls);
        }
        calls += u32::from(now >= from);
    }
}
