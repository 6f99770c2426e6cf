//! The files that the command writes, and its messages about them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mingle_gen::one_line;
use mingle_lang::syntax::{lex, parse};

use super::names::of_variable;
use super::objects::{Collection, Design, Field, LeftOut, Object};
use super::overview::overview;

/// Returns the program.
pub fn program(design: &Design) -> String {
    let Design { store, .. } = design;
    let schema = one_line(&design.schema);
    let mut text = format!(
        "// Begun with the tables of the schema {schema}, which stay as they are. The binding, \
         mingle.toml,\n// says which object is in which table.\n\nstore {store}: linearizable;\n"
    );
    text.extend(design.enums.iter().map(super::enums::Enum::text));
    for object in &design.objects {
        text += &declaration(store, object);
    }
    for object in asked_for(design) {
        text += &transaction(object);
    }
    if !design.left_out.is_empty() {
        text += "\n// Left out:\n";
        text.extend(design.left_out.iter().map(|part| format!("// - {}\n", table(part))));
    }
    let source = lex(text);
    let (parsed, diagnostics) = parse(&source);
    // The caller checks the program and reports its errors.
    if diagnostics.is_empty() {
        mingle_lang::format::format(&source, &parsed)
    } else {
        source.text.clone()
    }
}

/// Returns the line on a table that is left out.
pub fn table(LeftOut { name, kind, why }: &LeftOut) -> String {
    one_line(&format!("{kind} {name}: {why}"))
}

fn declaration(store: &str, object: &Object) -> String {
    let Object { name, key, .. } = object;
    let table = one_line(&object.table);
    let mut text = String::new();
    if let [_, _, ..] = &key.parts[..] {
        write!(text, "\n/// The key of {table}.\nstruct {} {{\n", key.declared)
            .expect("a string takes all");
        for part in &key.parts {
            writeln!(text, "    {}: {},", part.name, part.declared).expect("a string takes all");
        }
        text += "}\n";
    }
    write!(text, "\n/// A row of {table}.\nobject {name} in {store} {{\n")
        .expect("a string takes all");
    writeln!(text, "    key {}: {};", key.name, key.declared).expect("a string takes all");
    for Field { name, declared, is_read_only, .. } in &object.fields {
        if *is_read_only {
            text += "    // Can only be read: the database sets it.\n";
        }
        writeln!(text, "    {name}: {declared};").expect("a string takes all");
    }
    for Collection { name, declared, remark, .. } in &object.collections {
        if let Some(remark) = remark {
            writeln!(text, "    // {}", one_line(remark)).expect("a string takes all");
        }
        writeln!(text, "    {name}: {declared};").expect("a string takes all");
    }
    for index in &object.indexes {
        writeln!(text, "    {}", index.text()).expect("a string takes all");
    }
    for remark in &object.remarks {
        writeln!(text, "    // {}", one_line(remark)).expect("a string takes all");
    }
    for LeftOut { name, kind, why } in &object.left_out {
        let line = one_line(&format!("{name} is {kind}: {why}"));
        writeln!(text, "    // Left out: {line}").expect("a string takes all");
    }
    text + "}\n"
}

/// Returns the number of references to an object from other objects.
fn referrers(design: &Design, name: &str) -> usize {
    let is_of_it = |declared: &str| {
        let mut words = declared.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| word == name)
    };
    let others = design.objects.iter().filter(|object| object.name != name);
    let fields = others.flat_map(|object| {
        let fields = object.fields.iter().chain(&object.key.parts).map(|field| &*field.declared);
        fields.chain(object.collections.iter().map(|collection| &*collection.declared))
    });
    fields.filter(|declared| is_of_it(declared)).count()
}

/// Returns the objects of the first transaction: the object that most others refer to, and the
/// objects that no other object uses.
fn asked_for(design: &Design) -> Vec<&Object> {
    let weight = |object: &Object| referrers(design, &object.name);
    let main = design.objects.iter().rev().max_by_key(|object| weight(object));
    let alone = design.objects.iter().filter(|object| weight(object) == 0);
    let mut seen = BTreeSet::new();
    main.into_iter().chain(alone).filter(|object| seen.insert(&object.name)).collect()
}

fn find(object: &Object) -> String {
    format!("find_{}", of_variable(&object.name))
}

fn transaction(object: &Object) -> String {
    let Object { name, .. } = object;
    let table = one_line(&object.table);
    let (find, variable) = (find(object), of_variable(name));
    let head = format!("transaction {find}({variable}: ref {name})");
    let shown = object.fields.iter().find(|field| field.declared.contains("string"));
    let Some(Field { name: field, declared, .. }) = shown.or(object.fields.first()) else {
        return format!(
            "\n/// Whether {table} has a row of this key.\n\
             {head} -> bool {{\n    return {variable}.exists();\n}}\n"
        );
    };
    let doc = format!("\n/// The {field} of a row of {table}, none where there is no such row");
    if declared.starts_with("option<") {
        return format!(
            "{doc}, or null in it.\n{head} -> {declared} {{\n    return {variable}.{field};\n}}\n"
        );
    }
    format!(
        "{doc}.\n{head} -> option<{declared}> {{\n    if !{variable}.exists() {{\n        \
         return none;\n    }}\n    return some({variable}.{field});\n}}\n"
    )
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
            .filter(|field| field.name != field.column)
            .map(|field| format!("{} = {}", field.name, toml_string(&field.column)))
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

fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns the message on the files that were written, and on the next steps.
pub fn next(design: &Design, file: &str, variable: Option<&str>) -> String {
    let count = design.objects.len();
    let objects = if count == 1 { "object" } else { "objects" };
    let mut text = format!("wrote {file} ({count} {objects}) and mingle.toml\n");
    text += &overview(design);
    let own = format!("mingle_{}", design.store);
    write!(
        text,
        "\nThe tables stay as they are. The first call adds a schema {own} beside them, for what \
         the\nruntime has to remember. Next:\n"
    )
    .expect("a string takes all");
    if let Some(variable) = variable {
        writeln!(text, "  export {variable}=…    the password, which is in neither file")
            .expect("a string takes all");
    }
    let first = asked_for(design)[0];
    let (find, parameter) = (find(first), of_variable(&first.name));
    write!(
        text,
        "  mingle check {file}\n  mingle migrate {file}    shows what is added\n  \
         mingle run {file} {find} {parameter}=KEY\n\
         Then write transactions, and give what may be weaker a store of its own.\n"
    )
    .expect("a string takes all");
    text
}

#[cfg(test)]
mod tests;
