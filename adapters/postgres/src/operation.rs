//! Declared queries and commands: SQL from the binding, checked against the server at the start.
//!
//! Parameters `$1`, `$2` and so on have the SQL types of the declared parameters. A `list` has one
//! item for each row. An `option` is none if there is no row or a null. A struct has its fields'
//! names as columns. Every other result is the first column of the only row.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{BuiltinQuery, Name, Ref, Schema, Type, Value, json};
use mingle_store::{Refusal, StoreOperation};
use tokio_postgres::types::Type as SqlType;
use tokio_postgres::{Client, Statement};

use crate::error::message;
use crate::layout::Layout;
use crate::limits::QUERY_ROWS_MAX;
use crate::session::Step;
use crate::wire::{self, Param, Row, cell};

mod drawn;
mod indexed;

use drawn::Drawn;
pub use indexed::Indexed;

/// The operations of a store, by name.
pub type Operations = BTreeMap<Name, Operation>;

/// One declared operation.
#[derive(Clone, Debug)]
pub struct Operation {
    name: Name,
    /// True if the operation writes.
    pub is_command: bool,
    parameters: Vec<(Name, Type)>,
    result: Option<Type>,
    body: Option<Arc<str>>,
    types: Arc<[SqlType]>,
    /// What it asks if no program declares it.
    builtin: Option<Arc<Builtin>>,
}

/// A query that no program declares.
#[derive(Debug)]
enum Builtin {
    Index(Indexed),
    Draw(Drawn),
}

impl Operation {
    /// Creates the operation from its declaration, with its body from the binding.
    ///
    /// # Errors
    ///
    /// When it reads an index of an object or a field that does not live here.
    pub fn new(layout: &Layout, name: &Name, declared: &StoreOperation) -> Result<Self, String> {
        let schema = &layout.schema;
        let types = declared.parameters.iter().map(|(_, t)| parameter_type(schema, t)).collect();
        let builtin = match &declared.builtin {
            Some(BuiltinQuery::Index(read)) => Some(Builtin::Index(Indexed::new(layout, read)?)),
            Some(BuiltinQuery::Draw(kind)) => Some(Builtin::Draw(Drawn::new(layout, kind)?)),
            None => None,
        };
        Ok(Self {
            name: name.clone(),
            is_command: declared.is_command,
            parameters: declared.parameters.clone(),
            result: declared.result.clone(),
            body: declared.body.as_deref().map(Arc::from),
            types,
            builtin: builtin.map(Arc::new),
        })
    }

    /// Returns the operation called `name`.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn find<'a>(operations: &'a Operations, name: &Name) -> Result<&'a Self, String> {
        operations.get(name).ok_or_else(|| format!("no operation {name} is declared"))
    }

    /// Checks that it writes.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub fn check_command(&self) -> Result<(), String> {
        if self.is_command {
            return Ok(());
        }
        Err(format!("operation {} is a query, not a command", self.name))
    }

    /// Returns the kind of object whose keys it draws.
    pub fn draws(&self) -> Option<&Name> {
        match self.builtin.as_deref() {
            Some(Builtin::Draw(drawn)) => Some(&drawn.kind),
            _ => None,
        }
    }

    /// Returns the statement for these arguments.
    ///
    /// # Errors
    ///
    /// When it has no body, or the arguments do not fit.
    pub fn step(&self, layout: &Layout, arguments: &[Value]) -> Result<Step, Refusal> {
        let name = &self.name;
        match self.builtin.as_deref() {
            Some(Builtin::Index(index)) => return index.step(layout, arguments),
            Some(Builtin::Draw(drawn)) => return Ok(drawn.step()),
            None => {}
        }
        let Some(body) = &self.body else {
            return Err(format!(
                "operation {name} has no body; give it one in the store's binding, in SQL"
            )
            .into());
        };
        let (given, wanted) = (arguments.len(), self.parameters.len());
        if given != wanted {
            return Err(format!("operation {name} takes {wanted} arguments, not {given}").into());
        }
        let mut params = Vec::with_capacity(given);
        for ((parameter, value_type), value) in self.parameters.iter().zip(arguments) {
            let what = || format!("parameter {parameter} of operation {name}");
            layout.check(value, value_type, what)?;
            let param = encode(&layout.schema, value, value_type);
            params.push(param.map_err(|why| format!("{}: {why}", what()))?);
        }
        Ok(Step { types: Arc::clone(&self.types), ..Step::new(Arc::clone(body), params) })
    }

    /// Returns the operation's result from the rows of its statement.
    ///
    /// # Errors
    ///
    /// When there are too many rows, or too few.
    pub fn result(&self, layout: &Layout, rows: &[Row]) -> Result<Value, String> {
        let name = &self.name;
        let failed = |why: String| format!("operation {name}: {why}");
        match self.builtin.as_deref() {
            Some(Builtin::Index(index)) => return index.result(layout, rows).map_err(failed),
            Some(Builtin::Draw(drawn)) => return drawn.result(rows).map_err(failed),
            None => {}
        }
        let schema = &layout.schema;
        let Some(result) = &self.result else { return Ok(Value::NONE) };
        if let Type::List(inner) = result {
            if rows.len() > QUERY_ROWS_MAX {
                return Err(failed(format!("gives more than {QUERY_ROWS_MAX} rows")));
            }
            let items: Result<Vec<Value>, String> =
                rows.iter().map(|row| row_value(schema, row, inner)).collect();
            return items.map(Value::list).map_err(failed);
        }
        match (rows, result) {
            ([row], _) => row_value(schema, row, result).map_err(failed),
            ([], Type::Option(_)) => Ok(Value::NONE),
            _ => Err(failed(format!("gives {} rows where one is expected", rows.len()))),
        }
    }

    /// Checks the body against the server.
    ///
    /// # Errors
    ///
    /// The part that does not fit.
    pub async fn check(&self, client: &Client, schema: &Schema, own: &str) -> Result<(), String> {
        let plain_text = match self.builtin.as_deref() {
            Some(Builtin::Index(index)) => Some(index.plain_text()),
            Some(Builtin::Draw(drawn)) => Some(drawn.text().to_owned()),
            None => None,
        };
        if let Some(text) = plain_text {
            let prepared = client.prepare(&text).await;
            return prepared.map(|_| ()).map_err(|error| message(&error));
        }
        let Some(body) = &self.body else { return Ok(()) };
        let prepared = client.prepare_typed(body, &self.types).await;
        let statement = prepared.map_err(|error| message(&error))?;
        if self.is_command {
            self.check_tables(client, body, own).await?;
        }
        let (found, wanted) = (statement.params(), &self.types);
        if found.len() != wanted.len() {
            let (found, wanted) = (found.len(), wanted.len());
            return Err(format!(
                "the body takes {found} parameters, but the declaration has {wanted}"
            ));
        }
        for ((found, wanted), (name, declared)) in
            found.iter().zip(wanted.iter()).zip(&self.parameters)
        {
            if found != wanted {
                return Err(format!(
                    "parameter {name} is declared as {declared}, which is {wanted}, but the body \
                     takes {found}"
                ));
            }
        }
        match &self.result {
            None => Ok(()),
            Some(Type::List(inner) | Type::Option(inner)) => {
                check_columns(schema, &statement, inner)
            }
            Some(result) => check_columns(schema, &statement, result),
        }
    }
}

impl Operation {
    /// Checks that a command writes none of Mingle's own tables, whatever way it names them: the
    /// server locks the tables that a statement writes while it parses the statement. Tables that a
    /// statement locks only when it runs are found by name.
    async fn check_tables(&self, client: &Client, body: &str, own: &str) -> Result<(), String> {
        let run = async |sql: &str| client.batch_execute(sql).await;
        run("BEGIN").await.map_err(|error| message(&error))?;
        let locked = async {
            client.prepare_typed(body, &self.types).await?;
            client.query(WRITTEN, &[&own]).await
        };
        let locked = locked.await;
        run("ROLLBACK").await.map_err(|error| message(&error))?;
        let locked = locked.map_err(|error| message(&error))?;
        let named = is_utility(body).then(|| names(body).into_iter().find(|name| name == own));
        let written = locked.first().map(|row| row.get::<_, String>(0)).or(named.flatten());
        match written {
            None => Ok(()),
            Some(table) => Err(format!(
                "it writes {table}, which is the store's own: what is kept there is written by transactions alone"
            )),
        }
    }
}

/// Selects the tables of a schema that this transaction has locked for more than reading.
const WRITTEN: &str = "\
SELECT c.oid::regclass::text FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation \
JOIN pg_namespace AS n ON n.oid = c.relnamespace \
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.mode <> 'AccessShareLock' \
AND c.relkind <> 'i' AND n.nspname = $1 ORDER BY 1";

/// True if the server does not analyse the statement before it runs it.
fn is_utility(body: &str) -> bool {
    let first = names(body).into_iter().next().unwrap_or_default();
    !["select", "insert", "update", "delete", "merge", "values", "with", "table"]
        .contains(&first.as_str())
}

/// Returns the names and words of a statement as the server sees them: in lower case unless quoted.
/// String literals and comments are skipped.
fn names(body: &str) -> Vec<String> {
    let (mut found, mut chars) = (Vec::new(), body.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '-' if chars.peek() == Some(&'-') => {
                chars.by_ref().find(|c| *c == '\n');
            }
            '/' if chars.peek() == Some(&'*') => {
                let mut last = ' ';
                chars.by_ref().find(|c| std::mem::replace(&mut last, *c) == '*' && *c == '/');
            }
            '\'' => {
                chars.by_ref().find(|c| *c == '\'');
            }
            '"' => {
                let mut name = String::new();
                while let Some(c) = chars.next() {
                    if c == '"' && chars.next_if_eq(&'"').is_none() {
                        break;
                    }
                    name.push(c);
                }
                found.push(name);
            }
            c if c.is_alphabetic() || c == '_' => {
                let mut name = String::from(c);
                let is_part = |c: &char| c.is_alphanumeric() || *c == '_' || *c == '$';
                while let Some(c) = chars.next_if(is_part) {
                    name.push(c);
                }
                found.push(name.to_lowercase());
            }
            _ => {}
        }
    }
    found
}

/// Returns the SQL type of a parameter.
fn parameter_type(schema: &Schema, value_type: &Type) -> SqlType {
    match value_type {
        Type::Bool => SqlType::BOOL,
        Type::Int => SqlType::INT8,
        Type::Float => SqlType::FLOAT8,
        Type::String => SqlType::TEXT,
        Type::Bytes => SqlType::BYTEA,
        Type::Time => SqlType::TIMESTAMPTZ,
        Type::Date => SqlType::DATE,
        Type::Decimal => SqlType::NUMERIC,
        Type::Ref(kind) => match schema.objects.get(kind) {
            Some(object) => parameter_type(schema, &object.key_type),
            None => SqlType::JSON,
        },
        Type::Option(inner) if !matches!(**inner, Type::Option(_)) => parameter_type(schema, inner),
        _ => SqlType::JSON,
    }
}

fn encode(schema: &Schema, value: &Value, value_type: &Type) -> Result<Param, String> {
    Ok(match (value, value_type) {
        (Value::Time(time), _) => wire::moment_param(*time)?,
        (Value::Date(day), _) => wire::day_param(*day)?,
        (Value::Ref(object), Type::Ref(kind)) if schema.objects.contains_key(kind) => {
            encode(schema, object.key(), &schema.objects[kind].key_type)?
        }
        (Value::Option(None), _) => Param::Null,
        (Value::Option(Some(value)), Type::Option(inner))
            if !matches!(**inner, Type::Option(_)) =>
        {
            encode(schema, value, inner)?
        }
        (value, value_type) => wire::param(value)
            .unwrap_or_else(|| Param::Text(json::to_text(schema, value, value_type))),
    })
}

/// Checks that the columns of a statement fit one row of a result.
fn check_columns(schema: &Schema, statement: &Statement, result: &Type) -> Result<(), String> {
    let columns = statement.columns();
    if let Type::Struct(name) = result
        && let Some(declared) = schema.structs.get(name)
        && !matches!(columns, [only] if is_json(only.type_()))
    {
        for (field, inner) in &declared.fields {
            let column = columns.iter().find(|column| *column.name() == **field);
            let column = column.ok_or_else(|| format!("the result has no column {field}"))?;
            check_type(schema, field, column.type_(), inner)?;
        }
        return Ok(());
    }
    match columns {
        [] => Err(format!("it gives nothing, but {result} is declared")),
        [only] => check_type(schema, only.name(), only.type_(), result),
        _ => Err(format!("it gives {} columns where one is expected", columns.len())),
    }
}

fn is_json(sql_type: &SqlType) -> bool {
    matches!(*sql_type, SqlType::JSON | SqlType::JSONB)
}

fn check_type(schema: &Schema, column: &str, found: &SqlType, wanted: &Type) -> Result<(), String> {
    let fitting: &[SqlType] = match wanted {
        Type::Bool => &[SqlType::BOOL],
        Type::Int => &[SqlType::INT2, SqlType::INT4, SqlType::INT8],
        Type::Float => &[SqlType::FLOAT4, SqlType::FLOAT8],
        Type::String => &[SqlType::TEXT, SqlType::VARCHAR, SqlType::BPCHAR, SqlType::NAME],
        Type::Bytes => &[SqlType::BYTEA],
        Type::Time => &[SqlType::TIMESTAMPTZ, SqlType::TIMESTAMP],
        Type::Date => &[SqlType::DATE],
        Type::Decimal => &[SqlType::NUMERIC],
        Type::Ref(kind) if schema.objects.contains_key(kind) => {
            return check_type(schema, column, found, &schema.objects[kind].key_type);
        }
        Type::Option(inner) => return check_type(schema, column, found, inner),
        _ => &[SqlType::JSON, SqlType::JSONB],
    };
    if fitting.contains(found) {
        return Ok(());
    }
    let names: Vec<String> = fitting.iter().map(ToString::to_string).collect();
    Err(format!(
        "column {column} is {found}, but {wanted} needs {}; a cast in the body may help",
        names.join(" or ")
    ))
}

fn row_value(schema: &Schema, row: &Row, value_type: &Type) -> Result<Value, String> {
    if let Type::Option(inner) = value_type {
        let is_null = cell(row, 0).is_none() && row.len() == 1;
        return if is_null {
            Ok(Value::NONE)
        } else {
            Ok(Value::some(row_value(schema, row, inner)?))
        };
    }
    if let Type::Struct(name) = value_type
        && let Some(declared) = schema.structs.get(name)
        && !(row.len() == 1 && is_json(&row.column_type(0)))
    {
        let names = row.names();
        let field = |(field, inner): &(Name, Type)| {
            let at = names.iter().position(|name| *name == &**field);
            let at = at.ok_or_else(|| format!("the result has no column {field}"))?;
            column_value(schema, row, at, inner)
        };
        let fields: Result<Vec<Value>, String> = declared.fields.iter().map(field).collect();
        return Ok(Value::Struct(fields?.into()));
    }
    column_value(schema, row, 0, value_type)
}

fn column_value(
    schema: &Schema,
    row: &Row,
    index: usize,
    value_type: &Type,
) -> Result<Value, String> {
    let name = || row.names().get(index).copied().unwrap_or_default().to_owned();
    let Some(raw) = cell(row, index) else {
        return match value_type {
            Type::Option(_) => Ok(Value::NONE),
            _ => Err(format!("column {} is null, but {value_type} is declared", name())),
        };
    };
    let misfit = || format!("column {} holds no {value_type}", name());
    match value_type {
        Type::Option(inner) => Ok(Value::some(column_value(schema, row, index, inner)?)),
        Type::Ref(kind) if schema.objects.contains_key(kind) => {
            let key = column_value(schema, row, index, &schema.objects[kind].key_type)?;
            Ok(Value::Ref(Ref::new(kind.clone(), key)))
        }
        Type::Struct(_) | Type::List(_) | Type::Ref(_) | Type::Json => {
            // A `jsonb` value starts with a version byte.
            let is_binary = row.column_type(index) == SqlType::JSONB;
            let text = raw.get(usize::from(is_binary)..).unwrap_or_default();
            json::from_text(schema, text, value_type)
                .map_err(|error| format!("{}: {error}", misfit()))
        }
        Type::Time => wire::moment(raw)
            .map(Value::Time)
            .map_err(|found| format!("column {} holds {found}", name())),
        Type::Decimal => crate::numeric::decode(raw)
            .map(Value::Decimal)
            .map_err(|found| format!("column {} holds {found}", name())),
        Type::Date => wire::day(raw)
            .map(Value::Date)
            .map_err(|found| format!("column {} holds {found}", name())),
        _ => decode(&row.column_type(index), raw, value_type).ok_or_else(misfit),
    }
}

/// Decodes a scalar of any type that [`check_type`] accepts.
fn decode(found: &SqlType, raw: &[u8], wanted: &Type) -> Option<Value> {
    match *found {
        SqlType::INT2 => Some(Value::Int(i16::from_be_bytes(raw.try_into().ok()?).into())),
        SqlType::INT4 => Some(Value::Int(i32::from_be_bytes(raw.try_into().ok()?).into())),
        SqlType::FLOAT4 => {
            let widened = f64::from(f32::from_be_bytes(raw.try_into().ok()?));
            Some(Value::from(crate::mapping::form::of_real(widened)))
        }
        // Keys are given without the blanks that fill a `character(n)` up.
        SqlType::BPCHAR => Some(Value::from(std::str::from_utf8(raw).ok()?.trim_end_matches(' '))),
        _ => wire::scalar(wanted, raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_texts_are_not() {
        let body = "TRUNCATE /* own */ \"Own\".t, OWN.\"a\"\"b\" -- own\n; SELECT 'own', x_1$";
        assert_eq!(names(body), ["truncate", "Own", "t", "own", "a\"b", "select", "x_1$"]);
        assert!(is_utility(body) && !is_utility(" -- x\n with a AS (SELECT 1) DELETE FROM a"));
    }
}
