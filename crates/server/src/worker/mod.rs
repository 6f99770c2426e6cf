//! The worker: whole phases for clients elsewhere (MixT §7.2).
//!
//! - `programs`: programs from clients, checked and compared with the served program;
//! - `attempts`: phases that run once although they may be requested several times, and their answers;
//! - `operations`: single requests to a store, in transactions of clients;
//! - `routes`: the requests and their handlers; `rights`: a token's rights at the worker.

mod attempts;
mod operations;
mod programs;
mod rights;
pub(crate) mod routes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mingle::{Database, Settings};
use mingle_lang::hir::StoreId;
use mingle_model::Name;
use mingle_runtime::Beside;
use mingle_store::wrap::checked::CheckedStore;

use crate::limits;
use crate::problem::{Code, Problem};

/// The limits of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerBounds {
    /// The largest number of instructions in one attempt at a phase.
    pub steps_max: u64,
    /// The largest size of the values in one attempt at a phase, in bytes.
    pub memory_bytes_max: usize,
    /// The largest number of programs from clients; the least recently used one is dropped first.
    pub programs_max: usize,
    /// The largest size of a program, in bytes.
    pub program_bytes_max: usize,
    /// The largest size of a request, in bytes.
    pub body_bytes_max: usize,
    /// The time for which an answer is kept for a client that has lost it.
    pub answers_kept: Duration,
}

impl Default for WorkerBounds {
    fn default() -> Self {
        Self {
            steps_max: limits::WORKER_STEPS_MAX,
            memory_bytes_max: limits::WORKER_MEMORY_BYTES_MAX,
            programs_max: limits::WORKER_PROGRAMS_MAX,
            program_bytes_max: limits::WORKER_PROGRAM_BYTES_MAX,
            body_bytes_max: limits::WORKER_BODY_BYTES_MAX,
            answers_kept: limits::WORKER_ANSWERS_KEPT,
        }
    }
}

/// The worker's state in memory. No guarantee depends on it.
pub(crate) struct Work {
    bounds: WorkerBounds,
    stores: BTreeMap<Name, Arc<Beside>>,
    programs: programs::Programs,
    attempts: attempts::Attempts,
    open: operations::Open,
}

impl Work {
    pub(crate) fn new(database: &Database, bounds: WorkerBounds, deadline: Duration) -> Self {
        let runtime = database.runtime();
        let settings = Settings {
            deadline,
            steps_max: bounds.steps_max,
            memory_bytes_max: bounds.memory_bytes_max,
            ..runtime.settings().clone()
        };
        let declared = &database.program().checked.stores;
        let stores = (0..declared.len()).map(|index| {
            let id = StoreId(index as u32);
            let store = CheckedStore::around(runtime.store(id).clone(), database.store_schema(id));
            let beside = Beside::new(store, runtime.world().clone(), settings.clone());
            (declared[index].name.clone(), Arc::new(beside))
        });
        Self {
            stores: stores.collect(),
            programs: programs::Programs::new(database.program().clone(), &bounds),
            attempts: attempts::Attempts::new(bounds.answers_kept),
            open: operations::Open::default(),
            bounds,
        }
    }

    fn store(&self, name: &str) -> Result<&Arc<Beside>, Problem> {
        self.stores.get(name).ok_or_else(|| {
            Problem::new(Code::NotFound, format!("no store is called {name:?} here"))
        })
    }

    /// Periodically ends idle transactions, and forgets answers after their time.
    pub(crate) async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(limits::WORKER_SWEPT_EVERY).await;
            self.open.sweep();
            self.attempts.sweep();
        }
    }
}
