//! Statements sent by hand: as a user of the driver sends them, without Mingle.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mingle_proxy::statements::Trip;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::servers::{connect, failed};

/// One account.
pub struct Account {
    pub number: i64,
    /// Its name in the adapter's tables.
    pub id: Vec<u8>,
}

/// The parameters of a statement.
#[derive(Clone, Copy, Debug)]
enum Takes {
    /// No parameters; the statement is sent unprepared.
    Control,
    Nothing,
    Ids,
    IdValue,
    Number,
    NumberValue,
    IdNumberValue,
    /// The objects whose rows are read, and the objects whose witness rows are read: these also include the
    /// whole store.
    IdsObjects,
    /// The value of an existing row; the transaction; and the parameters of the commit: the object and
    /// the whole store, whose witness rows are known, the transaction again, and the time for which it
    /// is remembered.
    Change,
    /// As `Change`, and the number of a row that may not exist.
    ChangeOrAdd,
}

/// Parts of statements that serve Mingle's guarantees rather than data.
const PROMISES: [&str; 2] = ["pg_current_xact_id()::text", "mingle_store"];

/// The statements for data alone. The final `COMMIT` joins the trip before it, because it needs no answer.
pub fn data_of(trips: &[Trip]) -> Vec<Trip> {
    let is_data = |sql: &String| !PROMISES.iter().any(|part| sql.contains(part));
    let mut data: Vec<Trip> = trips
        .iter()
        .map(|trip| {
            let parts = trip.iter().map(|sql| changes_of(sql));
            parts.filter(is_data).map(|sql| without_witnesses(&sql)).collect()
        })
        .collect();
    if data.len() > 1 && data.last().is_some_and(|last| *last == ["COMMIT"]) {
        let end = data.pop().unwrap_or_default();
        if let Some(before) = data.last_mut() {
            before.extend(end);
        }
    }
    data
}

/// The change in a statement that combines it with the records of a commit.
fn changes_of(sql: &str) -> String {
    let parts = sql.split_once(", p1 AS (INSERT INTO ").map(|(changes, _)| changes);
    let parts = parts.and_then(|changes| changes.strip_suffix(')'));
    let change = parts.and_then(|changes| match changes.split_once("p0 AS (")? {
        ("WITH ", change) => Some(change.to_owned()),
        (first, change) => Some(format!("{} {change}", first.strip_suffix(", ")?)),
    });
    change.unwrap_or_else(|| sql.to_owned())
}

/// A statement without its part that reads witness rows.
fn without_witnesses(sql: &str) -> String {
    let rows = sql.split_once(" FROM (").and_then(|(_, rest)| rest.split_once(") AS r UNION ALL"));
    rows.map_or(sql, |(rows, _)| rows).to_owned()
}

/// The statements that a developer would write for a table of the application's own.
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
    let is_commit = sql.contains("INSERT INTO") && sql.contains("mingle_outcomes");
    Ok(match sql {
        _ if starts("BEGIN") || starts("COMMIT") || starts("LOCK TABLE") => Takes::Control,
        _ if sql.contains("plain.account") && starts("SELECT") => Takes::Number,
        _ if sql.contains("plain.account") => Takes::NumberValue,
        _ if starts("WITH p0 AS (UPDATE") && is_commit => Takes::Change,
        _ if starts("WITH updated AS (UPDATE") && is_commit => Takes::ChangeOrAdd,
        _ if sql.contains("UNION ALL") => Takes::IdsObjects,
        _ if starts("WITH updated") && sql.contains("$3::bigint") => Takes::IdNumberValue,
        _ if starts("UPDATE") && sql.contains("$2::bigint") => Takes::IdValue,
        _ if sql.contains("= ANY($1::bytea[])") => Takes::Ids,
        _ if !sql.contains('$') => Takes::Nothing,
        _ => return Err(format!("the adapter sends what this benchmark does not know: {sql}")),
    })
}

/// The statements of a transaction, grouped by round trip.
pub struct Script(Vec<Vec<(String, Takes)>>);

impl Script {
    /// # Errors
    ///
    /// If a statement is unknown to this benchmark.
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
    /// The transaction's name in the adapter's tables: an origin and a number.
    transaction: Vec<u8>,
    count: u64,
}

/// The longest time to retry a transaction after conflicts, and the pause between attempts.
const TRIED_FOR: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

impl Hand {
    /// Opens a connection with the same setup as the adapter's.
    pub async fn open(url: &str, setup: &str, script: Script) -> Result<Self, String> {
        let client = connect(url).await?;
        client.batch_execute(setup).await.map_err(failed)?;
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

    /// Runs the transaction, and retries it after conflicts. A value that it reads is written back plus
    /// one; without a read, `value` is written.
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
            // The order is kept: `join_all` polls a small number of futures in order.
            let sent = trip.iter().map(|sent| self.send(sent, &arguments, value));
            for result in join_all(sent).await {
                if let Some(found) = result?.first().and_then(balance) {
                    value = found.wrapping_add(1);
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

/// The balance in a row of the result.
fn balance(row: &Row) -> Option<i64> {
    let at = row.columns().iter().position(|column| column.name() == "balance")?;
    row.get(at)
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
            Takes::Ids => vec![&self.ids],
            Takes::IdValue => vec![&self.id, value],
            Takes::Number => vec![&self.number],
            Takes::NumberValue => vec![&self.number, value],
            Takes::IdNumberValue => vec![&self.id, &self.number, value],
            Takes::IdsObjects => vec![&self.ids, &self.objects],
            Takes::Change => [self.of(Takes::IdValue, value), self.demands()].concat(),
            Takes::ChangeOrAdd => [self.of(Takes::IdNumberValue, value), self.demands()].concat(),
        }
    }

    /// The transaction, and the parameters of its commit.
    fn demands(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![&self.transaction, &self.objects, &self.transactions, &self.transaction, &self.keep]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_is_found_beside_what_is_demanded() {
        let rest =
            ", p1 AS (INSERT INTO \"s\".mingle_outcomes VALUES ($3)) SELECT CASE WHEN x($4) END";
        for change in [
            "UPDATE t SET a = f(), b = $2 WHERE c = $1",
            "WITH updated AS (UPDATE t SET b = $2 RETURNING 1) INSERT INTO t (b) SELECT $2",
        ] {
            let whole = match change.split_once(") INSERT") {
                Some((first, then)) => format!("{first}), p0 AS (INSERT{then}){rest}"),
                None => format!("WITH p0 AS ({change}){rest}"),
            };
            assert_eq!(changes_of(&whole), change);
            assert_eq!(changes_of(change), change, "it stands alone");
        }
    }
}
