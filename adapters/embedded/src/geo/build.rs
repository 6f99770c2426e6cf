//! From writes to operations of the core.

use std::collections::{BTreeMap, BTreeSet};

use mingle_geo::types::OpId;
use mingle_geo::{Key, Op, Update};
use mingle_model::{Ref, TransactionId, Value, WitnessRow};
use mingle_store::{Address, OperationId, Write};

use super::answer;
use super::name::{self, Thing};
use crate::layout::{Layout, Shape};

/// Maximal number of additions of one write; one addition of the core takes 64 bits.
const ADDS_MAX: i128 = 1_000;

/// The witness rows left by transactions that are to be forgotten, by transaction.
pub type Left = BTreeMap<TransactionId, Vec<WitnessRow>>;

/// Returns the updates for prepared writes; objects with a presence in `present` are known to
/// exist.
///
/// # Errors
///
/// When the core cannot store one of the writes.
pub fn build(
    layout: &Layout,
    writes: &[Write],
    operation: Option<OperationId>,
    left: &Left,
    present: &BTreeSet<Key>,
) -> Result<Vec<Update>, String> {
    let (updates, added) = (Vec::new(), Vec::new());
    let mut build = Build { layout, operation, left, present, updates, added };
    for write in writes {
        build.write(write)?;
    }
    Ok(build.updates)
}

struct Build<'a> {
    layout: &'a Layout,
    operation: Option<OperationId>,
    left: &'a Left,
    /// Presence items that exist already and need not be written.
    present: &'a BTreeSet<Key>,
    updates: Vec<Update>,
    /// Witness rows added by these writes.
    added: Vec<&'a WitnessRow>,
}

impl<'a> Build<'a> {
    /// Adds an update; every execution of an operation gives its parts the same positions.
    fn push(&mut self, key: Key, op: Op) {
        let position = self.updates.len() as u32;
        let id = self.operation.map(|OperationId { id, phase }| OpId {
            transaction: id,
            phase,
            position,
        });
        self.updates.push(Update { key, op, id });
    }

    fn write(&mut self, write: &'a Write) -> Result<(), String> {
        match write {
            Write::Create(object) => self.touch(object).map(|_| ())?,
            Write::Delete(object) => self.delete(object)?,
            Write::Assign(address, value) => self.field(address, Op::Write(value.clone()))?,
            Write::Add(address, amount) => self.add(address, *amount)?,
            Write::Insert(address, element) => {
                self.field(address, Op::Insert(element.canonical()))?;
            }
            Write::Remove(address, element) => {
                self.field(address, Op::Remove(element.canonical()))?;
            }
            Write::Put(address, key, value) => {
                self.field(address, Op::Put(key.canonical(), value.clone()))?;
            }
            Write::Erase(address, key) => self.field(address, Op::Delete(key.canonical()))?,
            Write::Append(address, line) => self.field(address, Op::Append(line.clone()))?,
            Write::Clear(address) => {
                let field = self.layout.field(address, &[Shape::Set, Shape::Map, Shape::Log])?;
                let op = clear(Shape::of(&field.field_type));
                self.field(address, op)?;
            }
            Write::Witness(row) => {
                let thing = Thing::of(self.layout, row.object.as_ref())?;
                self.push(thing.rows(), Op::Insert(answer::row(row)));
                self.push(thing.rows_of(row.id), Op::Insert(answer::row(row)));
                self.added.push(row);
            }
            Write::Forget(id) => self.forget(*id)?,
            Write::Record(key, value) => {
                self.push(name::record(key), Op::Write(Value::Bytes(value.clone())));
            }
            Write::Discard(key) => self.push(name::record(key), Op::Erase),
            Write::Command { .. } => unreachable!("commands were replaced by what they write"),
        }
        Ok(())
    }

    /// Writes the presence of an object, so that it exists from now on.
    fn touch(&mut self, object: &Ref) -> Result<Thing, String> {
        let thing = Thing::of(self.layout, Some(object))?;
        let presence = thing.presence();
        // One write suffices, unless the object was deleted in between.
        let last = self.updates.iter().rfind(|update| update.key == presence);
        let is_there = last.map_or(self.present.contains(&presence), |last| last.op != Op::Erase);
        if !is_there {
            self.push(presence, Op::Write(Value::Bool(true)));
        }
        Ok(thing)
    }

    fn field(&mut self, address: &Address, op: Op) -> Result<(), String> {
        let thing = self.touch(&address.object)?;
        let shapes = [Shape::Register, Shape::Counter, Shape::Set, Shape::Map, Shape::Log];
        let field = self.layout.field(address, &shapes)?;
        let key = thing.field(field.id, Shape::of(&field.field_type));
        self.push(key, op);
        Ok(())
    }

    fn add(&mut self, address: &Address, amount: i128) -> Result<(), String> {
        let most = i128::from(i64::MAX);
        if amount.abs() > most * ADDS_MAX {
            return Err(format!(
                "an add of {amount} is beyond {ADDS_MAX} times 2^63, the most that one write to several data centers can add"
            ));
        }
        let mut rest = amount;
        loop {
            let part = rest.clamp(-most, most);
            self.field(address, Op::Add(i64::try_from(part).expect("it was clamped")))?;
            rest -= part;
            if rest == 0 {
                return Ok(());
            }
        }
    }

    /// Removes all fields and the presence of an object.
    fn delete(&mut self, object: &Ref) -> Result<(), String> {
        let thing = Thing::of(self.layout, Some(object))?;
        let kind = thing.kind();
        for ((_, field), shape) in self.layout.shapes.range((kind, 0)..=(kind, u16::MAX)) {
            self.push(thing.field(*field, *shape), clear(*shape));
        }
        self.push(thing.presence(), Op::Erase);
        Ok(())
    }

    fn forget(&mut self, id: TransactionId) -> Result<(), String> {
        let mut rows: Vec<&WitnessRow> = self.left.get(&id).into_iter().flatten().collect();
        rows.extend(self.added.iter().filter(|row| row.id == id));
        for row in rows {
            let thing = Thing::of(self.layout, row.object.as_ref())?;
            self.push(thing.rows(), Op::Remove(answer::row(row)));
            self.push(thing.rows_of(id), Op::Remove(answer::row(row)));
        }
        Ok(())
    }
}

fn clear(shape: Shape) -> Op {
    match shape {
        Shape::Register => Op::Erase,
        Shape::Counter => Op::Reset,
        Shape::Set | Shape::Log => Op::Clear,
        Shape::Map => Op::Empty,
    }
}
