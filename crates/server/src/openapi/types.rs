//! Types as JSON Schema.

use mingle_model::{FieldType, Type};
use serde_json::{Map, Value as Json, json};

use super::Described;
use crate::problem::Code;

/// Returns the schema of values of a type, as they are sent and received.
pub(super) fn schema(value_type: &Type) -> Json {
    match value_type {
        Type::Bool => json!({ "type": "boolean" }),
        Type::String => json!({ "type": "string" }),
        Type::Int => built_in("int"),
        Type::Float => built_in("float"),
        Type::Bytes => built_in("bytes"),
        Type::Time => built_in("time"),
        Type::Date => built_in("date"),
        Type::Decimal => built_in("decimal"),
        Type::Json => built_in("json"),
        Type::Enum(declared) => reference(&escape_name(&declared.name)),
        Type::Struct(name) => reference(&escape_name(name)),
        Type::Ref(name) => reference(&key_name(name)),
        Type::List(inner) => json!({ "type": "array", "items": schema(inner) }),
        Type::Rushed(inner) => json!({
            "oneOf": [
                {
                    "type": "object",
                    "properties": {
                        "level": { "type": "string", "not": { "const": "late" } },
                        "value": schema(inner),
                    },
                    "required": ["level", "value"],
                    "additionalProperties": false,
                },
                {
                    "type": "object",
                    "properties": { "level": { "const": "late" } },
                    "required": ["level"],
                    "additionalProperties": false,
                },
            ],
        }),
        Type::Option(inner) => {
            let present = match &**inner {
                // Any document may stand here. See the description of `mingle.json.option`.
                Type::Json => return built_in("json.option"),
                Type::Option(_) => json!({
                    "type": "object",
                    "properties": { "some": schema(inner) },
                    "required": ["some"],
                    "additionalProperties": false,
                }),
                _ => schema(inner),
            };
            json!({ "anyOf": [present, { "type": "null" }] })
        }
    }
}

/// Returns the schema of the shown value of an object's field.
pub(super) fn field_schema(field_type: &FieldType) -> Json {
    match field_type {
        FieldType::Register(inner) => schema(inner),
        FieldType::Counter => built_in("int"),
        FieldType::Set(inner) | FieldType::Log(inner) => {
            json!({ "type": "array", "items": schema(inner) })
        }
        FieldType::Map(Type::String, value) => {
            json!({ "type": "object", "additionalProperties": schema(value) })
        }
        FieldType::Map(key, value) => json!({
            "type": "array",
            "items": {
                "type": "array",
                "prefixItems": [schema(key), schema(value)],
                "minItems": 2,
                "maxItems": 2,
            },
        }),
    }
}

fn built_in(name: &str) -> Json {
    reference(&format!("mingle.{name}"))
}

pub(super) fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns the name of the schema of an object's key; a `ref` to the object has this schema too.
fn key_name(object: &str) -> String {
    format!("{}.key", escape_name(object))
}

/// Returns a name of the program as the name of a component. Names in a program contain no dot, so
/// two different names stay different.
pub(super) fn escape_name(name: &str) -> String {
    name.chars()
        .map(|found| match found {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => found.to_string(),
            other => format!(".{:x}.", u32::from(other)),
        })
        .collect()
}

/// Returns a name of the program as a part of a path.
pub(super) fn escape_path(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// Adds a doc comment to a schema. A reference may have a description beside it.
pub(super) fn with_docs(mut schema: Json, docs: &str) -> Json {
    if !docs.is_empty()
        && let Json::Object(members) = &mut schema
    {
        members.insert("description".to_owned(), docs.into());
    }
    schema
}

/// Returns all schemas that a program needs.
pub(super) fn schemas(described: &Described) -> Json {
    let mut schemas = built_ins();
    let declared = described.program.schema();
    for (docs, written) in described.structs() {
        let Some(found) = declared.structs.get(&written.name.name) else { continue };
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (field, (name, inner)) in written.fields.iter().zip(&found.fields) {
            properties.insert(name.to_string(), with_docs(schema(inner), &field.docs));
            if !matches!(inner, Type::Option(_)) {
                required.push(name.to_string());
            }
        }
        schemas.insert(escape_name(&found.name), with_docs(object(properties, required), docs));
    }
    for (docs, written) in described.enums() {
        let mut all = described.program.checked.enums.iter();
        let Some(found) = all.find(|known| known.name == written.name.name) else { continue };
        let labels: Vec<&str> = found.values.iter().map(|value| &*value.label).collect();
        let shown = json!({ "type": "string", "enum": labels });
        schemas.insert(escape_name(&found.name), with_docs(shown, docs));
    }
    for (docs, written) in described.objects() {
        let Some(found) = declared.objects.get(&written.name.name) else { continue };
        let key = with_docs(schema(&found.key_type), &format!("The key of a `{}`.", found.name));
        schemas.insert(key_name(&found.name), key);
        let mut properties = Map::new();
        let key = with_docs(schema(&found.key_type), &written.key.docs);
        properties.insert(found.key_name.to_string(), key);
        for (field, inner) in written.fields.iter().zip(&found.fields) {
            let shown = with_docs(field_schema(&inner.field_type), &field.docs);
            properties.insert(inner.name.to_string(), shown);
        }
        let required = properties.keys().cloned().collect();
        schemas.insert(escape_name(&found.name), with_docs(object(properties, required), docs));
    }
    Json::Object(schemas)
}

pub(super) fn object(properties: Map<String, Json>, required: Vec<String>) -> Json {
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

fn built_ins() -> Map<String, Json> {
    let largest = mingle_model::limits::JSON_NUMBER_MAX;
    let mut schemas = Map::new();
    let mut add = |name: &str, schema: Json| schemas.insert(format!("mingle.{name}"), schema);
    add(
        "int",
        json!({
            "description": "64 bits: a number, beyond 2^53 its digits as a string.",
            "anyOf": [
                { "type": "integer", "minimum": -largest, "maximum": largest },
                { "type": "string", "pattern": "^-?[0-9]{1,19}$" },
            ],
        }),
    );
    add(
        "float",
        json!({
            "description": "A number, or what JSON has no number for.",
            "anyOf": [
                { "type": "number" },
                { "type": "string", "enum": ["NaN", "Infinity", "-Infinity"] },
            ],
        }),
    );
    add(
        "bytes",
        json!({
            "type": "string",
            "description": "Bytes in base64.",
            "contentEncoding": "base64",
        }),
    );
    add(
        "time",
        json!({
            "description": "RFC 3339; outside its years, milliseconds since 1970.",
            "anyOf": [
                { "type": "string" },
                { "type": "integer", "minimum": -largest, "maximum": largest },
            ],
        }),
    );
    add("date", date());
    add("decimal", decimal());
    add("json", json!({ "description": "Any JSON document." }));
    add(
        "json.option",
        json!({
            "description": "Null, or any JSON document. The document null stands as {\"some\": null}, and \
                so does every document whose only member is `some`; others may.",
        }),
    );
    add("problem", problem());
    schemas
}

fn date() -> Json {
    json!({
        "type": "string",
        "description": "A day: year, month and day. Years outside 0000 to 9999 have a sign.",
        "pattern": "^([0-9]{4}|[+-][0-9]{4,7})-[0-9]{2}-[0-9]{2}$",
        "examples": ["2026-01-31"],
    })
}

fn decimal() -> Json {
    json!({
        "type": "string",
        "description": "An exact number of at most 38 digits.",
        "pattern": "^-?[0-9]+(\\.[0-9]+)?$",
        "examples": ["-19.90"],
    })
}

fn problem() -> Json {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    json!({
        "type": "object",
        "description": "What went wrong (RFC 9457).",
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "code": { "type": "string", "enum": codes },
            "retryable": {
                "type": "boolean",
                "description": "Whether the same request again may succeed.",
            },
            "require_code": { "type": "string", "description": "The code of the `require`." },
            "store": { "type": "string" },
            "constraint": {
                "anyOf": [{ "type": "string" }, { "type": "null" }],
                "description": "The name of the database's rule that was broken, if it has one.",
            },
            "constraint_kind": { "type": "string", "description": "The kind of that rule." },
            "table": { "anyOf": [{ "type": "string" }, { "type": "null" }], "description": "Its table, if that is known." },
            "column": { "anyOf": [{ "type": "string" }, { "type": "null" }], "description": "Its column, if that is known." },
            "committed": { "type": "array", "items": { "type": "string" } },
            "missing": { "type": "array", "items": { "type": "string" } },
            "path": { "type": "string", "description": "Which part of the request is wrong." },
        },
        "required": ["type", "title", "status", "detail", "code", "retryable"],
    })
}
