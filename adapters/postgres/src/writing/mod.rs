//! Conversion of writes to statements.
//!
//! # The story of some writes
//!
//! A commit assigns `ana.balance` and `ana.name`, inserts an element into `bob.tags`, and writes two
//! records. [`Writing::add`] checks the bounds and adds these statements:
//!
//! ```text
//! lock      the row of ana: it will be changed           FOR NO KEY UPDATE
//! lock      the row of bob: elements only, so shared     FOR SHARE
//! columns   balance and name of ana, in one statement
//! touch     makes bob exist, unless it is known to
//! insert    the element into the table of bob.tags
//! records   both, in one statement
//! ```
//!
//! - **Locks** come first and in the order of the objects, so that transactions do not deadlock. If
//!   only one object of Mingle's own tables is written, and every write changes its row, no separate
//!   lock is needed.
//! - **Neighbours are combined**: consecutive writes of different columns of one row, of records, or
//!   of removals are combined. The order of other writes is kept: a command sees the writes before
//!   it.
//! - **Existence** is tracked in the sets of objects known to exist: the first write of any other
//!   object makes it exist. A command may have any effect, so it clears these sets.
//! - **Objects in existing tables** are locked by their anchor, a row of Mingle, and written by
//!   `mapping`; [`Gathered`] moves the assignments of an object to its first write, and `order` the
//!   writes as foreign keys ask.

mod order;
mod own;
mod system;

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Name, Ref, TransactionId, Value, WitnessRow};
use mingle_store::{Address, Refusal, Write};

use crate::encoding::{Digest, element_digest, object_digest};
use crate::layout::{Field, Kind, Layout, Place, Shape};
use crate::limits::{ADD_MAX, COMMIT_BYTES_MAX, VALUE_BYTES_MAX, WRITES_MAX};
use crate::mapping::write::{Assigned, Gathered};
use crate::operation::{Operation, Operations};
use crate::session::Step;
use crate::wire::Param;
use order::ordered;
use system::{records_at_once, removed_at_once};

/// The statements of writes, in order.
pub struct Writing<'a> {
    layout: &'a Layout,
    operations: &'a Operations,
    /// Statements.
    pub steps: Vec<Step>,
    /// Objects whose data is written.
    pub objects: BTreeSet<Ref>,
    /// Records that are written.
    pub records: BTreeSet<Vec<u8>>,
    /// The id under which the writes take effect, if only this commit uses the id and nothing was
    /// written before.
    begins: Option<TransactionId>,
    /// True if any data is written, directly or by a command.
    pub has_data: bool,
    /// True if a witness row of the whole store is written.
    pub concerns_store: bool,
    /// Written floors: no process asks any more for these transactions or earlier ones of their
    /// origin.
    pub floors: Vec<TransactionId>,
    /// Objects known to exist at this point.
    touched: BTreeSet<Ref>,
    /// Objects whose rows, or anchors, are changed.
    changed: BTreeSet<Ref>,
    /// Objects of Mingle's own tables that the transaction has read, that exist and that have not
    /// been changed since.
    pub existing: BTreeSet<(Name, Digest)>,
    /// Objects whose keys the transaction drew and whose rows it has not made yet.
    pub drawn: BTreeSet<Ref>,
}

impl<'a> Writing<'a> {
    /// Starts without writes; `existing` are the objects of the tables of Mingle that exist.
    pub fn new(
        layout: &'a Layout,
        operations: &'a Operations,
        existing: BTreeSet<(Name, Digest)>,
    ) -> Self {
        Self {
            layout,
            operations,
            steps: Vec::new(),
            objects: BTreeSet::new(),
            records: BTreeSet::new(),
            begins: None,
            has_data: false,
            concerns_store: false,
            floors: Vec::new(),
            touched: BTreeSet::new(),
            changed: BTreeSet::new(),
            existing,
            drawn: BTreeSet::new(),
        }
    }

    /// Sets the objects whose keys the transaction drew and whose rows it has not made yet.
    pub fn having_drawn(mut self, drawn: &BTreeSet<Ref>) -> Self {
        self.drawn.clone_from(drawn);
        self
    }

    /// Sets the id of the commit, which no other commit uses: the transaction's own records are
    /// new.
    pub fn under(mut self, id: Option<TransactionId>) -> Self {
        self.begins = id;
        self
    }

    /// Adds writes; `before` were flushed already.
    ///
    /// # Errors
    ///
    /// When one does not fit the declarations or bounds.
    pub fn add(&mut self, writes: &[Write], before: usize) -> Result<(), Refusal> {
        if writes.len() + before > WRITES_MAX {
            return Err(format!("a commit carries at most {WRITES_MAX} writes").into());
        }
        let bytes: usize = writes.iter().map(weight).sum();
        if bytes > COMMIT_BYTES_MAX {
            let most = COMMIT_BYTES_MAX;
            return Err(format!("a commit carries at most {most} bytes, not {bytes}").into());
        }
        let writes = &*ordered(self.layout, writes);
        self.lock(writes)?;
        let mut gathered = Gathered::new(self.layout, writes)?;
        for write in writes {
            self.has_data |= write.is_data();
            self.objects.extend(write.object().cloned());
        }
        let mut index = 0;
        while let Some(write) = writes.get(index) {
            let rest = &writes[index..];
            let (of_row, records) = (self.of_one_row(rest), records_at_once(rest));
            let removed = removed_at_once(rest);
            if of_row > 0 {
                self.columns(&rest[..of_row])?;
            } else if records > 0 {
                self.records(&rest[..records])?;
            } else if removed > 0 {
                self.remove_rows(&rest[..removed])?;
            } else {
                self.write(write, gathered.take(index))?;
            }
            index += of_row.max(records).max(removed).max(1);
        }
        Ok(())
    }

    /// Locks the rows of the written objects, in one order for all transactions, so that they do
    /// not deadlock. Writes that only add elements share the row lock; no transaction can add a
    /// witness row to the object in the meantime.
    fn lock(&mut self, writes: &[Write]) -> Result<(), Refusal> {
        let mut objects: BTreeMap<&Ref, bool> = BTreeMap::new();
        let mut exclusive: BTreeSet<&Ref> = BTreeSet::new();
        let mut changes_rows = true;
        for write in writes {
            let (object, changes) = match write {
                Write::Insert(address, _) | Write::Put(address, ..) => (&address.object, false),
                Write::Witness(WitnessRow { object: Some(object), .. }) => {
                    exclusive.insert(object);
                    (object, true)
                }
                // Lines commit in the order of their positions, which are assigned under this lock.
                Write::Append(address, _) => {
                    exclusive.insert(&address.object);
                    (&address.object, true)
                }
                other => match other.object() {
                    Some(object) => (object, true),
                    None => continue,
                },
            };
            changes_rows &= matches!(
                write,
                Write::Assign(..) | Write::Add(..) | Write::Append(..) | Write::Witness(_)
            );
            *objects.entry(object).or_default() |= changes;
        }
        if objects.len() == 1 && changes_rows {
            // The statement that changes the row locks it as well.
            objects.retain(|object, _| !self.is_own(object));
        }
        for (object, changes) in objects {
            let kind = self.layout.kind_of(object)?;
            match &kind.place {
                Place::Own { table, .. } => {
                    let id = vec![Param::Bytes(object_digest(object))];
                    self.push(lock(table, changes), id);
                }
                Place::Mapped(_) => {
                    let changes = exclusive.contains(object);
                    self.lock_anchor(&object_digest(object), changes);
                }
            }
        }
        Ok(())
    }

    fn is_own(&self, object: &Ref) -> bool {
        let kind = self.layout.kinds.get(object.kind());
        kind.is_some_and(|kind| matches!(kind.place, Place::Own { .. }))
    }

    fn write(&mut self, write: &Write, assigned: Option<Assigned>) -> Result<(), Refusal> {
        match write {
            Write::Create(object) | Write::Delete(object) => {
                let kind = self.layout.kind_of(object)?;
                if let Place::Mapped(mapped) = &kind.place {
                    return mapped.write(
                        self.layout,
                        write,
                        assigned,
                        (&mut self.drawn, &mut self.steps),
                    );
                }
                match write {
                    Write::Create(_) => self.touch(kind, object),
                    _ => self.delete(kind, object),
                }
            }
            Write::Witness(row) => return self.witness(row),
            Write::Forget(_) | Write::Discard(_) => {
                return self.remove_rows(std::slice::from_ref(write));
            }
            Write::Record(key, value) => self.record(key, value)?,
            Write::Command { operation, arguments } => {
                let operation = Operation::find(self.operations, operation)?;
                operation.check_command()?;
                // A command may have any effect.
                self.touched.clear();
                self.existing.clear();
                self.steps.push(operation.step(self.layout, arguments)?);
            }
            field => self.field(field, assigned)?,
        }
        Ok(())
    }

    /// Adds the change of a field.
    fn field(&mut self, write: &Write, assigned: Option<Assigned>) -> Result<(), Refusal> {
        use Shape::{Counter, Log, Map, Register, Set};
        let (address, shapes): (&Address, &[Shape]) = match write {
            Write::Assign(address, _) => (address, &[Register]),
            Write::Add(address, _) => (address, &[Counter]),
            Write::Insert(address, _) | Write::Remove(address, _) => (address, &[Set]),
            Write::Put(address, ..) | Write::Erase(address, _) => (address, &[Map]),
            Write::Append(address, _) => (address, &[Log]),
            Write::Clear(address) => (address, &[Set, Map, Log]),
            _ => return Err("a write that this adapter does not know".into()),
        };
        let (kind, field) = self.layout.field(address, shapes)?;
        self.check(kind, field, write)?;
        if let Place::Mapped(mapped) = &kind.place {
            return mapped.write(self.layout, write, assigned, (&mut self.drawn, &mut self.steps));
        }
        let object = &address.object;
        self.touch(kind, object);
        let digest = object_digest(object);
        match write {
            Write::Insert(_, element) => self.insert(kind, field, object, element, None),
            Write::Put(_, entry, value) => self.insert(kind, field, object, entry, Some(value)),
            Write::Remove(_, element) | Write::Erase(_, element) => {
                let condition = "mingle_id = $2::bytea";
                let id = element_digest(&digest, element);
                self.remove(kind, field, condition, vec![Param::Bytes(digest), Param::Bytes(id)]);
            }
            Write::Append(_, line) => self.append(kind, field, object, line),
            _ => {
                let condition = "mingle_object = $1::bytea";
                self.remove(kind, field, condition, vec![Param::Bytes(digest)]);
            }
        }
        Ok(())
    }

    /// Locks an object of a mapped kind by its anchor, one of Mingle's rows; a witness row changes
    /// the anchor.
    fn lock_anchor(&mut self, object: &Digest, changes: bool) {
        let anchors = self.layout.system("anchors");
        let id = vec![Param::Bytes(object.clone())];
        let insert =
            format!("INSERT INTO {anchors} (object) VALUES ($1::bytea) ON CONFLICT DO NOTHING");
        self.push(insert, id.clone());
        let mode = if changes { "NO KEY UPDATE" } else { "SHARE" };
        self.push(format!("SELECT FROM {anchors} WHERE object = $1::bytea FOR {mode}"), id);
    }

    fn check(&self, kind: &Kind, field: &Field, write: &Write) -> Result<(), String> {
        let what = || format!("{}.{}", kind.name, field.name);
        let fits = |value: &Value, value_type| {
            if value.weight() > VALUE_BYTES_MAX {
                return Err(format!("{} takes at most {VALUE_BYTES_MAX} bytes", what()));
            }
            self.layout.check(value, value_type, what)
        };
        match write {
            Write::Add(_, amount) if amount.unsigned_abs() > ADD_MAX.unsigned_abs() => {
                Err(format!("an add of {amount} is beyond 2^90"))
            }
            Write::Put(_, entry, value) => {
                fits(entry, field.inner())?;
                fits(value, field.map_value())
            }
            Write::Assign(_, value)
            | Write::Insert(_, value)
            | Write::Remove(_, value)
            | Write::Erase(_, value)
            | Write::Append(_, value) => fits(value, field.inner()),
            _ => Ok(()),
        }
    }

    fn push(&mut self, sql: String, params: Vec<Param>) {
        self.steps.push(Step::new(sql, params));
    }

    fn version(&self) -> String {
        format!("{}()", self.layout.system("version"))
    }
}

/// Prevents other transactions from changing an object's row. The lock is shared, unless the row
/// will be changed.
fn lock(table: &str, changes: bool) -> String {
    let mode = if changes { "NO KEY UPDATE" } else { "SHARE" };
    format!("SELECT FROM {table} WHERE mingle_id = $1::bytea FOR {mode}")
}

/// Returns the statements that fail unless the objects of Mingle's own tables are as in the
/// transaction's snapshot.
pub fn check_objects<'o>(
    layout: &Layout,
    objects: impl Iterator<Item = (&'o Name, &'o Digest)>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for (kind, object) in objects {
        let Some(Kind { place: Place::Own { table, .. }, .. }) = layout.kinds.get(kind) else {
            continue;
        };
        let id = vec![Param::Bytes(object.clone())];
        // The row of an absent object is inserted and deleted again.
        let take = format!(
            "INSERT INTO {table} (mingle_id, mingle_exists, mingle_changed) \
             VALUES ($1::bytea, false, -1) ON CONFLICT DO NOTHING"
        );
        steps.push(Step::new(take, id.clone()));
        steps.push(Step::new(lock(table, false), id.clone()));
        let give =
            format!("DELETE FROM {table} WHERE mingle_id = $1::bytea AND mingle_changed = -1");
        steps.push(Step::new(give, id));
    }
    steps
}

fn weight(write: &Write) -> usize {
    match write {
        Write::Assign(_, value)
        | Write::Insert(_, value)
        | Write::Remove(_, value)
        | Write::Erase(_, value)
        | Write::Append(_, value) => value.weight(),
        Write::Put(_, key, value) => key.weight() + value.weight(),
        Write::Record(key, value) => key.key.len() + value.len(),
        Write::Command { arguments, .. } => arguments.iter().map(Value::weight).sum(),
        _ => 0,
    }
}
