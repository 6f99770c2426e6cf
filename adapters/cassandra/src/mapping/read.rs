//! Rows from tables of the application, in the form of rows of the store's own table.

use mingle_model::{Ref, Type, Value};
use mingle_store::{Refusal, codec};
use scylla::value::{CqlValue, Row as CqlRow};

use super::write::in_place;
use super::{Collection, Column, Mapped};
use crate::error::Failed;
use crate::fetch::{Part, Row};
use crate::layout::{Cell, Found, Layout, text_of};
use crate::link::Site;
use crate::scalar;
use crate::writing::payload;

/// The field of the row that marks an object as having a row in its table.
pub const TABLE_ROW: &str = "!row";

/// Reads a part of a mapped object from tables of the application.
pub async fn rows(
    site: &Site,
    layout: &Layout,
    mapped: &Mapped,
    object: &Ref,
    part: &Part,
) -> Result<Vec<Row>, Failed> {
    let read = Reading { site, layout, mapped, object, is_named: false };
    match part {
        Part::Field(field) => read.field(field, None).await,
        Part::Names(field) => Reading { is_named: true, ..read }.field(field, None).await,
        Part::Element(field, name) => read.field(field, Some(name)).await,
        Part::Last(field, most) => {
            let mut rows = read.field(field, None).await?;
            rows.reverse();
            rows.truncate(usize::try_from(*most).unwrap_or(0));
            Ok(rows)
        }
        Part::First(field, most) => {
            let mut rows = read.field(field, None).await?;
            rows.truncate(usize::try_from(*most).unwrap_or(0));
            Ok(rows)
        }
        Part::Any => read.table_row().await,
        Part::Object => {
            let read = Reading { is_named: true, ..read };
            let mut all = read.table_row().await?;
            for field in mapped.registers.keys().chain(mapped.collections.keys()) {
                all.extend(read.field(field, None).await?);
            }
            let latest = all.iter().filter(|row| mapped.registers.contains_key(&row.field));
            let latest = latest.map(|row| row.time).max().unwrap_or(0);
            let table_row = all.iter_mut().filter(|row| row.field == TABLE_ROW);
            table_row.for_each(|row| row.time = latest);
            Ok(all)
        }
    }
}

struct Reading<'a> {
    site: &'a Site,
    layout: &'a Layout,
    mapped: &'a Mapped,
    object: &'a Ref,
    /// True if values are not needed: the rows are only counted or deleted.
    is_named: bool,
}

fn odd(why: impl Into<Refusal>) -> Failed {
    Failed::No(why.into())
}

impl Reading<'_> {
    fn key(&self, column: &Column) -> Result<Option<CqlValue>, Failed> {
        let kind = self.layout.kind(self.object).map_err(odd)?;
        let (schema, of) = (&self.layout.schema, &kind.key_type);
        let key = scalar::encode(schema, column.kind, self.object.key(), of);
        let place = format!("the key of {}", self.object);
        key.map(|key| key.bound()).map_err(|why| odd(in_place(why, column).within(&place)))
    }

    async fn table_row(&self) -> Result<Vec<Row>, Failed> {
        let (table, key) = (&self.mapped.table, &self.mapped.key);
        let text = format!("SELECT {0} FROM {table} WHERE {0} = ?", key.name);
        let (_, rows) = self.site.query(&text, vec![self.key(key)?]).await?;
        let row = |_: CqlRow| row(TABLE_ROW, Cell::new(), Cell::new(), &[], 0);
        Ok(rows.into_iter().map(row).collect())
    }

    async fn field(&self, name: &str, element: Option<&Cell>) -> Result<Vec<Row>, Failed> {
        let kind = self.layout.kind(self.object).map_err(odd)?;
        let field = kind.fields.iter().find(|field| *field.name == *name);
        let field = field.ok_or_else(|| odd(format!("no field {name}")))?;
        let found = Found { kind, field };
        match (self.mapped.registers.get(name), self.mapped.collections.get(name)) {
            (Some(column), _) => self.register(found, column).await,
            (None, Some(collection)) => self.collection(found, collection, element).await,
            (None, None) => Ok(Vec::new()),
        }
    }

    async fn register(&self, found: Found<'_>, column: &Column) -> Result<Vec<Row>, Failed> {
        let (table, key, name) = (&self.mapped.table, &self.mapped.key, &column.name);
        let text = format!("SELECT {name}, WRITETIME({name}) FROM {table} WHERE {} = ?", key.name);
        let (_, rows) = self.site.query(&text, vec![self.key(key)?]).await?;
        let mut all = Vec::new();
        for found_row in rows {
            let mut columns = found_row.columns.into_iter();
            let value = columns.next().flatten();
            let time = columns.next().flatten().and_then(|time| time.as_bigint()).unwrap_or(0);
            // A null is an absent value, which reads as the default.
            if value.is_some() {
                let value = self.text(found, found.inner(), value.as_ref())?;
                all.push(row(&found.field.name, Cell::new(), Cell::new(), &value, time));
            }
        }
        Ok(all)
    }

    /// Returns the value of an entry or line as text. The row exists, so a null is not an absent
    /// value.
    fn value(
        &self,
        found: Found<'_>,
        (collection, at): (&Collection, Option<&CqlValue>),
        column: Option<&CqlValue>,
    ) -> Result<Cell, Failed> {
        let of = found.inner();
        if column.is_some() || matches!(of, Type::Option(_)) {
            return self.text(found, of, column);
        }
        if self.is_named {
            return Ok(Cell::new());
        }
        let name = collection.value.as_ref().map_or("", |value| &value.name);
        let (table, clustering) = (&collection.table, &collection.clustering.name);
        let at = at.map_or_else(|| "null".to_owned(), ToString::to_string);
        Err(odd(format!(
            "{}.{}: column {name} of {table} is null where {} is {} and {clustering} is {at}, and the field \
             has values of type {of}; give them there, or declare option<{of}>",
            found.kind.name,
            found.field.name,
            collection.key.name,
            self.object.key(),
        )))
    }

    /// Returns a value of a column as text.
    fn text(&self, found: Found<'_>, of: &Type, column: Option<&CqlValue>) -> Result<Cell, Failed> {
        let schema = &self.layout.schema;
        let place = |why: String| odd(format!("{}.{}: {why}", found.kind.name, found.field.name));
        let value = scalar::decode(schema, column, of).map_err(place)?;
        codec::encode(schema, &value, of).map_err(place)
    }

    async fn collection(
        &self,
        found: Found<'_>,
        collection: &Collection,
        element: Option<&Cell>,
    ) -> Result<Vec<Row>, Failed> {
        let Collection { table, key, clustering, value } = collection;
        let value = value.as_ref().map(|value| &value.name);
        let more = value.map_or_else(String::new, |name| format!(", {name}, WRITETIME({name})"));
        let mut text =
            format!("SELECT {}{more} FROM {table} WHERE {} = ?", clustering.name, key.name);
        let mut values = vec![self.key(key)?];
        let is_log = matches!(found.field.field_type, mingle_model::FieldType::Log(_));
        if let Some(named) = element.and_then(|name| text_of(name)) {
            let schema = &self.layout.schema;
            let wanted = codec::decode(schema, named, found.unit()).map_err(odd)?;
            match scalar::encode(schema, clustering.kind, &wanted, found.unit()) {
                Ok(wanted) => {
                    text = format!("{text} AND {} = ?", clustering.name);
                    values.push(wanted.bound());
                }
                // A value that the column cannot hold is not in it.
                Err(_) => return Ok(Vec::new()),
            }
        }
        let (_, rows) = self.site.query(&text, values).await?;
        let mut all = Vec::new();
        for found_row in rows {
            let mut columns = found_row.columns.into_iter();
            let mut next = || columns.next().flatten();
            let (at, value) = (next(), next());
            let time = next().and_then(|time| time.as_bigint()).unwrap_or(0);
            all.push(if is_log {
                let dot = dot(at.as_ref());
                let line = self.value(found, (collection, at.as_ref()), value.as_ref())?;
                row(&found.field.name, Cell::new(), dot, &line, time)
            } else {
                let value = match collection.value {
                    Some(_) => self.value(found, (collection, at.as_ref()), value.as_ref())?,
                    None => Cell::new(),
                };
                let at: Value =
                    scalar::decode(&self.layout.schema, at.as_ref(), found.unit()).map_err(odd)?;
                let at = self.layout.element(found, &at).map_err(odd)?;
                let value = payload(&at, &value);
                row(&found.field.name, at.name, Cell::new(), &value, time)
            });
        }
        if let Some(element) = element {
            all.retain(|row| row.element == *element);
        }
        if is_log {
            // The table can have any clustering order; sort by the order of timeuuids.
            all.sort_by(|a, b| order(&a.dot).cmp(&order(&b.dot)));
        }
        Ok(all)
    }
}

/// Returns the bytes of a timeuuid.
fn dot(order: Option<&CqlValue>) -> Cell {
    match order {
        Some(CqlValue::Timeuuid(id)) => id.as_bytes().to_vec(),
        _ => Cell::new(),
    }
}

/// Returns the time of a timeuuid, and the rest of it.
fn order(dot: &[u8]) -> (u64, &[u8]) {
    let Some((head, rest)) = dot.split_first_chunk::<8>() else { return (0, dot) };
    let bits = u64::from_be_bytes(*head);
    let (low, middle, high) = (bits >> 32, (bits >> 16) & 0xffff, bits & 0x0fff);
    ((high << 48) | (middle << 32) | low, rest)
}

fn row(field: &str, element: Cell, dot: Cell, value: &[u8], time: i64) -> Row {
    let value = [&[0], value].concat();
    Row { field: field.to_owned(), element, dot, value, time }
}
