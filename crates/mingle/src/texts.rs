//! Values from their texts, as on a command line.

use std::collections::BTreeMap;

use mingle_lang::Program;
use mingle_model::{Date, Decimal, ObjectType, Ref, Time, Tree, Type, Value, json};
use mingle_runtime::Error;
use serde_json::Value as Json;

/// Parses arguments: the texts of `string`, `time`, `date`, `decimal` and refs with a string key are taken as they
/// are, all others are read as JSON.
///
/// # Errors
///
/// [`Error::Misuse`] when they do not fit the parameters.
///
/// # Examples
///
/// ```
/// let program = mingle::compile(
///     "store s: causal; object Page in s { key name: string; hits: counter; }
///     transaction hit(page: ref Page, times: int) { page.hits.add(times); }",
/// );
/// let program = program.unwrap();
/// let arguments = mingle::texts::arguments(&program, "hit", [("page", "home"), ("times", "3")]);
/// assert_eq!(arguments.unwrap()[1], mingle_model::Value::Int(3));
/// let error = mingle::texts::arguments(&program, "hit", [("page", "home"), ("times", "x")]);
/// assert!(error.unwrap_err().to_string().contains("times of hit: expected int as JSON"));
/// ```
pub fn arguments<'a>(
    program: &Program,
    transaction: &str,
    named: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Value>, Error> {
    let plan = program.plan(transaction);
    let plan = plan.ok_or_else(|| unknown_transaction(program, transaction))?;
    let mut values: BTreeMap<&str, Value> = BTreeMap::new();
    for (name, text) in named {
        let Some((_, param_type)) = plan.params.iter().find(|(param, _)| **param == *name) else {
            let known: Vec<&str> = plan.params.iter().map(|(param, _)| &**param).collect();
            return Err(Error::Misuse(format!(
                "{transaction} has no parameter {name:?}; it takes {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        };
        let value = read_text(program, text, param_type);
        let value =
            value.map_err(|error| Error::Misuse(format!("{name} of {transaction}: {error}")))?;
        if values.insert(name, value).is_some() {
            return Err(Error::Misuse(format!("{name} of {transaction} is given twice")));
        }
    }
    plan.params
        .iter()
        .map(|(param, param_type)| {
            values.remove(&**param).ok_or_else(|| {
                Error::Misuse(format!("{transaction} needs {param}, of type {param_type}"))
            })
        })
        .collect()
}

/// Reads a value from its text.
///
/// # Errors
///
/// A message with the expected and the found value.
pub fn read_text(program: &Program, text: &str, value_type: &Type) -> Result<Value, String> {
    let schema = program.schema();
    let json_value = || mingle_model::parse_json(text.as_bytes());
    match value_type {
        Type::String => json::read_string(text),
        // A label written as JSON is read as JSON.
        Type::Enum(_) => {
            let label = match json_value() {
                Ok(Json::String(label)) => label,
                _ => text.to_owned(),
            };
            json::from_json(schema, &Json::String(label), value_type)
                .map_err(|error| error.to_string())
        }
        Type::Time => Time::parse(text).map(Value::Time),
        Type::Date => Date::parse(text).map(Value::Date),
        Type::Decimal => Decimal::parse(text).map(Value::Decimal),
        Type::Ref(name) if has_string_key(schema, name) => {
            // A key written as JSON is read as JSON.
            match json_value() {
                Ok(Json::String(key)) => ref_of(program, name, &key),
                _ => ref_of(program, name, text),
            }
        }
        _ => {
            let value = Tree::parse(text.as_bytes()).map_err(|error| {
                format!("expected {value_type} as JSON, found {text:?} ({error})")
            })?;
            json::from_tree(schema, &value, value_type).map_err(|error| error.to_string())
        }
    }
}

fn ref_of(program: &Program, name: &str, key: &str) -> Result<Value, String> {
    let key = Json::String(key.to_owned());
    json::from_json(program.schema(), &key, &Type::Ref(name.into()))
        .map_err(|error| error.to_string())
}

/// Returns the declaration of a kind of object.
///
/// # Errors
///
/// [`Error::Misuse`] when the program has no such kind; it lists those that there are.
pub fn kind<'p>(program: &'p Program, kind: &str) -> Result<&'p ObjectType, Error> {
    let objects = &program.schema().objects;
    objects.get(kind).map(|declared| &**declared).ok_or_else(|| {
        let known: Vec<&str> = objects.keys().map(|name| &**name).collect();
        Error::Misuse(format!("no object is called {kind:?}; there are {}", known.join(", ")))
    })
}

/// Returns the object of a kind with a key, which is a text as in [`read_text`].
///
/// # Errors
///
/// [`Error::Misuse`] when the program has no such kind, or the key does not fit it.
pub fn object(program: &Program, kind: &str, key: &str) -> Result<Ref, Error> {
    let declared = self::kind(program, kind)?;
    let value = read_text(program, key, &Type::Ref(declared.name.clone())).or_else(|_| {
        read_text(program, key, &declared.key_type)
            .map(|key| Value::Ref(Ref::new(declared.name.clone(), key)))
    });
    match value.map_err(|error| Error::Misuse(format!("the key of {kind}: {error}")))? {
        Value::Ref(object) => Ok(object),
        other => Err(Error::Misuse(format!("{other} is no {kind}"))),
    }
}

fn has_string_key(schema: &mingle_model::Schema, name: &str) -> bool {
    match schema.objects.get(name).map(|declared| &declared.key_type) {
        Some(Type::String | Type::Enum(_)) => true,
        Some(Type::Ref(inner)) => has_string_key(schema, inner),
        _ => false,
    }
}

fn unknown_transaction(program: &Program, name: &str) -> Error {
    let known: Vec<&str> = program.plans.iter().map(|plan| &*plan.name).collect();
    Error::Misuse(format!("no transaction is called {name:?}; there are {}", known.join(", ")))
}
