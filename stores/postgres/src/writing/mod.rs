//! From writes to statements.

mod own;

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Name, Ref, TransactionId, Value, WitnessRow};
use mingle_store::record::read_floor;
use mingle_store::{Address, RecordKey, RecordKind, Write};

use crate::encoding::{Digest, element_digest, object_digest, transaction};
use crate::layout::{Field, Kind, Layout, Place, Shape};
use crate::limits::{ADD_MAX, COMMIT_BYTES_MAX, VALUE_BYTES_MAX, WRITES_MAX};
use crate::mapping::write::{Assigned, Gathered};
use crate::operation::{Operation, Operations};
use crate::session::Step;
use crate::system::{insert_witness, record_id};
use crate::tables::ANNOUNCED;
use crate::wire::Param;

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
    /// Whether any data is written, by whatever means.
    pub has_data: bool,
    /// Whether there is a witness row of the whole store.
    pub concerns_store: bool,
    /// Floors that are written: of these transactions, and those before them, nobody asks any more.
    pub floors: Vec<TransactionId>,
    /// Objects that exist by now.
    touched: BTreeSet<Ref>,
    /// Objects of our own tables that the transaction has read, that exist and that nothing was done
    /// to since.
    pub existing: BTreeSet<(Name, Digest)>,
}

impl<'a> Writing<'a> {
    /// No writes yet, of a transaction in whose snapshot these objects of our own tables exist.
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
            has_data: false,
            concerns_store: false,
            floors: Vec::new(),
            touched: BTreeSet::new(),
            existing,
        }
    }

    /// Adds writes; `before` were flushed already.
    ///
    /// # Errors
    ///
    /// When one does not fit the declarations or bounds.
    pub fn add(&mut self, writes: &[Write], before: usize) -> Result<(), String> {
        if writes.len() + before > WRITES_MAX {
            return Err(format!("a commit carries at most {WRITES_MAX} writes"));
        }
        let bytes: usize = writes.iter().map(weight).sum();
        if bytes > COMMIT_BYTES_MAX {
            return Err(format!("a commit carries at most {COMMIT_BYTES_MAX} bytes, not {bytes}"));
        }
        self.lock(writes)?;
        let mut gathered = Gathered::new(self.layout, writes)?;
        for write in writes {
            self.has_data |= write.is_data();
            self.objects.extend(write.object().cloned());
        }
        let mut index = 0;
        while let Some(write) = writes.get(index) {
            let together = self.of_one_row(&writes[index..]);
            if together > 0 {
                self.columns(&writes[index..index + together])?;
            } else {
                self.write(write, gathered.take(index))?;
            }
            index += together.max(1);
        }
        Ok(())
    }

    /// Locks the rows of the objects that are written, in an order that all transactions keep, so
    /// that they do not wait for each other in a circle. Those that only add elements share a row;
    /// nobody gives the object a witness row in the meantime.
    fn lock(&mut self, writes: &[Write]) -> Result<(), String> {
        let mut objects: BTreeMap<&Ref, bool> = BTreeMap::new();
        let mut witnessed: BTreeSet<&Ref> = BTreeSet::new();
        let mut changes_rows = true;
        for write in writes {
            let (object, changes) = match write {
                Write::Insert(address, _) | Write::Put(address, ..) => (&address.object, false),
                Write::Witness(WitnessRow { object: Some(object), .. }) => {
                    witnessed.insert(object);
                    (object, true)
                }
                other => match other.object() {
                    Some(object) => (object, true),
                    None => continue,
                },
            };
            changes_rows &= matches!(write, Write::Assign(..) | Write::Add(..) | Write::Append(..));
            *objects.entry(object).or_default() |= changes;
        }
        if objects.len() == 1 && changes_rows {
            // What changes its row locks it as well.
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
                    let changes = witnessed.contains(object);
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

    fn write(&mut self, write: &Write, assigned: Option<Assigned>) -> Result<(), String> {
        match write {
            Write::Create(object) | Write::Delete(object) => {
                let kind = self.layout.kind_of(object)?;
                if let Place::Mapped(mapped) = &kind.place {
                    return mapped.write(self.layout, write, assigned, &mut self.steps);
                }
                match write {
                    Write::Create(_) => self.touch(kind, object),
                    _ => self.delete(kind, object),
                }
            }
            Write::Witness(row) => return self.witness(row),
            Write::Forget(id) => {
                let sql = format!(
                    "DELETE FROM {} WHERE transaction = $1::bytea",
                    self.layout.system("witnesses")
                );
                self.push(sql, vec![Param::Bytes(transaction(*id))]);
            }
            Write::Record(key, value) => self.record(key, value)?,
            Write::Discard(key) => {
                let id = record_id(key)?;
                self.records.insert(id.clone());
                let is_announced = ANNOUNCED.contains(&key.kind);
                for table in ["records", "announced"].iter().take(1 + usize::from(is_announced)) {
                    let table = self.layout.system(table);
                    let sql = format!("DELETE FROM {table} WHERE id = $1::bytea");
                    self.push(sql, vec![Param::Bytes(id.clone())]);
                }
            }
            Write::Command { operation, arguments } => {
                let operation = Operation::find(self.operations, operation)?;
                operation.check_command()?;
                // Who knows what it does.
                self.touched.clear();
                self.existing.clear();
                self.steps.push(operation.step(self.layout, arguments)?);
            }
            field => self.field(field, assigned)?,
        }
        Ok(())
    }

    /// A change of a field.
    fn field(&mut self, write: &Write, assigned: Option<Assigned>) -> Result<(), String> {
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
            return mapped.write(self.layout, write, assigned, &mut self.steps);
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

    /// Objects of mapped kinds are locked by a row of ours, which a witness row changes.
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

    fn witness(&mut self, row: &WitnessRow) -> Result<(), String> {
        match &row.object {
            None => {
                self.concerns_store = true;
                let sql = format!(
                    "UPDATE {} SET witnessed = nextval($1::text::regclass)",
                    self.layout.system("store")
                );
                self.push(sql, vec![Param::Text(self.layout.system("epoch"))]);
            }
            Some(object) => {
                let kind = self.layout.kind_of(object)?;
                self.anchor(kind, object);
            }
        }
        self.steps.push(insert_witness(self.layout, row));
        Ok(())
    }

    /// Changes the row of an object that gets a witness row: whoever writes the object at the same
    /// time, and does not know of it, finds out.
    fn anchor(&mut self, kind: &Kind, object: &Ref) {
        let version = self.version();
        let id = Param::Bytes(object_digest(object));
        let Place::Own { table, key, key_codec } = &kind.place else {
            let anchors = self.layout.system("anchors");
            self.push(
                format!("INSERT INTO {anchors} (object) VALUES ($1::bytea) ON CONFLICT DO NOTHING"),
                vec![id.clone()],
            );
            let sql = format!("UPDATE {anchors} SET version = {version} WHERE object = $1::bytea");
            self.push(sql, vec![id]);
            return;
        };
        let insert = format!(
            "INSERT INTO {table} (mingle_id, {key}, mingle_exists) \
             VALUES ($1::bytea, {}, false) ON CONFLICT DO NOTHING",
            key_codec.parameter(2)
        );
        let row = key_codec.param(&self.layout.schema, object.key());
        self.push(insert, vec![id.clone(), row]);
        let update =
            format!("UPDATE {table} SET mingle_witnessed = {version} WHERE mingle_id = $1::bytea");
        self.push(update, vec![id]);
    }

    fn record(&mut self, key: &RecordKey, value: &[u8]) -> Result<(), String> {
        let id = record_id(key)?;
        if ANNOUNCED.contains(&key.kind) {
            let sql = format!("SELECT {}($1::bytea)", self.layout.system("announce"));
            self.push(sql, vec![Param::Bytes(id.clone())]);
        }
        let (table, version) = (self.layout.system("records"), self.version());
        let sql = format!(
            "WITH updated AS (UPDATE {table} SET value = $4::bytea, version = {version} \
             WHERE id = $1::bytea RETURNING 1) \
             INSERT INTO {table} (id, kind, key, value, version) \
             SELECT $1::bytea, $2::bigint::smallint, $3::bytea, $4::bytea, {version} \
             WHERE NOT EXISTS (SELECT FROM updated)"
        );
        let params = vec![
            Param::Bytes(id.clone()),
            Param::Int(key.kind.code().into()),
            Param::Bytes(key.key.to_vec()),
            Param::Bytes(value.to_vec()),
        ];
        self.push(sql, params);
        self.records.insert(id);
        if let (RecordKind::Floor, Some(origin)) = (key.kind, key.origin()) {
            let last = TransactionId { origin, sequence: read_floor(value) };
            self.floors.push(last);
        }
        Ok(())
    }
}

/// Keeps an object's row from being changed by others; unless it will be changed, shares it with
/// those that do the same.
fn lock(table: &str, changes: bool) -> String {
    let mode = if changes { "NO KEY UPDATE" } else { "SHARE" };
    format!("SELECT FROM {table} WHERE mingle_id = $1::bytea FOR {mode}")
}

/// A commit takes effect only where objects of our own tables are as the transaction's snapshot has
/// them.
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
        // What is not there is taken and given back.
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
