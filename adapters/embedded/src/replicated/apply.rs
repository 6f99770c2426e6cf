//! Applies an update at one replica.

use super::context::Context;
use super::early::EarlyRemovals;
use super::rows::{self, ReplicaState, Sibling};
use super::tally::Tally;
use super::update::{UnitChange, UnitKind, Update};
use crate::core::Core;
use crate::encoding::key;
use crate::encoding::row::{self, Header};
use crate::index::Before;
use crate::storage::overlay::Draft;
use crate::storage::{StorageError, View};

/// The target of an update.
pub struct Apply<'a, 'b> {
    /// The store.
    pub core: &'a Core,
    /// The rows.
    pub draft: &'a mut Draft<'b>,
    /// Index of the replica.
    pub replica: u8,
    /// The version that the changed rows get at this replica.
    pub version: u64,
    /// The updates that the replica has seen, this one included.
    pub seen: Context,
}

/// Applies `update` at a replica, and notes it in the replica's state.
///
/// # Errors
///
/// When the disk fails.
pub fn apply(
    core: &Core,
    draft: &mut Draft<'_>,
    replica: u8,
    version: u64,
    update: &Update,
) -> Result<(), StorageError> {
    let state_key = key::replica(replica);
    let mut state = state(draft, replica, &update.context)?;
    state.count += 1;
    state.clock = state.clock.max(update.timestamp);
    state.context.add(update.dot.origin, update.dot.sequence);
    draft.put(state_key, state.encode());
    let early = EarlyRemovals::load(draft, replica)?;
    let units = update.units.iter().map(|unit| &*unit.key);
    let objects = update.scopes.iter().filter(|scope| scope.object.is_some());
    let touched = units.chain(objects.map(|scope| &*scope.prefix));
    let indexed = Before::note(&core.layout, draft, replica, touched)?;
    let mut apply = Apply { core, draft, replica, version, seen: state.context };
    for scope in &update.scopes {
        apply.scope(scope, &update.context)?;
    }
    for unit in &update.units {
        apply.unit(unit, update, &early)?;
    }
    for (counter, amount) in &update.adds {
        apply.add(counter, *amount, update)?;
    }
    apply.lines(update, &early)?;
    early.settle(apply.draft, replica, update, &apply.seen);
    indexed.settle(&core.layout, draft, version)
}

/// Returns a replica's state; `like` gives the number of replicas.
fn state(draft: &Draft<'_>, replica: u8, like: &Context) -> Result<ReplicaState, StorageError> {
    let row = draft.get(&key::replica(replica))?;
    Ok(row.map_or_else(|| ReplicaState::new(like.origins()), |row| ReplicaState::decode(&row)))
}

impl Apply<'_, '_> {
    /// A key of this replica.
    pub fn own(&self, section: u8, rest: &[u8]) -> Vec<u8> {
        key::with(&[section, self.replica], rest)
    }

    fn unit(
        &mut self,
        change: &UnitChange,
        update: &Update,
        early: &EarlyRemovals,
    ) -> Result<(), StorageError> {
        let adds = change.added.is_some() && !early.remove(update.dot, &change.key);
        if change.kind == UnitKind::Presence {
            return self.presence(&change.key, |dots| {
                dots.retain(|dot| !change.removed.contains(dot));
                dots.extend(adds.then_some(update.dot));
            });
        }
        let row = self.draft.get(&self.own(b'd', &change.key))?;
        let before = row.map_or_else(Vec::new, |row| rows::decode_unit(&row));
        let kept = before.iter().filter(|s| !change.removed.contains(&s.dot));
        let mut after: Vec<Sibling> = kept.cloned().collect();
        if adds && let Some(added) = &change.added {
            after.push(Sibling {
                timestamp: update.timestamp,
                dot: update.dot,
                value: added.clone(),
            });
        }
        self.set_unit(change.kind, &change.key, &before, after)
    }

    /// Puts a unit's siblings, and counts it in its collection.
    pub fn set_unit(
        &mut self,
        kind: UnitKind,
        rest: &[u8],
        before: &[Sibling],
        after: Vec<Sibling>,
    ) -> Result<(), StorageError> {
        if before == after {
            return Ok(());
        }
        let key = self.own(b'd', rest);
        let change = i64::from(!after.is_empty()) - i64::from(!before.is_empty());
        if after.is_empty() {
            self.draft.remove(key);
        } else {
            self.draft.put(key, rows::encode_unit(self.version, after));
        }
        match kind {
            UnitKind::Element(prefix) => self.change_header(&rest[..prefix as usize], change),
            UnitKind::Witness => {
                let index = key::index(self.replica, rest);
                if change > 0 {
                    self.draft.put(index, []);
                } else if change < 0 {
                    self.draft.remove(index);
                }
                Ok(())
            }
            UnitKind::Register | UnitKind::Presence => Ok(()),
        }
    }

    /// Notes a change of a collection and adds `change` to its count.
    pub fn change_header(&mut self, field: &[u8], change: i64) -> Result<(), StorageError> {
        let key = key::header(&self.own(b'd', field));
        self.change_count(key, change)
    }

    fn change_count(&mut self, key: Vec<u8>, change: i64) -> Result<(), StorageError> {
        let row = self.draft.get(&key)?;
        let mut header = row.as_deref().map(Header::decode).unwrap_or_default();
        header.version = self.version;
        header.count = header
            .count
            .checked_add_signed(change)
            .expect("a collection counts what it holds: its header is corrupt");
        if change < 0 {
            header.removed_at = self.version;
        }
        self.draft.put(key, header.encode());
        Ok(())
    }

    /// Changes the dots of an object's presence.
    pub fn presence(
        &mut self,
        rest: &[u8],
        change: impl FnOnce(&mut Vec<super::update::Dot>),
    ) -> Result<(), StorageError> {
        let key = self.own(b'd', rest);
        let row = self.draft.get(&key)?;
        let (mut presence, mut dots) =
            row.map(|row| rows::decode_presence(&row)).unwrap_or_default();
        change(&mut dots);
        let exists = !dots.is_empty();
        if presence.exists != exists {
            presence.exists = exists;
            presence.version = self.version;
            let kind = self.own(b'k', &rest[..4]);
            self.change_count(kind, if exists { 1 } else { -1 })?;
        }
        self.draft.put(key, rows::encode_presence(presence, &dots));
        Ok(())
    }

    fn add(&mut self, rest: &[u8], amount: i128, update: &Update) -> Result<(), StorageError> {
        let key = self.own(b'd', rest);
        let mut tally = self.tally(&key)?;
        tally.add(update.dot.origin, update.dot.sequence, amount, &self.seen);
        self.draft.put(key, rows::encode_counter(self.version, &tally));
        Ok(())
    }

    /// The tally in a counter's row.
    pub fn tally(&self, key: &[u8]) -> Result<Tally, StorageError> {
        let row = self.draft.get(key)?;
        Ok(row.map_or_else(Tally::default, |row| rows::decode_counter(&row)))
    }

    fn lines(&mut self, update: &Update, early: &EarlyRemovals) -> Result<(), StorageError> {
        for (index, (log, line)) in update.lines.iter().enumerate() {
            let index = u32::try_from(index).expect("writes are bounded by WRITES_MAX");
            let end = rows::line_key(update.timestamp, update.dot, index);
            let rest = key::with(&key::elements(log), &end);
            if early.remove(update.dot, &rest) {
                continue;
            }
            let key = self.own(b'd', &rest);
            self.draft.put(key, row::unit(self.version, line));
            self.change_header(log, 1)?;
        }
        Ok(())
    }
}
