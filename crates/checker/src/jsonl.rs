//! The complete form: one JSON object for each transaction, one per line. `docs/history.md`
//! describes it.

use std::fmt;

use mingle_model::{Level, parse_json};
use serde_json::{Map, Value, json};

use crate::history::{History, Interval, Kind, Operation, Outcome, Transaction};
use crate::text::shorten;

/// The reason why a file is not a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The line, from 1; 0 if the fault concerns the whole file.
    pub line: usize,
    /// The fault, and the expected input: one line, without a full stop.
    pub message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ReadError {}

/// Reads JSON lines. Skips empty lines.
///
/// # Errors
///
/// The first invalid line.
///
/// # Examples
///
/// ```
/// let line = r#"{"transaction":1,"session":1,"operations":[{"kind":"write","key":1,"value":5,"store":"inboxes","level":"causal"}]}"#;
/// let history = mingle_checker::read_jsonl(line).unwrap();
/// assert_eq!(mingle_checker::read_jsonl(&mingle_checker::write_jsonl(&history)), Ok(history));
/// let error = mingle_checker::read_jsonl("{}").unwrap_err();
/// assert_eq!(error.to_string(), "line 1: `transaction` is missing, expected a whole number");
/// ```
pub fn read_jsonl(text: &str) -> Result<History, ReadError> {
    let (mut transactions, mut lines) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let number = index + 1;
        let transaction = transaction(line);
        let fail = |message| ReadError { line: number, message };
        transactions.push(transaction.map_err(fail)?);
        lines.push(number);
    }
    History::new(transactions).map_err(|error| {
        let line = lines.get(error.transaction).copied().unwrap_or(0);
        ReadError { line, message: error.message }
    })
}

/// Writes JSON lines.
pub fn write_jsonl(history: &History) -> String {
    let lines = history.transactions().iter().map(|transaction| {
        let mut line = json!({
            "transaction": transaction.id,
            "session": transaction.session,
            "outcome": transaction.outcome.name(),
        });
        if let Some(Interval { begin, end }) = transaction.interval {
            line["begin"] = begin.into();
            line["end"] = end.into();
        }
        if let Some(commit) = transaction.commit {
            line["commit"] = commit.into();
        }
        if transaction.is_final {
            line["final"] = true.into();
        }
        line["operations"] = transaction.operations.iter().map(operation_to_json).collect();
        format!("{line}\n")
    });
    lines.collect()
}

fn operation_to_json(operation: &Operation) -> Value {
    let mut object = json!({
        "kind": if operation.kind == Kind::Read { "read" } else { "write" },
        "key": operation.key,
        "value": operation.value,
        "store": &*operation.store,
        "level": operation.level.name(),
    });
    if let Some(version) = operation.version {
        object["version"] = version.into();
    }
    object
}

type Object = Map<String, Value>;

fn transaction(line: &str) -> Result<Transaction, String> {
    const FIELDS: [&str; 8] =
        ["transaction", "session", "outcome", "begin", "end", "commit", "final", "operations"];
    let value = parse_json(line.as_bytes())
        .map_err(|error| format!("not JSON: {error}; expected one object a line"))?;
    let object = as_object(&value, "a transaction", &FIELDS)?;
    Ok(Transaction {
        id: required(object, "transaction")?,
        session: required(object, "session")?,
        outcome: outcome(object)?,
        interval: interval(object)?,
        commit: natural(object, "commit")?,
        is_final: is_final(object)?,
        operations: operations(object)?,
    })
}

fn operations(object: &Object) -> Result<Vec<Operation>, String> {
    match object.get("operations") {
        Some(Value::Array(operations)) => operations.iter().map(operation).collect(),
        Some(other) => Err(unexpected("operations", other, "a list")),
        None => Err("`operations` is missing, expected a list".into()),
    }
}

fn operation(value: &Value) -> Result<Operation, String> {
    const FIELDS: [&str; 6] = ["kind", "key", "value", "store", "level", "version"];
    let object = as_object(value, "an operation", &FIELDS)?;
    let kind = match name(object, "kind", "read or write")? {
        "read" => Kind::Read,
        "write" => Kind::Write,
        other => return Err(format!("kind `{}`: expected read or write", shorten(other))),
    };
    let level = name(object, "level", LEVELS)?;
    let found = Level::ALL.into_iter().find(|known| known.name() == level);
    Ok(Operation {
        kind,
        key: required(object, "key")?,
        value: required(object, "value")?,
        store: name(object, "store", "the name of a store")?.into(),
        level: found.ok_or_else(|| format!("level `{}`: expected {LEVELS}", shorten(level)))?,
        version: natural(object, "version")?,
    })
}

const LEVELS: &str = "linearizable, snapshot, causal or eventual";

fn outcome(object: &Object) -> Result<Outcome, String> {
    if !object.contains_key("outcome") {
        return Ok(Outcome::Committed);
    }
    let expected = "committed, aborted or unknown";
    let name = name(object, "outcome", expected)?;
    let all = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown];
    let found = all.into_iter().find(|known| known.name() == name);
    found.ok_or_else(|| format!("outcome `{}`: expected {expected}", shorten(name)))
}

fn interval(object: &Object) -> Result<Option<Interval>, String> {
    match (natural(object, "begin")?, natural(object, "end")?) {
        (Some(begin), Some(end)) => Ok(Some(Interval { begin, end })),
        (None, None) => Ok(None),
        (Some(_), None) => Err("`begin` is there without `end`, expected both or neither".into()),
        (None, Some(_)) => Err("`end` is there without `begin`, expected both or neither".into()),
    }
}

fn is_final(object: &Object) -> Result<bool, String> {
    match object.get("final") {
        None => Ok(false),
        Some(Value::Bool(is_final)) => Ok(*is_final),
        Some(other) => Err(unexpected("final", other, "true or false")),
    }
}

fn as_object<'v>(value: &'v Value, what: &str, fields: &[&str]) -> Result<&'v Object, String> {
    let Value::Object(object) = value else {
        return Err(format!("{}: expected {what} as an object", shorten(&value.to_string())));
    };
    match object.keys().find(|key| !fields.contains(&key.as_str())) {
        Some(key) => {
            let known = fields.join(", ");
            Err(format!("`{}` is no field of {what}, expected one of {known}", shorten(key)))
        }
        None => Ok(object),
    }
}

fn required(object: &Object, field: &str) -> Result<i64, String> {
    let expected = "a whole number";
    match object.get(field) {
        None => Err(format!("`{field}` is missing, expected {expected}")),
        Some(value) => value.as_i64().ok_or_else(|| unexpected(field, value, expected)),
    }
}

fn natural(object: &Object, field: &str) -> Result<Option<u64>, String> {
    let expected = "a whole number that is not negative";
    let read = |value: &Value| value.as_u64().ok_or_else(|| unexpected(field, value, expected));
    object.get(field).map(read).transpose()
}

fn name<'o>(object: &'o Object, field: &str, expected: &str) -> Result<&'o str, String> {
    match object.get(field) {
        None => Err(format!("`{field}` is missing, expected {expected}")),
        Some(Value::String(name)) => Ok(name),
        Some(other) => Err(unexpected(field, other, expected)),
    }
}

fn unexpected(field: &str, value: &Value, expected: &str) -> String {
    format!("`{field}` is {}, expected {expected}", shorten(&value.to_string()))
}
