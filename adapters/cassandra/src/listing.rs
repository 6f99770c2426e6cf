//! Lists of the runtime's rows, block by block.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use mingle_model::{TransactionId, WitnessRow};
use mingle_store::overlay::Overlay;
use mingle_store::record::read_floor;
use mingle_store::{Bytes, RecordKey, RecordKind, StoreError};
use scylla::value::{CqlValue, Row as CqlRow};

use crate::bind::{blob, text};
use crate::block::{self, Listing};
use crate::change::{self, Change, RecordPlace};
use crate::error::Failed;
use crate::fetch::{self, Record, bytes};
use crate::layout::Cell;
use crate::limits::{BLOCKS_AT_ONCE, FORGOTTEN_AFTER, RECORDS_MAX};
use crate::reading::witness;
use crate::statement::Statement;
use crate::store::Core;
use crate::writing::id_bytes;

/// A listed witness row: its transaction, its object and digest, and the timestamp of its write.
pub type Listed = (Cell, (Cell, Cell), i64);

/// A registered block.
struct Block {
    head: Cell,
    /// The timestamp of its registration.
    time: i64,
}

impl Core {
    /// Returns the first records of a kind from a key on, sorted by key.
    pub(crate) async fn records(
        self: &Arc<Self>,
        replica: usize,
        kind: RecordKind,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        self.await_trailing(replica, None).await?;
        let site = &self.sites[replica];
        let name = &change::kind(&self.layout.area, kind);
        let read = |head: Cell| async move { fetch::block(site, name, &head).await };
        let mut found: Vec<(Bytes, Bytes)> = Vec::new();
        let blocks = self.blocks(replica, Listing::of(kind), from).await?;
        for some in
            blocks.chunk_by(|a, b| !ends_between(a, b)).collect::<Vec<_>>().chunks(BLOCKS_AT_ONCE)
        {
            let some: Vec<&Block> = some.iter().copied().flatten().collect();
            let rows = self.each(&some, read).await?;
            for (block, rows) in some.into_iter().zip(rows) {
                if rows.is_empty() {
                    self.forget_if_over(replica, Listing::of(kind), block).await?;
                }
                for (at, record) in rows {
                    self.finish(replica, &at, &record).await?;
                    let key = at.key();
                    if key[..] >= *from {
                        found.push((key.into(), record.value.into()));
                    }
                }
            }
            if found.len() >= limit {
                break;
            }
        }
        found.sort();
        found.truncate(limit);
        Ok(found)
    }

    /// Returns the witness rows of as many transactions as needed to reach `limit`, all rows of
    /// each.
    pub(crate) async fn witnesses(
        self: &Arc<Self>,
        replica: usize,
        from: TransactionId,
        limit: usize,
    ) -> Result<Vec<WitnessRow>, StoreError> {
        let (site, area) = (&self.sites[replica], &self.layout.area);
        let read = |head: Cell| async move {
            site.rows(Statement::RowsBlock, vec![text(area), blob(&head)]).await
        };
        let mut listed: Vec<WitnessRow> = Vec::new();
        let blocks = self.blocks(replica, Listing::ROWS, &id_bytes(from)).await?;
        for some in blocks.chunks(BLOCKS_AT_ONCE) {
            let some: Vec<&Block> = some.iter().collect();
            let rows = self.each(&some, read).await?;
            for (block, rows) in some.into_iter().zip(rows) {
                if rows.is_empty() {
                    self.forget_if_over(replica, Listing::ROWS, block).await?;
                }
                for row in rows {
                    let value = row.columns.into_iter().next().and_then(bytes);
                    let row = witness(&value.unwrap_or_default());
                    listed.push(row.map_err(|reason| self.refused(reason))?);
                }
            }
            listed.retain(|row| row.id >= from);
            if listed.len() >= limit {
                break;
            }
        }
        listed.sort_by(|a, b| a.id.cmp(&b.id).then_with(|| a.cmp(b)));
        let mut places = listed.iter().enumerate();
        let enough =
            places.position(|(at, row)| at >= limit && (at == 0 || listed[at - 1].id != row.id));
        listed.truncate(enough.unwrap_or(listed.len()));
        Ok(listed)
    }

    /// Returns the witness rows of the transactions to be forgotten.
    pub(crate) async fn rows_of(
        &self,
        replica: usize,
        overlay: &Overlay,
    ) -> Result<Vec<Listed>, StoreError> {
        let mut blocks: BTreeMap<Cell, Vec<CqlValue>> = BTreeMap::new();
        for id in overlay.forgotten().map(id_bytes) {
            blocks.entry(block::of_id(&id)).or_default().push(blob(&id));
        }
        let mut listed = Vec::new();
        for (block, ids) in blocks {
            for ids in ids.chunks(RECORDS_MAX) {
                let ids = CqlValue::List(ids.to_vec());
                let values = vec![text(&self.layout.area), blob(&block), ids];
                let rows = self.sites[replica].rows(Statement::Rows, values).await;
                let rows = rows.map_err(|failed| self.failed(&failed))?;
                listed.extend(rows.into_iter().filter_map(listed_row));
            }
        }
        Ok(listed)
    }

    /// Returns the blocks that changes add to, if they were not registered recently.
    pub(crate) fn unlisted(&self, changes: &[Change]) -> Vec<Change> {
        let (now, time) = (self.world.elapsed(), self.clock.next());
        self.registered.missing(&self.layout.area, changes, now, time)
    }

    /// Returns the registered blocks of a listing that can hold keys from `from` on, sorted by key.
    async fn blocks(
        &self,
        replica: usize,
        listing: Listing,
        from: &[u8],
    ) -> Result<Vec<Block>, StoreError> {
        let RecordPlace { kind, head, .. } = listing.place(&self.layout.area, &[]);
        let found = fetch::block(&self.sites[replica], &kind, &head).await;
        let found = found.map_err(|failed| self.failed(&failed))?.into_iter();
        let block =
            |(at, record): (RecordPlace, Record)| Block { head: at.tail, time: record.time };
        let mut blocks: Vec<Block> = found.map(block).collect();
        blocks.retain(|block| block::reaches(&block.head, from));
        blocks.sort_by(|a, b| a.head.cmp(&b.head));
        Ok(blocks)
    }

    /// Reads blocks, several at a time.
    async fn each<T, F>(
        &self,
        blocks: &[&Block],
        read: impl Fn(Cell) -> F,
    ) -> Result<Vec<Vec<T>>, StoreError>
    where
        F: Future<Output = Result<Vec<T>, Failed>>,
    {
        let reading: Vec<F> = blocks.iter().map(|block| read(block.head.clone())).collect();
        let found = stream::iter(reading).buffered(BLOCKS_AT_ONCE).try_collect().await;
        found.map_err(|failed| self.failed(&failed))
    }

    /// Forgets an empty block to which no process will add any more: its origin's floor is above
    /// it, and no process has registered it recently.
    async fn forget_if_over(
        self: &Arc<Self>,
        replica: usize,
        listing: Listing,
        block: &Block,
    ) -> Result<(), StoreError> {
        let (Some(last), Some(origin)) =
            (block::last_number(&block.head), block::origin(&block.head))
        else {
            return Ok(());
        };
        let old = i64::try_from(FORGOTTEN_AFTER.as_micros()).unwrap_or(i64::MAX);
        if self.clock.next().saturating_sub(block.time) < old {
            return Ok(());
        }
        let floor = self.layout.record(&RecordKey::of_origin(RecordKind::Floor, origin));
        let found = self.records_at(replica, std::slice::from_ref(&floor)).await?;
        let raised = found.get(&floor).map_or(0, |floor| read_floor(&floor.value));
        if raised < last {
            return Ok(());
        }
        let at = listing.place(&self.layout.area, &block.head);
        self.send(replica, &[Change::DropRecord { at, time: block.time }], None).await
    }
}

/// Decodes a listed witness row.
fn listed_row(row: CqlRow) -> Option<Listed> {
    let mut columns = row.columns.into_iter();
    let id = bytes(columns.next()?)?;
    let place = (bytes(columns.next()?)?, bytes(columns.next()?)?);
    let time = columns.next()??.as_bigint()?;
    Some((id, place, time))
}

/// True if all keys of one block are below all of the next.
fn ends_between(a: &Block, b: &Block) -> bool {
    block::last_number(&a.head).is_none()
        || (block::last_number(&a.head), block::origin(&a.head))
            != (block::last_number(&b.head), block::origin(&b.head))
}
