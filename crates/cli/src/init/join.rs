//! Tables whose key has two columns, one of which refers to an object: its sets and maps.

use mingle_store_postgres::{ColumnDescription, TableDescription};

use super::objects::{Collection, Known};

/// The sets and maps that a join table becomes, with the object that they belong to.
pub struct Join {
    /// The object's name.
    pub owner: String,
    /// A set, or a map if a row must have a further value.
    pub collections: Vec<Collection>,
}

/// Returns the sets or maps for a table, or none if it is not a join table.
pub fn collections(table: &TableDescription, known: &Known<'_>) -> Option<Join> {
    let [first, second] = &table.key[..] else { return None };
    let (owner, key, element) = match known.object(table, first) {
        Some(owner) => (owner, first, second),
        None => (known.object(table, second)?, second, first),
    };
    let of_key = |name: &String| table.columns.iter().find(|column| column.name == *name);
    if table.key.iter().any(|key| of_key(key).is_none_or(|column| column.key_obstacle.is_some())) {
        return None;
    }
    known.declared(table, of_key(key)?).ok()?;
    let entry = known.declared(table, of_key(element)?).ok()?;
    let rest: Vec<&ColumnDescription> =
        table.columns.iter().filter(|column| !table.key.contains(&column.name)).collect();
    let needed: Vec<&ColumnDescription> =
        rest.iter().copied().filter(|column| column.is_not_null && !column.has_default).collect();
    let one = Collection {
        name: table.name.clone(),
        declared: format!("set<{entry}>"),
        table: table.name.clone(),
        key: key.clone(),
        entry: None,
        order: None,
        value: element.clone(),
        remark: None,
    };
    let collections = if needed.is_empty() {
        let names: Vec<&str> = rest.iter().map(|column| &*column.name).collect();
        let remark = (!names.is_empty())
            .then(|| format!("left out of {}: {}", table.name, names.join(", ")));
        let target = table.foreign_keys.iter().find(|key| key.columns == [element.as_str()]);
        let name = target.map_or(&one.name, |key| &key.table).clone();
        vec![Collection { name, remark, ..one }]
    } else {
        // A new row needs all of its required values at once; only an object can write them
        // together.
        let [value] = needed[..] else { return None };
        vec![map(known, table, &entry, value, one)?]
    };
    Some(Join { owner: owner.to_owned(), collections })
}

fn map(
    known: &Known<'_>,
    table: &TableDescription,
    entry: &str,
    column: &ColumnDescription,
    one: Collection,
) -> Option<Collection> {
    let value = known.declared(table, column).ok()?;
    Some(Collection {
        declared: format!("map<{entry}, {value}>"),
        entry: Some(one.value),
        value: column.name.clone(),
        ..one
    })
}
