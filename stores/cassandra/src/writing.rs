//! From the net effect of a transaction's writes to mutations.

use mingle_model::{Ref, TransactionId, Value, WitnessRow};
use mingle_store::overlay::{Change as FieldChange, Changes, Overlay};
use mingle_store::{Address, OperationId};
use sha2::{Digest, Sha256};

use crate::change::{Change, Place, cell, drop_chunks};
use crate::fetch::{Asked, Found as Fetched, Part, Row};
use crate::layout::{Cell, Element, Found, HEADER, Layout, ROWS};
use crate::reading::{DELETED, encode_witness};

/// What must be known before the mutations can be made: what they remove, and witness rows.
///
/// # Errors
///
/// When a write does not fit what is declared.
pub fn ask(layout: &Layout, overlay: &Overlay) -> Result<Asked, String> {
    let mut asked = Asked::new();
    for (object, changes) in overlay.objects() {
        let cell = layout.object(object)?;
        let mut add = |part| asked.insert((cell.clone(), part));
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
    if overlay.has_data {
        asked.insert((layout.whole(), Part::Field(ROWS.into())));
    }
    Ok(asked)
}

fn field<'a>(layout: &'a Layout, object: &Ref, index: u16) -> Result<Found<'a>, String> {
    layout.field(&Address { object: object.clone(), field: index }, &[])
}

/// Names what a commit adds, in the order of commits.
#[derive(Clone, Debug)]
pub struct Dots {
    time: i64,
    name: Cell,
    /// Copies may be under way, which did the same: what is as old is not touched.
    is_copied: bool,
}

impl Dots {
    /// Those of a commit of one process.
    pub fn of_writer(time: i64, writer: u128) -> Self {
        Self { time, name: writer.to_be_bytes().to_vec(), is_copied: false }
    }

    /// Those of an operation, whoever runs it.
    pub fn of_operation(time: i64, operation: OperationId) -> Self {
        let name = [&id_bytes(operation.id)[..], &operation.phase.to_be_bytes()].concat();
        Self { time, name, is_copied: true }
    }

    fn dot(&self, position: u32) -> Cell {
        let time = self.time.max(0).to_be_bytes();
        [&time[..], &self.name, &position.to_be_bytes()].concat()
    }

    /// When all of it is written.
    pub fn time(&self) -> i64 {
        self.time
    }

    /// Whether what was written then is older than the commit.
    fn removes(&self, time: i64) -> bool {
        !self.is_copied || time < self.time
    }
}

/// An id in as many bytes for each, in the order of ids.
pub fn id_bytes(id: TransactionId) -> Cell {
    [&id.origin.0.to_be_bytes()[..], &id.sequence.to_be_bytes()].concat()
}

/// Makes the mutations of data.
///
/// # Errors
///
/// When a write does not fit what is declared.
pub fn build(
    layout: &Layout,
    overlay: &Overlay,
    found: &Fetched,
    dots: &Dots,
) -> Result<Vec<Change>, String> {
    let mut build = Build { layout, dots, changes: Vec::new() };
    for (object, changes) in overlay.objects() {
        build.object(object, changes, found)?;
    }
    for row in overlay.added_rows() {
        build.witness(row)?;
    }
    Ok(build.changes)
}

struct Build<'a> {
    layout: &'a Layout,
    dots: &'a Dots,
    changes: Vec<Change>,
}

impl Build<'_> {
    fn object(&mut self, object: &Ref, changes: &Changes, found: &Fetched) -> Result<(), String> {
        let cell = self.layout.object(object)?;
        if changes.hidden.is_some() {
            let gone = found.rows(&cell, &Part::Object).iter();
            let gone = gone.filter(|row| row.field != ROWS && row.dot != DELETED);
            gone.for_each(|row| self.remove(&cell, row));
            self.put(&cell, HEADER, Cell::new(), DELETED.to_vec(), &[]);
        }
        if changes.exists {
            self.put(&cell, HEADER, Cell::new(), Cell::new(), &[]);
        }
        for (index, (change, _)) in &changes.fields {
            let field = field(self.layout, object, *index)?;
            self.field(&cell, field, change, found)?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        object: &Cell,
        field: Found<'_>,
        change: &FieldChange,
        found: &Fetched,
    ) -> Result<(), String> {
        let name = &*field.field.name;
        let whole = Part::Field(name.to_owned());
        match change {
            FieldChange::Register(value) => {
                self.forget_chunks(found.rows(object, &whole));
                let value = self.layout.value(field, value)?;
                self.put(object, name, Cell::new(), Cell::new(), &value);
            }
            FieldChange::Counter(amount) => {
                let dot = self.dots.dot(0);
                self.put(object, name, Cell::new(), dot, &amount.to_be_bytes());
            }
            FieldChange::Log(is_cleared, lines) => {
                if *is_cleared {
                    self.remove_all(object, found.rows(object, &whole));
                }
                for (line, position) in lines.iter().zip(0..) {
                    let value = self.layout.value(field, line)?;
                    let dot = self.dots.dot(position);
                    self.put(object, name, Cell::new(), dot, &value);
                }
            }
            FieldChange::Set(is_cleared, elements) => {
                if *is_cleared {
                    self.remove_all(object, found.rows(object, &whole));
                }
                for (element, is_in) in elements {
                    let element = self.layout.element(field, element)?;
                    let part = Part::Element(name.to_owned(), element.name.clone());
                    self.remove_all(object, found.rows(object, &part));
                    if *is_in {
                        let value = payload(&element, &[]);
                        self.put(object, name, element.name, self.dots.dot(0), &value);
                    }
                }
            }
            FieldChange::Map(is_cleared, entries) => {
                if *is_cleared {
                    self.remove_all(object, found.rows(object, &whole));
                }
                for (key, value) in entries {
                    let key = self.layout.element(field, key)?;
                    let part = Part::Element(name.to_owned(), key.name.clone());
                    let old = found.rows(object, &part);
                    let Some(value) = value else {
                        self.remove_all(object, old);
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

    fn put(&mut self, object: &Cell, field: &str, element: Cell, dot: Cell, value: &[u8]) {
        let at = Place { object: object.clone(), field: field.to_owned(), element, dot };
        let time = self.dots.time;
        let (value, chunks) = cell(&at, value, time);
        self.changes.extend(chunks);
        self.changes.push(Change::Put { at, value, time });
    }

    /// Removes a row as it was seen.
    fn remove(&mut self, object: &Cell, row: &Row) {
        if !self.dots.removes(row.time) {
            return;
        }
        let at = Place {
            object: object.clone(),
            field: row.field.clone(),
            element: row.element.clone(),
            dot: row.dot.clone(),
        };
        self.changes.push(Change::Drop { at, time: row.time });
        self.changes.extend(drop_chunks(&row.value, row.time));
    }

    fn remove_all(&mut self, object: &Cell, rows: &[Row]) {
        rows.iter().for_each(|row| self.remove(object, row));
    }

    /// Removes the chunks of what is written over.
    fn forget_chunks(&mut self, rows: &[Row]) {
        for row in rows.iter().filter(|row| row.time < self.dots.time) {
            self.changes.extend(drop_chunks(&row.value, row.time));
        }
    }

    fn witness(&mut self, row: &WitnessRow) -> Result<(), String> {
        let object = self.layout.place(row.object.as_ref())?;
        let (value, time) = (encode_witness(row), self.dots.time);
        let (id, digest) = (id_bytes(row.id), Sha256::digest(&value).to_vec());
        let at = row_place(object.clone(), id.clone(), digest.clone());
        self.changes.push(Change::Put { at, value: value.clone(), time });
        self.changes.push(Change::PutRow { id, place: (object, digest), value, time });
        Ok(())
    }
}

/// Where a witness row stands beside its object.
pub fn row_place(object: Cell, id: Cell, digest: Cell) -> Place {
    Place { object, field: ROWS.to_owned(), element: id, dot: digest }
}

/// What the row of an element holds: its text, where its name is a digest, and its value.
fn payload(element: &Element, value: &[u8]) -> Cell {
    match &element.text {
        None => value.to_vec(),
        Some(text) => [&(text.len() as u32).to_be_bytes()[..], text, value].concat(),
    }
}
