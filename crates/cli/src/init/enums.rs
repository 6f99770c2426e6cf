//! Enumerations for the columns that list their values.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mingle_lang::syntax::token::Keyword;
use mingle_store_postgres::{ColumnDescription, Enumeration, TableDescription};

use super::names::{Taken, identifier, of_object};

/// An enumeration of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enum {
    /// Its name.
    pub name: String,
    /// The names of its values, with their labels.
    pub values: Vec<(String, String)>,
}

/// The column of a table, or a type of the database by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Type(String),
    Column(String, String),
}

/// The enumerations of a schema, by the columns that hold their values.
#[derive(Clone, Debug, Default)]
pub struct Enums(BTreeMap<Source, Enum>);

impl Enums {
    /// Names the enumerations of all columns: after their type in the database, or else after the table and the column.
    pub fn of(tables: &[TableDescription], taken: &mut Taken) -> Self {
        let mut all = Self::default();
        for table in tables {
            for column in &table.columns {
                let Some((source, found)) = source(table, column) else { continue };
                all.0.entry(source).or_insert_with(|| {
                    let name = match &found.name {
                        Some(name) => of_object(name),
                        None => format!("{}{}", of_object(&table.name), of_object(&column.name)),
                    };
                    Enum { name: taken.take(name), values: values(&found.labels) }
                });
            }
        }
        all
    }

    /// Returns the type of a column's values: `declared` with the enumeration in place of `string`.
    pub fn declared(
        &self,
        table: &TableDescription,
        column: &ColumnDescription,
        declared: &str,
    ) -> String {
        match source(table, column).and_then(|(source, _)| self.0.get(&source)) {
            Some(found) => declared.replace("string", &found.name),
            None => declared.to_owned(),
        }
    }

    /// Returns the enumerations that one of these types names, in the order of their names.
    pub fn used<'t>(&self, types: impl Iterator<Item = &'t str>) -> Vec<Enum> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words: Vec<&str> = types.flat_map(|it| it.split(|c| !is_part(c))).collect();
        let used = self.0.values().filter(|found| words.contains(&&*found.name));
        let mut used: Vec<Enum> = used.cloned().collect();
        used.sort_by(|a, b| a.name.cmp(&b.name));
        used
    }
}

fn source<'t>(
    table: &TableDescription,
    column: &'t ColumnDescription,
) -> Option<(Source, &'t Enumeration)> {
    let found = column.enumeration.as_ref()?;
    let source = match &found.name {
        Some(name) => Source::Type(name.clone()),
        None => Source::Column(table.name.clone(), column.name.clone()),
    };
    Some((source, found))
}

/// Returns a name for each label: the label itself where it is a name of the language.
fn values(labels: &[String]) -> Vec<(String, String)> {
    let mut taken = Taken::default();
    let is_name = |label: &str| {
        identifier(label, "value") == label && label != "_" && Keyword::from_text(label).is_none()
    };
    // A label that is a name keeps it; the other labels take names that are left.
    labels.iter().filter(|label| is_name(label)).for_each(|label| {
        taken.take(label.clone());
    });
    let value = |label: &String| {
        if is_name(label) {
            return (label.clone(), label.clone());
        }
        (taken.take(identifier(&label.to_lowercase(), "value")), label.clone())
    };
    labels.iter().map(value).collect()
}

impl Enum {
    /// Returns its declaration.
    pub fn text(&self) -> String {
        let mut text = format!("\nenum {} {{\n", self.name);
        for (name, label) in &self.values {
            let label =
                if name == label { String::new() } else { format!(" = {}", literal(label)) };
            writeln!(text, "    {name}{label},").expect("a string takes all");
        }
        text + "}\n"
    }
}

/// Returns a text as a string of the language. Characters that a reader would not see are escaped.
fn literal(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        c if mingle_gen::one_line(&format!("{c}.")) != format!("{c}.") || c == '\u{feff}' => {
            format!("\\u{{{:x}}}", u32::from(c))
        }
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_are_no_names_get_one() {
        let labels = ["G", "PG-13", "NC-17", "new", "_new", "", "1st", "pg_13", "a\"\\\n\u{202e}"];
        let found = values(&labels.map(str::to_owned));
        let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
        let expected = ["G", "pg_13_2", "nc_17", "new_", "_new", "value", "_1st", "pg_13", "a____"];
        assert_eq!(names, expected);
        let text = Enum { name: "E".into(), values: found }.text();
        let program = format!(
            "store s: causal;\nobject O in s {{ key k: int; e: E; }}\n{text}\ntransaction t(o: ref O) -> E {{ return o.e; }}"
        );
        let checked = mingle_lang::check(program);
        assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
        let read = &checked.program.expect("it has no errors").checked.enums[0];
        let read: Vec<&str> = read.values.iter().map(|value| &*value.label).collect();
        assert_eq!(read, labels);
    }
}
