//! From the net effect of a transaction's writes to mutations.

use mingle_model::{Ref, TransactionId, Value, WitnessRow};
use mingle_store::overlay::{Change as FieldChange, Changes, Overlay};
use mingle_store::{Address, OperationId, Refusal};
use sha2::{Digest, Sha256};

use crate::change::{Change, Place, cell, drop_chunks};
use crate::fetch::{Asked, Found as Fetched, Part, Row};
use crate::layout::{Cell, Element, Found, HEADER, Layout, ROWS};
use crate::mapping::{At, Mapped, TABLE_ROW};
use crate::reading::{DELETED, encode_witness};

/// Returns the rows needed to make the mutations: those that they remove, and witness rows.
///
/// # Errors
///
/// When a write does not fit the declarations.
pub fn ask(layout: &Layout, overlay: &Overlay) -> Result<Asked, String> {
    let mut asked = Asked::default();
    for (object, changes) in overlay.objects() {
        let cell = layout.object(object)?;
        asked.note(layout, &cell, object);
        let mut add = |part| asked.add(&cell, part);
        add(Part::Field(HEADER.into()));
        add(Part::Field(ROWS.into()));
        if changes.hidden.is_some() {
            add(Part::Object);
            continue;
        }
        for (index, (change, _)) in &changes.fields {
            let found = field(layout, object, *index)?;
            let name = found.field.name.to_string();
            let mut element = |value: &Value| {
                let part = Part::Element(name.clone(), layout.element(found, value)?.name);
                add(part);
                Ok::<(), String>(())
            };
            match change {
                FieldChange::Counter(_) | FieldChange::Log(false, _) => {}
                FieldChange::Set(false, elements) => elements.keys().try_for_each(element)?,
                FieldChange::Map(false, entries) => entries.keys().try_for_each(&mut element)?,
                FieldChange::Register(_)
                | FieldChange::Set(true, _)
                | FieldChange::Map(true, _)
                | FieldChange::Log(true, _) => {
                    add(Part::Field(name));
                }
            }
        }
    }
    Ok(asked)
}

/// True if a register is written: an object with a register row exists, by that row alone, until it
/// is deleted. All copies of a commit agree on this, independent of the rows they find.
fn assigns(changes: &Changes) -> bool {
    changes.fields.values().any(|(change, _)| matches!(change, FieldChange::Register(_)))
}

fn field<'a>(layout: &'a Layout, object: &Ref, index: u16) -> Result<Found<'a>, String> {
    layout.field(&Address { object: object.clone(), field: index }, &[])
}

/// The names of the rows that a commit adds, in the order of commits.
#[derive(Clone, Debug)]
pub struct Dots {
    time: i64,
    name: Cell,
    /// True if copies with the same effects may be under way: rows of the same age are not touched.
    is_copied: bool,
}

impl Dots {
    /// Creates the dots for a commit of one process.
    pub fn of_writer(time: i64, writer: u128) -> Self {
        Self { time, name: writer.to_be_bytes().to_vec(), is_copied: false }
    }

    /// Creates the dots for an operation, the same in each process that runs it.
    pub fn of_operation(time: i64, operation: OperationId) -> Self {
        let name = [&id_bytes(operation.id)[..], &operation.phase.to_be_bytes()].concat();
        Self { time, name, is_copied: true }
    }

    fn dot(&self, position: u32) -> Cell {
        let time = self.time.max(0).to_be_bytes();
        [&time[..], &self.name, &position.to_be_bytes()].concat()
    }

    /// Returns the timestamp of all its writes.
    pub fn time(&self) -> i64 {
        self.time
    }

    /// True if the commit removes rows with this timestamp: without copies all, else only older
    /// ones.
    fn removes(&self, time: i64) -> bool {
        !self.is_copied || time < self.time
    }
}

/// Returns the bytes of an id, of a fixed length, in the order of ids.
pub fn id_bytes(id: TransactionId) -> Cell {
    [&id.origin.0.to_be_bytes()[..], &id.sequence.to_be_bytes()].concat()
}

/// Creates the mutations of data.
///
/// # Errors
///
/// When a write does not fit the declarations.
pub fn build(
    layout: &Layout,
    overlay: &Overlay,
    found: &Fetched,
    dots: &Dots,
) -> Result<Vec<Change>, Refusal> {
    let mut build = Build { layout, dots, changes: Vec::new() };
    for (object, changes) in overlay.objects() {
        build.object(object, changes, found)?;
    }
    for row in overlay.added_rows() {
        build.witness(row)?;
    }
    Ok(build.changes)
}

/// An object with changes.
#[derive(Clone, Copy)]
struct Of<'a> {
    object: &'a Ref,
    cell: &'a Cell,
    mapped: Option<&'a Mapped>,
}

struct Build<'a> {
    layout: &'a Layout,
    dots: &'a Dots,
    changes: Vec<Change>,
}

impl Build<'_> {
    fn object(&mut self, object: &Ref, changes: &Changes, found: &Fetched) -> Result<(), Refusal> {
        let cell = self.layout.object(object)?;
        let of = Of { object, cell: &cell, mapped: self.layout.mapped(object) };
        if changes.hidden.is_some() {
            let gone = found.rows(&cell, &Part::Object).iter();
            let mut gone = gone.filter(|row| row.field != ROWS && row.dot != DELETED);
            gone.try_for_each(|row| self.remove(of, row))?;
            self.put(&cell, HEADER, Cell::new(), DELETED.to_vec(), &[]);
        }
        if changes.exists {
            if of.mapped.is_some() || !assigns(changes) {
                self.put(&cell, HEADER, Cell::new(), Cell::new(), &[]);
            }
            if let Some(mapped) = of.mapped {
                self.changes.push(mapped.create(self.layout, object, self.dots.time)?);
            }
        }
        for (index, (change, _)) in &changes.fields {
            let field = field(self.layout, object, *index)?;
            match of.mapped.filter(|mapped| mapped.holds(&field.field.name)) {
                Some(mapped) => self.mapped_field(of, mapped, field, change, found)?,
                None => self.field(of, field, change, found)?,
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        of: Of<'_>,
        field: Found<'_>,
        change: &FieldChange,
        found: &Fetched,
    ) -> Result<(), Refusal> {
        let (name, object) = (&*field.field.name, of.cell);
        self.clear(of, field, change, found)?;
        match change {
            FieldChange::Register(value) => {
                self.forget_chunks(found.rows(object, &Part::Field(name.to_owned())));
                let value = self.layout.value(field, value)?;
                self.put(object, name, Cell::new(), Cell::new(), &value);
            }
            FieldChange::Counter(amount) => {
                let dot = self.dots.dot(0);
                self.put(object, name, Cell::new(), dot, &amount.to_be_bytes());
            }
            FieldChange::Log(_, lines) => {
                for (line, position) in lines.iter().zip(0..) {
                    let value = self.layout.value(field, line)?;
                    let dot = self.dots.dot(position);
                    self.put(object, name, Cell::new(), dot, &value);
                }
            }
            FieldChange::Set(_, elements) => {
                for (element, is_in) in elements {
                    let element = self.layout.element(field, element)?;
                    let part = Part::Element(name.to_owned(), element.name.clone());
                    self.remove_all(of, found.rows(object, &part))?;
                    if *is_in {
                        let value = payload(&element, &[]);
                        self.put(object, name, element.name, self.dots.dot(0), &value);
                    }
                }
            }
            FieldChange::Map(_, entries) => {
                for (key, value) in entries {
                    let key = self.layout.element(field, key)?;
                    let part = Part::Element(name.to_owned(), key.name.clone());
                    let old = found.rows(object, &part);
                    let Some(value) = value else {
                        self.remove_all(of, old)?;
                        continue;
                    };
                    self.forget_chunks(old);
                    let value = payload(&key, &self.layout.value(field, value)?);
                    self.put(object, name, key.name, Cell::new(), &value);
                }
            }
        }
        Ok(())
    }

    /// Removes the rows of a field that is cleared first.
    fn clear(
        &mut self,
        of: Of<'_>,
        field: Found<'_>,
        change: &FieldChange,
        found: &Fetched,
    ) -> Result<(), Refusal> {
        match change {
            FieldChange::Set(true, _) | FieldChange::Map(true, _) | FieldChange::Log(true, _) => {
                let whole = Part::Field(field.field.name.to_string());
                self.remove_all(of, found.rows(of.cell, &whole))
            }
            _ => Ok(()),
        }
    }

    /// Writes a field in a table of the application.
    fn mapped_field(
        &mut self,
        of: Of<'_>,
        mapped: &Mapped,
        field: Found<'_>,
        change: &FieldChange,
        found: &Fetched,
    ) -> Result<(), Refusal> {
        let (layout, object, time) = (self.layout, of.object, self.dots.time);
        let insert = |at| mapped.insert(layout, object, field, at, time);
        self.clear(of, field, change, found)?;
        match change {
            FieldChange::Register(value) => {
                self.changes.push(mapped.assign(layout, object, field, value, time)?);
            }
            FieldChange::Log(_, lines) => {
                for (line, position) in lines.iter().zip(0..) {
                    self.changes.push(insert(At::Line(&self.dots.name, position, line))?);
                }
            }
            FieldChange::Set(_, elements) => {
                for (element, is_in) in elements {
                    if *is_in {
                        self.changes.push(insert(At::Element(element))?);
                    } else {
                        self.remove_element(of, field, element, found)?;
                    }
                }
            }
            FieldChange::Map(_, entries) => {
                for (key, value) in entries {
                    match value {
                        Some(value) => self.changes.push(insert(At::Entry(key, value))?),
                        None => self.remove_element(of, field, key, found)?,
                    }
                }
            }
            FieldChange::Counter(_) => return Err("no counter is in such a table".into()),
        }
        Ok(())
    }

    fn remove_element(
        &mut self,
        of: Of<'_>,
        field: Found<'_>,
        element: &Value,
        found: &Fetched,
    ) -> Result<(), Refusal> {
        let name = self.layout.element(field, element)?.name;
        let part = Part::Element(field.field.name.to_string(), name);
        self.remove_all(of, found.rows(of.cell, &part))
    }

    fn put(&mut self, object: &Cell, field: &str, element: Cell, dot: Cell, value: &[u8]) {
        let at = Place { object: object.clone(), field: field.to_owned(), element, dot };
        let time = self.dots.time;
        let (value, chunks) = cell(&at, value, time);
        self.changes.extend(chunks);
        self.changes.push(Change::Put { at, value, time });
    }

    /// Removes a row as it was seen.
    fn remove(&mut self, of: Of<'_>, row: &Row) -> Result<(), Refusal> {
        if !self.dots.removes(row.time) {
            return Ok(());
        }
        let is_mapped = |mapped: &&Mapped| mapped.holds(&row.field) || row.field == TABLE_ROW;
        if let Some(mapped) = of.mapped.filter(is_mapped) {
            self.changes.extend(mapped.remove(self.layout, of.object, row, self.dots.time)?);
            return Ok(());
        }
        let at = Place {
            object: of.cell.clone(),
            field: row.field.clone(),
            element: row.element.clone(),
            dot: row.dot.clone(),
        };
        self.changes.push(Change::Drop { at, time: row.time });
        self.changes.extend(drop_chunks(&row.value, row.time));
        Ok(())
    }

    fn remove_all(&mut self, of: Of<'_>, rows: &[Row]) -> Result<(), Refusal> {
        rows.iter().try_for_each(|row| self.remove(of, row))
    }

    /// Removes the chunks of overwritten values.
    fn forget_chunks(&mut self, rows: &[Row]) {
        for row in rows.iter().filter(|row| row.time < self.dots.time) {
            self.changes.extend(drop_chunks(&row.value, row.time));
        }
    }

    fn witness(&mut self, row: &WitnessRow) -> Result<(), Refusal> {
        let object = self.layout.place(row.object.as_ref())?;
        let (value, time) = (encode_witness(row), self.dots.time);
        let (id, digest) = (id_bytes(row.id), Sha256::digest(&value).to_vec());
        let at = row_place(object.clone(), id.clone(), digest.clone());
        self.changes.push(Change::Put { at, value: value.clone(), time });
        self.changes.push(Change::PutRow { id, place: (object, digest), value, time });
        Ok(())
    }
}

/// Returns the place of a witness row in its object's partition.
pub fn row_place(object: Cell, id: Cell, digest: Cell) -> Place {
    Place { object, field: ROWS.to_owned(), element: id, dot: digest }
}

/// Returns the value for the row of an element: its text, if its name is a digest, and its value.
pub fn payload(element: &Element, value: &[u8]) -> Cell {
    match &element.text {
        None => value.to_vec(),
        Some(text) => [&(text.len() as u32).to_be_bytes()[..], text, value].concat(),
    }
}
