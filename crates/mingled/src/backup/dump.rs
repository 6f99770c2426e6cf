//! Items as text, so that data can leave: lines of JSON, or commands of Redis.
//!
//! A line of JSON is an item. Text that is not UTF-8 is `{"bytes": "…"}` with base64, a floating-point number
//! `{"float": "…"}`, and a value of a program that JSON has no form for `{"value": "…"}`, as a program would write it.
//!
//! | type | form |
//! | --- | --- |
//! | `string`, `register`, `counter` | `"value"` is one value |
//! | `list`, `set`, `log` | `"value"` is a list of values |
//! | `hash`, `zset`, `map` | `"value"` is a list of pairs: field and value, member and score |
//!
//! Items of Mingle's programs have the member `"program": true`, and the names that the store gives them. Commands
//! have all that is not escaped in quotes, as `redis-cli` reads it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mingle_geo::types::item::{ItemType, View};
use mingle_geo::types::{Counter, Log, Map, Set, State};
use mingle_geo::vector::DCS_MAX;
use mingle_geo::{Config, Key, Kind, PartitionId, Record, Replica, Vector};
use mingle_geo_node::folder::{Folder as _, recover};
use mingle_geo_node::take_entry;
use mingle_model::Value;
use serde_json::{Value as Json, json};

use super::read::{Content, Reader};
use crate::check_log;
use crate::commands::text;
use crate::files::Files;

/// The maximum number of elements of one command.
const ELEMENTS_MAX: usize = 100;

/// The digits of bytes that are escaped.
const HEX: [u8; 16] = *b"0123456789abcdef";

/// The form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line of JSON for each item.
    Json,
    /// Commands of Redis. Items of Mingle's programs have none.
    Commands,
}

/// The number of items that were printed, and of those that the form does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The items.
    pub items: u64,
    /// The items of Mingle's programs that are left out.
    pub left_out: u64,
}

/// Prints the items of a backup, as they are at its vector. If it is damaged, the items before the damage are printed.
///
/// # Errors
///
/// If the backup is damaged or cannot be read, or the text cannot be written.
///
/// # Examples
///
/// ```
/// use mingled::backup::dump::{Form, backup};
///
/// let refused = backup("no such file".as_ref(), Form::Json, &mut Vec::new());
/// assert!(refused.unwrap_err().contains("no such file"));
/// ```
pub fn backup(file: &Path, form: Form, out: &mut impl Write) -> Result<Printed, String> {
    let mut reader = Reader::open(file).map_err(|error| error.to_string())?;
    let now_us = reader.header().at.highest().micros();
    let mut printed = Printed::default();
    while let Some(content) = reader.next_content().map_err(|error| error.to_string())? {
        let Content::Items(items) = content else { continue };
        for (key, state) in items {
            put(form, &key, &state, now_us, &mut printed, out).map_err(fault)?;
        }
    }
    out.flush().map_err(fault)?;
    Ok(printed)
}

/// Prints the items of the journal in a folder, of a data center that does not run: all that its partitions have.
///
/// # Errors
///
/// If the journal is damaged, or the text cannot be written.
pub fn journal(folder: &Path, form: Form, out: &mut impl Write) -> Result<Printed, String> {
    let report = check_log::check(folder).map_err(|error| error.to_string())?;
    report.verdict()?;
    let files = Files::read_only(folder);
    let names = files.names().map_err(fault)?;
    let recovered = recover(report.identity, names, |name| files.read(name));
    let recovered = recovered.map_err(|error| error.to_string())?;
    let mut logs: BTreeMap<PartitionId, Vec<Record>> = BTreeMap::new();
    for entry in &recovered.entries {
        let (partition, record) = take_entry(entry).map_err(|error| error.to_string())?;
        logs.entry(partition).or_default().push(record);
    }
    let count = logs.keys().next_back().map_or(1, |last| last.0 + 1);
    let mut replicas = Vec::new();
    for (partition, log) in logs {
        let config = Config {
            incarnation: report.identity.incarnation,
            ..Config::new(report.identity.dc, DCS_MAX as u8, partition, count)
        };
        let log = log.into_iter().filter(|record| !matches!(record, Record::Group(_)));
        replicas.push(Replica::restore(config, log).map_err(|error| error.to_string())?);
    }
    let at = vector(&replicas);
    let mut printed = Printed::default();
    for replica in &replicas {
        for key in replica.keys() {
            let state = replica.inspect(key, &at);
            let state = state.map_err(|folded| {
                format!(
                    "the journal has no state of an item at {at}, the oldest one is at {folded}"
                )
            })?;
            put(form, key, &state, at.highest().micros(), &mut printed, out).map_err(fault)?;
        }
    }
    out.flush().map_err(fault)?;
    Ok(printed)
}

/// Returns the vector that all partitions have.
fn vector(replicas: &[Replica]) -> Vector {
    let known = replicas.iter().map(Replica::known_vec).reduce(|mut least, known_vec| {
        least.meet(&known_vec);
        least
    });
    let mut at = known.unwrap_or(Vector::ZERO);
    for replica in replicas {
        at.join(&replica.folded_vec());
    }
    at
}

fn fault(error: io::Error) -> String {
    error.to_string()
}

fn put(
    form: Form,
    key: &Key,
    state: &State,
    now_us: u64,
    printed: &mut Printed,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(item) = state.as_item() else {
        if state.is_blank() {
            return Ok(());
        }
        if form == Form::Commands {
            printed.left_out += 1;
            return Ok(());
        }
        printed.items += 1;
        return writeln!(out, "{}", of_program(key, state));
    };
    let view = item.at(now_us);
    let Some(shown) = view.shown_type() else { return Ok(()) };
    printed.items += 1;
    match form {
        Form::Json => writeln!(out, "{}", of_item(key, &view, shown)),
        Form::Commands => put_commands(key, &view, shown, out),
    }
}

/// Returns text, or bytes that are not text.
fn text_json(bytes: &[u8]) -> Json {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "bytes": STANDARD.encode(bytes) }),
    }
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Bool(value) => json!(value),
        Value::Int(number) => json!(number),
        Value::Float(_) => json!({ "float": value.to_string() }),
        Value::String(text) => json!(**text),
        Value::Bytes(bytes) => json!({ "bytes": STANDARD.encode(bytes) }),
        Value::List(values) | Value::Struct(values) => values.iter().map(value_json).collect(),
        Value::Option(None) => Json::Null,
        Value::Option(Some(value)) => value_json(value),
        other => json!({ "value": other.to_string() }),
    }
}

fn of_program(key: &Key, state: &State) -> Json {
    let pair = |(key, value): (&Value, &Value)| json!([value_json(key), value_json(value)]);
    let (word, value) = match state.kind() {
        Kind::Register | Kind::Item => {
            let value = state.as_register().and_then(|register| register.value());
            ("register", value.map_or(Json::Null, value_json))
        }
        Kind::Counter => {
            let sum = state.as_counter().map(Counter::value).unwrap_or_default();
            let sum = i64::try_from(sum).map_or_else(|_| json!(sum.to_string()), |sum| json!(sum));
            ("counter", sum)
        }
        Kind::Set => {
            ("set", state.as_set().into_iter().flat_map(Set::iter).map(value_json).collect())
        }
        Kind::Log => {
            ("log", state.as_log().into_iter().flat_map(Log::iter).map(value_json).collect())
        }
        Kind::Map => {
            let map = state.as_map();
            let counts = map.into_iter().flat_map(Map::counts);
            let counts = counts.map(|(key, count)| json!([value_json(key), count.clamped()]));
            let entries = map.into_iter().flat_map(Map::entries).map(pair);
            ("map", entries.chain(counts).collect())
        }
    };
    json!({ "program": true, "type": word, "key": text_json(&key.name), "value": value })
}

fn of_item(key: &Key, view: &View<'_>, shown: ItemType) -> Json {
    let one = |value: &Value| text_json(&text(value));
    let pair = |(key, value): (&Value, Value)| json!([one(key), one(&value)]);
    let value: Json = match shown {
        ItemType::Value => view.value().as_ref().map_or(Json::Null, one),
        ItemType::Hash => view.fields().map(pair).collect(),
        ItemType::SortedSet => view.scores().map(pair).collect(),
        ItemType::Set => view.members().map(one).collect(),
        ItemType::List => view.elements().map(|element| one(element.value)).collect(),
    };
    let word = crate::commands::type_word(Some(shown));
    let mut line = json!({ "type": word, "key": text_json(&key.name), "value": value });
    if let Some(deadline_us) = view.deadline_us() {
        line["expires_at_ms"] = json!(deadline_us / 1_000);
    }
    line
}

fn put_commands(
    key: &Key,
    view: &View<'_>,
    shown: ItemType,
    out: &mut impl Write,
) -> io::Result<()> {
    let one = |value: &Value| quoted(&text(value));
    let (word, elements): (&str, Vec<String>) = match shown {
        ItemType::Value => ("SET", view.value().as_ref().map(one).into_iter().collect()),
        ItemType::Hash => {
            let pairs = view.fields();
            (
                "HSET",
                pairs.map(|(field, value)| format!("{} {}", one(field), one(&value))).collect(),
            )
        }
        ItemType::SortedSet => {
            let pairs = view.scores();
            (
                "ZADD",
                pairs.map(|(member, score)| format!("{} {}", one(&score), one(member))).collect(),
            )
        }
        ItemType::Set => ("SADD", view.members().map(one).collect()),
        ItemType::List => ("RPUSH", view.elements().map(|element| one(element.value)).collect()),
    };
    let name = quoted(&key.name);
    for elements in elements.chunks(ELEMENTS_MAX) {
        writeln!(out, "{word} {name} {}", elements.join(" "))?;
    }
    match view.deadline_us() {
        Some(deadline_us) => writeln!(out, "PEXPIREAT {name} {}", deadline_us / 1_000),
        None => Ok(()),
    }
}

/// Returns an argument in quotes, in the way in which `redis-cli` reads it.
fn quoted(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(*byte));
            }
            b' '..=b'~' => quoted.push(char::from(*byte)),
            other => {
                let digits =
                    [other >> 4, other & 15].map(|digit| char::from(HEX[usize::from(digit)]));
                quoted.extend(['\\', 'x'].into_iter().chain(digits));
            }
        }
    }
    quoted.push('"');
    quoted
}
