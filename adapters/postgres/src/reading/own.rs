//! Statements that read Mingle's own tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mingle_store::KeyRange;

use crate::codec::Codec;
use crate::encoding::Digest;
use crate::layout::{Field, Kind, Layout, Place, Shape};
use crate::reading::Window;
use crate::session::Step;
use crate::system::{self, WITNESS_COLUMNS};
use crate::text::{Many, Text};
use crate::together::shifted;
use crate::wire::Param;

fn list(digests: &BTreeSet<Digest>) -> Param {
    Param::BytesList(digests.iter().cloned().collect())
}

/// Number of columns of a kind's rows before the requested columns.
pub const ROW_COLUMNS: usize = 5;

/// Reads a kind's rows: id, existence, version of its last change, version of the deletion,
/// versions of the fields, then the requested columns, in their order.
pub fn rows(layout: &Layout, kind: &Kind, columns: &[u16], objects: Vec<Digest>) -> Step {
    let many = Many::of(objects.len());
    let text = Text::Rows(kind.name.clone(), columns.to_vec(), many);
    let sql = layout.texts.get(text, || rows_text(layout, kind, columns, many));
    Step::new(sql, vec![Param::BytesList(objects)])
}

fn rows_text(layout: &Layout, kind: &Kind, columns: &[u16], many: Many) -> String {
    let Place::Own { table, .. } = &kind.place else {
        unreachable!("a mapped kind is read otherwise")
    };
    let column = |column: &u16| {
        let field = &kind.fields[usize::from(*column)];
        match field.shape() {
            Shape::Register => layout.codec(field.inner()).selected(&field.column),
            Shape::Counter => format!("{}::text", field.column),
            _ => field.column.clone(),
        }
    };
    let head: [&str; ROW_COLUMNS] =
        ["mingle_id", "mingle_exists", "mingle_changed", "mingle_deleted", "mingle_versions"];
    let selected: Vec<String> =
        head.map(str::to_owned).into_iter().chain(columns.iter().map(column)).collect();
    let selected = selected.join(", ");
    format!("SELECT {selected} FROM {table} WHERE {}", many.among("mingle_id"))
}

/// Reads rows of a kind, and witness rows of these objects and of the whole store, in one
/// statement. A result has the columns of the former and then those of the latter; each row fills
/// only one of the two groups.
pub fn rows_and_witnesses(
    layout: &Layout,
    kind: &Kind,
    columns: &[u16],
    objects: Vec<Digest>,
    witnessed: Vec<Digest>,
) -> Step {
    let many = Many::of(objects.len());
    let text = Text::RowsAndWitnesses(kind.name.clone(), columns.to_vec(), many);
    let sql = layout.texts.get(text, || {
        let nulls = |count: usize| vec!["NULL"; count].join(", ");
        format!(
            "SELECT r.*, {} FROM ({}) AS r UNION ALL SELECT {}, w.* FROM ({}) AS w",
            nulls(WITNESS_COLUMNS.split(',').count()),
            rows_text(layout, kind, columns, many),
            nulls(ROW_COLUMNS + columns.len()),
            shifted(&system::rows_text(layout, many), 1),
        )
    });
    Step::new(sql, vec![Param::BytesList(objects), system::with_whole_store(witnessed)])
}

/// Reads elements or entries: id, version, and the value of an entry.
pub fn elements(layout: &Layout, field: &Field, ids: &BTreeSet<Digest>) -> Step {
    let value = match field.shape() {
        Shape::Map => {
            format!(", {}", layout.codec(field.map_value()).selected("mingle_value"))
        }
        _ => String::new(),
    };
    let table = &field.table;
    let among = Many::of(ids.len()).among("mingle_id");
    let sql = format!("SELECT mingle_id, mingle_version{value} FROM {table} WHERE {among}");
    Step::new(sql, vec![list(ids)])
}

/// Reads all elements or entries of objects: the object, the version, the element or key, and the
/// value of an entry.
pub fn whole(layout: &Layout, field: &Field, objects: &BTreeSet<Digest>) -> Step {
    let inner = layout.codec(field.inner());
    let selected = match field.shape() {
        Shape::Map => {
            let value = layout.codec(field.map_value()).selected("mingle_value");
            format!("{}, {value}", inner.selected("mingle_entry"))
        }
        _ => inner.selected("mingle_element"),
    };
    let table = &field.table;
    let sql = format!(
        "SELECT mingle_object, mingle_version, {selected} FROM {table} \
         WHERE mingle_object = ANY($1::bytea[])"
    );
    Step::new(sql, vec![list(objects)])
}

/// Reads a slice of an object's map, in rows as those of [`whole`]; none if the server does not order the keys as the
/// language does.
pub fn slice(layout: &Layout, field: &Field, object: &Digest, range: &KeyRange) -> Option<Step> {
    let (entry, value) = (layout.codec(field.inner()), layout.codec(field.map_value()));
    if !matches!(entry, Codec::Plain(_) | Codec::Key(..)) {
        return None;
    }
    let mut params = vec![Param::Bytes(object.clone())];
    let mut condition = String::new();
    let from = if range.is_after { ">" } else { ">=" };
    for (bound, operator) in [(&range.from, from), (&range.before, "<")] {
        let Some(bound) = bound else { continue };
        params.push(entry.param(&layout.schema, &bound.canonical()));
        let parameter = entry.parameter(params.len());
        // Writing to a text cannot fail.
        let _ = write!(condition, " AND mingle_entry {operator} {parameter}");
    }
    params.push(Param::Int(i64::try_from(range.count).unwrap_or(i64::MAX)));
    let sql = format!(
        "SELECT mingle_object, mingle_version, {}, {} FROM {} \
         WHERE mingle_object = $1::bytea{condition} ORDER BY mingle_entry{} LIMIT ${}::bigint",
        entry.selected("mingle_entry"),
        value.selected("mingle_value"),
        field.table,
        if range.is_last { " DESC" } else { "" },
        params.len()
    );
    Some(Step::new(sql, params))
}

/// Reads sizes of objects' collections: the object, the number of elements or entries, and their
/// newest version.
pub fn sizes(field: &Field, objects: &BTreeSet<Digest>) -> Step {
    let sql = format!(
        "SELECT mingle_object, count(*), max(mingle_version) FROM {} \
         WHERE mingle_object = ANY($1::bytea[]) GROUP BY mingle_object",
        field.table
    );
    Step::new(sql, vec![list(objects)])
}

/// Reads lines of a log, oldest first.
pub fn lines(layout: &Layout, field: &Field, object: &Digest, window: Window) -> Step {
    let line = layout.codec(field.inner()).selected("mingle_line");
    let table = &field.table;
    let whole = |number: u64| Param::Int(i64::try_from(number).unwrap_or(i64::MAX));
    match window {
        Window::Last(count) => Step::new(
            format!(
                "SELECT {line} FROM (SELECT * FROM {table} WHERE mingle_object = $1::bytea \
                 ORDER BY mingle_object DESC, mingle_index DESC LIMIT $2::bigint) AS l \
                 ORDER BY mingle_index"
            ),
            vec![Param::Bytes(object.clone()), whole(count)],
        ),
        Window::Slice(from, count) => Step::new(
            format!(
                "SELECT {line} FROM {table} WHERE mingle_object = $1::bytea \
                 AND mingle_index >= $2::bigint \
                 ORDER BY mingle_object, mingle_index LIMIT $3::bigint"
            ),
            vec![Param::Bytes(object.clone()), whole(from), whole(count)],
        ),
    }
}
