//! Conversion of reads to statements, and of rows to answers.
//!
//! Reads of one kind share a statement that takes a list, however many there are; all statements
//! of a batch are sent together. A batch on one object alone takes a shorter path.
//!
//! # The story of a batch
//!
//! A transaction asks four reads in one batch: the register `balance` of the accounts `ana` and
//! `bob`, if `ana`'s set `tags` contains `vip`, and a record. [`Plan::new`] first collects the
//! requests by kind (`Asked`), then builds one statement for each kind of request:
//!
//! ```text
//! rows and witnesses  of Account: ids {ana, bob}, columns {balance};
//!                     witness rows of {ana, bob} and of the whole store
//! elements            of Account.tags: ids {digest of (ana, vip)}
//! records             ids {the record}
//! ```
//!
//! An object's row is read for each of its reads, also for `tags`: the row has the versions of all
//! fields, so the answer has a version even if the element is absent. Witness rows are part of the
//! statement of the first kind; if no row of Mingle's own tables is read, they have a statement of
//! their own.
//!
//! [`Plan::take_steps`] returns the statements, the transaction sends them in one round trip, and
//! [`Plan::answers`] sorts the rows by purpose and looks up the answer of each read, in order. An
//! answer has the data, its version, and the witness rows of its object.
//!
//! Other paths:
//!
//! - A batch that reads only columns of one object in Mingle's own tables is a [`One`]: a single
//!   statement, without sorting. Most batches are of this form.
//! - An object in existing tables (`mapping`) has one statement for each read. They follow the
//!   other statements in the same round trip.
//! - A query, a scan of records and a sweep of witness rows have a statement of their own each.

mod answer;
mod one;
mod own;
mod system;

pub use answer::Answered;
use one::One;

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Name, Ref};
use mingle_store::{Address, Answer, Data, KeyRange, Read, Refusal};

use crate::encoding::{Digest, element_digest, object_digest};
use crate::layout::{Field, Kind, Layout, Place, Shape};
use crate::limits::READS_MAX;
use crate::mapping::read::MappedAsk;
use crate::operation::{Operation, Operations};
use crate::session::Step;
use crate::wire::Row;

/// The lines of a log to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Window {
    /// The last lines, at most this many.
    Last(u64),
    /// Lines from this index on, at most this many.
    Slice(u64, u64),
}

/// A field of a kind, by its index in the declaration.
type FieldKey = (Name, u16);

/// The requests of a batch, by kind of read.
#[derive(Default)]
struct Asked {
    /// Rows of kinds, and the columns that are read.
    rows: BTreeMap<Name, (BTreeSet<Digest>, BTreeSet<u16>)>,
    /// Single elements and entries.
    elements: BTreeMap<FieldKey, BTreeSet<Digest>>,
    /// Sets and maps as a whole.
    whole: BTreeMap<FieldKey, BTreeSet<Digest>>,
    /// Sizes of sets and maps.
    sizes: BTreeMap<FieldKey, BTreeSet<Digest>>,
    /// Lines of logs.
    lines: BTreeSet<(FieldKey, Digest, Window)>,
    records: BTreeSet<Vec<u8>>,
    /// Objects whose witness rows are returned with the answers.
    objects: BTreeSet<Digest>,
    /// True if any read needs witness rows.
    witnesses: bool,
}

/// The purpose of a statement of a plan.
enum Purpose {
    Rows(Name),
    RowsAndWitnesses(Name),
    Elements(FieldKey),
    Whole(FieldKey),
    Sizes(FieldKey),
    Lines(FieldKey, Digest, Window),
    Records,
    Witnesses,
    /// The statement of the read at this index.
    Own(usize),
}

/// The statements that answer a batch, and the purpose of their rows.
pub struct Plan<'a> {
    layout: &'a Layout,
    operations: &'a Operations,
    reads: &'a [Read],
    /// The digest of each read's object; empty for a read without an object.
    digests: Vec<Digest>,
    asked: Asked,
    /// Set if all reads are of one object, and nothing else was asked.
    one: Option<One<'a>>,
    mapped: MappedAsk,
    steps: Vec<Step>,
    purposes: Vec<Purpose>,
    /// True if the batch has commands, which write.
    pub writes: bool,
}

impl<'a> Plan<'a> {
    /// Plans a batch.
    ///
    /// # Errors
    ///
    /// When a read does not fit the declarations.
    pub fn new(
        layout: &'a Layout,
        operations: &'a Operations,
        reads: &'a [Read],
    ) -> Result<Self, Refusal> {
        if reads.len() > READS_MAX {
            let found = reads.len();
            return Err(format!("a batch holds at most {READS_MAX} reads, not {found}").into());
        }
        let mut plan = Self {
            layout,
            operations,
            reads,
            digests: Vec::new(),
            asked: Asked::default(),
            one: One::of(layout, reads),
            mapped: MappedAsk::default(),
            steps: Vec::new(),
            purposes: Vec::new(),
            writes: false,
        };
        if let Some(one) = &plan.one {
            plan.steps.push(one.step(layout));
            return Ok(plan);
        }
        plan.digests.extend(reads.iter().map(digest_of));
        for (index, read) in reads.iter().enumerate() {
            plan.ask(index, read)?;
        }
        plan.build();
        Ok(plan)
    }

    /// Takes the statements, in order, out of the plan.
    pub fn take_steps(&mut self) -> Vec<Step> {
        let mut steps = std::mem::take(&mut self.steps);
        steps.extend(self.mapped.steps().iter().cloned());
        steps
    }

    /// Returns the records that are read one by one, by their ids.
    pub fn records(&self) -> &BTreeSet<Vec<u8>> {
        &self.asked.records
    }

    /// Returns the objects of Mingle's own tables that are read, by kind.
    pub fn objects(&self) -> impl Iterator<Item = (&Name, &Digest)> {
        let rows = self.asked.rows.iter();
        let many =
            rows.flat_map(|(kind, (objects, _))| objects.iter().map(move |object| (kind, object)));
        many.chain(self.one.iter().map(|one| (&one.kind.name, &one.object)))
    }

    /// Returns the objects whose keys were drawn.
    pub fn drawn(&self, answers: &[Answer]) -> impl Iterator<Item = Ref> {
        self.reads.iter().zip(answers).filter_map(|(read, answer)| match (read, &answer.data) {
            (Read::Query { operation, .. }, Data::Result(key)) => {
                let kind = self.operations.get(operation)?.draws()?;
                Some(Ref::new(kind.clone(), key.clone()))
            }
            _ => None,
        })
    }

    fn ask(&mut self, index: usize, read: &Read) -> Result<(), Refusal> {
        use Shape::{Counter, Log, Map, Register, Set};
        match read {
            Read::Exists(object) => {
                let kind = self.layout.kind_of(object)?;
                self.object(kind, None, index)?;
            }
            Read::Register(address) => self.column(address, Register, index)?,
            Read::Counter(address) => self.column(address, Counter, index)?,
            Read::LogSize(address) => self.column(address, Log, index)?,
            Read::Contains(address, element) => self.element(address, Set, element, index)?,
            Read::Entry(address, entry) => self.element(address, Map, entry, index)?,
            Read::SetSize(address) => self.many(address, Set, true, index)?,
            Read::MapSize(address) => self.many(address, Map, true, index)?,
            Read::Elements(address) => self.many(address, Set, false, index)?,
            Read::Entries(address) => self.many(address, Map, false, index)?,
            Read::MapSlice { address, range } => self.slice(address, range, index)?,
            Read::LogLast(address, count) => self.lines(address, Window::Last(*count), index)?,
            Read::LogSlice { address, from, count } => {
                self.lines(address, Window::Slice(*from, *count), index)?;
            }
            Read::Query { operation, arguments } => {
                let found = Operation::find(self.operations, operation)?;
                let step = found.step(self.layout, arguments)?;
                self.writes |= found.is_command;
                self.asked.witnesses = true;
                self.push(step, Purpose::Own(index));
            }
            Read::Record(key) => {
                self.asked.records.insert(crate::system::record_id(key)?);
            }
            Read::Records { kind, from, limit } => {
                let step = system::scan(self.layout, *kind, from, *limit);
                self.push(step, Purpose::Own(index));
            }
            Read::Witnesses { from, limit } => {
                let step = system::sweep(self.layout, *from, *limit);
                self.push(step, Purpose::Own(index));
            }
        }
        Ok(())
    }

    fn push(&mut self, step: Step, purpose: Purpose) {
        self.steps.push(step);
        self.purposes.push(purpose);
    }

    /// Notes that the answer needs the object's row, and this column of it. Returns true if the row
    /// is in one of Mingle's own tables.
    fn object(&mut self, kind: &Kind, field: Option<u16>, index: usize) -> Result<bool, Refusal> {
        let digest = self.digests[index].clone();
        self.asked.witnesses = true;
        self.asked.objects.insert(digest.clone());
        if let Place::Mapped(mapped) = &kind.place {
            self.mapped.ask(self.layout, mapped, index, &self.reads[index])?;
            return Ok(false);
        }
        let (rows, columns) = self.asked.rows.entry(kind.name.clone()).or_default();
        rows.insert(digest);
        columns.extend(field);
        Ok(true)
    }

    fn column(&mut self, address: &Address, shape: Shape, index: usize) -> Result<(), Refusal> {
        let (kind, _) = self.layout.field(address, &[shape])?;
        self.object(kind, Some(address.field), index)?;
        Ok(())
    }

    fn element(
        &mut self,
        address: &Address,
        shape: Shape,
        element: &mingle_model::Value,
        index: usize,
    ) -> Result<(), Refusal> {
        let (kind, field) = self.layout.field(address, &[shape])?;
        self.layout.check(element, field.inner(), || format!("{}.{}", kind.name, field.name))?;
        if self.object(kind, None, index)? {
            let id = element_digest(&self.digests[index], element);
            let key = (kind.name.clone(), address.field);
            self.asked.elements.entry(key).or_default().insert(id);
        }
        Ok(())
    }

    fn many(
        &mut self,
        address: &Address,
        shape: Shape,
        is_size: bool,
        index: usize,
    ) -> Result<(), Refusal> {
        let (kind, _) = self.layout.field(address, &[shape])?;
        if self.object(kind, None, index)? {
            let asked = if is_size { &mut self.asked.sizes } else { &mut self.asked.whole };
            let key = (kind.name.clone(), address.field);
            asked.entry(key).or_default().insert(self.digests[index].clone());
        }
        Ok(())
    }

    fn slice(&mut self, address: &Address, range: &KeyRange, index: usize) -> Result<(), Refusal> {
        let (kind, field) = self.layout.field(address, &[Shape::Map])?;
        let name = || format!("{}.{}", kind.name, field.name);
        for bound in range.from.iter().chain(&range.before) {
            self.layout.check(bound, field.inner(), name)?;
        }
        let digest = &self.digests[index];
        match own::slice(self.layout, field, digest, range) {
            Some(step) if self.object(kind, None, index)? => self.push(step, Purpose::Own(index)),
            Some(_) => {}
            None => self.many(address, Shape::Map, false, index)?,
        }
        Ok(())
    }

    fn lines(&mut self, address: &Address, window: Window, index: usize) -> Result<(), Refusal> {
        let (kind, _) = self.layout.field(address, &[Shape::Log])?;
        if self.object(kind, Some(address.field), index)? {
            let key = (kind.name.clone(), address.field);
            self.asked.lines.insert((key, self.digests[index].clone(), window));
        }
        Ok(())
    }

    fn field(&self, key: &FieldKey) -> (&'a Kind, &'a Field) {
        let kind = &self.layout.kinds[&key.0];
        (kind, &kind.fields[usize::from(key.1)])
    }

    /// Builds the statements for all requests.
    fn build(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        let mut witnessed = asked.witnesses.then(|| asked.objects.iter().cloned().collect());
        for (name, (objects, columns)) in &asked.rows {
            let kind = &self.layout.kinds[name];
            let objects = objects.iter().cloned().collect();
            let columns: Vec<u16> = columns.iter().copied().collect();
            if let Some(witnessed) = witnessed.take() {
                let both = own::rows_and_witnesses(self.layout, kind, &columns, objects, witnessed);
                self.push(both, Purpose::RowsAndWitnesses(name.clone()));
            } else {
                let step = own::rows(self.layout, kind, &columns, objects);
                self.push(step, Purpose::Rows(name.clone()));
            }
        }
        for (key, ids) in &asked.elements {
            let step = own::elements(self.layout, self.field(key).1, ids);
            self.push(step, Purpose::Elements(key.clone()));
        }
        for (key, objects) in &asked.whole {
            let step = own::whole(self.layout, self.field(key).1, objects);
            self.push(step, Purpose::Whole(key.clone()));
        }
        for (key, objects) in &asked.sizes {
            let step = own::sizes(self.field(key).1, objects);
            self.push(step, Purpose::Sizes(key.clone()));
        }
        for (key, object, window) in &asked.lines {
            let step = own::lines(self.layout, self.field(key).1, object, *window);
            self.push(step, Purpose::Lines(key.clone(), object.clone(), *window));
        }
        if !asked.records.is_empty() {
            self.push(system::records(self.layout, &asked.records), Purpose::Records);
        }
        if let Some(witnessed) = witnessed {
            self.push(crate::system::rows_of(self.layout, witnessed), Purpose::Witnesses);
        }
        self.asked = asked;
    }

    /// Returns the answers, from the rows of each statement, and the objects that exist.
    ///
    /// # Errors
    ///
    /// When a row holds a value that is not of the declared type.
    pub fn answers(&self, results: &[Vec<Row>]) -> Result<answer::Answered, String> {
        answer::answers(self, results)
    }
}

fn digest_of(read: &Read) -> Digest {
    read.object().map(object_digest).unwrap_or_default()
}
