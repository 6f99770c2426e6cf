//! A program's interface as an OpenAPI 3.1 document.
//!
//! - `types`: its types as JSON Schema, in the one JSON form of values;
//! - `operations`: its transactions and objects as operations, with all that can go wrong.

mod operations;
mod types;

use mingle_lang::syntax::ast::{Enum, ItemKind, Object, Struct};
use mingle_lang::{Checked, Program};
use mingle_runtime::intent::ProgramHash;
use serde_json::{Map, Value as Json, json};

/// A program with its doc comments.
pub(crate) struct Described<'a> {
    pub(crate) program: &'a Program,
    /// The program as it is written: the checked form in `program` keeps no doc comments of fields.
    /// fields.
    pub(crate) checked: Checked,
}

impl<'a> Described<'a> {
    pub(crate) fn of(program: &'a Program) -> Self {
        Self { program, checked: mingle_lang::check(&*program.text) }
    }

    /// Returns the objects as they are written, with their doc comments.
    fn objects(&self) -> impl Iterator<Item = (&str, &Object)> {
        self.checked.syntax.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Object(object) => Some((item.docs.as_str(), object)),
            _ => None,
        })
    }

    fn enums(&self) -> impl Iterator<Item = (&str, &Enum)> {
        self.checked.syntax.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Enum(declared) => Some((item.docs.as_str(), declared)),
            _ => None,
        })
    }

    fn structs(&self) -> impl Iterator<Item = (&str, &Struct)> {
        self.checked.syntax.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Struct(declared) => Some((item.docs.as_str(), declared)),
            _ => None,
        })
    }
}

/// Returns the document for a program of this name; `needs_token` if calls need an API token. Its version is the
/// beginning of the digest of the program's text, so that it changes with each change of the program.
///
/// # Examples
///
/// ```
/// let program = mingle::compile("store s: causal; object O in s { key k: int; n: int; }
///     /// Counts.
///     transaction bump(o: ref O) { o.n += 1; }").unwrap();
/// let document = mingle_server::document(&program, "counts", false);
/// assert_eq!(document["info"]["title"], "counts");
/// let operation = &document["paths"]["/v1/transactions/bump"]["post"];
/// assert_eq!(operation["summary"], "Counts.");
/// ```
pub fn document(program: &Program, name: &str, needs_token: bool) -> Json {
    let described = Described::of(program);
    let mut paths = Map::new();
    for plan in &program.plans {
        let path = format!("/v1/transactions/{}", types::escape_path(&plan.name));
        paths.insert(path, operations::transaction(program, plan, needs_token));
    }
    for object in &program.checked.objects {
        let name = types::escape_path(&object.declared.name);
        let path = format!("/v1/objects/{name}/{{key}}");
        paths.insert(path, operations::object(object, needs_token));
        let listed = operations::objects(object, needs_token);
        paths.insert(format!("/v1/objects/{name}"), listed);
    }
    let mut components = json!({
        "schemas": types::schemas(&described),
        "parameters": operations::parameters(),
        "headers": operations::headers(),
        "responses": operations::responses(),
    });
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": name,
            "version": version(program),
            "description": operations::ABOUT,
        },
        "servers": [{ "url": "/" }],
        "tags": [
            { "name": "transactions", "description": "Each runs once, and over all of its stores." },
            { "name": "objects", "description": "Looking at what is kept." },
        ],
        "paths": paths,
    });
    if needs_token {
        components["securitySchemes"] = json!({ "token": { "type": "http", "scheme": "bearer" } });
        document["security"] = json!([{ "token": [] }]);
    }
    document["components"] = components;
    document
}

/// Returns the first digits of the digest of a program's text.
fn version(program: &Program) -> String {
    let digest = ProgramHash::of(&program.text).0;
    let first: [u8; 16] = std::array::from_fn(|at| digest[at]);
    format!("{:032x}", u128::from_be_bytes(first))[..12].to_owned()
}
