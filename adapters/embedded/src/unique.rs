//! The promise of a `unique` over the objects that are there when a store is opened.
//!
//! Afterwards each transaction keeps it: it reads the index before it writes, and the read is validated when it
//! commits. So only a `unique` that the catalog does not have is checked, against the rows of its index.

use mingle_model::{IndexRead, Ref, Value};
use mingle_store::unique::twice;
use mingle_store::{StoreOperation, StoreSchema};

use crate::catalog::Catalog;
use crate::config::OpenError;
use crate::encoding::order;
use crate::index::{self, Indexed};
use crate::layout::Layout;
use crate::storage::overlay::Overlay;
use crate::storage::{Changes, Direction, Storage, StorageError, View};

/// Returns the changes that give the indexes of a store their rows at all its replicas. `old` is the catalog that
/// the store has, if it has one.
///
/// # Errors
///
/// When the disk fails, or two objects have the same values of a new `unique`.
pub fn rows(
    storage: &dyn Storage,
    layout: &Layout,
    replicas: usize,
    (old, new): (Option<&Catalog>, &Catalog),
    schema: &StoreSchema,
    failed: impl Fn(&StorageError) -> OpenError,
) -> Result<Changes, OpenError> {
    let fresh = Catalog::new(schema, &[]);
    let old = old.unwrap_or(&fresh);
    let failed = |error: StorageError| failed(&error);
    let indexes = (old.indexes(), new.indexes());
    let changes = index::rows(storage, layout, replicas, indexes).map_err(failed)?;
    let snapshot = storage.snapshot().map_err(failed)?;
    let view = Overlay::new(&*snapshot, &changes);
    for read in schema.operations.values().filter_map(StoreOperation::index) {
        // One of the queries of each `unique`.
        if !read.is_unique || read.counts || read.has_range() {
            continue;
        }
        let refused = |reason| OpenError::Config { store: schema.store.clone(), reason };
        let index = Indexed::new(read, layout).map_err(refused)?;
        let kind = layout.kind(&read.object).map_err(refused)?.id;
        if old.uniques().contains(&(kind, index.fields().clone())) {
            continue;
        }
        if let Some(reason) = broken_by(&view, &index, kind, read).map_err(failed)? {
            return Err(refused(reason));
        }
    }
    Ok(changes)
}

/// Returns the reason why a `unique` does not hold, if two objects have the same values.
fn broken_by(
    view: &dyn View,
    index: &Indexed,
    kind: u32,
    read: &IndexRead,
) -> Result<Option<String>, StorageError> {
    // A store that keeps a `unique` has one replica.
    let prefix = index.rows_prefix(0, kind);
    let mut before: Option<(Vec<u8>, Value)> = None;
    let mut reason = None;
    view.scan(&prefix, None, Direction::Forward, &mut |key, _| {
        let mut rest = &key[prefix.len()..];
        let row = rest;
        let values: Vec<Value> = read.fields.iter().map(|_| order::decode(&mut rest)).collect();
        let encoded = &row[..row.len() - rest.len()];
        let object = order::decode(&mut rest);
        if let Some((last, one)) = &before
            && last == encoded
        {
            let of = |key: &Value| Ref::new(read.object.clone(), key.clone());
            reason = Some(twice(read, &values, (&of(one), &of(&object))));
            return false;
        }
        before = Some((encoded.to_vec(), object));
        true
    })?;
    Ok(reason)
}
