//! Transactions and objects as operations.

use std::collections::BTreeSet;

use mingle_lang::code::Instr;
use mingle_lang::hir::Object;
use mingle_lang::split::Mode;
use mingle_lang::{Plan, Program};
use mingle_model::Type;
use serde_json::{Map, Value as Json, json};

use super::types::{object as object_schema, reference, schema};
use crate::limits::{KEY_CHARS_MAX, KEYS_KEPT, LISTED_MAX, LISTED_USUALLY, SHOWN_MAX};
use crate::problem::Code;

/// The description that all calls share.
pub(super) const ABOUT: &str = "\
Each transaction of the program is a `POST`, each kind of object a `GET`.

A session keeps what a client has seen and written. The `Mingle-Session` header of an answer goes \
with the next request; requests that were made side by side give several tokens, and all of them \
may be sent, separated by commas.

A call with an `Idempotency-Key` takes effect once, however often it is made: made again, it is \
answered as the first time. Each writing phase but the first is repeated by the stores' own means, \
with or without a key. The key stands in the store that the call writes first, in the same commit, \
so it holds across a crash of this server wherever that store keeps what it has acknowledged. Where \
that store has replicas that do not agree, the key holds at the replica of the session, and \
elsewhere once the write has got there. A call that writes nothing leaves no key: it runs again. \
Keys belong to the caller's token by its name.

Errors are `application/problem+json` with a stable `code`.";

/// Returns the operation of a transaction.
pub(super) fn transaction(program: &Program, plan: &Plan, needs_token: bool) -> Json {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, param_type) in &plan.params {
        properties.insert(name.to_string(), schema(param_type));
        if !matches!(param_type, Type::Option(_)) {
            required.push(name.to_string());
        }
    }
    let must_have_body = !required.is_empty();
    let mut operation = json!({
        "operationId": format!("call_{}", plan.name),
        "tags": ["transactions"],
        "summary": summary(&plan.docs, &plan.name),
        "description": described(program, plan),
        "parameters": [
            parameter("deadline_ms"),
            until(program, plan),
            parameter("session"),
            parameter("accept_loss"),
            parameter("idempotency_key"),
        ],
        "requestBody": {
            "required": must_have_body,
            "content": { "application/json": { "schema": object_schema(properties, required) } },
        },
        "responses": answers(plan),
        "x-mingle-phases": phases(program, plan),
        "x-mingle-require-codes": require_codes(plan),
    });
    if needs_token {
        operation["security"] = json!([{ "token": [] }]);
    }
    json!({ "post": operation })
}

/// Returns the schema of the stores that a caller can wait for.
fn until(program: &Program, plan: &Plan) -> Json {
    let stores = plan.phases.iter().filter_map(|phase| phase.store);
    let stores = stores.map(|store| &*program.checked.stores[store.index()].name);
    let stores: BTreeSet<&str> = stores.collect();
    let mut schema = json!({ "type": "string" });
    if !stores.is_empty() {
        schema["enum"] = json!(stores);
    }
    json!({
        "name": "until",
        "in": "query",
        "description": "Answer as soon as this store, and all before it, have committed.",
        "schema": schema,
    })
}

fn answers(plan: &Plan) -> Json {
    let result = plan.result.as_ref().map_or_else(|| json!({ "type": "null" }), schema);
    let is_split = plan.phases.len() > 1;
    // With `until`, the answer may come before a later store has computed the result.
    let result = if is_split && plan.result.is_some() {
        json!({ "anyOf": [result, { "type": "null" }] })
    } else {
        result
    };
    let mut answer = json!({
        "type": "object",
        "properties": { "result": result },
        "required": ["result"],
        "additionalProperties": false,
    });
    if is_split {
        answer["properties"]["follows"] = json!({
            "type": "array",
            "items": { "type": "string" },
            "description": "Stores at which the call is still to be finished; with `until` alone.",
        });
    }
    let mut answers = json!({
        "200": {
            "description": "It has committed.",
            "headers": { "Mingle-Session": header(), "Mingle-Repeated": repeated() },
            "content": { "application/json": { "schema": answer } },
        },
    });
    for status in [400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 503, 504] {
        answers[status.to_string()] = problem_of(status);
    }
    if is_split {
        answers["202"] = problem_of(202);
    }
    answers
}

/// Returns the operation of a kind of object.
pub(super) fn object(object: &Object, needs_token: bool) -> Json {
    let declared = &object.declared;
    let name = &declared.name;
    let mut operation = json!({
        "operationId": format!("show_{name}"),
        "tags": ["objects"],
        "summary": summary(&object.docs, name),
        "description": format!(
            "{}\n\nOne `{name}`, which is in the store `{}`. Of sets and maps the first elements \
             are shown, of logs the last.",
            object.docs, declared.store
        ).trim().to_owned(),
        "parameters": [
            {
                "name": "key",
                "in": "path",
                "required": true,
                "description": format!(
                    "`{}`, of type `{}`: a string as it is, all else as JSON.",
                    declared.key_name, declared.key_type
                ),
                "schema": { "type": "string" },
            },
            parameter("limit"),
            parameter("session"),
            parameter("accept_loss"),
        ],
        "responses": {
            "200": {
                "description": "Its fields.",
                "headers": { "Mingle-Session": header() },
                "content": {
                    "application/json": { "schema": reference(&super::types::escape_name(name)) },
                },
            },
        },
    });
    for status in [400, 401, 403, 404, 409, 503] {
        operation["responses"][status.to_string()] = problem_of(status);
    }
    if needs_token {
        operation["security"] = json!([{ "token": [] }]);
    }
    json!({ "get": operation })
}

/// Returns the operation that lists the objects of a kind.
pub(super) fn objects(object: &Object, needs_token: bool) -> Json {
    let name = &object.declared.name;
    let page = json!({
        "type": "object",
        "properties": {
            "objects": { "type": "array", "items": reference(&super::types::escape_name(name)) },
            "next": {
                "type": ["string", "null"],
                "description": "The cursor of the next page; null after the last one.",
            },
        },
        "required": ["objects", "next"],
        "additionalProperties": false,
    });
    let mut operation = json!({
        "operationId": format!("list_{name}"),
        "tags": ["objects"],
        "summary": format!("A page of all `{name}`"),
        "description": format!(
            "The `{name}` that exist in the store `{}`, in an order of its own. One that comes or goes while the \
             pages are read may be missing. Stores that cannot list their objects refuse.",
            object.declared.store
        ),
        "parameters": [
            {
                "name": "after",
                "in": "query",
                "description": "The cursor `next` of the page before.",
                "schema": { "type": "string" },
            },
            {
                "name": "count",
                "in": "query",
                "description": "So many objects.",
                "schema": {
                    "type": "integer", "minimum": 1, "maximum": LISTED_MAX, "default": LISTED_USUALLY,
                },
            },
            parameter("limit"),
            parameter("session"),
            parameter("accept_loss"),
        ],
        "responses": {
            "200": {
                "description": "The page.",
                "headers": { "Mingle-Session": header() },
                "content": { "application/json": { "schema": page } },
            },
        },
    });
    for status in [400, 401, 403, 404, 409, 503] {
        operation["responses"][status.to_string()] = problem_of(status);
    }
    if needs_token {
        operation["security"] = json!([{ "token": [] }]);
    }
    json!({ "get": operation })
}

fn summary(docs: &str, name: &str) -> String {
    let first = docs.lines().next().unwrap_or_default().trim();
    if first.is_empty() { name.to_owned() } else { first.to_owned() }
}

/// Returns the doc comment, and the stores at which the transaction runs.
fn described(program: &Program, plan: &Plan) -> String {
    let mut text = plan.docs.trim().to_owned();
    let visited: Vec<String> = phases(program, plan)
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|phase| {
            let store = phase["store"].as_str()?;
            let level = phase["level"].as_str().unwrap_or_default();
            let mode = phase["mode"].as_str().unwrap_or_default();
            Some(format!("{mode}s `{store}` ({level})"))
        })
        .collect();
    if !visited.is_empty() {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.extend(["In order: ", &visited.join(", "), "."]);
    }
    let codes = require_codes(plan);
    if !codes.is_empty() {
        let codes: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
        text.extend(["\n\nMay be refused with ", &codes.join(", "), "."]);
    }
    text
}

fn phases(program: &Program, plan: &Plan) -> Json {
    let phases = plan.phases.iter().map(|phase| {
        let store = phase.store.map(|store| &*program.checked.stores[store.index()].name);
        json!({
            "store": store,
            "level": phase.level.map(|level| program.checked.levels.name(level).to_string()),
            "mode": if phase.mode == Mode::Write { "write" } else { "read" },
        })
    });
    phases.collect::<Vec<_>>().into()
}

fn require_codes(plan: &Plan) -> BTreeSet<String> {
    let code = plan.phases.iter().flat_map(|phase| &phase.code);
    code.filter_map(|instr| match instr {
        Instr::Require { code: Some(code), .. } => Some(code.to_string()),
        _ => None,
    })
    .collect()
}

fn parameter(name: &str) -> Json {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

fn header() -> Json {
    json!({ "$ref": "#/components/headers/session" })
}

fn repeated() -> Json {
    json!({ "$ref": "#/components/headers/repeated" })
}

fn problem_of(status: u16) -> Json {
    json!({ "$ref": format!("#/components/responses/problem.{status}") })
}

/// Returns the parameters that operations share.
pub(super) fn parameters() -> Json {
    let hours = KEYS_KEPT.as_secs() / 3_600;
    json!({
        "deadline_ms": {
            "name": "deadline_ms",
            "in": "query",
            "description": "Conflicts are retried and others waited for, for so many milliseconds.",
            "schema": { "type": "integer", "minimum": 1 },
        },
        "limit": {
            "name": "limit",
            "in": "query",
            "description": "So many elements of each collection.",
            "schema": { "type": "integer", "minimum": 0, "maximum": SHOWN_MAX },
        },
        "session": {
            "name": "Mingle-Session",
            "in": "header",
            "description": "The session, as an earlier answer gave it; without it, a new one.",
            "schema": { "type": "string" },
        },
        "accept_loss": {
            "name": "Mingle-Accept-Loss",
            "in": "header",
            "description": "With `true` the session goes on without what it has seen that was lost \
                with a data center that was given up; else its calls are refused.",
            "schema": { "type": "boolean", "default": false },
        },
        "idempotency_key": {
            "name": "Idempotency-Key",
            "in": "header",
            "description": format!(
                "Calls with one key are one call. Kept for {hours} hours at least."
            ),
            "schema": {
                "type": "string",
                "minLength": 1,
                "maxLength": KEY_CHARS_MAX,
                "pattern": "^[!-~]+$",
            },
        },
    })
}

/// Returns the headers of answers.
pub(super) fn headers() -> Json {
    json!({
        "session": {
            "description": "The session after the call.",
            "schema": { "type": "string" },
        },
        "repeated": {
            "description": "`true` if the call was made before: this is its answer.",
            "schema": { "type": "string", "enum": ["true"] },
        },
    })
}

/// Returns a response for each status of a problem.
pub(super) fn responses() -> Json {
    let statuses: BTreeSet<u16> = Code::ALL.iter().map(|code| code.status()).collect();
    let mut responses = Map::new();
    for status in statuses {
        let codes = Code::ALL.iter().filter(|code| code.status() == status);
        let lines: Vec<String> =
            codes.map(|code| format!("`{}`: {}", code.name(), code.title())).collect();
        let mut response = json!({
            "description": lines.join("; "),
            "content": {
                "application/problem+json": { "schema": reference("mingle.problem") },
            },
        });
        if [202, 410, 504].contains(&status) {
            response["headers"] = json!({ "Mingle-Session": header() });
        }
        responses.insert(format!("problem.{status}"), response);
    }
    Json::Object(responses)
}
