//! Reads of indexes.
//!
//! At Mingle's own tables an index of the program is an index of the server, which the migration makes. At existing
//! tables the server uses the indexes that are there; `examine` says where none fits. Rows in which a column of the
//! index is null are not in it. Values are compared and ordered as the column does it: a collation of the database
//! decides the order of texts, but at Mingle's own tables that is the order of code points.

use std::sync::Arc;

use mingle_model::{IndexQuestion, IndexRead, Name, Ref, Value};
use mingle_store::Refusal;
use mingle_store::unique::twice;

use crate::codec::Codec;
use crate::layout::{Layout, Place};
use crate::mapping::MappedField;
use crate::mapping::column::Column;
use crate::mapping::joined::parts_of_ref;
use crate::session::Step;
use crate::wire::{Cells, Param, Row, cell, int};

/// A query over an index.
#[derive(Clone, Debug)]
pub struct Indexed {
    read: IndexRead,
    table: String,
    is_own: bool,
    /// The fields of the index: the columns of each.
    fields: Vec<Vec<Part>>,
    keys: Vec<Part>,
}

/// A column that a query compares, orders by, or reads.
#[derive(Clone, Debug)]
enum Part {
    Own { column: String, codec: Codec },
    Mapped(Column),
}

impl Part {
    /// Returns the expression that is compared.
    fn compared(&self) -> String {
        match self {
            Self::Own { column, codec } => codec.compared(column),
            Self::Mapped(column) => column.name.clone(),
        }
    }

    fn selected(&self) -> String {
        match self {
            Self::Own { column, codec } => codec.selected(column),
            Self::Mapped(column) => column.selected(),
        }
    }

    fn parameter(&self, number: usize) -> String {
        match self {
            Self::Own { codec: Codec::Json(_), .. } => format!("${number}::text"),
            Self::Own { codec, .. } => codec.parameter(number),
            Self::Mapped(column) => column.parameter(number),
        }
    }

    fn param(&self, layout: &Layout, value: &Value) -> Result<Param, Refusal> {
        match self {
            Self::Own { codec, .. } => Ok(codec.param(&layout.schema, &value.canonical())),
            Self::Mapped(column) => column.unit(layout, value),
        }
    }

    fn read(&self, layout: &Layout, cell: Option<&[u8]>) -> Result<Value, String> {
        match self {
            Self::Own { codec, .. } => codec.read(&layout.schema, cell),
            Self::Mapped(column) => column
                .read(layout, cell)?
                .ok_or_else(|| format!("column {} holds null where a key must be", column.name)),
        }
    }
}

/// Returns the format of the values by which an index finds a column: for a nullable one, that of its values.
fn inner(codec: Codec) -> Codec {
    match codec {
        Codec::Nullable(inner) => *inner,
        other => other,
    }
}

impl Indexed {
    /// Creates the query.
    ///
    /// # Errors
    ///
    /// When its object, or a field of it, does not live here.
    pub fn new(layout: &Layout, read: &IndexRead) -> Result<Self, String> {
        let kind = layout.kind(&read.object)?;
        let missing = |name: &Name| format!("object {} has no register {name}", read.object);
        let at = |name: &Name| {
            let at = kind.fields.iter().position(|field| field.name == *name);
            at.ok_or_else(|| missing(name))
        };
        let (table, is_own, keys): (&str, bool, Vec<Part>) = match &kind.place {
            Place::Own { table, key, key_codec } => {
                let key = Part::Own { column: key.clone(), codec: key_codec.clone() };
                (table, true, vec![key])
            }
            Place::Mapped(mapped) => {
                let keys = mapped.rows.keys.iter().cloned().map(Part::Mapped).collect();
                (&mapped.rows.table, false, keys)
            }
        };
        let parts = |name: &Name| {
            let at = at(name)?;
            let field = &kind.fields[at];
            match &kind.place {
                Place::Own { .. } => {
                    let codec = inner(layout.codec(field.inner()));
                    Ok(vec![Part::Own { column: field.column.clone(), codec }])
                }
                Place::Mapped(mapped) => match &mapped.fields[at] {
                    MappedField::Column { column, .. } => Ok(vec![Part::Mapped(column.clone())]),
                    MappedField::Joined { joined, .. } => {
                        Ok(joined.columns().cloned().map(Part::Mapped).collect())
                    }
                    _ => Err(missing(name)),
                },
            }
        };
        let fields = read.fields.iter().map(parts).collect::<Result<Vec<Vec<Part>>, String>>()?;
        Ok(Self { read: read.clone(), table: table.to_owned(), is_own, fields, keys })
    }

    /// Returns the columns of an existing table that the index compares, unquoted and by field, with its table; none for
    /// a table of Mingle's own.
    pub fn columns(&self) -> Option<(&str, Vec<Vec<String>>)> {
        let column = |part: &Part| match part {
            Part::Mapped(column) => Some(crate::name::unquoted(&column.name)),
            Part::Own { .. } => None,
        };
        let columns = |parts: &Vec<Part>| parts.iter().map(column).collect::<Option<_>>();
        let columns = self.fields.iter().map(columns).collect::<Option<_>>()?;
        Some((&self.table, columns))
    }

    /// Returns the index, as a message names it.
    pub fn name(&self) -> String {
        format!("{}.{}", self.read.object, self.read.index)
    }

    /// Returns the statement for these arguments.
    ///
    /// # Errors
    ///
    /// When the arguments do not fit, or a column cannot hold one of them.
    pub fn step(&self, layout: &Layout, arguments: &[Value]) -> Result<Step, Refusal> {
        let question = self.read.question(arguments)?;
        let (conditions, mut params) = self.conditions(layout, &question)?;
        params.push(Param::Int(i64::try_from(question.most).unwrap_or(i64::MAX)));
        Ok(Step::new(self.text(&conditions, question.is_reversed, params.len()), params))
    }

    /// Returns the statement without bounds, to check it against the server.
    pub fn plain_text(&self) -> String {
        let equal = self.fields.iter().take(self.read.equal).flatten();
        let mut conditions: Vec<String> = (1..)
            .zip(equal)
            .map(|(at, part)| format!("{} = {}", part.compared(), part.parameter(at)))
            .collect();
        let most = conditions.len() + 1;
        conditions.extend(self.presence());
        self.text(&conditions, false, most)
    }

    fn presence(&self) -> impl Iterator<Item = String> + '_ {
        let is_there = self.is_own.then(|| "mingle_exists".to_owned());
        let rest = self.fields[self.read.equal..].iter().flatten();
        is_there.into_iter().chain(rest.map(|part| format!("{} IS NOT NULL", part.compared())))
    }

    fn conditions(
        &self,
        layout: &Layout,
        question: &IndexQuestion<'_>,
    ) -> Result<(Vec<String>, Vec<Param>), Refusal> {
        let (mut conditions, mut params) = (Vec::new(), Vec::new());
        let mut compare = |part: &Part, operator: &str, value: &Value| {
            params.push(part.param(layout, value)?);
            conditions.push(format!(
                "{} {operator} {}",
                part.compared(),
                part.parameter(params.len())
            ));
            Ok::<(), Refusal>(())
        };
        for (parts, value) in self.fields.iter().zip(question.equal) {
            match &parts[..] {
                [part] => compare(part, "=", value)?,
                several => {
                    for (part, value) in several.iter().zip(parts_of_ref(value)) {
                        compare(part, "=", value)?;
                    }
                }
            }
        }
        // Refs have no order, so a field with bounds has one column.
        if let Some([next]) = self.fields.get(question.equal.len()).map(Vec::as_slice) {
            for (bound, operator) in [(question.from, ">="), (question.before, "<")] {
                if let Some(value) = bound {
                    compare(next, operator, value)?;
                }
            }
        }
        if let Some(after) = question.after {
            let parts = match after.key() {
                Value::Struct(parts) if !self.is_own => parts.to_vec(),
                single => vec![single.clone()],
            };
            let mut places = Vec::new();
            for (part, value) in self.keys.iter().zip(&parts) {
                params.push(part.param(layout, value)?);
                places.push(part.parameter(params.len()));
            }
            let keys: Vec<String> = self.keys.iter().map(Part::compared).collect();
            let operator = if question.is_reversed { "<" } else { ">" };
            conditions.push(format!("({}) {operator} ({})", keys.join(", "), places.join(", ")));
        }
        conditions.extend(self.presence());
        Ok((conditions, params))
    }

    fn text(&self, conditions: &[String], is_reversed: bool, most: usize) -> String {
        let wanted = match conditions {
            [] => String::new(),
            all => format!(" WHERE {}", all.join(" AND ")),
        };
        let table = &self.table;
        if self.read.counts {
            return format!(
                "SELECT count(*) FROM (SELECT FROM {table}{wanted} LIMIT ${most}::bigint) AS f"
            );
        }
        let selected: Vec<String> = self.keys.iter().map(Part::selected).collect();
        let direction = if is_reversed { " DESC" } else { "" };
        let rest = self.fields[self.read.equal..].iter().flatten().chain(&self.keys);
        let order: Vec<String> =
            rest.map(|part| format!("{}{direction}", part.compared())).collect();
        format!(
            "SELECT {} FROM {table}{wanted} ORDER BY {} LIMIT ${most}::bigint",
            selected.join(", "),
            order.join(", ")
        )
    }

    /// Returns the result from the rows of the statement.
    ///
    /// # Errors
    ///
    /// When a column holds no key.
    pub fn result(&self, layout: &Layout, rows: &[Row]) -> Result<Value, String> {
        if self.read.counts {
            return Ok(Value::Int(rows.first().map_or(0, |row| int(row, 0))));
        }
        let is_struct = !self.is_own
            && matches!(layout.kind(&self.read.object)?.key_type, mingle_model::Type::Struct(_));
        let object = |row: &Row| self.object(layout, row, is_struct);
        Ok(self.read.answer(rows.iter().map(object).collect::<Result<_, String>>()?))
    }

    /// Returns the object of a row, which begins with its key.
    fn object(&self, layout: &Layout, row: &impl Cells, is_struct: bool) -> Result<Ref, String> {
        let parts = self.keys.iter().enumerate();
        let parts = parts.map(|(at, part)| part.read(layout, cell(row, at)));
        let mut parts = parts.collect::<Result<Vec<Value>, String>>()?;
        let key = match (is_struct, parts.len()) {
            (false, 1) => parts.remove(0),
            _ => Value::Struct(Arc::from(parts)),
        };
        Ok(Ref::new(self.read.object.clone(), key))
    }

    /// Returns a statement that finds two objects with the same values in all fields, in a table of Mingle's own.
    pub fn twice_text(&self) -> String {
        let compared =
            |parts: &[&Part]| -> Vec<String> { parts.iter().map(|part| part.compared()).collect() };
        let (own, keys): (Vec<&Part>, Vec<&Part>) =
            (self.fields.iter().flatten().collect(), self.keys.iter().collect());
        let selected: Vec<String> = keys.iter().chain(&own).map(|part| part.selected()).collect();
        let fields = compared(&own);
        let mut present = fields.iter().map(|field| format!("{field} IS NOT NULL"));
        let present: Vec<String> =
            std::iter::once("mingle_exists".to_owned()).chain(&mut present).collect();
        let order = [&fields[..], &compared(&keys)].concat();
        format!(
            "SELECT {} FROM (SELECT *, count(*) OVER (PARTITION BY {}) AS mingle_alike FROM {} WHERE {}) AS f \
             WHERE mingle_alike > 1 ORDER BY {} LIMIT 2",
            selected.join(", "),
            fields.join(", "),
            self.table,
            present.join(" AND "),
            order.join(", ")
        )
    }

    /// Returns the reason why two objects break a `unique`, from the rows of that statement.
    ///
    /// # Errors
    ///
    /// When a column holds no value of the program.
    pub fn twice(
        &self,
        layout: &Layout,
        rows: &[tokio_postgres::Row],
    ) -> Result<Option<String>, String> {
        let [one, other] = rows else { return Ok(None) };
        let objects = (self.object(layout, one, false)?, self.object(layout, other, false)?);
        let values = self.fields.iter().flatten().enumerate();
        let values = values.map(|(at, part)| part.read(layout, cell(one, self.keys.len() + at)));
        let values = values.collect::<Result<Vec<Value>, String>>()?;
        Ok(Some(twice(&self.read, &values, (&objects.0, &objects.1))))
    }
}
