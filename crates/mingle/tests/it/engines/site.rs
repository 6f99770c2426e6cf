//! A program over stores of several engines.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::Duration;

use mingle::{Binding, CallReport, Database, Error, Session};
use mingle_services::{Engine, Options, Server};
use serde_json::Value as Json;
use tokio::runtime::Runtime;

use crate::support::scenarios::Site;

/// The runtime of transactions and of the tasks that watch over servers.
static TOKIO: LazyLock<Runtime> = LazyLock::new(|| {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    tokio.expect("threads can be started")
});

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    TOKIO.block_on(work)
}

/// The part of a binding that places a store: in this process, or in a server that all tests share, in
/// a separate space. None if the engine is not installed.
pub async fn bound(store: &str, engine: Option<Engine>, space: &str) -> Option<String> {
    let Some(engine) = engine else { return Some(String::new()) };
    let server = mingle_services::shared(engine).await?;
    let (name, url) = (engine.name(), server.url());
    if engine == Engine::Cassandra {
        let nodes: Vec<String> = url.split(',').map(|node| format!("{node:?}")).collect();
        return Some(format!(
            "[stores.{store}]\nengine = \"cassandra\"\nnodes = [{}]\n\
             datacenters = [\"dc1\", \"dc2\", \"dc3\"]\narea = \"{space}_{store}\"\n\
             replication = {{ dc1 = 1, dc2 = 1, dc3 = 1 }}\n",
            nodes.join(", ")
        ));
    }
    let own = match engine {
        Engine::Postgres => "schema",
        Engine::Redis | Engine::Cassandra => "prefix",
    };
    Some(format!(
        "[stores.{store}]\nengine = \"{name}\"\nurl = \"{url}\"\n{own} = \"{space}_{store}\"\n"
    ))
}

/// Three PostgreSQL servers that may replicate to each other; none if PostgreSQL is not installed.
pub async fn several() -> Option<Vec<Server>> {
    let mut servers = Vec::new();
    for _ in 0..3 {
        let settings = [
            ("wal_level", "logical"),
            ("max_worker_processes", "60"),
            ("max_logical_replication_workers", "50"),
            ("max_replication_slots", "60"),
            ("max_wal_senders", "60"),
        ];
        let options = settings
            .into_iter()
            .fold(Options::default(), |all, (name, value)| all.setting(name, value));
        servers.push(mingle_services::private_with(Engine::Postgres, options).await?);
    }
    Some(servers)
}

/// As [`bound`], for a store over several PostgreSQL servers.
pub fn bound_to_several(store: &str, servers: &[Server], space: &str) -> String {
    let servers: Vec<String> =
        (1..).zip(servers).map(|(n, server)| format!("r{n} = \"{}\"", server.url())).collect();
    format!(
        "[stores.{store}]\nengine = \"postgres\"\nservers = {{ {} }}\nschema = \"{space}_{store}\"\n",
        servers.join(", ")
    )
}

/// A space at shared servers that no other test and no earlier run uses.
pub fn space() -> String {
    let unique = RandomState::new().hash_one(std::process::id());
    format!("t{unique:016x}")
}

/// A program over its stores.
pub struct RealSite {
    pub database: Database,
}

impl RealSite {
    pub fn new(text: &str, binding: &str) -> Self {
        let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}"));
        let mut parsed = Binding::parse(binding).expect("the test's binding is right");
        // A store without a binding is in this process.
        for store in &program.checked.stores {
            parsed.stores.entry(store.name.to_string()).or_default();
        }
        let opened = block_on(Database::open(program, &parsed, None));
        let database = opened.unwrap_or_else(|error| panic!("{binding}: {error}"));
        Self { database }
    }

    /// Returns true once all transactions are over and only floors are left.
    pub fn settles(&self) -> bool {
        block_on(self.database.settle(Duration::from_mins(1)))
    }
}

impl Site for RealSite {
    fn call(&self, transaction: &str, arguments: &[(&str, &str)]) -> Result<CallReport, Error> {
        let arguments = self.database.arguments(transaction, arguments.iter().copied())?;
        block_on(self.database.call(transaction, arguments, Session::default()))
    }

    fn ok(&self, transaction: &str, arguments: &[(&str, &str)]) -> Json {
        let report = self.call(transaction, arguments);
        let report = report.unwrap_or_else(|error| panic!("{transaction}: {error}"));
        self.database.result_json(transaction, &report)
    }

    fn show(&self, kind: &str, key: &str) -> Json {
        let object = self.database.object(kind, key).expect("the kind and key are right");
        let session = Session::default();
        let shown = self.database.show(&object, &session, 1_000);
        block_on(shown).expect("the stores of the test answer")
    }
}
