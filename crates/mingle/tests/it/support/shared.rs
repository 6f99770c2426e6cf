//! Several servers over the same stores, like processes over one database: each has a runtime of its
//! own.

use std::sync::Arc;

use mingle::{Binding, CallReport, Database, Error, Session};
use mingle_lang::hir::StoreId;
use mingle_model::{Name, Origin, TransactionId};
use mingle_runtime::Runtime;
use mingle_store::{
    Data, DataStore, Read, RecordKey, RecordKind, Session as StoreSession, TestWorld, World,
};

/// The stores of a program, and their binding.
pub struct Stores {
    pub world: Arc<TestWorld>,
    pub binding: Binding,
    pub program: Arc<mingle_lang::Program>,
    pub all: Vec<Arc<dyn DataStore>>,
}

impl Stores {
    pub fn new(text: &str, binding: &str) -> Self {
        Self::seeded(text, binding, 7)
    }

    /// Creates the stores; distances are drawn from a seed.
    pub fn seeded(text: &str, binding: &str, seed: u64) -> Self {
        Self::open(text, binding, seed, |_, store| store)
    }

    pub fn wrapped(
        text: &str,
        binding: &str,
        wrap: impl FnMut(&str, Arc<dyn DataStore>) -> Arc<dyn DataStore>,
    ) -> Self {
        Self::open(text, binding, 7, wrap)
    }

    fn open(
        text: &str,
        binding: &str,
        seed: u64,
        wrap: impl FnMut(&str, Arc<dyn DataStore>) -> Arc<dyn DataStore>,
    ) -> Self {
        let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let binding = super::bound(&program, binding);
        let world = TestWorld::new(seed);
        let opened = Database::open_idle(program.clone(), &binding, None, world.clone(), wrap);
        let opened = world.block_on(opened).unwrap_or_else(|error| panic!("{error}"));
        let count = program.checked.stores.len() as u32;
        let all = (0..count).map(|id| opened.runtime().store(StoreId(id)).clone()).collect();
        Self { world, binding, program, all }
    }

    /// A server over the stores that finishes transactions that other servers left.
    pub fn server(&self) -> Arc<Database> {
        let database = self.server_over(self.world.clone(), |_, store| store);
        database.runtime().start_sweeps();
        database
    }

    /// A server whose world the test may end, with a wrapper around its stores.
    pub fn server_over(
        &self,
        world: Arc<dyn World>,
        mut wrap: impl FnMut(&str, Arc<dyn DataStore>) -> Arc<dyn DataStore>,
    ) -> Arc<Database> {
        let stores = self.all.iter().map(|store| {
            let name = store.capabilities().store.clone();
            wrap(&name, store.clone())
        });
        let settings = self.binding.settings.clone();
        let runtime = Runtime::new(self.program.clone(), stores.collect(), world, settings);
        Arc::new(Database::over(runtime))
    }

    pub fn call(
        &self,
        server: &Database,
        session: &Session,
        transaction: &str,
        arguments: &[(&str, &str)],
    ) -> Result<CallReport, Error> {
        self.world.block_on(call(server, session, transaction, arguments))
    }

    /// The result of a call that must succeed, as JSON.
    pub fn ok(
        &self,
        server: &Database,
        session: &Session,
        transaction: &str,
        arguments: &[(&str, &str)],
    ) -> serde_json::Value {
        let report = self.call(server, session, transaction, arguments);
        let report = report.unwrap_or_else(|error| panic!("{transaction}: {error}"));
        server.result_json(transaction, &report)
    }

    /// Lets so many seconds pass, with everything that runs meanwhile.
    pub fn pass(&self, seconds: u64) {
        self.world.block_on(self.world.sleep(std::time::Duration::from_secs(seconds)));
    }

    /// The leftovers of the runtime at the stores that it may still have to process: all records except
    /// programs and floors, and all witness rows, at every replica.
    pub fn left(&self) -> Vec<String> {
        let mut found = self.found();
        found.retain(|found| !found.contains(": Program ") && !found.contains(": Floor "));
        found
    }

    /// All records and all witness rows at every replica.
    pub fn found(&self) -> Vec<String> {
        self.world.block_on(async {
            let mut found = Vec::new();
            for store in &self.all {
                found.extend(found_at(&**store).await);
            }
            found
        })
    }
}

pub async fn call(
    server: &Database,
    session: &Session,
    transaction: &str,
    arguments: &[(&str, &str)],
) -> Result<CallReport, Error> {
    let arguments = server.arguments(transaction, arguments.iter().copied())?;
    server.call(transaction, arguments, session.clone()).await
}

/// All records and witness rows at the replicas of one store.
pub async fn found_at(store: &dyn DataStore) -> Vec<String> {
    let capabilities = store.capabilities();
    let mut replicas: Vec<Option<Name>> = capabilities.replicas.iter().cloned().map(Some).collect();
    if replicas.is_empty() {
        replicas.push(None);
    }
    let mut found = Vec::new();
    for replica in replicas {
        let from = TransactionId { origin: Origin(0), sequence: 0 };
        let mut reads = vec![Read::Witnesses { from, limit: 1_000 }];
        reads.extend(RecordKind::ALL.into_iter().map(|kind| Read::Records {
            kind,
            from: [].as_slice().into(),
            limit: 1_000,
        }));
        let session = StoreSession { replica: replica.clone(), ..StoreSession::default() };
        let mut transaction = store.begin(&session).await.expect("the store answers");
        let mut answers = transaction.read(&reads).await.expect("it answers").into_iter();
        let place = format!("{}/{}", capabilities.store, replica.as_deref().unwrap_or_default());
        if let Some(Data::Witnesses(rows)) = answers.next().map(|answer| answer.data) {
            found
                .extend(rows.iter().map(|row| format!("{place}: Row {} {:?}", row.id, row.object)));
        }
        for (kind, answer) in RecordKind::ALL.into_iter().zip(answers) {
            let Data::Records(records) = answer.data else { panic!("{answer:?} is no list") };
            let keys = records.into_iter().map(|(key, _)| RecordKey { kind, key });
            found.extend(keys.map(|key| format!("{place}: {key:?}")));
        }
    }
    found
}
