//! The files that the command writes, and its messages about them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mingle_gen::one_line;
use mingle_lang::syntax::{lex, parse};

use super::design::{Collection, Design, Field, Kind, LeftOut, Object};
use super::names::of_variable;
use super::overview::overview;

/// Returns the program.
pub fn program(design: &Design) -> String {
    let Design { store, kind, .. } = design;
    let mut text = kind.opening(&one_line(&design.schema));
    write!(text, "\nstore {store}: {};\n", kind.level()).expect("a string takes all");
    text.extend(design.enums.iter().map(String::as_str));
    for object in &design.objects {
        text += &declaration(*kind, store, object);
    }
    for object in asked_for(design) {
        text += &transaction(*kind, object);
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

impl Kind {
    /// Returns the comment at the top of a program.
    fn opening(self, schema: &str) -> String {
        match self {
            Self::Postgres => format!(
                "// Begun with the tables of the schema {schema}, which stay as they are. The binding, \
                 mingle.toml,\n// says which object is in which table.\n"
            ),
            Self::Cassandra => format!(
                "// Begun with the tables of the keyspace {schema}, which stay as they are. The binding, \
                 mingle.toml,\n// says which object is in which table. Any column may be null, so each \
                 register is an option; one\n// declared without it reads a null as the default of its \
                 type.\n"
            ),
            Self::Redis => "// Begun with a sample of a server's keys, which stay as they are. The binding, \
                 mingle.toml, says\n// which object is in which keys. Types are those of the values in the \
                 sample: check them, since\n// a value of another type is an error of the read that meets \
                 it.\n"
                .into(),
        }
    }

    /// Returns the level of the store.
    fn level(self) -> &'static str {
        if self == Self::Cassandra { "eventual" } else { "linearizable" }
    }

    /// Returns the documentation of an object.
    fn doc(self, object: &Object) -> String {
        let table = one_line(&object.table);
        let found = object.found.as_ref().map(|found| format!(": {}", one_line(found)));
        match self {
            Self::Postgres | Self::Cassandra => format!("A row of {table}."),
            Self::Redis => format!("The keys {table}{}.", found.unwrap_or_default()),
        }
    }

    /// Returns the words for an object's data: the place of its fields, the part of it that is there or not, and a
    /// sentence that says that it is there.
    fn words(self, table: &str) -> (String, &'static str, String) {
        match self {
            Self::Postgres | Self::Cassandra => {
                (format!("a row of {table}"), "row", format!("{table} has a row of this key"))
            }
            Self::Redis => (table.to_owned(), "key", format!("{table} is there")),
        }
    }

    /// Returns the word for parts of an object's place.
    pub fn parts(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Redis, 1) => "field",
            (Self::Redis, _) => "fields",
            (_, 1) => "column",
            (..) => "columns",
        }
    }
}

/// Returns the line on a table that is left out.
pub fn table(LeftOut { name, kind, why }: &LeftOut) -> String {
    one_line(&format!("{kind} {name}: {why}"))
}

fn declaration(kind: Kind, store: &str, object: &Object) -> String {
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
    write!(text, "\n/// {}\nobject {name} in {store} {{\n", kind.doc(object))
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
        writeln!(text, "    {index}").expect("a string takes all");
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

fn transaction(kind: Kind, object: &Object) -> String {
    let Object { name, .. } = object;
    let table = one_line(&object.table);
    let (place, part, has) = kind.words(&table);
    let (find, variable) = (find(object), of_variable(name));
    let head = format!("transaction {find}({variable}: ref {name})");
    // In Redis, a register may have a key of its own.
    let own =
        object.collections.iter().filter(|field| field.value == "string" && kind == Kind::Redis);
    let registers = object.fields.iter().map(|field| (&field.name, &field.declared));
    let registers = registers.chain(own.map(|field| (&field.name, &field.declared)));
    let shown = registers.clone().find(|(_, declared)| declared.contains("string"));
    let Some((field, declared)) = shown.or(registers.clone().next()) else {
        return format!(
            "\n/// Whether {has}.\n\
             {head} -> bool {{\n    return {variable}.exists();\n}}\n"
        );
    };
    let doc = format!("\n/// The {field} of {place}, none where there is no such {part}");
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

/// Returns a text as a string of TOML.
pub fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The message after a design: its engine's sentences, and the commands to run next.
pub struct Next<'a> {
    /// The sentences on the effects of the first call.
    pub effects: String,
    /// The commands between `check` and `run`, with their purposes.
    pub commands: Vec<String>,
    /// The variable of the password.
    pub variable: Option<&'a str>,
}

/// Returns the message on the files that were written, and on the next steps.
pub fn next(design: &Design, file: &str, next: &Next<'_>) -> String {
    let count = design.objects.len();
    let objects = if count == 1 { "object" } else { "objects" };
    let mut text = format!("wrote {file} ({count} {objects}) and mingle.toml\n");
    text += &overview(design);
    write!(text, "\n{} Next:\n", next.effects).expect("a string takes all");
    if let Some(variable) = next.variable {
        writeln!(text, "  export {variable}=…    the password, which is in neither file")
            .expect("a string takes all");
    }
    let first = asked_for(design)[0];
    let (find, parameter) = (find(first), of_variable(&first.name));
    writeln!(text, "  mingle check {file}").expect("a string takes all");
    for command in &next.commands {
        writeln!(text, "  {command}").expect("a string takes all");
    }
    write!(
        text,
        "  mingle run {file} {find} {parameter}=KEY\n\
         Then write transactions, and give what may be weaker a store of its own.\n"
    )
    .expect("a string takes all");
    text
}

#[cfg(all(test, feature = "postgres"))]
mod tests;
