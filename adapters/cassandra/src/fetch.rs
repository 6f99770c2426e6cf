//! Reads rows, all that one batch needs at once.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use mingle_model::Ref;
use scylla::statement::Consistency;
use scylla::value::{CqlValue, Row as CqlRow};

use crate::bind::{blob, text};
use crate::change::{Content, RecordPlace, content};
use crate::error::Failed;
use crate::layout::{Cell, Layout, ROWS};
use crate::limits::{AT_ONCE, ELEMENTS_MAX, RECORDS_MAX};
use crate::link::Site;
use crate::mapping;
use crate::statement::Statement;

/// The part of an object to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A field, whole.
    Field(String),
    /// One element or key of a field.
    Element(String, Cell),
    /// A field without its values.
    Names(String),
    /// The last rows of a field, at most this many.
    Last(String, i32),
    /// The first rows of a field, at most this many.
    First(String, i32),
    /// Any one row of data.
    Any,
    /// All rows.
    Object,
}

/// The objects and parts to read.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    parts: BTreeSet<(Cell, Part)>,
    /// The objects in tables of the application.
    mapped: BTreeMap<Cell, Ref>,
}

impl Asked {
    /// Asks for a part of an object.
    pub fn add(&mut self, object: &Cell, part: Part) {
        self.parts.insert((object.clone(), part));
    }

    /// Notes an object if it is in tables of the application.
    pub fn note(&mut self, layout: &Layout, cell: &Cell, object: &Ref) {
        if layout.mapped(object).is_some() {
            self.mapped.insert(cell.clone(), object.clone());
        }
    }

    /// Removes a part from the request; true if it was in it.
    pub fn remove(&mut self, object: &Cell, part: Part) -> bool {
        self.parts.remove(&(object.clone(), part))
    }

    /// Removes the parts that `known` holds from the request, and returns them.
    pub fn take_known(&mut self, known: &Found) -> Found {
        let mut taken = Found::default();
        self.parts.retain(|part| match known.rows.get(part) {
            Some(rows) => taken.rows.insert(part.clone(), rows.clone()).is_some(),
            None => true,
        });
        taken
    }
}

/// A row of the table `data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The field.
    pub field: String,
    /// The element or key; empty for other shapes.
    pub element: Cell,
    /// The dot that tells several rows apart.
    pub dot: Cell,
    /// The value; empty if the query did not ask for it.
    pub value: Cell,
    /// The timestamp of its write.
    pub time: i64,
}

/// The rows found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    rows: BTreeMap<(Cell, Part), Vec<Row>>,
}

impl Found {
    /// Returns the result for a part that is known to have no rows.
    pub fn none_of(object: &Cell, part: Part) -> Self {
        Self { rows: BTreeMap::from([((object.clone(), part), Vec::new())]) }
    }

    /// Returns the rows of a part.
    pub fn rows(&self, object: &Cell, part: &Part) -> &[Row] {
        self.rows.get(&(object.clone(), part.clone())).map_or(&[], Vec::as_slice)
    }

    /// Returns all rows of all parts.
    pub fn all(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().flatten()
    }

    /// Adds rows from another source, or later rows.
    pub fn join(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }

    /// True if any value is in chunks.
    pub fn is_chunked(&self) -> bool {
        self.all().any(is_chunked)
    }

    /// Returns the latest timestamp in it.
    pub fn latest(&self) -> i64 {
        self.all().map(|row| row.time).max().unwrap_or(0)
    }
}

/// One query, and the parts that it answers.
struct Query {
    object: Cell,
    statement: Statement,
    values: Vec<CqlValue>,
    parts: Vec<Part>,
}

/// Reads all parts of the request.
pub async fn fetch(site: &Site, layout: &Layout, asked: &Asked) -> Result<Found, Failed> {
    let (own, others) = try_join(fetch_own(site, asked), fetch_mapped(site, layout, asked)).await?;
    let mut all = own;
    for ((object, part), rows) in others {
        let known = all.rows.entry((object, part.clone())).or_default();
        if !matches!(part, Part::Any | Part::Object) {
            known.clear();
        }
        known.extend(rows);
    }
    Ok(all)
}

/// Reads rows from tables of the application.
async fn fetch_mapped(
    site: &Site,
    layout: &Layout,
    asked: &Asked,
) -> Result<Vec<((Cell, Part), Vec<Row>)>, Failed> {
    let mut fetching = Vec::new();
    for (cell, part) in &asked.parts {
        let Some(object) = asked.mapped.get(cell) else { continue };
        let Some(mapped) = layout.mapped(object) else { continue };
        let is_there = match part {
            Part::Field(field)
            | Part::Element(field, _)
            | Part::Names(field)
            | Part::Last(field, _)
            | Part::First(field, _) => mapped.holds(field),
            Part::Any | Part::Object => true,
        };
        if is_there {
            fetching.push(async move {
                let rows = mapping::rows(site, layout, mapped, object, part).await?;
                Ok::<_, Failed>(((cell.clone(), part.clone()), rows))
            });
        }
    }
    stream::iter(fetching).buffer_unordered(AT_ONCE).try_collect().await
}

async fn fetch_own(site: &Site, asked: &Asked) -> Result<Found, Failed> {
    fetch_at(site, asked, None).await
}

/// Reads rows of the store's own tables at all replicas; each replica then gets the rows it lacks.
pub async fn fetch_everywhere(site: &Site, asked: &Asked) -> Result<Found, Failed> {
    fetch_at(site, asked, Some(Consistency::All)).await
}

async fn fetch_at(
    site: &Site,
    asked: &Asked,
    consistency: Option<Consistency>,
) -> Result<Found, Failed> {
    let queries = queries(asked);
    let ask = |query: Query| async move {
        let rows = site.rows_at(query.statement, query.values, consistency).await?;
        let rows = rows.into_iter().map(row).collect::<Option<Vec<Row>>>();
        let rows = rows.ok_or_else(|| Failed::No("a row of `data` is not what it was".into()))?;
        Ok::<_, Failed>((query.object, query.parts, rows))
    };
    let found: Vec<_> =
        stream::iter(queries).map(ask).buffer_unordered(AT_ONCE).try_collect().await?;
    let mut all = Found::default();
    for (object, parts, rows) in found {
        for part in &parts {
            all.rows.entry((object.clone(), part.clone())).or_default();
        }
        for row in rows {
            let part = match &parts[..] {
                [only] => only.clone(),
                [Part::Element(..), ..] => Part::Element(row.field.clone(), row.element.clone()),
                _ => Part::Field(row.field.clone()),
            };
            all.rows.entry((object.clone(), part)).or_default().push(row);
        }
    }
    Ok(all)
}

fn queries(asked: &Asked) -> Vec<Query> {
    let mut queries = Vec::new();
    let mut fields: BTreeMap<&Cell, Vec<Part>> = BTreeMap::new();
    let mut elements: BTreeMap<(&Cell, &str), Vec<Part>> = BTreeMap::new();
    for (object, part) in &asked.parts {
        let mut single = |statement, values: Vec<CqlValue>| {
            let values = [vec![blob(object)], values].concat();
            let parts = vec![part.clone()];
            queries.push(Query { object: object.clone(), statement, values, parts });
        };
        match part {
            Part::Field(_) => fields.entry(object).or_default().push(part.clone()),
            Part::Element(field, _) => {
                elements.entry((object, field)).or_default().push(part.clone());
            }
            Part::Names(field) => single(Statement::Names, vec![text(field)]),
            Part::Last(field, most) => {
                single(Statement::Last, vec![text(field), CqlValue::Int(*most)]);
            }
            Part::First(field, most) => {
                single(Statement::First, vec![text(field), CqlValue::Int(*most)]);
            }
            Part::Any => single(Statement::Any, Vec::new()),
            Part::Object => single(Statement::Object, Vec::new()),
        }
    }
    for (object, parts) in fields {
        let names = parts.iter().filter_map(|part| match part {
            Part::Field(name) => Some(text(name)),
            _ => None,
        });
        let values = vec![blob(object), CqlValue::List(names.collect())];
        queries.push(Query { object: object.clone(), statement: Statement::Fields, values, parts });
    }
    for ((object, field), parts) in elements {
        for parts in parts.chunks(ELEMENTS_MAX) {
            let names = parts.iter().filter_map(|part| match part {
                Part::Element(_, name) => Some(blob(name)),
                _ => None,
            });
            let values = vec![blob(object), text(field), CqlValue::List(names.collect())];
            let (object, parts) = (object.clone(), parts.to_vec());
            queries.push(Query { object, statement: Statement::Elements, values, parts });
        }
    }
    queries
}

fn row(row: CqlRow) -> Option<Row> {
    let mut columns = row.columns;
    let time = columns.pop()?.and_then(|time| time.as_bigint()).unwrap_or(0);
    let mut columns = columns.into_iter();
    let field = columns.next()??.into_string()?;
    let (element, dot) = (bytes(columns.next()?)?, bytes(columns.next()?)?);
    let value = columns.next().and_then(bytes).unwrap_or_default();
    Some(Row { field, element, dot, value, time })
}

/// Returns the bytes of a column.
pub fn bytes(column: Option<CqlValue>) -> Option<Cell> {
    match column? {
        CqlValue::Blob(bytes) => Some(bytes),
        CqlValue::Empty => Some(Cell::new()),
        _ => None,
    }
}

/// Replaces references to chunks by the long values; false if a chunk is missing because the value
/// was just overwritten.
pub async fn complete(site: &Site, found: &mut Found) -> Result<bool, Failed> {
    let rows = found
        .rows
        .iter_mut()
        .filter(|((_, part), _)| !matches!(part, Part::Names(_)))
        .flat_map(|(_, rows)| rows)
        .filter(|row| is_chunked(row));
    let filling: Vec<_> = rows.map(|row| fill(site, row)).collect();
    let filled: Vec<bool> = stream::iter(filling).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(filled.into_iter().all(|is_there| is_there))
}

/// True if the row refers to a value in chunks.
fn is_chunked(row: &Row) -> bool {
    row.field != ROWS && matches!(content(&row.value), Some(Content::Chunked(..)))
}

async fn fill(site: &Site, row: &mut Row) -> Result<bool, Failed> {
    let Some(Content::Chunked(id, count)) = content(&row.value) else { return Ok(true) };
    // The same form as a value that is in its cell.
    let mut value = vec![0];
    for part in 0..count {
        let found = site.rows(Statement::Chunk, vec![blob(id), CqlValue::Int(part)]).await?;
        let chunk = found.into_iter().next().and_then(|row| row.columns.into_iter().next());
        let Some(chunk) = chunk.and_then(bytes) else { return Ok(false) };
        value.extend(chunk);
    }
    row.value = value;
    Ok(true)
}

/// A stored record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its value.
    pub value: Cell,
    /// The timestamp of its write.
    pub time: i64,
    /// The mutations that follow it, unless they are done.
    pub redo: Option<Cell>,
    /// The timestamp of its last change.
    pub touched: i64,
}

/// Returns the records that exist.
pub async fn records(
    site: &Site,
    places: &[RecordPlace],
) -> Result<BTreeMap<RecordPlace, Record>, Failed> {
    let mut blocks: BTreeMap<(&str, &Cell), Vec<&Cell>> = BTreeMap::new();
    for at in places {
        blocks.entry((&at.kind, &at.head)).or_default().push(&at.tail);
    }
    let mut asking = Vec::new();
    for ((kind, head), tails) in &blocks {
        for tails in tails.chunks(RECORDS_MAX) {
            let (statement, rest) = match tails {
                [one] => (Statement::Record, blob(one)),
                _ => {
                    let tails = tails.iter().map(|tail| blob(tail));
                    (Statement::Records, CqlValue::List(tails.collect()))
                }
            };
            asking.push(async move {
                let rows = site.rows(statement, vec![text(kind), blob(head), rest]).await?;
                Ok::<_, Failed>(rows.into_iter().filter_map(|row| record(kind, head, row)))
            });
        }
    }
    let found: Vec<_> = stream::iter(asking).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// Returns all records of a block.
pub async fn block(
    site: &Site,
    kind: &str,
    head: &Cell,
) -> Result<Vec<(RecordPlace, Record)>, Failed> {
    let rows = site.rows(Statement::Block, vec![text(kind), blob(head)]).await?;
    Ok(rows.into_iter().filter_map(|row| record(kind, head, row)).collect())
}

/// Returns one record, read at the given consistency.
pub async fn record_at(
    site: &Site,
    at: &RecordPlace,
    consistency: Option<Consistency>,
) -> Result<Option<Record>, Failed> {
    let values = vec![text(&at.kind), blob(&at.head), blob(&at.tail)];
    let rows = site.rows_at(Statement::Record, values, consistency).await?;
    let found = rows.into_iter().find_map(|row| record(&at.kind, &at.head, row));
    Ok(found.map(|(_, record)| record))
}

fn record(kind: &str, head: &Cell, row: CqlRow) -> Option<(RecordPlace, Record)> {
    let mut columns = row.columns.into_iter();
    let mut next = || columns.next().flatten();
    let tail = bytes(next())?;
    let value = bytes(next());
    let time = next().and_then(|time| time.as_bigint()).unwrap_or(0);
    let redo = bytes(next()).filter(|redo| !redo.is_empty());
    let is_settled = next().is_some();
    let settled = next().and_then(|time| time.as_bigint()).unwrap_or(0);
    let redo = redo.filter(|_| !is_settled);
    let at = RecordPlace { kind: kind.to_owned(), head: head.clone(), tail };
    Some((at, Record { value: value?, time, redo, touched: time.max(settled) }))
}
