//! Reads of the columns of one object in one of Mingle's own tables. Most batches are of this form,
//! and need not be sorted by subject.

use mingle_model::{Version, WitnessRow};
use mingle_store::{Answer, Data, Read};

use super::answer::{Answered, Found};
use super::own;
use crate::encoding::{Digest, object_digest};
use crate::layout::{Kind, Layout, Place, Shape};
use crate::session::Step;
use crate::system::witness_row;
use crate::wire::{Row, cell};

/// A batch of such reads.
pub struct One<'a> {
    /// The object's kind.
    pub kind: &'a Kind,
    /// The object's digest.
    pub object: Digest,
    /// The columns that are read, in their order.
    columns: Vec<u16>,
}

impl<'a> One<'a> {
    /// Returns the batch; none if its reads are of another form, or do not fit the declarations.
    pub fn of(layout: &'a Layout, reads: &[Read]) -> Option<Self> {
        let object = reads.first()?.object()?;
        let kind = layout.kind_of(object).ok()?;
        if matches!(kind.place, Place::Mapped(_)) {
            return None;
        }
        let mut columns = Vec::with_capacity(reads.len());
        for read in reads {
            if read.object()? != object {
                return None;
            }
            match Needs::of(kind, read)? {
                Needs::Row => {}
                Needs::Column(column) => columns.push(column),
            }
        }
        columns.sort_unstable();
        columns.dedup();
        Some(Self { kind, object: object_digest(object), columns })
    }

    /// Returns the statement that answers the batch.
    pub fn step(&self, layout: &Layout) -> Step {
        let object = vec![self.object.clone()];
        own::rows_and_witnesses(layout, self.kind, &self.columns, object.clone(), object)
    }

    /// Returns the answers, from the rows of that statement.
    ///
    /// # Errors
    ///
    /// When a row holds a value that is not of the declared type.
    pub fn answers(
        &self,
        layout: &Layout,
        reads: &[Read],
        rows: &[Row],
    ) -> Result<Answered, String> {
        let mut object = Found::default();
        let (mut of_object, mut of_store): (Vec<WitnessRow>, Vec<WitnessRow>) = Default::default();
        for row in rows {
            let at = own::ROW_COLUMNS + self.columns.len();
            match (cell(row, 0), cell(row, at)) {
                (Some(_), _) => object = Found::of(row),
                (None, Some(witnessed)) if *witnessed == *self.object => {
                    of_object.push(witness_row(row, at)?);
                }
                (None, _) => of_store.push(witness_row(row, at)?),
            }
        }
        of_object.append(&mut of_store);
        let answer = |read: &Read| {
            let (data, version) = self.answer(layout, read, &object)?;
            let version = Version(u64::try_from(version).unwrap_or_default());
            Ok(Answer { data, version, witnesses: of_object.clone() })
        };
        let answers = reads.iter().map(answer).collect::<Result<_, String>>()?;
        let existing = (self.kind.name.clone(), self.object.clone());
        Ok(Answered { answers, existing: object.exists.then_some(existing).into_iter().collect() })
    }

    fn answer(
        &self,
        layout: &Layout,
        read: &Read,
        found: &Found<'_>,
    ) -> Result<(Data, i64), String> {
        let Some(Needs::Column(column)) = Needs::of(self.kind, read) else {
            return Ok((Data::Bool(found.exists), found.changed));
        };
        let field = &self.kind.fields[usize::from(column)];
        let place = self.columns.iter().position(|known| *known == column);
        let place = own::ROW_COLUMNS + place.expect("it is among those that were asked for");
        let data = found.data(layout, field, place);
        let at = |why| format!("{:?}, field {}: {why}", read.object(), field.name);
        Ok((data.map_err(at)?, found.version(field)))
    }
}

/// The part of its object's row that a read needs.
enum Needs {
    /// Only its existence.
    Row,
    /// The column of this field.
    Column(u16),
}

impl Needs {
    /// Returns the needed part; none if the read needs more, or a field that does not exist.
    fn of(kind: &Kind, read: &Read) -> Option<Self> {
        let (address, shape) = match read {
            Read::Exists(_) => return Some(Self::Row),
            Read::Register(address) => (address, Shape::Register),
            Read::Counter(address) => (address, Shape::Counter),
            Read::LogSize(address) => (address, Shape::Log),
            _ => return None,
        };
        let field = kind.fields.get(usize::from(address.field))?;
        (field.shape() == shape).then_some(Self::Column(address.field))
    }
}
