//! Foreign keys of the mapped tables, and circles of them.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Name;
use tokio_postgres::Row;

use super::{Mapped, MappedField, Reference, Rows};
use crate::name::quote;

/// Returns a foreign key from a row of the query for them.
pub(super) fn reference(row: &Row) -> Reference {
    let [schema, table] = [0, 1].map(|column| quote(row.get(column)));
    let columns: Vec<String> = row.get::<_, Option<_>>(2).unwrap_or_default();
    let columns = columns.iter().map(|column| quote(column)).collect();
    Reference { table: format!("{schema}.{table}"), columns, is_circle: false }
}

/// Marks the foreign keys that are part of a circle.
pub(super) fn mark_circles(found: &mut BTreeMap<Name, Mapped>) {
    let mut graph: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for mapped in found.values() {
        let collections = mapped.fields.iter().filter_map(MappedField::rows);
        for rows in collections.chain([&mapped.rows]) {
            let tables = rows.references.iter().map(|reference| reference.table.clone());
            graph.insert(rows.table.clone(), tables.collect());
        }
    }
    let mark = |rows: &mut Rows| {
        for reference in &mut rows.references {
            reference.is_circle = leads(&graph, &reference.table, &rows.table);
        }
    };
    for mapped in found.values_mut() {
        mark(&mut mapped.rows);
        mapped.fields.iter_mut().filter_map(MappedField::rows_mut).for_each(mark);
    }
}

/// True if foreign keys lead from one table to another one, or they are the same.
fn leads(graph: &BTreeMap<String, Vec<String>>, from: &str, to: &str) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(table) = next.pop() {
        if table == to {
            return true;
        }
        if seen.insert(table) {
            next.extend(graph.get(table).into_iter().flatten().map(String::as_str));
        }
    }
    false
}
