//! A store to test, and helper functions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_model::{Level, Origin, RowKind, TransactionId, WitnessRow};
use mingle_store::conformance::schema;
use mingle_store::{
    Answer, Commit, Committed, Data, DataStore, Once, OperationId, Read, Session, StoreError,
    TestWorld, Transaction, Write,
};
use mingle_store_replay::{Links, ReplayConfig, ReplayStore};

/// The time that an update takes to other replicas.
pub const DELAY: Duration = Duration::from_millis(40);

/// Links that are down, by name.
#[derive(Default)]
pub struct Cuts(Mutex<Vec<(String, String)>>);

impl Cuts {
    /// Cuts a link in both directions.
    pub fn cut(&self, one: &str, other: &str) {
        let mut cuts = self.0.lock().expect("no test panics with the lock");
        cuts.push((one.into(), other.into()));
        cuts.push((other.into(), one.into()));
    }

    /// Restores all links.
    pub fn heal(&self) {
        self.0.lock().expect("no test panics with the lock").clear();
    }
}

impl Links for Cuts {
    fn is_up(&self, from: &str, to: &str) -> bool {
        let cuts = self.0.lock().expect("no test panics with the lock");
        !cuts.iter().any(|(a, b)| a == from && b == to)
    }
}

/// A store of three replicas, `r1` to `r3`.
pub struct Bench {
    pub world: Arc<TestWorld>,
    pub store: Arc<dyn DataStore>,
    pub cuts: Arc<Cuts>,
}

impl Bench {
    pub fn new(level: Level) -> Self {
        let world = TestWorld::new(5);
        let cuts = Arc::new(Cuts::default());
        let config = ReplayConfig::new(3, Once::ById)
            .with_delay(DELAY, Duration::ZERO)
            .with_links(cuts.clone());
        let store = ReplayStore::open(config, schema::store_schema(level), world.clone());
        Self { world, store: store.expect("the store opens"), cuts }
    }

    pub fn begin(&self, session: &Session) -> Box<dyn Transaction> {
        self.world.block_on(self.store.begin(session)).expect("it begins")
    }

    pub fn try_commit(&self, at: &str, commit: Commit) -> Result<Committed, StoreError> {
        self.world.block_on(self.begin(&Session::at(at)).commit(commit))
    }

    pub fn commit(&self, at: &str, commit: Commit) -> Committed {
        self.try_commit(at, commit).expect("it commits")
    }

    pub fn write(&self, at: &str, writes: Vec<Write>) -> Committed {
        self.commit(at, Commit { writes, ..Commit::default() })
    }

    pub fn answer(&self, at: &str, read: Read) -> Answer {
        let mut transaction = self.begin(&Session::at(at));
        let mut answers = self.world.block_on(transaction.read(&[read])).expect("it reads");
        answers.pop().expect("one answer")
    }

    pub fn data(&self, at: &str, read: Read) -> Data {
        self.answer(at, read).data
    }

    /// Delivers every update whose link is up.
    pub fn deliver(&self) {
        self.world.advance(DELAY);
    }
}

pub fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(9), sequence }
}

pub fn operation(sequence: u64) -> OperationId {
    OperationId { id: id(sequence), phase: 1 }
}

pub fn row(key: Option<&str>, sequence: u64) -> WitnessRow {
    WitnessRow {
        object: key.map(schema::thing),
        id: id(sequence),
        kind: RowKind::Write,
        intent: "intents".into(),
        stores: vec!["a".into()],
        seen: Vec::new(),
    }
}
