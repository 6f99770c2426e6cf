//! The application's connection, through either driver.

use mingle::Error;
use mingle::typed::{Call, Joined};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Postgres, Row as _};
use tokio_postgres::NoTls;

/// The driver with which the application speaks to its database.
#[derive(Clone, Copy, Debug)]
pub enum Driver {
    TokioPostgres,
    Sqlx,
    /// With sqlx, and a connection in place of the transaction.
    Connection,
}

/// A connection.
pub enum Client {
    Plain(tokio_postgres::Client),
    Sqlx(Box<sqlx::PgConnection>, Driver),
}

/// A transaction.
pub enum Tx<'a> {
    Plain(tokio_postgres::Transaction<'a>),
    Sqlx(sqlx::Transaction<'a, Postgres>, Driver),
}

impl Driver {
    pub async fn connect(self, url: &str) -> Client {
        if let Self::Sqlx | Self::Connection = self {
            let connection = sqlx::PgConnection::connect(url).await;
            return Client::Sqlx(Box::new(connection.expect("the server takes connections")), self);
        }
        Client::Plain(super::shop::connect(url).await)
    }

    pub async fn connect_to(self, url: &str, database: &str) -> Client {
        if let Self::Sqlx | Self::Connection = self {
            let options: sqlx::postgres::PgConnectOptions =
                url.parse().expect("the address is right");
            let connection = sqlx::PgConnection::connect_with(&options.database(database)).await;
            return Client::Sqlx(Box::new(connection.expect("a connection")), self);
        }
        let mut config: tokio_postgres::Config = url.parse().expect("the address is right");
        let (client, connection) =
            config.dbname(database).connect(NoTls).await.expect("a connection");
        tokio::spawn(connection);
        Client::Plain(client)
    }
}

impl Client {
    pub async fn say(&mut self, sql: &str) {
        match self {
            Self::Plain(client) => client.batch_execute(sql).await.expect("the server takes it"),
            Self::Sqlx(client, _) => {
                let sql = sqlx::raw_sql(AssertSqlSafe(sql));
                client.execute(sql).await.expect("the server takes it");
            }
        }
    }

    /// Begins a transaction at the level that a store needs.
    pub async fn begin(&mut self) -> Tx<'_> {
        self.begin_at("SERIALIZABLE READ WRITE").await
    }

    pub async fn begin_at(&mut self, level: &str) -> Tx<'_> {
        match self {
            Self::Plain(client) => {
                let tx = client.transaction().await.expect("a transaction");
                let set = format!("SET TRANSACTION ISOLATION LEVEL {level}");
                tx.batch_execute(&set).await.expect("nothing was said before it");
                Tx::Plain(tx)
            }
            Self::Sqlx(client, driver) => {
                let begin = AssertSqlSafe(format!("BEGIN ISOLATION LEVEL {level}"));
                Tx::Sqlx(client.begin_with(begin).await.expect("a transaction"), *driver)
            }
        }
    }
}

impl Tx<'_> {
    /// Makes a call a part of the transaction.
    pub async fn join<T>(&mut self, call: Call<T>) -> Result<Joined<T>, Error> {
        match self {
            Self::Plain(tx) => call.inside(tx).await,
            Self::Sqlx(tx, Driver::Connection) => call.inside(&mut **tx).await,
            Self::Sqlx(tx, _) => call.inside(tx).await,
        }
    }

    pub async fn say(&mut self, sql: &str) -> Result<(), String> {
        match self {
            Self::Plain(tx) => tx.batch_execute(sql).await.map_err(|error| error.to_string()),
            Self::Sqlx(tx, _) => {
                let said = tx.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await;
                said.map(drop).map_err(|error| error.to_string())
            }
        }
    }

    /// The cell of a query that gives one text.
    pub async fn text(&mut self, sql: &str) -> String {
        match self {
            Self::Plain(tx) => tx.query_one(sql, &[]).await.expect("a row").get(0),
            Self::Sqlx(tx, _) => {
                let row = tx.fetch_one(sqlx::query(AssertSqlSafe(sql))).await;
                row.expect("a row").get(0)
            }
        }
    }

    pub async fn commit(self) -> Result<(), String> {
        match self {
            Self::Plain(tx) => tx.commit().await.map_err(|error| error.to_string()),
            Self::Sqlx(tx, _) => tx.commit().await.map_err(|error| error.to_string()),
        }
    }

    pub async fn rollback(self) -> Result<(), String> {
        match self {
            Self::Plain(tx) => tx.rollback().await.map_err(|error| error.to_string()),
            Self::Sqlx(tx, _) => tx.rollback().await.map_err(|error| error.to_string()),
        }
    }
}

/// Makes a test for each driver out of each of these functions.
macro_rules! over_both_drivers {
    ($($name:ident),* $(,)?) => {
        mod with_tokio_postgres {
            use crate::inside::driver::Driver;

            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(Driver::TokioPostgres).await;
            })*
        }

        mod with_sqlx {
            use crate::inside::driver::Driver;

            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(Driver::Sqlx).await;
            })*
        }

        mod with_a_connection_of_sqlx {
            use crate::inside::driver::Driver;

            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(Driver::Connection).await;
            })*
        }
    };
}
