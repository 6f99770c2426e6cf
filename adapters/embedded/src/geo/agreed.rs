//! The indexes of a store that several programs have at the same time.
//!
//! Data centers that are processes of their own serve several programs, each with indexes of its own. Replicas derive the
//! entries ([`mingle_geo::derive`]), so reads need nothing of other programs. But at a strong store a transaction that changes an
//! object must use the headers of *all* indexes of its kind, also of those that only another program declares, perhaps at another
//! data center at this moment. Otherwise that program would miss objects that enter or leave the part that it read.
//!
//! - The catalog of the store, an item on which the data centers agree by strong transactions, has the indexes of all programs.
//!   None is ever taken out, so their number says which part of its history a snapshot has.
//! - A certified transaction that changes registers reads the catalog on its snapshot, uses the headers of the indexes that
//!   stand there, and uses the *mark* of their number, a name without an item, as one that is read.
//! - A program that opens the store with indexes has put them into the catalog. Then [`GeoStore::settle_indexes`] runs a strong
//!   transaction on a snapshot with this catalog: it uses the marks of all smaller numbers as ones that are written.
//!
//! ```text
//! writer A, knows 1 index    reads mark 1 ─────────────── committed: B sees it
//! program B, with a second   catalog: 2 indexes ── writes marks 0, 1 ── reads by its index
//! writer C, knows 1 index                              reads mark 1 ── conflict; again: knows 2
//! ```
//!
//! **Why no object is missed.** Of a transaction that uses a mark and one that writes it, one has seen the other. A writer that knew too
//! few indexes and has seen B's transaction would have seen B's catalog too, and known more. So B's transaction has seen it, and so has
//! every later snapshot at B's data center. All other writers use B's headers.
//!
//! **Why it ends.** B's transaction conflicts only with writers whose snapshots lack the catalog. Once it has arrived at all data centers, no
//! writer begins on such a snapshot, however many there are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mingle_geo::types::Map;
use mingle_geo::{DcId, State};
use mingle_model::{Stamp, Value};
use mingle_store::{Bytes, Commit, StoreError, Write};

use super::fetch::Fetch;
use super::name;
use super::store::{GeoStore, Shared};
use super::touch::Use;
use super::transaction::GeoTransaction;
use crate::encoding::{catalog, key};
use crate::layout::{Layout, Shape};
use crate::limits::INDEXED_BYTES_MAX;

/// The longest time that a program waits until all writers use its indexes.
const SETTLE_WAIT_MAX: Duration = Duration::from_secs(10);

/// The interval at which it looks again.
const SETTLE_STEP: Duration = Duration::from_millis(5);

/// The indexes of a store at a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// The fields of each index, by the id of its kind.
    pub indexes: BTreeMap<u32, Vec<Vec<u16>>>,
    /// Their number in the catalog.
    pub count: u32,
}

impl Agreed {
    /// True if it has all indexes of a program.
    fn covers(&self, layout: &Layout) -> bool {
        layout.indexes.iter().all(|(kind, own)| {
            self.indexes.get(kind).is_some_and(|all| own.iter().all(|fields| all.contains(fields)))
        })
    }
}

/// The indexes that were read last, with the catalog's row.
#[derive(Debug, Default)]
pub struct Known(Mutex<(Option<Bytes>, Arc<Agreed>)>);

impl Known {
    /// Creates the knowledge of a store whose only program has this layout.
    pub fn of(layout: &Layout) -> Self {
        let agreed = Agreed { indexes: layout.indexes.clone(), count: 0 };
        Self(Mutex::new((None, Arc::new(agreed))))
    }

    fn last(&self) -> (Option<Bytes>, Arc<Agreed>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the indexes in the item of the declarations.
    ///
    /// # Errors
    ///
    /// When the catalog cannot be read.
    fn read(&self, declarations: &State) -> Result<Arc<Agreed>, String> {
        let place = Value::Bytes(key::CATALOG.into());
        let row = match declarations.as_map().and_then(|map: &Map| map.get(&place)) {
            Some(Value::Bytes(row)) => row.clone(),
            _ => return Ok(Arc::default()),
        };
        let (known, agreed) = self.last();
        if known.as_ref() == Some(&row) {
            return Ok(agreed);
        }
        let catalog = catalog::parse(&row).and_then(|catalog| catalog::indexes(&catalog, |_| true));
        let all = catalog.ok_or("its catalog cannot be read")?;
        let count = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let mut indexes: BTreeMap<u32, Vec<Vec<u16>>> = BTreeMap::new();
        for (kind, fields) in all {
            indexes.entry(kind).or_default().push(fields);
        }
        let agreed = Arc::new(Agreed { indexes, count });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (Some(row), agreed.clone());
        Ok(agreed)
    }
}

impl Shared {
    /// True if several programs may have the store, each with its own declarations.
    pub(super) fn is_of_several(&self) -> bool {
        self.own.is_none()
    }

    /// Refuses values by which no index of a store of several programs finds an object.
    ///
    /// # Errors
    ///
    /// When a value is too large.
    pub(super) fn check_indexed(&self, writes: &[Write]) -> Result<(), String> {
        let layout = &self.core.layout;
        if !self.is_of_several() || layout.indexes.is_empty() {
            return Ok(());
        }
        for write in writes {
            let Write::Assign(address, value) = write else { continue };
            let (field, bytes) = (layout.field(address, &[Shape::Register])?, value.weight());
            let kind = layout.kind(address.object.kind())?.id;
            let indexes = layout.indexes.get(&kind).into_iter().flatten();
            if bytes > INDEXED_BYTES_MAX && indexes.flatten().any(|id| *id == field.id) {
                return Err(format!(
                    "{}.{} is a field of an index, whose values have at most {INDEXED_BYTES_MAX} bytes, not {bytes}",
                    address.object.kind(),
                    field.name
                ));
            }
        }
        Ok(())
    }
}

impl GeoTransaction {
    /// Returns the indexes that the transaction's snapshot has, and notes that it goes by them.
    pub(super) async fn agreed(&mut self) -> Result<Arc<Agreed>, StoreError> {
        let shared = Arc::clone(&self.shared);
        if !shared.is_of_several() {
            return Ok(shared.indexes.last().1);
        }
        let (mut fetch, item) = (Fetch::default(), name::declarations());
        fetch.add(item.clone());
        let found = self.read(fetch).await?;
        let agreed =
            shared.indexes.read(found.get(&item)).map_err(|why| shared.core.refused(why))?;
        self.uses.add(name::mark(agreed.count), Use::Read);
        Ok(agreed)
    }
}

impl GeoStore {
    /// Makes sure that all writers use the indexes of this program, also writers of other programs at other data
    /// centers: from then on a certified transaction that reads one conflicts with each that changes the part that
    /// it has read. A data center that is a process of its own calls it once the store is open. Elsewhere, and for a store
    /// without indexes or certified transactions, it does nothing.
    ///
    /// # Errors
    ///
    /// When too few data centers are reached, or writers go on without these indexes for ten seconds.
    pub async fn settle_indexes(&self) -> Result<(), StoreError> {
        let shared = &self.shared;
        let has_indexes = !shared.core.layout.indexes.is_empty();
        if !shared.is_of_several() || !shared.config.is_certifying() || !has_indexes {
            return Ok(());
        }
        let (world, begin) = (&shared.core.world, shared.core.world.elapsed());
        loop {
            match self.settle_once().await {
                Ok(true) => return Ok(()),
                Ok(false) | Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
            if world.elapsed().saturating_sub(begin) >= SETTLE_WAIT_MAX {
                let reason =
                    format!("other programs did not see its indexes in {SETTLE_WAIT_MAX:?}");
                return Err(shared.core.unavailable(reason));
            }
            world.sleep(SETTLE_STEP).await;
        }
    }

    /// Returns false if the snapshot lacks the catalog, or a writer has not seen it.
    async fn settle_once(&self) -> Result<bool, StoreError> {
        let shared = &self.shared;
        let dc = shared.net.with(|inner| inner.here()).unwrap_or(DcId(0));
        let mut begun = GeoTransaction::new(shared, dc, Stamp::default(), None);
        begun.is_upgraded = shared.is_mixed();
        let agreed = begun.agreed().await?;
        if !agreed.covers(&shared.core.layout) {
            return Ok(false);
        }
        for fewer in 0..agreed.count {
            begun.uses.add(name::mark(fewer), Use::Write);
        }
        match begun.decide(&Commit::default(), Vec::new()).await? {
            Ok(_) => Ok(true),
            Err(until) => {
                shared.catch_up(dc, &until, SETTLE_STEP).await;
                Ok(false)
            }
        }
    }
}
