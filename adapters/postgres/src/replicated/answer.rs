//! Conversion of rows to answers.

use std::collections::BTreeMap;

use mingle_model::{Ref, Type, Value, Version, WitnessRow};
use mingle_store::{Address, Data, Read};

use super::reading::{Place, Plan, Sort};
use super::writes::decoded;
use crate::encoding::{Digest, object_digest};
use crate::layout::{Field, Shape};
use crate::system::{WHOLE_STORE, witness_row};
use crate::wire::{Row, bytes, cell, int, text};

/// The rows of a batch, by the reads that they answer.
pub struct Rows<'p, 'r> {
    plan: &'p Plan<'p>,
    shared: BTreeMap<Sort, Vec<Vec<&'r Row>>>,
    singles: &'r [Vec<Row>],
    witnesses: BTreeMap<Digest, Vec<WitnessRow>>,
}

impl<'p, 'r> Rows<'p, 'r> {
    /// Sorts the rows of a plan's statements.
    ///
    /// # Errors
    ///
    /// When a witness row cannot be decoded.
    pub fn new(plan: &'p Plan<'p>, results: &'r [Vec<Row>]) -> Result<Self, String> {
        let (shared, rest) = results.split_at(plan.sorts.len().min(results.len()));
        let (singles, last) = rest.split_at(plan.singles.min(rest.len()));
        let mut rows = Self { plan, shared: BTreeMap::new(), singles, witnesses: BTreeMap::new() };
        for (sort, result) in plan.sorts.iter().zip(shared) {
            let mut by_number: Vec<Vec<&Row>> = Vec::new();
            for row in result {
                let number = usize::try_from(int(row, 0)).unwrap_or_default();
                if by_number.len() <= number {
                    by_number.resize_with(number + 1, Vec::new);
                }
                by_number[number].push(row);
            }
            rows.shared.insert(*sort, by_number);
        }
        for row in last.iter().flatten() {
            rows.witnesses.entry(bytes(row, 0)).or_default().push(witness_row(row, 0)?);
        }
        Ok(rows)
    }

    /// Returns the witness rows of an object, or of the whole store.
    pub fn witnesses(&self, object: Option<&Ref>) -> Vec<WitnessRow> {
        let digest = object.map_or_else(|| WHOLE_STORE.to_vec(), object_digest);
        self.witnesses.get(&digest).cloned().unwrap_or_default()
    }

    /// Returns the answer of the read at this index of the plan.
    ///
    /// # Errors
    ///
    /// When a row holds a value that is not of the declared type.
    pub fn find(&self, index: usize) -> Result<(Data, Version), String> {
        let (read, place) = (&self.plan.reads[index], self.plan.places[index]);
        let shared = self.shared(place);
        let version = |column: usize| {
            let newest = shared.iter().map(|row| int(row, column)).max().unwrap_or_default();
            Version(u64::try_from(newest).unwrap_or_default())
        };
        let content = shared.first().and_then(|row| cell(row, 1));
        let count = || {
            let count = shared.first().map_or(0, |row| int(row, 1));
            Data::Count(u64::try_from(count).unwrap_or_default())
        };
        Ok(match read {
            Read::Exists(_) | Read::Contains(..) => (Data::Bool(content.is_some()), version(2)),
            Read::Register(address) | Read::Entry(address, _) => {
                let field = self.field(address)?;
                let value_type = match field.shape() {
                    Shape::Map => field.map_value(),
                    _ => field.inner(),
                };
                let value = content.map(|content| self.value(field, value_type, content));
                (Data::Register(value.transpose()?), version(2))
            }
            Read::Counter(_) => {
                let sum = shared.first().and_then(|row| text(row, 1)).unwrap_or("0");
                let sum = sum.parse().map_err(|_| format!("a sum of {sum} is beyond 2^127"))?;
                (Data::Counter(sum), version(2))
            }
            Read::SetSize(_) | Read::MapSize(_) | Read::LogSize(_) => (count(), version(2)),
            Read::Elements(address) | Read::Entries(address) => {
                (self.whole(address, shared)?, version(3))
            }
            Read::MapSlice { address, range } => {
                (sliced(range, self.whole(address, shared)?), version(3))
            }
            Read::LogLast(address, _) | Read::LogSlice { address, .. } => {
                let field = self.field(address)?;
                let line =
                    |row: &Row| self.value(field, field.inner(), cell(row, 0).unwrap_or_default());
                let lines: Result<_, String> = self.single(place).iter().map(line).collect();
                (Data::Values(lines?), version(2))
            }
            Read::Record(_) => (Data::Record(content.map(Into::into)), version(2)),
            Read::Records { .. } => {
                let record = |row: &Row| {
                    let id = bytes(row, 0);
                    (id.get(1..).unwrap_or_default().into(), bytes(row, 1).into())
                };
                (Data::Records(self.single(place).iter().map(record).collect()), Version(0))
            }
            Read::Witnesses { .. } => {
                let rows: Result<_, String> =
                    self.single(place).iter().map(|row| witness_row(row, 0)).collect();
                (Data::Witnesses(rows?), Version(0))
            }
            Read::Query { operation, .. } => return Err(super::writes::no_operation(operation)),
        })
    }

    fn shared(&self, place: Place) -> &[&'r Row] {
        let rows = place.shared.and_then(|(sort, number)| self.shared.get(&sort)?.get(number));
        rows.map_or(&[], Vec::as_slice)
    }

    fn single(&self, place: Place) -> &'r [Row] {
        place.own.and_then(|own| self.singles.get(own)).map_or(&[], Vec::as_slice)
    }

    fn field(&self, address: &Address) -> Result<&'p Field, String> {
        use Shape::{Counter, Log, Map, Register, Set};
        let any = [Register, Counter, Set, Map, Log];
        Ok(self.plan.layout.field(address, &any)?.1)
    }

    fn value(&self, field: &Field, value_type: &Type, content: &[u8]) -> Result<Value, String> {
        decoded(self.plan.layout, field, value_type, content)
    }

    /// Returns a set or map, in the order of its elements or keys.
    fn whole(&self, address: &Address, rows: &[&Row]) -> Result<Data, String> {
        let field = self.field(address)?;
        // An empty collection has a row without an element.
        let there = rows.iter().filter_map(|row| Some((row, cell(row, 1)?)));
        if field.shape() == Shape::Set {
            let elements: Result<Vec<Value>, String> =
                there.map(|(_, element)| self.value(field, field.inner(), element)).collect();
            let mut elements = elements?;
            elements.sort();
            return Ok(Data::Values(elements));
        }
        let entry = |(row, key): (&&Row, &[u8])| {
            let content = cell(row, 2).unwrap_or_default();
            let value = self.value(field, field.map_value(), content)?;
            Ok((self.value(field, field.inner(), key)?, value))
        };
        let entries: Result<Vec<(Value, Value)>, String> = there.map(entry).collect();
        let mut entries = entries?;
        entries.sort();
        Ok(Data::Entries(entries))
    }
}

/// Returns the entries of a range, out of all entries of a map.
fn sliced(range: &mingle_store::KeyRange, all: Data) -> Data {
    match all {
        Data::Entries(entries) => {
            Data::Entries(range.slice(entries.iter().map(|(key, value)| (key, value))))
        }
        other => other,
    }
}
