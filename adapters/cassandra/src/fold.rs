//! Folding: many rows of a counter become one, in the background.
//!
//! A counter is a row for each `add`, so reading it becomes slower with each. A folder puts their
//! sum into one row and removes them. The following steps make this safe against concurrent
//! processes:
//!
//! 1. It reads the rows at *all* replicas, which gives each replica the rows that it lacked.
//! 2. It writes an *intention*, a row without a value, at all replicas. Any removal of the counter
//!    from now on sees the intention, together with all rows that it is about, and removes it too.
//! 3. It waits until no transaction that read before the intention can still write, and reads again
//!    at all replicas. If its intention is gone, or there is another one, it gives up and removes
//!    its own. It folds only those rows of the first reading that still exist.
//! 4. It writes the sum into its row, with the timestamp of the intention (of two cells with one
//!    timestamp the greater value wins, and no value is the least), and removes the rows, each with
//!    its own timestamp. This is one mutation of one partition, which a replica applies as a whole
//!    or not at all.
//!
//! So every row counts exactly once. A removal that saw the intention removes the sum too, even if
//! the removal arrives first. A removal that did not see it has taken effect before the sum was
//! made. A late copy of a row has the row's timestamp, so it stays removed. Adds never take part: a
//! row that came after the first reading is not touched. Of two folders at least one sees the
//! other's intention before it makes its sum, and two that see each other both give up.
//!
//! If a folder's process is gone, the next folder removes its intention once the intention is so
//! old that the process cannot be about to make the sum.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mingle_store::{Address, StoreError};
use scylla::statement::Consistency;

use crate::change::{Change, Place};
use crate::fetch::{Asked, Part, Row, fetch_everywhere};
use crate::layout::Cell;
use crate::limits::{FOLD_AFTER, FOLD_ROWS_MAX, FOLD_ROWS_MIN, INTENTION_AGE_MAX, LATE_WRITES};
use crate::reading::sum;
use crate::store::Core;

/// The first byte of the dot of a folded row; no other dot begins with it.
const FOLDED: u8 = 0xff;

/// True if a row is an intention to fold, which does not change the counter's value.
pub fn is_intention(row: &Row) -> bool {
    row.value.is_empty() && row.dot.first() == Some(&FOLDED)
}

/// Returns the start time of an attempt, from the dot of its row.
fn attempted(dot: &[u8]) -> i64 {
    dot.get(9..17).and_then(|time| time.try_into().ok()).map_or(0, i64::from_be_bytes)
}

impl Core {
    /// Folds a counter in the background, if a read has found enough rows.
    pub(crate) fn fold_if_long(self: &Arc<Self>, replica: usize, address: &Address, rows: &[Row]) {
        let old = self.clock.next() - FOLD_AFTER.as_micros() as i64;
        let foldable = rows.iter().filter(|row| row.time < old && !is_intention(row)).count();
        if foldable < FOLD_ROWS_MIN || self.apart.is_some() {
            return;
        }
        let is_new = {
            let mut folding = self.folding.lock().unwrap_or_else(PoisonError::into_inner);
            folding.insert(address.clone())
        };
        if is_new {
            let (core, address) = (Arc::clone(self), address.clone());
            let wait = self.patience * 2 + LATE_WRITES;
            self.world.spawn(Box::pin(async move {
                // If it fails, a later read starts it again.
                let _ = core.fold(replica, &address, old, wait).await;
                let mut folding = core.folding.lock().unwrap_or_else(PoisonError::into_inner);
                folding.remove(&address);
            }));
        }
    }

    /// Folds the rows of a counter that are older than a time; true if it did. `wait` is the
    /// longest time between a transaction's read and its write.
    ///
    /// # Errors
    ///
    /// When a replica cannot be reached, or the counter does not exist.
    pub(crate) async fn fold(
        &self,
        replica: usize,
        address: &Address,
        older_than: i64,
        wait: Duration,
    ) -> Result<bool, StoreError> {
        let refused = |reason| self.refused(reason);
        let found = self.layout.field(address, &[mingle_model::Shape::Counter]).map_err(refused)?;
        let counter = Counter {
            object: self.layout.object(&address.object).map_err(refused)?,
            field: found.field.name.to_string(),
        };
        let rows = self.rows_everywhere(replica, &counter).await?;
        let begun = self.clock.next();
        if !self.clear_intentions(replica, &counter, &rows, begun).await? {
            return Ok(false);
        }
        let old = rows.into_iter().filter(|row| row.time < older_than && !is_intention(row));
        let first: Vec<Row> = old.take(FOLD_ROWS_MAX).collect();
        let Some(latest) = first.iter().map(|row| row.time).max().filter(|_| first.len() > 1)
        else {
            return Ok(false);
        };
        let own = counter.place(
            [
                &[FOLDED][..],
                &latest.to_be_bytes(),
                &begun.to_be_bytes(),
                &self.writer.to_be_bytes(),
            ]
            .concat(),
        );
        let intention = Change::Put { at: own.clone(), value: Cell::new(), time: latest };
        self.send_everywhere(replica, &[intention]).await?;
        self.world.sleep(wait).await;
        let second = self.rows_everywhere(replica, &counter).await?;
        let is_alone = |row: &Row| !is_intention(row) || row.dot == own.dot;
        let is_open = second.iter().any(|row| row.dot == own.dot && is_intention(row));
        let is_late = self.clock.next() - begun > INTENTION_AGE_MAX.as_micros() as i64 / 2;
        if !is_open || is_late || !second.iter().all(is_alone) {
            self.send_everywhere(replica, &[Change::Drop { at: own, time: latest }]).await?;
            return Ok(false);
        }
        let known: BTreeSet<&Cell> = first.iter().map(|row| &row.dot).collect();
        let kept: Vec<Row> = second.into_iter().filter(|row| known.contains(&row.dot)).collect();
        let sum = sum(&kept).map_err(refused)?;
        let drops = kept.into_iter().map(|row| {
            let at = counter.place(row.dot);
            Change::Drop { at, time: row.time }
        });
        let value = [&[0], &sum.to_be_bytes()[..]].concat();
        let mut changes: Vec<Change> = drops.collect();
        changes.push(Change::Put { at: own, value, time: latest });
        self.send_everywhere(replica, &changes).await?;
        Ok(true)
    }

    /// Removes intentions that are too old to be in use; false if there is another.
    async fn clear_intentions(
        &self,
        replica: usize,
        counter: &Counter,
        rows: &[Row],
        now: i64,
    ) -> Result<bool, StoreError> {
        let mut is_free = true;
        for row in rows.iter().filter(|row| is_intention(row)) {
            if now - attempted(&row.dot) > INTENTION_AGE_MAX.as_micros() as i64 {
                let at = counter.place(row.dot.clone());
                self.send_everywhere(replica, &[Change::Drop { at, time: row.time }]).await?;
            } else {
                is_free = false;
            }
        }
        Ok(is_free)
    }

    async fn rows_everywhere(
        &self,
        replica: usize,
        counter: &Counter,
    ) -> Result<Vec<Row>, StoreError> {
        let mut asked = Asked::default();
        asked.add(&counter.object, Part::Field(counter.field.clone()));
        let found = fetch_everywhere(&self.sites[replica], &asked).await;
        let found = found.map_err(|failed| self.failed(&failed))?;
        Ok(found.rows(&counter.object, &Part::Field(counter.field.clone())).to_vec())
    }

    async fn send_everywhere(&self, replica: usize, changes: &[Change]) -> Result<(), StoreError> {
        let sent = self.sites[replica].apply_at(changes, Consistency::All).await;
        sent.map_err(|failed| self.failed(&failed))
    }
}

/// A counter, by its key in the table.
struct Counter {
    object: Cell,
    field: String,
}

impl Counter {
    fn place(&self, dot: Cell) -> Place {
        let (object, field) = (self.object.clone(), self.field.clone());
        Place { object, field, element: Cell::new(), dot }
    }
}
