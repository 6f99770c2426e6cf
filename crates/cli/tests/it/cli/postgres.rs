//! Databases for tests of `migrate` and `init`, on a real server.

use std::hash::{BuildHasher, RandomState};

use mingle_services::{Engine, Server};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, SimpleQueryRow};

/// A database for one test.
pub struct Database {
    tokio: Runtime,
    client: Client,
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// The server of the database, if it has a server of its own.
    _server: Option<Server>,
}

impl Database {
    /// Makes a database with tables in it; none if PostgreSQL is not installed.
    pub fn new(tables: &str) -> Option<Self> {
        let tokio = tokio();
        let server = tokio.block_on(mingle_services::shared(Engine::Postgres))?;
        let unique = RandomState::new().hash_one(std::process::id());
        let name = format!("shop{unique:016x}");
        Some(Self::at(tokio, server.url(), name, tables, None))
    }

    /// As [`Database::new`], on a server of its own, on which the database can have any name.
    pub fn alone(name: &str, tables: &str) -> Option<Self> {
        let tokio = tokio();
        let server = tokio.block_on(mingle_services::private(Engine::Postgres))?;
        let url = server.url().to_owned();
        Some(Self::at(tokio, &url, name.to_owned(), tables, Some(server)))
    }

    fn at(tokio: Runtime, url: &str, name: String, tables: &str, server: Option<Server>) -> Self {
        let (before, _) = url.rsplit_once('/').expect("a database in the address");
        let own = format!("{before}/{name}");
        let client = tokio.block_on(async {
            let made = connect(url).await.batch_execute(&format!("CREATE DATABASE {name}")).await;
            made.expect("a database is made");
            let client = connect(&own).await;
            client.batch_execute(tables).await.unwrap_or_else(|error| panic!("{error:?}"));
            client
        });
        Self { tokio, client, name, url: own, _server: server }
    }

    /// Returns the output of `psql` for a query.
    pub fn shown(&self, sql: &str) -> String {
        let found = self.tokio.block_on(async {
            let statement = self.client.prepare(sql).await?;
            Ok::<_, tokio_postgres::Error>((statement, self.client.simple_query(sql).await?))
        });
        let (statement, messages) = found.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let cells = |row: &SimpleQueryRow| -> Vec<String> {
            (0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect()
        };
        let rows: Vec<Vec<String>> = rows.map(cells).collect();
        let (mut head, mut rule, mut lines) =
            (Vec::new(), Vec::new(), vec![Vec::new(); rows.len()]);
        for (at, column) in statement.columns().iter().enumerate() {
            let name = column.name();
            let lengths = rows.iter().map(|row| row[at].chars().count());
            let width = lengths.chain([name.len()]).max().unwrap_or_default();
            let is_number = matches!(column.type_().name(), "int2" | "int4" | "int8");
            head.push(format!(" {name:^width$} "));
            rule.push("-".repeat(width + 2));
            for (line, row) in lines.iter_mut().zip(&rows) {
                let cell = &row[at];
                line.push(if is_number {
                    format!(" {cell:>width$} ")
                } else {
                    format!(" {cell:<width$} ")
                });
            }
        }
        let plural = if rows.len() == 1 { "" } else { "s" };
        let mut text = format!("{}\n{}\n", head.join("|"), rule.join("+"));
        text.extend(lines.iter().map(|line| line.join("|") + "\n"));
        text + &format!("({} row{plural})\n", rows.len())
    }

    /// Runs SQL.
    pub fn execute(&self, sql: &str) {
        let done = self.tokio.block_on(self.client.batch_execute(sql));
        done.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Returns the only number in the result of a query.
    pub fn number(&self, sql: &str) -> i64 {
        let row = self.tokio.block_on(self.client.query_one(sql, &[]));
        row.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }
}

fn tokio() -> Runtime {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    tokio.expect("threads can be started")
}

async fn connect(url: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("the server takes connections");
    tokio::spawn(connection);
    client
}
