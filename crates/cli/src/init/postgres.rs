//! Programs for databases of PostgreSQL.

use std::fmt::Write as _;
use std::sync::Arc;

use mingle::{OpenError, TokioWorld, plan_migrations};
use mingle_gen::one_line;
use mingle_store_postgres::{PostgresConfig, describe};

use super::address::Address;
use super::design::Design;
use super::text::{Next, toml_string};
use super::{Begun, Variable, bind, checked, empty, objects};
use crate::exit::Failure;
use crate::open::failure;

/// Designs a program, and checks that it is correct and fits the database.
pub async fn begin(name: &str, schema: &str, address: Address) -> Result<Begun, Failure> {
    if schema.contains('.') {
        let message = "a schema with a dot in its name cannot be named in a binding";
        return Err(Failure::usage(message));
    }
    let (address, variable) = address.without_password(name);
    let none = Design { store: name.to_owned(), schema: schema.to_owned(), ..Design::default() };
    let bound = bind(&binding(&none, &address), variable.as_ref())?;
    let mingle::binding::Engine::Postgres(config) = &bound.stores[name].engine else {
        unreachable!("the binding says that it is in PostgreSQL")
    };
    let config = PostgresConfig { pool: 1, ..config.clone() };
    let tables = describe(name, &config, schema, Arc::new(TokioWorld::new())).await;
    let tables = tables.map_err(|error| failure(&OpenError::Postgres(error)))?;
    let design = objects::design(name, schema, &tables);
    if design.objects.is_empty() {
        let what = format!("the schema {} has no table", one_line(schema));
        return Err(empty(&what, &design));
    }
    let program = checked(&design)?;
    let text = binding(&design, &address);
    let bound = bind(&text, variable.as_ref())?;
    plan_migrations(&program, &bound).await.map_err(|error| failure(&error))?;
    Ok(Begun { design, binding: text, variable, warnings: Vec::new() })
}

/// Returns the sentences about the files of a design.
pub fn next<'a>(design: &Design, file: &str, variable: Option<&'a Variable>) -> Next<'a> {
    let own = format!("mingle_{}", design.store);
    Next {
        effects: format!(
            "The tables stay as they are. The first call adds a schema {own} beside them, for what \
             the\nruntime has to remember."
        ),
        commands: vec![format!("mingle migrate {file}    shows what is added")],
        variable: variable.map(|(name, _)| name.as_str()),
    }
}

/// Returns the binding.
pub fn binding(design: &Design, address: &str) -> String {
    let store = &design.store;
    let mut text =
        format!("[stores.{store}]\nengine = \"postgres\"\nurl = {}\n", toml_string(address));
    let placed = |table: &str| match &*design.schema {
        "public" => table.to_owned(),
        schema => format!("{schema}.{table}"),
    };
    for object in &design.objects {
        let head = format!("stores.{store}.objects.{}", object.name);
        let table = toml_string(&placed(&object.table));
        let key = match &object.key.parts[..] {
            [part] => toml_string(&part.column),
            parts => {
                let columns: Vec<String> =
                    parts.iter().map(|part| toml_string(&part.column)).collect();
                format!("[{}]", columns.join(", "))
            }
        };
        write!(text, "\n[{head}]\ntable = {table}\nkey = {key}\n").expect("a string takes all");
        let renamed: Vec<String> = object
            .fields
            .iter()
            .filter(|field| field.name != field.column || !field.more.is_empty())
            .map(|field| {
                let columns: Vec<String> =
                    field.columns().map(|column| toml_string(column)).collect();
                match &columns[..] {
                    [column] => format!("{} = {column}", field.name),
                    several => format!("{} = [{}]", field.name, several.join(", ")),
                }
            })
            .collect();
        if !renamed.is_empty() {
            writeln!(text, "columns = {{ {} }}", renamed.join(", ")).expect("a string takes all");
        }
        for collection in &object.collections {
            let table = toml_string(&placed(&collection.table));
            let (key, value) = (toml_string(&collection.key), toml_string(&collection.value));
            let entry = collection.entry.as_ref();
            let entry = entry.map(|entry| format!(", entry = {}", toml_string(entry)));
            writeln!(
                text,
                "fields.{} = {{ table = {table}, key = {key}{}, value = {value} }}",
                collection.name,
                entry.unwrap_or_default()
            )
            .expect("a string takes all");
        }
    }
    text
}
