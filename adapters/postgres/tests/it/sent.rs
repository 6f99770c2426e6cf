//! The messages of small transactions to the server: each statement costs the server about as much
//! as the change of a row, and each round trip costs the network delay.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{self, unique};
use mingle::{Binding, Database, Session, TokioWorld};
use mingle_model::{Ref, Value};
use mingle_proxy::Watch;
use mingle_proxy::statements::Trip;

const PROGRAM: &str = "\
store bank: linearizable;
store pages: eventual;

object Account in bank {
    key number: int;
    balance: int;
}

object Page in pages {
    key number: int;
    total: int;
}

transaction look(account: ref Account) -> int {
    return account.balance;
}

transaction add(account: ref Account) -> int {
    account.balance += 1;
    return account.balance;
}

transaction set(account: ref Account) {
    account.balance = 7;
}

transaction both(account: ref Account, page: ref Page) {
    account.balance += 1;
    page.total += 1;
}
";

/// The program, and the proxy that records its messages.
struct Bench {
    watch: Watch,
    database: Database,
}

impl Bench {
    async fn open() -> Option<Self> {
        let url = support::server().await?;
        let (before, after) = url.split_once("127.0.0.1:").expect("the server is on loopback");
        let (port, rest) = after.split_once('/').expect("it has a database");
        let port: u16 = port.parse().expect("it has a port");
        let watch = Watch::start(SocketAddr::from(([127, 0, 0, 1], port))).await;
        let watch = watch.expect("there is a port");
        let (through, schema) = (watch.proxy.address(), unique("sent"));
        let binding = format!(
            "[stores.bank]\nengine = \"postgres\"\nschema = \"{schema}\"\npool = 1\n\
             url = \"{before}{through}/{rest}\"\n[stores.pages]\n"
        );
        let mut binding = Binding::parse(&binding).expect("it is one");
        // Only the calls send messages.
        binding.settings.clean_after = Duration::from_hours(1);
        let program = mingle::compile(PROGRAM).expect("it compiles");
        let world = Arc::new(TokioWorld::new());
        let opened = Database::open_idle(program, &binding, None, world, |_, store| store).await;
        Some(Self { watch, database: opened.expect("it opens") })
    }

    async fn call(&self, transaction: &str, kinds: &[&str]) {
        let object = |kind: &&str| Value::Ref(Ref::new(*kind, Value::Int(1)));
        let arguments = kinds.iter().map(object).collect();
        let called = self.database.call(transaction, arguments, Session::default()).await;
        called.expect("nobody is in its way");
    }

    /// Returns the messages of a transaction, once its statements are prepared and its objects
    /// exist.
    async fn sent(&mut self, transaction: &str, kinds: &[&str]) -> Vec<Trip> {
        self.call(transaction, kinds).await;
        self.watch.take();
        self.call(transaction, kinds).await;
        self.watch.take()
    }
}

/// Returns the number of statements in each round trip.
fn counts(trips: &[Trip]) -> Vec<usize> {
    trips.iter().map(Vec::len).collect()
}

// One thread, so that messages sent together are recorded together.
#[tokio::test]
async fn small_transactions_send_as_few_statements_as_one_would_by_hand() {
    let Some(mut bench) = Bench::open().await else { return };
    bench.call("set", &["Account"]).await;
    let look = bench.sent("look", &["Account"]).await;
    assert_eq!(counts(&look), [1], "a read is a statement alone: {look:#?}");
    let add = bench.sent("add", &["Account"]).await;
    assert_eq!(counts(&add), [2, 2], "what changes goes out as one: {add:#?}");
    let set = bench.sent("set", &["Account"]).await;
    assert_eq!(counts(&set), [3], "nothing is asked before: {set:#?}");
    for trips in [add, set] {
        let last = trips.last().and_then(|trip| trip.last());
        assert_eq!(last.map(String::as_str), Some("COMMIT"));
    }
}

#[tokio::test]
async fn the_first_of_two_stores_takes_no_more_of_them() {
    let Some(mut bench) = Bench::open().await else { return };
    let both = bench.sent("both", &["Account", "Page"]).await;
    assert_eq!(counts(&both), [2, 2], "intent and witness row are parts of its write: {both:#?}");
    let written = &both[1][0];
    for table in ["\"Account\"", "mingle_witnesses", "mingle_records", "mingle_outcomes"] {
        assert!(written.contains(table), "{table} is not in {written}");
    }
}
