//! Declared queries and commands: one statement of CQL each, with `$1`, `$2` … in place of the
//! arguments.

use std::collections::BTreeMap;

use mingle_model::{Name, Schema, Type, Value};
use mingle_store::{Refusal, StoreOperation, StoreSchema};
use scylla::client::session::Session;
use scylla::value::Row;

use crate::change::Change;
use crate::config::OpenError;
use crate::cql_type;
use crate::scalar::{self, Kind, Scalar};

/// The operations of one store that have a body, by name.
pub type Operations = BTreeMap<Name, Operation>;

/// One operation with a body.
#[derive(Clone, Debug)]
pub struct Operation {
    name: Name,
    /// The statement, with `?` in place of the arguments.
    pub text: String,
    /// The index of the argument at each place, and the kind of its column.
    places: Vec<(usize, Kind)>,
    parameters: Vec<(Name, Type)>,
    result: Option<Type>,
    /// True if it writes.
    pub is_command: bool,
}

/// Reads the bodies of a store's operations, and checks them against the cluster.
/// `own` are the keyspaces of the store's own tables.
pub async fn prepare(
    cluster: &Session,
    schema: &StoreSchema,
    own: &[String],
) -> Result<Operations, OpenError> {
    let mut operations = Operations::new();
    for (name, declared) in &schema.operations {
        let Some(body) = &declared.body else { continue };
        let refused = |reason| OpenError::Operation {
            store: schema.store.clone(),
            operation: name.clone(),
            reason,
        };
        let operation = Operation::new(name, declared, body).map_err(refused)?;
        let operation = operation.checked(cluster, &schema.schema, own).await.map_err(refused)?;
        operations.insert(name.clone(), operation);
    }
    Ok(operations)
}

impl Operation {
    fn new(name: &Name, declared: &StoreOperation, body: &str) -> Result<Self, String> {
        let (text, places) = bind(body, declared.parameters.len())?;
        let words = words(body);
        let first = words.first().map(String::as_str).unwrap_or_default();
        let is_fine = if declared.is_command {
            matches!(first, "INSERT" | "UPDATE" | "DELETE")
        } else {
            first == "SELECT"
        };
        if !is_fine {
            let wanted = if declared.is_command { "INSERT, UPDATE or DELETE" } else { "SELECT" };
            return Err(format!("expected {wanted}, found {first}"));
        }
        if declared.is_command {
            check_command(&words, declared)?;
        }
        Ok(Self {
            name: name.clone(),
            text,
            places: places.into_iter().map(|place| (place, Kind::Text)).collect(),
            parameters: declared.parameters.clone(),
            result: declared.result.clone(),
            is_command: declared.is_command,
        })
    }

    /// Gives each argument the kind of its column, and checks that the result fits.
    async fn checked(
        mut self,
        cluster: &Session,
        schema: &Schema,
        own: &[String],
    ) -> Result<Self, String> {
        let prepared = cluster.prepare(self.text.as_str()).await;
        let prepared = prepared.map_err(|error| error.to_string())?;
        let columns = prepared.get_variable_col_specs();
        for (place, column) in self.places.iter_mut().zip(columns.iter()) {
            let (parameter, of) = &self.parameters[place.0];
            let odd = || {
                let found = cql_type::name(column.typ());
                format!("parameter {parameter} is declared as {of}, but the body takes {found}")
            };
            place.1 = Kind::of(column.typ()).ok_or_else(odd)?;
            scalar::check(schema, place.1, of).map_err(|_| odd())?;
        }
        if self.is_command {
            let (keyspace, table) = written(&self.text)
                .ok_or("expected a table with its keyspace, such as shop.customers")?;
            if own.contains(&keyspace) {
                return Err(format!(
                    "it writes {keyspace}.{table}, which is the store's own: what is kept there is written by \
                     transactions alone"
                ));
            }
            self.check_table(cluster, &keyspace, &table)?;
            return Ok(self);
        }
        let found = prepared.get_current_result_set_col_specs();
        let found = found.get();
        let names: Vec<String> = found.iter().map(|column| column.name().to_owned()).collect();
        let result = self.result.as_ref().ok_or("a query gives something")?;
        fit(schema, &names, row_type(result))?;
        Ok(self)
    }

    /// Checks the columns of the written table: some make a repeated statement take effect twice.
    fn check_table(&self, cluster: &Session, keyspace: &str, table: &str) -> Result<(), String> {
        use scylla::cluster::metadata::{CollectionType, ColumnType, NativeType};
        let state = cluster.get_cluster_state();
        let table = state.get_keyspace(keyspace).and_then(|found| found.tables.get(table));
        let Some(table) = table else { return Ok(()) };
        for (name, column) in &table.columns {
            if column.typ == ColumnType::Native(NativeType::Counter) {
                return Err(format!(
                    "column {name} is a native counter, which would count again what is sent again"
                ));
            }
            let is_list =
                matches!(column.typ, ColumnType::Collection { typ: CollectionType::List(_), .. });
            if is_list && self.text.contains(['+', '-', '[']) {
                return Err(format!(
                    "column {name} is a list, to which would be added again what is sent again"
                ));
            }
        }
        Ok(())
    }

    fn values(&self, schema: &Schema, arguments: &[Value]) -> Result<Vec<Scalar>, Refusal> {
        let value = |(index, kind): &(usize, Kind)| {
            let (name, of) = &self.parameters[*index];
            let argument = arguments.get(*index);
            let argument = argument.ok_or_else(|| format!("it lacks argument {name}"))?;
            let place = format!("parameter {name}");
            scalar::encode(schema, *kind, argument, of).map_err(|why| why.within(&place))
        };
        let values: Result<Vec<Scalar>, Refusal> = self.places.iter().map(value).collect();
        values.map_err(|why| why.within(&format!("operation {}", self.name)))
    }

    /// Returns the values of a query.
    ///
    /// # Errors
    ///
    /// When an argument has no form in its column.
    pub fn bound(
        &self,
        schema: &Schema,
        arguments: &[Value],
    ) -> Result<Vec<Option<scylla::value::CqlValue>>, Refusal> {
        Ok(self.values(schema, arguments)?.iter().map(Scalar::bound).collect())
    }

    /// Returns a command as a mutation.
    ///
    /// # Errors
    ///
    /// When an argument has no form in its column.
    pub fn change(
        &self,
        schema: &Schema,
        arguments: &[Value],
        time: i64,
    ) -> Result<Change, Refusal> {
        let values = self.values(schema, arguments)?;
        Ok(Change::Cql { text: self.text.clone(), values, time: Some(time) })
    }

    /// Returns the result of a query.
    ///
    /// # Errors
    ///
    /// When the rows do not fit.
    pub fn answer(
        &self,
        schema: &Schema,
        columns: &[String],
        rows: &[Row],
    ) -> Result<Value, String> {
        let failed = |why: String| format!("operation {}: {why}", self.name);
        let value = |row: &Row, of: &Type| row_value(schema, columns, row, of).map_err(failed);
        let result = self.result.as_ref().ok_or_else(|| failed("it gives nothing".into()))?;
        // The table may have been changed since the store was opened.
        fit(schema, columns, row_type(result)).map_err(failed)?;
        match (result, rows) {
            (Type::List(inner), rows) => {
                let items: Result<Vec<Value>, String> =
                    rows.iter().map(|row| value(row, inner)).collect();
                items.map(Value::list)
            }
            (Type::Option(_), []) => Ok(Value::NONE),
            // The result of an aggregate over no rows.
            (Type::Option(_), [row]) if row.columns.iter().all(Option::is_none) => Ok(Value::NONE),
            (Type::Option(inner), [row]) => value(row, inner).map(Value::some),
            (result, [row]) => value(row, result),
            (_, rows) => Err(failed(format!("{} rows where one is expected", rows.len()))),
        }
    }
}

/// Returns the type of one row of a result.
fn row_type(result: &Type) -> &Type {
    match result {
        Type::List(inner) | Type::Option(inner) => inner,
        result => result,
    }
}

/// Checks that rows with these columns fit a type.
fn fit(schema: &Schema, columns: &[String], row: &Type) -> Result<(), String> {
    let Type::Struct(name) = row else {
        return match columns {
            [_] => Ok(()),
            _ => Err(format!("expected one column for {row}, found {}", columns.join(", "))),
        };
    };
    let declared = schema.structs.get(name).ok_or("an unknown struct")?;
    let is_missing = |field: &Name| !columns.iter().any(|column| **column == **field);
    match declared.fields.iter().find(|(field, _)| is_missing(field)) {
        None => Ok(()),
        Some((field, _)) => {
            Err(format!("no column {field} for {name}; it gives {}", columns.join(", ")))
        }
    }
}

fn row_value(schema: &Schema, columns: &[String], row: &Row, of: &Type) -> Result<Value, String> {
    if let Type::Struct(name) = of {
        let declared = schema.structs.get(name).ok_or("an unknown struct")?;
        let field = |(field, inner): &(Name, Type)| {
            let place = columns.iter().position(|column| **column == **field);
            let column = place.and_then(|place| row.columns.get(place)?.as_ref());
            scalar::decode(schema, column, inner)
        };
        let fields: Result<Vec<Value>, String> = declared.fields.iter().map(field).collect();
        return fields.map(|fields| Value::Struct(fields.into()));
    }
    scalar::decode(schema, row.columns.first().and_then(Option::as_ref), of)
}

/// Checks that a command is safe to repeat, since it is sent again if its answer is lost.
fn check_command(words: &[String], declared: &StoreOperation) -> Result<(), String> {
    if declared.result.is_some() {
        return Err("a statement that writes gives nothing".into());
    }
    for (word, why) in [
        ("IF", "a condition, which may hold at one try and not at the next"),
        ("TIMESTAMP", "a timestamp, which is given by the transaction"),
        ("NOW", "now(), which gives each try another value: take it as a parameter"),
        ("UUID", "uuid(), which gives each try another value: take it as a parameter"),
        ("CURRENTTIMESTAMP", "the server's clock, which gives each try another value"),
        ("CURRENTTIMEUUID", "the server's clock, which gives each try another value"),
        ("CURRENTDATE", "the server's clock, which gives each try another value"),
        ("CURRENTTIME", "the server's clock, which gives each try another value"),
        ("CURRENT_TIMESTAMP", "the server's clock, which gives each try another value"),
        ("CURRENT_TIMEUUID", "the server's clock, which gives each try another value"),
        ("CURRENT_DATE", "the server's clock, which gives each try another value"),
        ("CURRENT_TIME", "the server's clock, which gives each try another value"),
    ] {
        if words.iter().any(|found| found == word) {
            return Err(format!("it has {why}"));
        }
    }
    Ok(())
}

/// Splits a body into quoted and other parts; the flag marks quoted ones.
fn parts(body: &str) -> Vec<(bool, String)> {
    let mut parts = vec![(false, String::new())];
    let mut open = None;
    for letter in body.chars() {
        let last = parts.last_mut().expect("there is one");
        match open {
            Some(quote) => {
                last.1.push(letter);
                if letter == quote {
                    open = None;
                    parts.push((false, String::new()));
                }
            }
            None if matches!(letter, '\'' | '"') => {
                open = Some(letter);
                parts.push((true, letter.to_string()));
            }
            None => last.1.push(letter),
        }
    }
    parts
}

/// Returns the keyspace and the table that a command writes, as the server names them. A prepared
/// statement has these names only if it has arguments.
fn written(body: &str) -> Option<(String, String)> {
    let mut names: Vec<String> = Vec::new();
    for (is_quoted, part) in parts(body) {
        if is_quoted {
            // A quote within a name is doubled, so it ends one part and begins the next.
            let name = part[1..].strip_suffix('"').unwrap_or(&part[1..]);
            match names.last_mut().filter(|last| last.starts_with('"')) {
                Some(last) => last.push_str(part.strip_suffix('"').unwrap_or(&part)),
                None => names.push(format!("\"{name}")),
            }
            continue;
        }
        let mut name = String::new();
        for c in part.chars().chain([' ']) {
            if c.is_alphanumeric() || c == '_' {
                name.extend(c.to_lowercase());
                continue;
            }
            if !name.is_empty() {
                names.push(std::mem::take(&mut name));
            }
            if !c.is_whitespace() {
                names.push(c.to_string());
            }
        }
    }
    let before = names.iter().position(|name| matches!(&**name, "into" | "update" | "from"))?;
    let [keyspace, dot, table] = names.get(before + 1..before + 4)? else { return None };
    let plain = |name: &String| name.strip_prefix('"').unwrap_or(name).to_owned();
    (dot == ".").then(|| (plain(keyspace), plain(table)))
}

/// Returns the words outside of quotes, in capitals.
fn words(body: &str) -> Vec<String> {
    let plain = parts(body).into_iter().filter(|(is_quoted, _)| !is_quoted);
    let plain: Vec<String> = plain.map(|(_, text)| text.to_uppercase()).collect();
    let plain = plain.join(" ");
    let words = plain.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Replaces `$1`, `$2` … by `?`; also returns the index of the argument at each place.
fn bind(body: &str, count: usize) -> Result<(String, Vec<usize>), String> {
    let (mut text, mut places) = (String::new(), Vec::new());
    for (is_quoted, part) in parts(body) {
        if is_quoted {
            text.push_str(&part);
            continue;
        }
        if part.contains('?') {
            return Err("arguments are written $1, $2, not ?".into());
        }
        let mut rest = part.as_str();
        while let Some((before, after)) = rest.split_once('$') {
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let number: usize = after[..digits].parse().map_err(|_| "expected a number after $")?;
            if number == 0 || number > count {
                return Err(format!("${number} is none of {count} parameters"));
            }
            places.push(number - 1);
            text.push_str(before);
            text.push('?');
            rest = &after[digits..];
        }
        text.push_str(rest);
    }
    Ok((text, places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_where_they_are_written() {
        let bound = bind("UPDATE t SET a = $2 WHERE k = $1 AND b = '$3?'", 2);
        let expected = ("UPDATE t SET a = ? WHERE k = ? AND b = '$3?'".to_owned(), vec![1, 0]);
        assert_eq!(bound, Ok(expected));
        assert!(bind("SELECT $2", 1).is_err());
        assert!(bind("SELECT $x", 1).is_err());
        assert!(bind("SELECT ?", 1).is_err());
    }

    #[test]
    fn the_table_that_a_command_writes_is_found() {
        let of = |keyspace: &str, table: &str| Some((keyspace.to_owned(), table.to_owned()));
        for (body, expected) in [
            ("INSERT INTO Shop.Customers (a) VALUES ('from x.y')", of("shop", "customers")),
            ("update \"Shop\" . \"t\" set a = 1 WHERE k = 2", of("Shop", "t")),
            ("DELETE a, \"b\" FROM shop.t USING TIMESTAMP ? WHERE k = ?", of("shop", "t")),
            ("DELETE FROM t WHERE k = 1", None),
        ] {
            assert_eq!(written(body), expected, "{body}");
        }
    }

    #[test]
    fn commands_that_differ_at_each_try_are_refused() {
        let declared = StoreOperation {
            is_command: true,
            parameters: vec![("k".into(), Type::String)],
            result: None,
            body: None,
            builtin: None,
        };
        let of = |body: &str| Operation::new(&"put".into(), &declared, body).map(|_| ());
        assert_eq!(of("INSERT INTO t (k, v) VALUES ($1, 'now() IF')"), Ok(()));
        for body in [
            "INSERT INTO t (k) VALUES ($1) IF NOT EXISTS",
            "insert into t (k, v) values ($1, now())",
            "UPDATE t USING TIMESTAMP 1 SET v = 2 WHERE k = $1",
            "SELECT v FROM t WHERE k = $1",
        ] {
            assert!(of(body).is_err(), "{body}");
        }
        let gives = StoreOperation { result: Some(Type::Int), ..declared.clone() };
        assert!(Operation::new(&"put".into(), &gives, "DELETE FROM t WHERE k = $1").is_err());
    }
}
