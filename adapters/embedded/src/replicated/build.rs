//! Makes an update of a transaction's writes.
//!
//! An update is applied as a whole, so only the net effect counts: a write that a later write of
//! the transaction undoes is left out, and an update never removes its own adds.

use std::collections::BTreeMap;

use mingle_model::{Ref, TransactionId, Value};
use mingle_store::{Address, RecordKey, Write};

use super::remove::{collection_scope, element_kind};
use super::rows::{self, ReplicaState};
use super::update::{Dot, ObjectScope, Scope, UnitChange, UnitKind, Update};
use crate::core::Core;
use crate::encoding::{key, value};
use crate::layout::Shape;
use crate::storage::overlay::Draft;
use crate::storage::{StorageError, View};
use crate::witness;

type Key = Vec<u8>;

/// The net effect so far.
struct Build<'a, 'b> {
    core: &'a Core,
    draft: &'a Draft<'b>,
    replica: u8,
    /// Existence of each written object after the transaction.
    objects: BTreeMap<Key, bool>,
    scopes: BTreeMap<Key, Scope>,
    units: BTreeMap<Key, (UnitKind, Option<Vec<u8>>)>,
    adds: BTreeMap<Key, i128>,
    lines: Vec<(Key, Vec<u8>)>,
}

/// Returns the update for prepared `writes`, at a replica in this state.
///
/// # Errors
///
/// When the disk fails.
pub fn build(
    core: &Core,
    draft: &Draft<'_>,
    replica: u8,
    state: &ReplicaState,
    writes: &[Write],
) -> Result<Update, StorageError> {
    let mut build = Build {
        core,
        draft,
        replica,
        objects: BTreeMap::new(),
        scopes: BTreeMap::new(),
        units: BTreeMap::new(),
        adds: BTreeMap::new(),
        lines: Vec::new(),
    };
    for write in writes {
        build.write(write)?;
    }
    build.finish(state)
}

const CHECKED: &str = "writes are checked against the layout before they are built";

impl Build<'_, '_> {
    fn write(&mut self, write: &Write) -> Result<(), StorageError> {
        match write {
            Write::Create(object) => {
                self.touch(object);
            }
            Write::Delete(object) => self.delete(object),
            Write::Assign(address, assigned) => {
                let (field, _) = self.field(address);
                let added = Some(value::encode(assigned));
                self.units.insert(field, (UnitKind::Register, added));
            }
            Write::Add(address, amount) => {
                let (field, _) = self.field(address);
                let sum = self.adds.entry(field).or_default();
                *sum = sum.wrapping_add(*amount);
            }
            Write::Insert(address, element) => self.element(address, element, Some(Vec::new())),
            Write::Put(address, entry, put) => {
                self.element(address, entry, Some(value::encode(put)));
            }
            Write::Remove(address, element) | Write::Erase(address, element) => {
                self.element(address, element, None);
            }
            Write::Append(address, line) => {
                let (field, _) = self.field(address);
                self.lines.push((field, value::encode(line)));
            }
            Write::Clear(address) => {
                let (field, shape) = self.field(address);
                let scope = collection_scope(&field, shape == Shape::Log);
                self.units.retain(|key, _| !key.starts_with(&scope.prefix));
                self.lines.retain(|(log, _)| *log != field);
                self.scopes.insert(scope.prefix.clone(), scope);
            }
            Write::Witness(row) => {
                let key = witness::key_of(&self.core.layout, row).expect(CHECKED);
                self.units.insert(key, (UnitKind::Witness, Some(Vec::new())));
            }
            Write::Forget(id) => self.forget(*id)?,
            Write::Record(record, value) => self.record(record, Some(value.to_vec())),
            Write::Discard(record) => self.record(record, None),
            Write::Command { .. } => unreachable!("commands were replaced by what they write"),
        }
        Ok(())
    }

    /// Forgets the rows at this replica, and those that the transaction itself has added.
    fn forget(&mut self, id: TransactionId) -> Result<(), StorageError> {
        let index = key::by_transaction(self.replica, Some(id));
        for (key, (kind, added)) in &mut self.units {
            if *kind == UnitKind::Witness && key::index(self.replica, key).starts_with(&index) {
                *added = None;
            }
        }
        for key in self.draft.keys(&index)? {
            self.units.insert(key::indexed(&key).to_vec(), (UnitKind::Witness, None));
        }
        Ok(())
    }

    fn record(&mut self, record: &RecordKey, added: Option<Vec<u8>>) {
        let key = key::record(self.replica, record)[2..].to_vec();
        self.units.insert(key, (UnitKind::Register, added));
    }

    /// Returns the object's prefix, and notes that the object exists from now on.
    fn touch(&mut self, object: &Ref) -> Key {
        let place = self.core.layout.place(0, object).expect(CHECKED);
        let prefix = place.prefix[2..].to_vec();
        self.objects.insert(prefix.clone(), true);
        prefix
    }

    fn field(&mut self, address: &Address) -> (Key, Shape) {
        let object = self.touch(&address.object);
        let kind = self.core.layout.kind(address.object.kind()).expect(CHECKED);
        let field = &kind.fields[usize::from(address.field)];
        let shape = Shape::of(&field.field_type);
        (key::field(&object, field.id), shape)
    }

    fn element(&mut self, address: &Address, element: &Value, added: Option<Vec<u8>>) {
        let (field, _) = self.field(address);
        let key = key::element(&field, element);
        self.units.insert(key, (element_kind(field.len()), added));
    }

    fn delete(&mut self, object: &Ref) {
        let prefix = self.touch(object);
        self.units.retain(|key, _| !key.starts_with(&prefix));
        self.adds.retain(|key, _| !key.starts_with(&prefix));
        self.lines.retain(|(log, _)| !log.starts_with(&prefix));
        self.scopes.retain(|key, _| !key.starts_with(&prefix));
        self.objects.insert(prefix.clone(), false);
        let scope =
            Scope { prefix: prefix.clone(), object: Some(ObjectScope::default()), is_log: false };
        self.scopes.insert(prefix, scope);
    }

    fn finish(mut self, state: &ReplicaState) -> Result<Update, StorageError> {
        let (draft, replica) = (self.draft, self.replica);
        for (object, exists) in std::mem::take(&mut self.objects) {
            if exists {
                let change = (UnitKind::Presence, Some(Vec::new()));
                self.units.insert(key::presence(&object), change);
            }
        }
        let mut scopes: Vec<Scope> = self.scopes.into_values().collect();
        for scope in &mut scopes {
            if let Some(object) = &mut scope.object {
                counters(self.core, draft, replica, state, &scope.prefix, object)?;
            }
        }
        let mut units = Vec::with_capacity(self.units.len());
        for (key, (kind, added)) in self.units {
            let removed = dots(draft, replica, kind, &key)?;
            if added.is_some() || !removed.is_empty() {
                units.push(UnitChange { kind, key, removed, added });
            }
        }
        Ok(Update {
            dot: Dot { origin: replica, sequence: state.context.prefix(replica) + 1 },
            timestamp: state.clock + 1,
            context: state.context.clone(),
            scopes,
            units,
            adds: self.adds.into_iter().collect(),
            lines: self.lines,
        })
    }
}

/// Adds to a deletion the adds to remove from the object's counters.
fn counters(
    core: &Core,
    draft: &Draft<'_>,
    replica: u8,
    state: &ReplicaState,
    object: &[u8],
    scope: &mut ObjectScope,
) -> Result<(), StorageError> {
    let kind = object.first_chunk().expect("an object's prefix has a kind");
    let kind = u32::from_be_bytes(*kind);
    for field in core.layout.counters(kind) {
        let rest = key::field(object, field);
        if let Some(row) = draft.get(&key::with(&[b'd', replica], &rest))? {
            let removal = rows::decode_counter(&row).removal(&state.context);
            scope.counters.push((rest, removal));
        }
    }
    Ok(())
}

/// The dots of a unit at a replica.
fn dots(
    draft: &Draft<'_>,
    replica: u8,
    kind: UnitKind,
    rest: &[u8],
) -> Result<Vec<Dot>, StorageError> {
    let Some(row) = draft.get(&key::with(&[b'd', replica], rest))? else {
        return Ok(Vec::new());
    };
    Ok(match kind {
        UnitKind::Presence => rows::decode_presence(&row).1,
        UnitKind::Register | UnitKind::Element(_) | UnitKind::Witness => {
            let siblings = rows::decode_unit(&row).into_iter();
            siblings.map(|sibling| sibling.dot).collect()
        }
    })
}
