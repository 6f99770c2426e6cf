//! Witness rows: the rows on written objects that tell other transactions at which stores to wait.

use std::collections::BTreeSet;

use mingle_model::{Ref, WitnessRow};
use mingle_store::Write;

/// Returns one row for each of these objects, equal except for the object.
pub(crate) fn rows_on<'a>(
    objects: &'a BTreeSet<Option<Ref>>,
    row: &'a WitnessRow,
) -> impl Iterator<Item = WitnessRow> + 'a {
    objects.iter().map(|object| WitnessRow { object: object.clone(), ..row.clone() })
}

/// Returns the rows that are not among the `found` ones.
pub(crate) fn added_rows(
    found: &[WitnessRow],
    objects: &BTreeSet<Option<Ref>>,
    row: WitnessRow,
) -> Vec<WitnessRow> {
    rows_on(objects, &row).filter(|row| !found.contains(row)).collect()
}

/// Returns the objects that the writes change; none for data that a command may change.
pub(crate) fn written_objects(flushed: &[Write], writes: &[Write]) -> BTreeSet<Option<Ref>> {
    flushed
        .iter()
        .chain(writes)
        .filter(|write| write.is_data())
        .map(|write| write.object().cloned())
        .collect()
}
