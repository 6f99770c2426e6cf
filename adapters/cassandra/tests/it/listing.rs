//! Finding open rows of the runtime without reading those that it has removed.

use std::sync::Arc;
use std::time::Duration;

use mingle_model::{Level, Name, Origin, RowKind, Time, TransactionId, WitnessRow};
use mingle_runtime::TokioWorld;
use mingle_services::Engine;
use mingle_store::conformance::schema::{store_schema, thing};
use mingle_store::record::floor;
use mingle_store::{BoxFuture, Bytes, Data, Read, RecordKey, RecordKind, World, Write};
use mingle_store_cassandra::limits::{BLOCK_IDS, FORGOTTEN_AFTER};
use mingle_store_cassandra::{Cassandra, CassandraConfig, OpenError};

use crate::support::{Other, config, connect, data, write};

fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

fn id(origin: u128, sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(origin), sequence }
}

fn record(kind: RecordKind, id: TransactionId) -> Write {
    Write::Record(RecordKey::of(kind, id, 0), bytes("value"))
}

fn row(id: TransactionId) -> WitnessRow {
    WitnessRow {
        object: Some(thing("x")),
        id,
        kind: RowKind::Write,
        intent: Name::from("elsewhere"),
        stores: vec![Name::from("elsewhere")],
        seen: Vec::new(),
    }
}

/// Returns the transactions of the listed records of a kind, from one on.
async fn listed(
    store: &Cassandra,
    kind: RecordKind,
    from: TransactionId,
    limit: usize,
) -> Vec<TransactionId> {
    let from = RecordKey::of(kind, from, 0).key;
    let Data::Records(found) = data(store, "dc1", Read::Records { kind, from, limit }).await else {
        panic!("no records are answered")
    };
    let key = |(key, _)| RecordKey { kind, key }.transaction().expect("it names a transaction").0;
    found.into_iter().map(key).collect()
}

/// Returns the number of registered blocks of a store, of all kinds.
async fn blocks(other: &Other, config: &CassandraConfig) -> usize {
    let area = config.area.as_deref().expect("tests have an area");
    let table = format!("\"{}\".records", config.keyspace);
    let mut count = 0;
    for code in 0..10 {
        let which = format!("kind = '{area} blocks' AND head = 0x{code:02x}");
        count += other.run(&format!("SELECT tail, value FROM {table} WHERE {which}")).await.len();
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_many_blocks_are_listed_in_the_order_of_their_keys() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let config = config(server.url());
    let store = connect(config.clone(), store_schema(Level::Eventual)).await.expect("it opens");
    let numbers = [1, 2, BLOCK_IDS - 1, BLOCK_IDS, 5 * BLOCK_IDS + 3, u64::MAX];
    let all: Vec<TransactionId> = [3, u128::MAX]
        .iter()
        .flat_map(|origin| numbers.map(|number| id(*origin, number)))
        .collect();
    let kinds = [RecordKind::Intent, RecordKind::Witness];
    for id in all.iter().rev() {
        let mut writes = kinds.map(|kind| record(kind, *id)).to_vec();
        writes.push(Write::Witness(row(*id)));
        write(&store, "dc1", writes).await.expect("it is written");
    }
    for kind in kinds {
        assert_eq!(listed(&store, kind, id(0, 0), usize::MAX).await, all, "{kind:?}");
        assert_eq!(listed(&store, kind, all[2], 3).await, all[2..5], "{kind:?}");
        assert_eq!(listed(&store, kind, id(3, BLOCK_IDS + 1), 2).await, all[4..6], "{kind:?}");
        assert_eq!(listed(&store, kind, id(4, 0), 2).await, all[6..8], "{kind:?}");
    }
    let rows = async |from, limit| {
        let Data::Witnesses(rows) = data(&store, "dc1", Read::Witnesses { from, limit }).await
        else {
            panic!("no rows are answered")
        };
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(rows(id(0, 0), usize::MAX).await, all);
    assert_eq!(rows(all[3], 2).await, all[3..5]);

    let drops = kinds
        .into_iter()
        .flat_map(|kind| all.iter().map(move |id| Write::Discard(RecordKey::of(kind, *id, 0))));
    let drops = drops.chain(all.iter().map(|id| Write::Forget(*id))).collect();
    write(&store, "dc1", drops).await.expect("all is removed");
    for kind in kinds {
        assert_eq!(listed(&store, kind, id(0, 0), usize::MAX).await, [], "{kind:?}");
    }
    assert_eq!(rows(id(0, 0), usize::MAX).await, []);
    // The blocks were registered a moment ago: other processes may still rely on them.
    let other = Other::at(server.url()).await;
    assert!(blocks(&other, &config).await > 2 * numbers.len());
}

/// A world whose clock is behind by a fixed duration.
struct Earlier(TokioWorld, Duration);

impl World for Earlier {
    fn now(&self) -> Time {
        let earlier = i64::try_from(self.1.as_millis()).expect("it is not that long");
        self.0.now().plus_millis(-earlier)
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration)
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        self.0.run_blocking(work)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_forgotten_once_its_transactions_are_over() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let (other, config) = (Other::at(server.url()).await, config(server.url()));
    let schema = store_schema(Level::Eventual);
    let earlier = Arc::new(Earlier(TokioWorld::new(), 2 * FORGOTTEN_AFTER));
    let before = Cassandra::connect(config.clone(), schema.clone(), earlier).await;
    let before = before.expect("it opens");
    let kind = RecordKind::Witness;
    let (first, second) = (id(5, 1), id(5, BLOCK_IDS));
    let open = id(6, 1);
    for id in [first, second, open] {
        write(&before, "dc1", vec![record(kind, id), Write::Witness(row(id))]).await.unwrap();
    }
    let now = connect(config.clone(), schema).await.expect("it opens");
    let sweep = || async {
        let found = listed(&now, kind, id(0, 0), usize::MAX).await;
        let from = id(0, 0);
        data(&now, "dc1", Read::Witnesses { from, limit: usize::MAX }).await;
        found
    };
    assert_eq!(sweep().await, [first, second, open]);
    let blocks_before = blocks(&other, &config).await;
    let over = |id| [Write::Discard(RecordKey::of(kind, id, 0)), Write::Forget(id)];
    let drops = [over(first), over(second), over(open)].concat();
    write(&now, "dc1", drops).await.expect("all is removed");

    // The floor is above the first block, of one origin only.
    let floor_of = RecordKey::of_origin(RecordKind::Floor, first.origin);
    let raise = vec![Write::Record(floor_of, floor(BLOCK_IDS))];
    write(&now, "dc1", raise).await.expect("the floor is raised");
    let with_floor = blocks(&other, &config).await;
    assert!(with_floor <= blocks_before + 1, "the floor's own block at most is new");
    assert_eq!(sweep().await, []);
    assert_eq!(blocks(&other, &config).await, with_floor - 2, "records and rows of one block");

    // A process that adds to the block again registers it again.
    write(&now, "dc1", vec![record(kind, first)]).await.expect("it is written");
    assert_eq!(sweep().await, [first]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_an_earlier_version_are_refused_with_what_to_do() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let other = Other::at(server.url()).await;
    let keyspace = format!("earlier_{}", std::process::id());
    for statement in [
        format!(
            "CREATE KEYSPACE {keyspace} WITH replication = \
             {{'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1, 'dc3': 1}}"
        ),
        format!(
            "CREATE TABLE {keyspace}.rows (store text, id blob, object blob, digest blob, \
             value blob, PRIMARY KEY ((store, id), object, digest))"
        ),
    ] {
        other.run(&statement).await;
    }
    let config = CassandraConfig { keyspace: keyspace.clone(), ..config(server.url()) };
    let opened = connect(config, store_schema(Level::Eventual)).await.map(|_| ());
    let Err(OpenError::Config { reason, .. }) = &opened else { panic!("{opened:?}") };
    assert!(reason.contains("`mingle recover`") && reason.contains(&keyspace), "{reason}");
    other.run(&format!("DROP KEYSPACE {keyspace}")).await;
}
