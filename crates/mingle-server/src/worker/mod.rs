//! The worker: whole phases for clients elsewhere (MixT §7.2).
//!
//! - `programs`: what clients have sent, checked and held against what is served here;
//! - `attempts`: phases that run once, however often they are asked for, and their answers;
//! - `operations`: what goes to a store by itself, in transactions of clients;
//! - `routes`: which request leads where; `rights`: what a token allows of it.

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

/// What a worker allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerBounds {
    /// Instructions of one attempt at a phase.
    pub steps_max: u64,
    /// Bytes of values in one attempt at a phase.
    pub memory_bytes_max: usize,
    /// Programs of others that are known at a time; the one that was used longest ago goes first.
    pub programs_max: usize,
    /// Bytes of a program.
    pub program_bytes_max: usize,
    /// Bytes of a request.
    pub body_bytes_max: usize,
    /// How long an answer is kept for whoever has lost it.
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

/// All that the worker keeps in memory. Nothing of it is needed for what is promised.
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

    /// Now and then ends transactions that nobody ends, and forgets answers that nobody has asked for.
    pub(crate) async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(limits::WORKER_SWEPT_EVERY).await;
            self.open.sweep();
            self.attempts.sweep();
        }
    }
}
