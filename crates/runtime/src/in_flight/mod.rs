//! The transactions that this process has begun, until their records are removed.

pub(crate) mod cleaner;
pub(crate) mod deferred_witness;
pub(crate) mod lease;
pub(crate) mod table;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mingle_model::Origin;
use mingle_store::World;

use crate::in_flight::table::Table;
use crate::stores::Stores;

/// This process as an origin: the transactions that it has begun, and the tasks that clean up after them.
pub(crate) struct InFlight {
    pub(crate) stores: Arc<Stores>,
    table: Mutex<Table>,
    pub(crate) me: Weak<Self>,
}

impl InFlight {
    /// Creates an origin over these stores.
    pub(crate) fn new(stores: Arc<Stores>, table: Table) -> Arc<Self> {
        Arc::new_cyclic(|me| Self { stores, table: Mutex::new(table), me: me.clone() })
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces a fenced origin, which can begin no more transactions, by a new one. The process that fenced it
    /// finishes the transactions that it began.
    pub(crate) fn renew(&self, fenced: Origin) {
        let mut own = self.table();
        if own.origin() == fenced {
            *own = Table::new(draw_origin(&*self.stores.world));
            self.stores.cache().drop_rows_of(fenced);
        }
    }
}

/// Draws the name of a new origin.
pub(crate) fn draw_origin(world: &dyn World) -> Origin {
    Origin(u128::from(world.random()) << 64 | u128::from(world.random()))
}
