//! An application with tables of its own, and a program beside it.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mingle::{Binding, Session};
use mingle_services::Engine;
use tokio_postgres::{Client, NoTls};

use super::driver::Driver;

pub use program::{Account, Database, Item};

pub mod program {
    mingle::program! {
        store stock: linearizable { query shelf() -> list<int>; }
        store pages: snapshot;
        store ledger: linearizable;

        object Item in stock { key name: string; left: int; }
        object Page in pages { key item: string; sold: counter; lines: log<string>; }

        object Account in ledger { key number: string; sum: int; }

        transaction buy(item: ref Item, by: string) -> int {
            require item.left > 0 else "sold out" as sold_out;
            item.left -= 1;
            Page[item.name].sold.add(1);
            Page[item.name].lines.append(by);
            return item.left;
        }

        /// Its result is computed by its second phase.
        transaction count(item: ref Item) -> int {
            item.left -= 1;
            Page[item.name].sold.add(1);
            return Page[item.name].sold.value();
        }

        /// Writes what it has not read.
        transaction fill(item: ref Item, count: int) {
            item.left = count;
            Page[item.name].lines.append("filled");
        }

        /// May write nothing where it could write first.
        transaction perhaps(item: ref Item) {
            if item.left > 100 { item.left = 100; }
            Page[item.name].lines.append("looked");
        }

        /// Visits one store.
        transaction restock(item: ref Item, count: int) -> int {
            item.left += count;
            return item.left;
        }

        /// Writes what it asks in the store's own words.
        transaction measure(item: ref Item) -> int {
            let shelf = stock.shelf();
            item.left = shelf.size();
            return shelf.size();
        }

        transaction left(item: ref Item) -> int { return item.left; }
        transaction sold(item: string) -> int { return Page[item].sold.value(); }
        transaction lines(item: string) -> list<string> { return Page[item].lines.to_list(); }
        transaction note(item: string) { Page[item].lines.append("noted"); }
        transaction spend(account: ref Account, item: ref Item) {
            if account.sum >= 0 { item.left -= 1; }
        }
        transaction credit(account: ref Account, item: ref Item) {
            if account.sum >= 0 {
                account.sum += 1;
                item.left += 1;
            }
        }
        isolated transaction both(item: ref Item) {
            item.left -= 1;
            Page[item.name].sold.add(1);
        }
    }
}

/// The longest wait of a test for an expected event.
const SOON: Duration = Duration::from_secs(30);

/// The application's database, and the program's stores in it.
pub struct Shop {
    pub url: String,
    /// The schema of the application's own tables.
    pub name: String,
    pub binding: Binding,
    pub db: Database,
    pub client: Client,
}

pub async fn connect(url: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("the server takes connections");
    tokio::spawn(connection);
    client
}

/// A name that is unique on a server.
pub fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("t{:016x}_{number}", RandomState::new().hash_one(std::process::id()))
}

impl Shop {
    /// Opens the shop; none if PostgreSQL is not installed.
    pub async fn open() -> Option<Self> {
        Self::open_with(|url, name| {
            format!(
                "[stores.pages]\nengine = \"postgres\"\nurl = \"{url}\"\nschema = \"{name}_pages\"\n"
            )
        })
        .await
    }

    /// Opens the shop with the pages in this process.
    pub async fn open_beside() -> Option<Self> {
        Self::open_with(|_, _| "[stores.pages]\nengine = \"embedded\"\n".to_owned()).await
    }

    async fn open_with(pages: impl Fn(&str, &str) -> String) -> Option<Self> {
        let server = mingle_services::shared(Engine::Postgres).await?;
        let url = server.url().to_owned();
        let (name, client) = (unique(), connect(&url).await);
        let tables = format!(
            "CREATE SCHEMA {name}; \
             CREATE TABLE {name}.items (name text PRIMARY KEY, \"left\" bigint NOT NULL); \
             CREATE TABLE {name}.orders (id bigint PRIMARY KEY, item text NOT NULL); \
             INSERT INTO {name}.items VALUES ('tea', 2), ('coffee', 5)"
        );
        client.batch_execute(&tables).await.expect("the tables can be made");
        let binding = format!(
            "[stores.stock]\nengine = \"postgres\"\nurl = \"{url}\"\nschema = \"{name}_stock\"\n\
             [stores.stock.objects.Item]\ntable = \"{name}.items\"\nkey = \"name\"\n\
             [stores.stock.operations]\nshelf = 'SELECT \"left\" FROM {name}.items'\n[stores.ledger]\n{}",
            pages(&url, &name)
        );
        let binding = Binding::parse(&binding).expect("the binding is right");
        let db = Database::connect().binding(&binding).await;
        let db = db.unwrap_or_else(|error| panic!("{error}"));
        Some(Self { url, name, binding, db, client })
    }

    /// Opens the stores as another process does.
    pub async fn another(&self) -> Database {
        let db = Database::connect().binding(&self.binding).await;
        db.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Opens a connection of the application.
    pub async fn connect(&self, driver: Driver) -> super::driver::Client {
        driver.connect(&self.url).await
    }

    pub fn order(&self, id: i64, item: &str) -> String {
        format!("INSERT INTO {}.orders VALUES ({id}, '{item}')", self.name)
    }

    pub async fn orders(&self) -> i64 {
        let sql = format!("SELECT count(*) FROM {}.orders", self.name);
        self.client.query_one(&sql, &[]).await.expect("a count").get(0)
    }

    /// The count of an item as the application sees it.
    pub async fn stands(&self, item: &str) -> i64 {
        let sql = format!("SELECT \"left\" FROM {}.items WHERE name = '{item}'", self.name);
        self.client.query_one(&sql, &[]).await.expect("a row").get(0)
    }

    /// The number of rows that transactions have left beside the data.
    pub async fn rests(&self) -> i64 {
        let mut rests = 0;
        for store in ["stock", "pages"] {
            let own = format!("{}_{store}", self.name);
            let sql = format!(
                "SELECT (SELECT count(*) FROM {own}.mingle_witnesses) + \
                 (SELECT count(*) FROM {own}.mingle_records WHERE kind IN (2, 3, 4, 5))"
            );
            rests += self.client.query_one(&sql, &[]).await.expect("a count").get::<_, i64>(0);
        }
        rests
    }

    /// Waits until all transactions are finished and nothing is left of them.
    pub async fn settles(&self) {
        assert!(self.db.untyped().settle(SOON).await, "it does not come to rest");
        assert_eq!(self.rests().await, 0, "rows that transactions have left");
    }
}

/// Repeats a check until it holds.
pub async fn eventually(mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !holds().await {
        assert!(Instant::now() < deadline, "it has not come about in {SOON:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The number sold of an item, as seen by a client with a separate session.
pub async fn sold(db: &Database, item: &str) -> i64 {
    db.sold(item).session(&Session::default()).await.expect("the store answers")
}
