//! Conversion of rows to answers.

use mingle_model::{Name, Value, Version, WitnessRow};
use mingle_store::{Address, Answer, Data, Read};
use rustc_hash::FxHashMap as HashMap;

use super::{FieldKey, Plan, Purpose, Window, own};
use crate::codec::Codec;
use crate::encoding::{Digest, element_digest};
use crate::layout::{Field, Layout, Shape};
use crate::operation::Operation;
use crate::system::{WHOLE_STORE, record_id, witness_row};
use crate::wire::{Row, boolean, bytes, cell, int, ints, text};

/// An object's row.
#[derive(Default)]
pub(super) struct Found<'r> {
    pub(super) exists: bool,
    /// The version at which `exists` last changed.
    pub(super) changed: i64,
    deleted: i64,
    versions: Vec<i64>,
    row: Option<&'r Row>,
}

/// All rows that the statements have returned, by their subject.
#[derive(Default)]
struct Rows<'r> {
    objects: HashMap<Digest, Found<'r>>,
    /// The index of a field's column in the row.
    columns: HashMap<FieldKey, usize>,
    elements: HashMap<(FieldKey, Digest), &'r Row>,
    whole: HashMap<(FieldKey, Digest), Vec<&'r Row>>,
    sizes: HashMap<(FieldKey, Digest), &'r Row>,
    lines: HashMap<(FieldKey, Digest, Window), &'r [Row]>,
    records: HashMap<Vec<u8>, &'r Row>,
    witnesses: HashMap<Digest, Vec<WitnessRow>>,
    own: HashMap<usize, &'r [Row]>,
    /// The objects that exist.
    existing: Vec<(Name, Digest)>,
}

/// Returns the answers of a plan, and the existing objects in Mingle's own tables.
pub fn answers(plan: &Plan<'_>, results: &[Vec<Row>]) -> Result<Answered, String> {
    if let Some(one) = &plan.one {
        return one.answers(plan.layout, plan.reads, results.first().map_or(&[], Vec::as_slice));
    }
    let (ours, mapped) = results.split_at(plan.purposes.len().min(results.len()));
    let rows = sort(plan, ours)?;
    let answer = |(index, read): (usize, &Read)| {
        let is_mapped = plan.mapped.has(index);
        let (data, version) = if is_mapped {
            plan.mapped.answer(plan.layout, index, read, mapped)?
        } else {
            rows.answer(plan, index, read)?
        };
        let witnesses = rows.witnesses_of(read, &plan.digests[index]);
        let version = Version(u64::try_from(version).unwrap_or_default());
        Ok(Answer { data, version, witnesses })
    };
    let answers = plan.reads.iter().enumerate().map(answer).collect::<Result<_, String>>()?;
    Ok(Answered { answers, existing: rows.existing })
}

/// The results of a plan's statements.
pub struct Answered {
    /// The answers, in order.
    pub answers: Vec<Answer>,
    /// The existing objects in Mingle's own tables, among those that were asked for.
    pub existing: Vec<(Name, Digest)>,
}

fn sort<'r>(plan: &Plan<'_>, results: &'r [Vec<Row>]) -> Result<Rows<'r>, String> {
    let mut rows = Rows::default();
    for (purpose, result) in plan.purposes.iter().zip(results) {
        match purpose {
            Purpose::Rows(kind) => rows.take(plan, kind, result),
            Purpose::RowsAndWitnesses(kind) => {
                // A witness row has null in the column of the object row's id.
                let is_object = |row: &&Row| cell(row, 0).is_some();
                let columns = own::ROW_COLUMNS + plan.asked.rows[kind].1.len();
                rows.take(plan, kind, result.iter().filter(is_object));
                for row in result.iter().filter(|row| !is_object(row)) {
                    let found = rows.witnesses.entry(bytes(row, columns)).or_default();
                    found.push(witness_row(row, columns)?);
                }
            }
            Purpose::Elements(field) => {
                let found = result.iter().map(|row| ((field.clone(), bytes(row, 0)), row));
                rows.elements.extend(found);
            }
            Purpose::Whole(field) => {
                for row in result {
                    rows.whole.entry((field.clone(), bytes(row, 0))).or_default().push(row);
                }
            }
            Purpose::Sizes(field) => {
                let found = result.iter().map(|row| ((field.clone(), bytes(row, 0)), row));
                rows.sizes.extend(found);
            }
            Purpose::Lines(field, object, window) => {
                rows.lines.insert((field.clone(), object.clone(), *window), result);
            }
            Purpose::Records => {
                rows.records.extend(result.iter().map(|row| (bytes(row, 0), row)));
            }
            Purpose::Witnesses => {
                for row in result {
                    let found = rows.witnesses.entry(bytes(row, 0)).or_default();
                    found.push(witness_row(row, 0)?);
                }
            }
            Purpose::Own(index) => {
                rows.own.insert(*index, result);
            }
        }
    }
    Ok(rows)
}

impl<'r> Found<'r> {
    /// Decodes an object's row.
    pub(super) fn of(row: &'r Row) -> Self {
        Self {
            exists: boolean(row, 1),
            changed: int(row, 2),
            deleted: int(row, 3),
            versions: ints(row, 4),
            row: Some(row),
        }
    }

    /// Returns the version of the last write of a field since the object was created; 0 if there
    /// was none.
    fn written(&self, field: &Field) -> i64 {
        let index = usize::try_from(field.slot - 1).unwrap_or(usize::MAX);
        self.versions.get(index).copied().unwrap_or_default()
    }

    /// Returns the version of a field, or of the deletion if the field has not been written since.
    pub(super) fn version(&self, field: &Field) -> i64 {
        match self.written(field) {
            0 => self.deleted,
            version => version,
        }
    }

    /// Returns the value in the column of a field; `column` is its index in the row.
    pub(super) fn data(
        &self,
        layout: &Layout,
        field: &Field,
        column: usize,
    ) -> Result<Data, String> {
        let row = self.row.filter(|_| self.written(field) > 0);
        Ok(match (field.shape(), row) {
            (Shape::Register, None) => Data::Register(None),
            (Shape::Register, Some(row)) => {
                let codec = layout.codec(field.inner());
                Data::Register(Some(codec.read(&layout.schema, cell(row, column))?))
            }
            (Shape::Counter, row) => {
                let sum = row.and_then(|row| text(row, column)).unwrap_or("0");
                Data::Counter(sum.parse().map_err(|_| "a sum is beyond 2^127")?)
            }
            (_, row) => {
                let count = row.map_or(0, |row| int(row, column));
                Data::Count(u64::try_from(count).unwrap_or_default())
            }
        })
    }
}

/// An answer and its version.
type Versioned = Result<(Data, i64), String>;

impl<'r> Rows<'r> {
    /// Takes the rows of objects of a kind.
    fn take(&mut self, plan: &Plan<'_>, kind: &Name, found: impl IntoIterator<Item = &'r Row>) {
        for (position, field) in plan.asked.rows[kind].1.iter().enumerate() {
            self.columns.insert((kind.clone(), *field), own::ROW_COLUMNS + position);
        }
        for row in found {
            let (object, found) = (bytes(row, 0), Found::of(row));
            if found.exists {
                self.existing.push((kind.clone(), object.clone()));
            }
            self.objects.insert(object, found);
        }
    }
}

impl Rows<'_> {
    fn answer(&self, plan: &Plan<'_>, index: usize, read: &Read) -> Versioned {
        let object = &plan.digests[index];
        match read {
            Read::Exists(_) => {
                let none = Found::default();
                let found = self.objects.get(object).unwrap_or(&none);
                Ok((Data::Bool(found.exists), found.changed))
            }
            Read::Register(address) | Read::Counter(address) | Read::LogSize(address) => {
                self.column(plan, address, object)
            }
            Read::Contains(address, element) | Read::Entry(address, element) => {
                self.element(plan, address, element, object)
            }
            Read::SetSize(address) | Read::MapSize(address) => {
                let row = self.sizes.get(&(key(address), object.clone()));
                let count = row.map_or(0, |row| int(row, 1));
                let newest = row.map_or(0, |row| int(row, 2));
                let version = self.version(plan, address, object).max(newest);
                Ok((Data::Count(u64::try_from(count).unwrap_or_default()), version))
            }
            Read::Elements(address) | Read::Entries(address) => self.whole(plan, address, object),
            Read::MapSlice { address, range } => {
                let (data, version) = match self.own.get(&index) {
                    Some(rows) => self.entries(plan, address, object, rows.iter())?,
                    None => self.whole(plan, address, object)?,
                };
                let Data::Entries(entries) = data else { return Err("a map has entries".into()) };
                let entries = entries.iter().map(|(key, value)| (key, value));
                Ok((Data::Entries(range.slice(entries)), version))
            }
            Read::LogLast(address, count) => {
                self.lines(plan, address, Window::Last(*count), object)
            }
            Read::LogSlice { address, from, count } => {
                self.lines(plan, address, Window::Slice(*from, *count), object)
            }
            Read::Query { operation, .. } => {
                let operation = Operation::find(plan.operations, operation)?;
                Ok((Data::Result(operation.result(plan.layout, self.own[&index])?), 0))
            }
            Read::Record(key) => {
                let row = self.records.get(&record_id(key)?);
                let value = row.map(|row| bytes(row, 1).into());
                Ok((Data::Record(value), row.map_or(0, |row| int(row, 2))))
            }
            Read::Records { .. } => {
                let pairs = self.own[&index].iter();
                let pairs = pairs.map(|row| (bytes(row, 0).into(), bytes(row, 1).into()));
                Ok((Data::Records(pairs.collect()), 0))
            }
            Read::Witnesses { .. } => {
                let found: Result<_, String> =
                    self.own[&index].iter().map(|row| witness_row(row, 0)).collect();
                Ok((Data::Witnesses(found?), 0))
            }
        }
    }

    fn witnesses_of(&self, read: &Read, object: &Digest) -> Vec<WitnessRow> {
        let of = |digest: &[u8]| self.witnesses.get(digest).into_iter().flatten().cloned();
        match read {
            Read::Query { .. } => of(WHOLE_STORE).collect(),
            read if read.object().is_some() => of(object).chain(of(WHOLE_STORE)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the version of a field; of the object's deletion if the field has not been written
    /// since.
    fn version(&self, plan: &Plan<'_>, address: &Address, object: &Digest) -> i64 {
        let found = self.objects.get(object);
        found.map_or(0, |found| found.version(plan.field(&key(address)).1))
    }

    /// Returns the value and the version of a field's column.
    fn column(&self, plan: &Plan<'_>, address: &Address, object: &Digest) -> Versioned {
        let (field, none) = (plan.field(&key(address)).1, Found::default());
        let found = self.objects.get(object).unwrap_or(&none);
        let data = found.data(plan.layout, field, self.columns[&key(address)]);
        Ok((data.map_err(|why| at(address, &why))?, found.version(field)))
    }

    fn element(
        &self,
        plan: &Plan<'_>,
        address: &Address,
        element: &Value,
        object: &Digest,
    ) -> Versioned {
        let field = plan.field(&key(address)).1;
        let id = element_digest(object, element);
        let Some(row) = self.elements.get(&(key(address), id)) else {
            let absent = match field.shape() {
                Shape::Map => Data::Register(None),
                _ => Data::Bool(false),
            };
            return Ok((absent, self.version(plan, address, object)));
        };
        let data = match field.shape() {
            Shape::Map => {
                let codec = plan.layout.codec(field.map_value());
                let value = codec.read(&plan.layout.schema, cell(row, 2));
                Data::Register(Some(value.map_err(|why| at(address, &why))?))
            }
            _ => Data::Bool(true),
        };
        Ok((data, int(row, 1)))
    }

    fn whole(&self, plan: &Plan<'_>, address: &Address, object: &Digest) -> Versioned {
        let field = plan.field(&key(address)).1;
        let rows = self.whole.get(&(key(address), object.clone()));
        let rows = rows.map_or(&[][..], Vec::as_slice);
        if field.shape() == Shape::Map {
            return self.entries(plan, address, object, rows.iter().copied());
        }
        let inner = plan.layout.codec(field.inner());
        let read = |row: &&Row| inner.read(&plan.layout.schema, cell(row, 2));
        let values: Result<Vec<Value>, String> = rows.iter().map(read).collect();
        let mut values = values.map_err(|why| at(address, &why))?;
        values.sort();
        Ok((Data::Values(values), self.newest(plan, address, object, rows.iter().copied())))
    }

    /// Returns the newest version among rows of a field, and of the field itself.
    fn newest<'a>(
        &self,
        plan: &Plan<'_>,
        address: &Address,
        object: &Digest,
        rows: impl Iterator<Item = &'a Row>,
    ) -> i64 {
        let newest = rows.map(|row| int(row, 1)).max().unwrap_or(0);
        newest.max(self.version(plan, address, object))
    }

    /// Returns the entries of a map in these rows, in order of their keys.
    fn entries<'a>(
        &self,
        plan: &Plan<'_>,
        address: &Address,
        object: &Digest,
        rows: impl Iterator<Item = &'a Row> + Clone,
    ) -> Versioned {
        let field = plan.field(&key(address)).1;
        let version = self.newest(plan, address, object, rows.clone());
        let read = |codec: &Codec, row: &Row, index: usize| {
            codec.read(&plan.layout.schema, cell(row, index)).map_err(|why| at(address, &why))
        };
        let (inner, value) =
            (plan.layout.codec(field.inner()), plan.layout.codec(field.map_value()));
        let entry = |row: &Row| Ok((read(&inner, row, 2)?, read(&value, row, 3)?));
        let entries: Result<Vec<(Value, Value)>, String> = rows.map(entry).collect();
        let mut entries = entries?;
        entries.sort();
        Ok((Data::Entries(entries), version))
    }

    fn lines(
        &self,
        plan: &Plan<'_>,
        address: &Address,
        window: Window,
        object: &Digest,
    ) -> Versioned {
        let field = plan.field(&key(address)).1;
        let codec = plan.layout.codec(field.inner());
        let found = (key(address), object.clone(), window);
        let rows = self.lines.get(&found).copied().unwrap_or_default();
        let read = |row: &Row| {
            codec.read(&plan.layout.schema, cell(row, 0)).map_err(|why| at(address, &why))
        };
        let lines: Result<Vec<Value>, String> = rows.iter().map(read).collect();
        Ok((Data::Values(lines?), self.version(plan, address, object)))
    }
}

fn key(address: &Address) -> FieldKey {
    (address.object.kind().clone(), address.field)
}

fn at(address: &Address, why: &str) -> String {
    format!("{:?}, field number {}: {why}", address.object, address.field)
}
