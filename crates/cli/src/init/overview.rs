//! The table of the parts of a schema, with the place of each in the program or the reason why it has none.

use std::collections::BTreeSet;

use mingle_gen::one_line;

use super::design::{Design, Field, Kind, LeftOut, Object};

/// A part of a schema.
struct Line {
    /// Its table, by which the lines are sorted.
    table: String,
    /// Its name.
    part: String,
    /// Its place in the program, or the reason why it has none.
    place: String,
}

/// Returns a table of all tables and views of the schema and of the columns that are left out.
///
/// ```text
/// in the database     in the program
/// customers           object Customer with 6 of 7 columns
/// customers.span      left out: tstzrange: no type is a range; two columns would fit
/// product_tags        Product.tags: set<ref Tag>
/// view big_orders     left out: only tables are mapped; a declared `query` can read it
/// ```
pub fn overview(design: &Design) -> String {
    let mut lines: Vec<Line> =
        design.objects.iter().flat_map(|object| of_object(design.kind, object)).collect();
    lines.extend(design.left_out.iter().map(|LeftOut { name, kind, why }| Line {
        table: name.clone(),
        part: if ["table", "keys"].contains(&&**kind) {
            name.clone()
        } else {
            format!("{kind} {name}")
        },
        place: format!("left out: {why}"),
    }));
    lines.sort_by(|a, b| a.table.cmp(&b.table));
    let head = Line {
        table: String::new(),
        part: "in the database".into(),
        place: "in the program".into(),
    };
    let all = [head].into_iter().chain(lines);
    let rows: Vec<(String, String)> =
        all.map(|line| (one_line(&line.part), one_line(&line.place))).collect();
    let width = rows.iter().map(|(part, _)| part.chars().count()).max().unwrap_or(0).min(40);
    let lines = rows.iter().map(|(part, place)| format!("{part:<width$}  {place}\n"));
    format!("\n{}", lines.collect::<String>())
}

fn of_object(kind: Kind, object: &Object) -> Vec<Line> {
    let table = &object.table;
    let line = |part: String, place: String| Line { table: table.clone(), part, place };
    let fields = object.fields.iter().chain(&object.key.parts);
    let columns: BTreeSet<&String> = fields.flat_map(Field::columns).collect();
    let mapped = if kind == Kind::Redis { object.fields.len() } else { columns.len() };
    let count = match object.left_out.len() {
        0 => format!("{mapped} {}", kind.parts(mapped)),
        more => format!("{mapped} of {} {}", mapped + more, kind.parts(mapped + more)),
    };
    let found = object.found.as_ref().map(|found| format!("; {found}")).unwrap_or_default();
    let mut lines = Vec::new();
    // An object of Redis without a hash has keys of its fields only.
    if kind != Kind::Redis || mapped > 0 {
        lines.push(line(table.clone(), format!("object {} with {count}{found}", object.name)));
    }
    lines.extend(object.left_out.iter().map(|LeftOut { name, kind, why }| {
        line(format!("{table}.{name}"), format!("left out: {kind}: {why}"))
    }));
    lines
        .extend(object.remarks.iter().map(|remark| line(table.clone(), format!("note: {remark}"))));
    lines.extend(object.collections.iter().map(|collection| {
        let more = collection.remark.as_ref().map(|remark| format!("; {remark}"));
        let (name, declared) = (&collection.name, &collection.declared);
        Line {
            table: collection.table.clone(),
            part: collection.table.clone(),
            place: format!("{}.{name}: {declared}{}", object.name, more.unwrap_or_default()),
        }
    }));
    lines
}
