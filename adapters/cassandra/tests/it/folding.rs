//! Folding of a counter while other processes add, remove, fold, and repeat earlier commits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_model::Level;
use mingle_services::Engine;
use mingle_store::conformance::schema::{COUNT, at, store_schema, thing};
use mingle_store::{Commit, Data, DataStore, OperationId, Read, Session, Write};
use mingle_store_cassandra::{Cassandra, CassandraConfig, Consistency};

use crate::support::{CENTERS, Other, config, connect, data, id, write};

const WAIT: Duration = Duration::from_millis(700);

struct Bench {
    other: Other,
    config: CassandraConfig,
    store: Arc<Cassandra>,
}

impl Bench {
    async fn new() -> Option<Self> {
        let server = mingle_services::shared(Engine::Cassandra).await?;
        // An acknowledged write is at all data centers, so a sum can be compared at once.
        let config =
            CassandraConfig { write_consistency: Consistency::All, ..config(server.url()) };
        let store = connect(config.clone(), store_schema(Level::Eventual)).await.unwrap();
        Some(Self { other: Other::at(server.url()).await, config, store })
    }

    async fn another(&self) -> Arc<Cassandra> {
        connect(self.config.clone(), store_schema(Level::Eventual)).await.expect("it opens")
    }

    /// Returns the number of the counter's rows.
    async fn rows(&self) -> usize {
        let area = self.config.area.as_deref().expect("tests have their own");
        let key = [area.as_bytes(), b"\0Thing\0c"].concat();
        let mut query =
            "SELECT dot FROM mingle.data WHERE field = 'count' AND object = 0x".to_owned();
        for byte in key {
            query = format!("{query}{byte:02x}");
        }
        self.other.run(&query).await.len()
    }

    async fn sum(&self) -> i128 {
        match data(&self.store, "dc2", Read::Counter(at("c", COUNT))).await {
            Data::Counter(sum) => sum,
            other => panic!("{other:?}"),
        }
    }

    async fn fold(&self) -> bool {
        self.store.fold(&at("c", COUNT), WAIT).await.expect("all replicas are there")
    }
}

fn add(amount: i128) -> Vec<Write> {
    vec![Write::Add(at("c", COUNT), amount)]
}

#[tokio::test(flavor = "multi_thread")]
async fn one_row_is_left_and_late_copies_change_nothing() {
    let Some(bench) = Bench::new().await else { return };
    let operation = |time| Commit {
        writes: add(1_000),
        operation: Some(OperationId { id: id(1), phase: 1 }),
        time,
        ..Commit::default()
    };
    let time = bench.store.time();
    let copy = async |center: &str| {
        let open = bench.store.begin(&Session::at(center)).await.expect("it begins");
        open.commit(operation(time)).await.expect("it is written");
    };
    copy("dc1").await;
    for amount in 1..=20 {
        write(&bench.store, CENTERS[amount % 3], add(amount as i128)).await.expect("it is written");
    }
    assert_eq!((bench.sum().await, bench.rows().await), (1_210, 21));
    assert!(bench.fold().await);
    assert_eq!((bench.sum().await, bench.rows().await), (1_210, 1));
    copy("dc3").await;
    copy("dc2").await;
    assert_eq!((bench.sum().await, bench.rows().await), (1_210, 1));
    write(&bench.store, "dc1", add(-10)).await.expect("it is written");
    assert!(bench.fold().await, "a folded row is folded again");
    assert_eq!((bench.sum().await, bench.rows().await), (1_200, 1));
    assert!(!bench.fold().await, "there is nothing to do");
    write(&bench.store, "dc1", vec![Write::Delete(thing("c"))]).await.expect("it is deleted");
    assert_eq!((bench.sum().await, bench.rows().await), (0, 0));
    copy("dc2").await;
    assert_eq!(bench.sum().await, 0, "a copy of what was folded and deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_amid_folding_takes_what_it_has_seen() {
    let Some(bench) = Bench::new().await else { return };
    for amount in 1..=10 {
        write(&bench.store, "dc1", add(amount)).await.expect("it is written");
    }
    let other = bench.another().await;
    let deleting = async {
        // Waits until the intention is there; the sum is not written yet.
        let deadline = Instant::now() + Duration::from_secs(20);
        while bench.rows().await < 11 {
            assert!(Instant::now() < deadline, "nobody folds");
        }
        write(&other, "dc3", vec![Write::Delete(thing("c"))]).await.expect("it is deleted");
        write(&other, "dc3", add(7)).await.expect("it is written");
    };
    let wait = Duration::from_secs(4);
    let counter = at("c", COUNT);
    let (folded, ()) = tokio::join!(bench.store.fold(&counter, wait), deleting);
    assert_eq!(folded, Ok(false), "its intention is gone");
    assert_eq!(bench.sum().await, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_while_all_add_and_fold() {
    let Some(bench) = Bench::new().await else { return };
    let others = [bench.another().await, bench.another().await];
    let counter = at("c", COUNT);
    let adding = others.iter().zip(1i128..).map(|(store, number)| async move {
        for round in 0..60 {
            write(store, CENTERS[round % 3], add(number)).await.expect("it is written");
        }
    });
    let folding = [&bench.store, &others[0]].map(|store| {
        let counter = &counter;
        async move {
            let mut folds = 0;
            for _ in 0..4 {
                let folded = store.fold(counter, WAIT).await.expect("all replicas are there");
                folds += usize::from(folded);
                let pause = if folded { 1 } else { 50 + store.time() % 400 };
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            folds
        }
    });
    let (_, folds) = tokio::join!(
        futures_util::future::join_all(adding),
        futures_util::future::join_all(folding)
    );
    assert_eq!(bench.sum().await, 60 + 120, "after {folds:?} folds");
    for _ in 0..5 {
        bench.fold().await;
    }
    assert_eq!(bench.rows().await, 1);
    assert_eq!(bench.sum().await, 60 + 120);
}
