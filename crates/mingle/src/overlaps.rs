//! Objects and fields that are kept in the same place: a table, a column, a key.
//!
//! A transaction sees its own writes by object and field. If two of these share a place, a write
//! through the first is not seen through the second; nor do the checks for concurrent changes see
//! it. So of the objects and fields that share a place, transactions may write at most one.

use std::collections::BTreeMap;

use mingle_lang::Program;
use mingle_lang::code::Instr;
use mingle_lang::flat::WriteKind;
use mingle_lang::hir::{self, ObjectId};

use crate::binding::{Binding, Engine};
use crate::open::OpenError;

/// A unit that is kept in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    object: ObjectId,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    /// The existence of the object.
    Whole,
    /// Its key, which no transaction may change.
    Key,
    Field(u16),
}

/// Refuses a place that keeps several objects or fields of which transactions write more than one.
///
/// # Errors
///
/// An [`OpenError::Binding`] that names two such objects or fields, and their place.
pub(crate) fn check_overlaps(program: &Program, binding: &Binding) -> Result<(), OpenError> {
    let written = written(program);
    let mut parts: BTreeMap<String, Vec<Part>> = BTreeMap::new();
    for (index, object) in program.checked.objects.iter().enumerate() {
        let store = &program.checked.stores[object.store.index()];
        let Some(bound) = binding.stores.get(&*store.name) else { continue };
        for (place, unit) in places(&bound.engine, object) {
            let part = Part { object: ObjectId(index as u32), unit };
            let known = parts.entry(place).or_default();
            if !known.contains(&part) {
                known.push(part);
            }
        }
    }
    for (place, parts) in parts {
        let is_field = |part: &&Part| matches!(part.unit, Unit::Field(_)) && written.contains(part);
        if let Some(key) = parts.iter().find(|part| part.unit == Unit::Key)
            && let Some(field) = parts.iter().find(is_field)
        {
            let (key, field) = (called(program, *key), called(program, *field));
            return Err(OpenError::Binding(format!(
                "{field} is kept in {place}, which holds {key}, and a transaction writes it: the object would get another \
                 key. Map it elsewhere, or do not write it"
            )));
        }
        let mut written = parts.into_iter().filter(|part| written.contains(part));
        if let (Some(one), Some(other)) = (written.next(), written.next()) {
            let (one, other) = (called(program, one), called(program, other));
            return Err(OpenError::Binding(format!(
                "{one} and {other} are both kept in {place}, and transactions write both: what is written as \
                 the one would not be seen as the other. Map one of them elsewhere, or write only one of them"
            )));
        }
    }
    Ok(())
}

fn called(program: &Program, part: Part) -> String {
    let object = &program.checked.objects[part.object.index()].declared;
    match part.unit {
        Unit::Field(field) => {
            format!("{}.{}", object.name, object.fields[usize::from(field)].name)
        }
        Unit::Key => format!("the key of {}", object.name),
        Unit::Whole => format!("objects {}", object.name),
    }
}

/// Returns the parts that any transaction writes.
fn written(program: &Program) -> Vec<Part> {
    let mut written = Vec::new();
    let phases = program.plans.iter().flat_map(|plan| &plan.phases);
    for instr in phases.flat_map(|phase| &phase.code) {
        let Instr::Write { write, .. } = instr else { continue };
        let part = |object: &ObjectId, unit| Part { object: *object, unit };
        match &write.kind {
            WriteKind::Assign(object, field) | WriteKind::Collection(object, field, _) => {
                written.push(part(object, Unit::Field(*field)));
            }
            WriteKind::Create(object, fields) => {
                written.push(part(object, Unit::Whole));
                written.extend(fields.iter().map(|field| part(object, Unit::Field(*field))));
            }
            WriteKind::Delete(object) => {
                let count = program.checked.objects[object.index()].declared.fields.len() as u16;
                written.push(part(object, Unit::Whole));
                written.extend((0..count).map(|field| part(object, Unit::Field(field))));
            }
            WriteKind::Command(_) => {}
        }
    }
    written.sort_unstable();
    written.dedup();
    written
}

/// The places of an object in tables or keys of the application, in a text that is equal for equal places.
fn places(engine: &Engine, object: &hir::Object) -> Vec<(String, Unit)> {
    let name = &*object.declared.name;
    match engine {
        #[cfg(feature = "postgres")]
        Engine::Postgres(config) => {
            let Some(mapping) = config.objects.get(name) else { return Vec::new() };
            let database = address(&config.url);
            let table = |name: &str| {
                let schema = if name.contains('.') { "" } else { "public." };
                format!("table {schema}{name} at {database}")
            };
            let fields = mapping
                .fields
                .iter()
                .map(|(field, of)| (field, table(&of.table), [Some(&of.value), of.entry.as_ref()]));
            let columns = |field: &str| written_columns(mapping, field);
            in_tables(object, (&table(&mapping.table), &mapping.key), columns, fields)
        }
        #[cfg(feature = "cassandra")]
        Engine::Cassandra(config) => {
            let Some(mapping) = config.objects.get(name) else { return Vec::new() };
            let mut nodes = config.nodes.clone();
            nodes.sort();
            let nodes = nodes.join(", ");
            let table = |name: &str| format!("table {name} at {nodes}");
            let fields = mapping
                .fields
                .iter()
                .map(|(field, of)| (field, table(&of.table), [Some(&of.value), of.entry.as_ref()]));
            let columns = |field: &str| {
                vec![mapping.columns.get(field).map_or(field, String::as_str).to_owned()]
            };
            in_tables(object, (&table(&mapping.table), &[]), columns, fields)
        }
        #[cfg(feature = "redis")]
        Engine::Redis(config) => {
            let Some(mapping) = config.objects.get(name) else { return Vec::new() };
            let server = address(&config.url);
            // All keys that a pattern matches; the name of the object's key in it does not matter.
            let key = |pattern: &str| format!("keys {} at {server}", without_name(pattern));
            let mut places = Vec::new();
            for (index, field) in object.declared.fields.iter().enumerate() {
                let (name, index) = (field.name.to_string(), Unit::Field(index as u16));
                if let Some(own) = mapping.fields.get(&name) {
                    places.push((key(&own.key), index));
                } else if let Some(hash) = &mapping.key {
                    let column = mapping.columns.get(&name).unwrap_or(&name);
                    places.push((format!("{column} of {}", key(hash)), index));
                }
            }
            places.extend(mapping.key.iter().map(|hash| (key(hash), Unit::Whole)));
            places
        }
        _ => Vec::new(),
    }
}

/// The columns that a write of a field changes. A ref of several columns shares some with the key, and only compares them.
#[cfg(feature = "postgres")]
fn written_columns(mapping: &mingle_store_postgres::ObjectMapping, field: &str) -> Vec<String> {
    let columns = mapping.columns_of(field);
    let is_own = |name: &&str| columns.len() == 1 || !mapping.key.iter().any(|key| key == name);
    columns.iter().copied().filter(is_own).map(str::to_owned).collect()
}

/// The columns and rows of an object's table, and the columns of its collections' tables.
#[cfg(any(feature = "postgres", feature = "cassandra"))]
fn in_tables<'a>(
    object: &hir::Object,
    (table, key): (&str, &[String]),
    columns: impl Fn(&str) -> Vec<String>,
    collections: impl Iterator<Item = (&'a String, String, [Option<&'a String>; 2])>,
) -> Vec<(String, Unit)> {
    let mut places = vec![(format!("rows of {table}"), Unit::Whole)];
    places.extend(key.iter().map(|column| (format!("column {column} of {table}"), Unit::Key)));
    let collections: Vec<_> = collections.collect();
    for (index, field) in object.declared.fields.iter().enumerate() {
        let (name, index) = (field.name.to_string(), Unit::Field(index as u16));
        if let Some((_, table, used)) = collections.iter().find(|(field, ..)| **field == name) {
            let used = used.iter().flatten();
            places.extend(used.map(|column| (format!("column {column} of {table}"), index)));
            continue;
        }
        let columns = columns(&name).into_iter();
        places.extend(columns.map(|column| (format!("column {column} of {table}"), index)));
    }
    places
}

/// A server and its database, without user, password and options.
#[cfg(any(feature = "postgres", feature = "redis"))]
fn address(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    rest.rsplit_once('@').map_or(rest, |(_, place)| place).to_owned()
}

/// A pattern without the name in braces: `user:{name}` becomes `user:{}`.
#[cfg(feature = "redis")]
fn without_name(pattern: &str) -> String {
    match (pattern.find('{'), pattern.rfind('}')) {
        (Some(from), Some(to)) if from < to => {
            format!("{}{{}}{}", &pattern[..from], &pattern[to + 1..])
        }
        _ => pattern.to_owned(),
    }
}

#[cfg(all(test, feature = "postgres", feature = "redis", feature = "cassandra"))]
mod tests {
    use super::*;

    const PROGRAM: &str = "store one: linearizable; store two: linearizable;
        object A in one { key k: string; n: int; m: int; tags: set<string>; }
        object B in one { key k: string; n: int; labels: set<string>; }
        object C in two { key k: string; x: int; }
        ";

    const AT: &str =
        "engine = \"postgres\"\nurl = \"postgres://me:pw@db:5432/shop?sslmode=disable\"\n";

    /// Checks whether a binding of both stores is refused for these transactions.
    #[track_caller]
    fn check(transactions: &str, one: &str, two: &str, expected: Option<&str>) {
        let text = format!("{PROGRAM}{transactions}");
        let program = crate::compile(&text).unwrap_or_else(|errors| panic!("{errors}"));
        let binding = format!("[stores.one]\n{one}\n[stores.two]\n{two}");
        let binding = Binding::parse(&binding).unwrap_or_else(|error| panic!("{error}"));
        let found = check_overlaps(&program, &binding).map_err(|error| error.to_string());
        match (found, expected) {
            (Ok(()), None) => {}
            (Err(error), Some(part)) => assert!(error.contains(part), "{error}"),
            (found, expected) => panic!("{found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn two_objects_on_one_column_are_not_both_written() {
        let both = format!(
            "{AT}[stores.one.objects]\nA = {{ table = \"t\", key = \"id\", fields = {{ tags = {{ table = \
             \"g\", key = \"id\", value = \"tag\" }} }} }}\nB = {{ table = \"public.t\", key = \"id\", \
             fields = {{ labels = {{ table = \"l\", key = \"id\", value = \"label\" }} }} }}"
        );
        let other = "engine = \"embedded\"";
        let write_both = "transaction t(a: ref A, b: ref B) { a.n = 1; b.n = 2; }";
        check(write_both, &both, other, Some("A.n and B.n are both kept in column n of table"));
        check("transaction t(a: ref A, b: ref B) { a.n = b.n; }", &both, other, None);
        check("transaction t(a: ref A, b: ref B) { a.m = 1; b.n = 2; }", &both, other, None);
        let split = "transaction t(a: ref A) { a.n = 1; } transaction u(b: ref B) { b.delete(); }";
        check(split, &both, other, Some("A.n and B.n"));
        let rows =
            "transaction t(a: ref A) { a.delete(); } transaction u() { put B { k: \"x\" }; }";
        check(rows, &both, other, Some("objects A and objects B"));
    }

    #[test]
    fn two_fields_on_one_column_are_not_both_written() {
        let one = format!(
            "{AT}[stores.one.objects]\nA = {{ table = \"t\", key = \"id\", columns = {{ m = \"n\" }}, \
             fields = {{ tags = {{ table = \"g\", key = \"id\", value = \"tag\" }} }} }}"
        );
        let other = "engine = \"embedded\"";
        check("transaction t(a: ref A) { a.n = 1; a.m = 2; }", &one, other, Some("A.n and A.m"));
        check("transaction t(a: ref A) -> int { a.n = 1; return a.m; }", &one, other, None);
    }

    #[test]
    fn a_field_on_the_column_of_a_key_is_not_written() {
        let one = format!(
            "{AT}[stores.one.objects]\nA = {{ table = \"t\", key = \"id\", columns = {{ m = \"id\" }}, \
             fields = {{ tags = {{ table = \"g\", key = \"id\", value = \"tag\" }} }} }}"
        );
        let other = "engine = \"embedded\"";
        let says =
            "A.m is kept in column id of table public.t at db:5432/shop, which holds the key of A";
        check("transaction t(a: ref A) { a.m = 1; }", &one, other, Some(says));
        check("transaction t(a: ref A) -> int { a.n = 1; return a.m; }", &one, other, None);
    }

    #[test]
    fn two_collections_in_one_table_are_not_both_written() {
        let one = format!(
            "{AT}[stores.one.objects]\nA = {{ table = \"t\", key = \"id\", fields = {{ tags = {{ table = \
             \"g\", key = \"id\", value = \"tag\" }} }} }}\nB = {{ table = \"u\", key = \"id\", fields = {{ \
             labels = {{ table = \"g\", key = \"of\", value = \"tag\" }} }} }}"
        );
        let write_both =
            "transaction t(a: ref A, b: ref B) { a.tags.insert(\"x\"); b.labels.clear(); }";
        check(write_both, &one, "engine = \"embedded\"", Some("A.tags and B.labels"));
    }

    #[test]
    fn stores_that_share_a_table_are_not_both_written() {
        let one = format!(
            "{AT}[stores.one.objects]\nA = {{ table = \"t\", key = \"id\", fields = {{ tags = {{ table = \
             \"g\", key = \"id\", value = \"tag\" }} }} }}"
        );
        let two = |database: &str| {
            format!(
                "engine = \"postgres\"\nurl = \"postgresql://other@db:5432/{database}\"\n\
                 [stores.two.objects]\nC = {{ table = \"t\", key = \"id\", columns = {{ x = \"n\" }} }}"
            )
        };
        let write_both = "transaction t(a: ref A, c: ref C) { a.n = 1; c.x = 2; }";
        check(write_both, &one, &two("shop"), Some("A.n and C.x"));
        check(write_both, &one, &two("elsewhere"), None);
    }

    #[test]
    fn keys_and_tables_of_other_engines_are_compared_too() {
        let redis = |store: &str, object: &str, column: &str| {
            format!(
                "engine = \"redis\"\nurl = \"redis://cache:6379\"\n[stores.{store}.objects.{object}]\n\
                 key = \"user:{{k}}\"\n{column}"
            )
        };
        let one = redis("one", "A", "fields = { tags = { key = \"tags:{k}\", type = \"set\" } }");
        let two = redis("two", "C", "columns = { x = \"n\" }");
        let write_both = "transaction t(a: ref A, c: ref C) { a.n = 1; c.x = 2; }";
        check(write_both, &one, &two, Some("A.n and C.x are both kept in n of keys user:{}"));
        let cassandra = |store: &str, object: &str, more: &str| {
            format!(
                "engine = \"cassandra\"\nnodes = [\"c:9042\"]\ndatacenters = [\"dc1\"]\n\
                 [stores.{store}.objects]\n{object} = {{ table = \"shop.t\", key = \"id\"{more} }}"
            )
        };
        let tags = ", fields = { tags = { table = \"shop.g\", key = \"id\", value = \"tag\" } }";
        let (one, two) =
            (cassandra("one", "A", tags), cassandra("two", "C", ", columns = { x = \"n\" }"));
        check(write_both, &one, &two, Some("A.n and C.x"));
        check("transaction t(a: ref A, c: ref C) { a.n = c.x; }", &one, &two, None);
    }
}
