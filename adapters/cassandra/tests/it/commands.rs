//! Announcement of commands to other processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mingle_model::{Level, RowKind, Time, WitnessRow};
use mingle_runtime::TokioWorld;
use mingle_services::Engine;
use mingle_store::conformance::schema::{TEXT, at, store_schema};
use mingle_store::{BoxFuture, DataStore, Read, Session, World, Write};
use mingle_store_cassandra::limits::{COMMANDS_AFTER, COMMANDS_RULED_OUT_FOR};
use mingle_store_cassandra::{Cassandra, Consistency};

use crate::support::{CENTERS, config, connect, id, write};

fn row_of_the_store(sequence: u64) -> WitnessRow {
    WitnessRow {
        object: None,
        id: id(sequence),
        kind: RowKind::Write,
        intent: "elsewhere".into(),
        stores: vec!["elsewhere".into()],
        seen: Vec::new(),
    }
}

async fn rows_at(store: &Arc<Cassandra>, center: &str) -> Vec<WitnessRow> {
    let mut open = store.begin(&Session::at(center)).await.expect("it begins");
    let read = [Read::Register(at("one", TEXT))];
    open.read(&read).await.expect("it reads").remove(0).witnesses
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_row_of_the_whole_store_waits_until_everybody_looks_for_such_rows() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let mut own = config(server.url());
    // An acknowledged write is at all nodes, so a reader that looks finds it.
    own.write_consistency = Consistency::All;
    let connect = || async {
        connect(own.clone(), store_schema(Level::Eventual)).await.expect("the nodes are there")
    };
    let (reader, writer) = (connect().await, connect().await);
    for center in CENTERS {
        assert_eq!(rows_at(&reader, center).await, [], "it has looked, and there are none");
    }
    let begin = Instant::now();
    let rows = [row_of_the_store(1), row_of_the_store(2)];
    write(&writer, "dc2", vec![Write::Witness(rows[0].clone())]).await.expect("it is written");
    assert!(begin.elapsed() >= COMMANDS_AFTER && COMMANDS_AFTER > COMMANDS_RULED_OUT_FOR);
    for center in CENTERS {
        assert_eq!(rows_at(&reader, center).await, rows[..1], "at {center}");
    }
    // A later process need not wait for other processes.
    let world = Arc::new(Sleeping::default());
    let later = Cassandra::connect(own.clone(), store_schema(Level::Eventual), world.clone()).await;
    let later = later.expect("the nodes are there");
    assert_eq!(rows_at(&later, "dc1").await, rows[..1]);
    write(&later, "dc1", vec![Write::Witness(rows[1].clone())]).await.expect("it is written");
    assert_eq!(world.slept.load(Ordering::Relaxed), 0, "it has waited");
    assert_eq!(rows_at(&reader, "dc1").await, rows);
}

/// The usual world; it counts the waits for other processes to know of commands.
#[derive(Default)]
struct Sleeping {
    world: TokioWorld,
    slept: AtomicUsize,
}

impl World for Sleeping {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn elapsed(&self) -> Duration {
        self.world.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.slept.fetch_add(usize::from(duration == COMMANDS_AFTER), Ordering::Relaxed);
        self.world.sleep(duration)
    }

    fn random(&self) -> u64 {
        self.world.random()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.world.spawn(task);
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        self.world.run_blocking(work)
    }
}
