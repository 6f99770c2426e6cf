//! Statements sent by hand: what one that knows the driver does, and no more.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::sent::Trip;
use super::servers::{connect, failed};

/// One account.
pub struct Account {
    pub number: i64,
    /// Its name in the adapter's tables.
    pub id: Vec<u8>,
}

/// What a statement takes.
#[derive(Clone, Copy, Debug)]
enum Takes {
    /// Nothing, and it goes unprepared.
    Control,
    Nothing,
    Id,
    Ids,
    IdNumber,
    IdValue,
    Number,
    NumberValue,
    /// The object and the whole store.
    Objects,
    /// The same, and the transaction.
    ObjectsTransaction,
    /// The transaction, and how long it is remembered.
    Transaction,
}

/// Which statements serve what Mingle promises, rather than data.
const PROMISES: [&str; 5] = [
    "mingle_claim(",
    "mingle_known(",
    "mingle_witnesses",
    "mingle_store",
    "SELECT \"mingle_bank\".mingle_version()",
];

/// The statements for data alone. What needs no answer goes out with what is before it.
pub fn data_of(trips: &[Trip]) -> Vec<Trip> {
    let is_data = |sql: &&String| {
        !PROMISES.iter().any(|part| sql.contains(part) && !sql.contains("\"Account\""))
    };
    let mut data: Vec<Trip> =
        trips.iter().map(|trip| trip.iter().filter(is_data).cloned().collect()).collect();
    if data.len() > 1 && data.last().is_some_and(|last| *last == ["COMMIT"]) {
        let end = data.pop().unwrap_or_default();
        if let Some(before) = data.last_mut() {
            before.extend(end);
        }
    }
    data
}

/// What one would write for a table of one's own.
pub fn plain(transaction: &str) -> Vec<Trip> {
    const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE";
    const READ: &str = "SELECT balance FROM plain.account WHERE number = $1";
    const WRITE: &str = "UPDATE plain.account SET balance = $2 WHERE number = $1";
    let trips: &[&[&str]] = match transaction {
        "look" => &[&[BEGIN, READ, "COMMIT"]],
        "add" => &[&[BEGIN, READ], &[WRITE, "COMMIT"]],
        _ => &[&[BEGIN, WRITE, "COMMIT"]],
    };
    trips.iter().map(|trip| trip.iter().map(|sql| (*sql).to_owned()).collect()).collect()
}

fn takes(sql: &str) -> Result<Takes, String> {
    let starts = |head: &str| sql.starts_with(head);
    Ok(match sql {
        _ if starts("BEGIN") || starts("COMMIT") || starts("LOCK TABLE") => Takes::Control,
        _ if sql.contains("plain.account") && starts("SELECT") => Takes::Number,
        _ if sql.contains("plain.account") => Takes::NumberValue,
        _ if sql.contains("mingle_claim(") => Takes::Transaction,
        _ if sql.contains("mingle_known(") => Takes::ObjectsTransaction,
        _ if sql.contains("mingle_witnesses") => Takes::Objects,
        _ if starts("WITH revived") => Takes::IdNumber,
        _ if starts("UPDATE") && sql.contains("$2::bigint") => Takes::IdValue,
        _ if sql.contains("= ANY($1::bytea[])") => Takes::Ids,
        _ if sql.ends_with("mingle_id = $1::bytea FOR NO KEY UPDATE") => Takes::Id,
        _ if !sql.contains('$') => Takes::Nothing,
        _ => return Err(format!("the adapter sends what this benchmark does not know: {sql}")),
    })
}

/// Statements of a transaction, trip by trip.
pub struct Script(Vec<Vec<(String, Takes)>>);

impl Script {
    /// # Errors
    ///
    /// If a statement is not known here.
    pub fn new(trips: &[Trip]) -> Result<Self, String> {
        let known = |sql: &String| Ok((sql.clone(), takes(sql)?));
        let trips = trips.iter().map(|trip| trip.iter().map(known).collect());
        Ok(Self(trips.collect::<Result<_, String>>()?))
    }
}

enum Sent {
    Control(String),
    Prepared(Statement, Takes),
}

/// One client.
pub struct Hand {
    client: Client,
    trips: Vec<Vec<Sent>>,
    /// The transaction, as the adapter names it: an origin and a number.
    transaction: Vec<u8>,
    count: u64,
}

/// How long a transaction that meets others is tried, and how long it pauses.
const TRIED_FOR: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

impl Hand {
    pub async fn open(url: &str, script: Script) -> Result<Self, String> {
        let client = connect(url).await?;
        let mut trips = Vec::new();
        for trip in script.0 {
            let mut statements = Vec::new();
            for (sql, takes) in trip {
                statements.push(match takes {
                    Takes::Control => Sent::Control(sql),
                    _ => Sent::Prepared(client.prepare(&sql).await.map_err(failed)?, takes),
                });
            }
            trips.push(statements);
        }
        let row = client.query_one("SELECT uuid_send(gen_random_uuid())", &[]).await;
        let transaction: Vec<u8> = row.map_err(failed)?.get(0);
        Ok(Self { client, trips, transaction, count: 0 })
    }

    /// Runs the transaction once, as often as that takes. What it reads, it writes one higher; what
    /// it does not read gets this value.
    pub async fn call(&mut self, account: &Account, value: i64) -> Result<(), String> {
        let begin = Instant::now();
        while begin.elapsed() < TRIED_FOR {
            self.count += 1;
            match self.run(account, value).await {
                Err(error) if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) => {
                    self.client.batch_execute("ROLLBACK").await.map_err(failed)?;
                    tokio::time::sleep(PAUSE).await;
                }
                other => return other.map_err(failed),
            }
        }
        Err(format!("account {} met others for {TRIED_FOR:?}", account.number))
    }

    async fn run(&self, account: &Account, value: i64) -> Result<(), Error> {
        let mut transaction = self.transaction.clone();
        transaction.extend(self.count.to_be_bytes());
        let arguments = Arguments {
            number: account.number,
            id: &account.id,
            ids: vec![&account.id],
            objects: vec![&account.id, b""],
            transactions: vec![&transaction],
            transaction: &transaction,
            keep: "600000 milliseconds",
        };
        let mut value = value;
        for trip in &self.trips {
            // In order, since few futures are polled one after the other.
            let sent = trip.iter().map(|sent| self.send(sent, &arguments, value));
            for result in join_all(sent).await {
                if let Some(row) = result?.first().filter(|row| has_balance(row)) {
                    value = row.get::<_, i64>(row.len() - 1).wrapping_add(1);
                }
            }
        }
        Ok(())
    }

    async fn send(
        &self,
        sent: &Sent,
        arguments: &Arguments<'_>,
        value: i64,
    ) -> Result<Vec<Row>, Error> {
        match sent {
            Sent::Control(sql) => self.client.batch_execute(sql).await.map(|()| Vec::new()),
            Sent::Prepared(statement, takes) => {
                self.client.query(statement, &arguments.of(*takes, &value)).await
            }
        }
    }
}

/// Whether a row has been read for its balance.
fn has_balance(row: &Row) -> bool {
    row.columns().last().is_some_and(|column| column.name() == "balance")
}

struct Arguments<'a> {
    number: i64,
    id: &'a [u8],
    ids: Vec<&'a [u8]>,
    objects: Vec<&'a [u8]>,
    transactions: Vec<&'a [u8]>,
    transaction: &'a [u8],
    keep: &'a str,
}

impl Arguments<'_> {
    fn of<'s>(&'s self, takes: Takes, value: &'s i64) -> Vec<&'s (dyn ToSql + Sync)> {
        match takes {
            Takes::Control | Takes::Nothing => vec![],
            Takes::Id => vec![&self.id],
            Takes::Ids => vec![&self.ids],
            Takes::IdNumber => vec![&self.id, &self.number],
            Takes::IdValue => vec![&self.id, value],
            Takes::Number => vec![&self.number],
            Takes::NumberValue => vec![&self.number, value],
            Takes::Objects => vec![&self.objects],
            Takes::ObjectsTransaction => vec![&self.objects, &self.transactions],
            Takes::Transaction => vec![&self.transaction, &self.keep],
        }
    }
}
