//! Objects for the tables of a keyspace.

use mingle_model::Type;
use mingle_store_cassandra::{ColumnDescription, KeyspaceDescription, TableDescription};

use super::owner;
use crate::init::design::{Collection, Design, Field, Key, Kind, LeftOut, Object};
use crate::init::names::{Taken, identifier, of_object};

/// Designs the objects for a keyspace.
pub fn design(store: &str, keyspace: &str, found: &KeyspaceDescription) -> Design {
    let mut taken = Taken::default();
    taken.take(store.to_owned());
    let mut design = Design {
        store: store.to_owned(),
        kind: Kind::Cassandra,
        schema: keyspace.to_owned(),
        ..Design::default()
    };
    let mut owners: Vec<&TableDescription> = Vec::new();
    for table in found.tables.iter().filter(|table| key_of(table).is_some()) {
        design.objects.push(object(table, taken.take(of_object(&table.name))));
        owners.push(table);
    }
    for table in found.tables.iter().filter(|table| key_of(table).is_none()) {
        match collection(table, &owners) {
            Ok((owner, collection)) => {
                let mut objects = design.objects.iter_mut();
                let owner = objects.find(|object| object.table == owner);
                owner.expect("the owner is an object").add(collection);
            }
            Err(why) => design.left_out.push(LeftOut {
                name: table.name.clone(),
                kind: "table".into(),
                why,
            }),
        }
    }
    design.left_out.extend(found.views.iter().map(|name| LeftOut {
        name: name.clone(),
        kind: "view".into(),
        why: "only tables are mapped; a declared `query` can read it".into(),
    }));
    design
}

/// Returns the column that is the key of a table's objects; none if its rows are no objects.
fn key_of(table: &TableDescription) -> Option<&ColumnDescription> {
    let ([key], [], None) = (&table.partition_key[..], &table.clustering_key[..], &table.obstacle)
    else {
        return None;
    };
    let column = table.column(key)?;
    (column.fits.is_ok() && column.key_obstacle.is_none()).then_some(column)
}

fn object(table: &TableDescription, name: String) -> Object {
    let mut taken = Taken::default();
    let key = key_of(table).expect("the table was chosen for its key");
    let mut field = |column: &ColumnDescription, declared: String| Field {
        name: taken.take(identifier(&column.name, "column")),
        column: column.name.clone(),
        more: Vec::new(),
        declared,
        is_read_only: false,
    };
    let of_key = key.fits.as_ref().map(ToString::to_string).unwrap_or_default();
    let part = field(key, of_key);
    let (mut fields, mut left_out) = (Vec::new(), Vec::new());
    for column in table.columns.iter().filter(|column| column.name != key.name) {
        match &column.fits {
            Ok(fits) => fields.push(field(column, format!("option<{fits}>"))),
            Err(why) => left_out.push(LeftOut {
                name: column.name.clone(),
                kind: column.cql_type.clone(),
                why: why.clone(),
            }),
        }
    }
    Object {
        name,
        table: table.name.clone(),
        found: None,
        key: Key { name: part.name.clone(), declared: part.declared.clone(), parts: vec![part] },
        fields,
        collections: Vec::new(),
        indexes: Vec::new(),
        left_out,
        remarks: remarks(table),
    }
}

/// Returns remarks on a table: its rows vanish, or it has indexes.
fn remarks(table: &TableDescription) -> Vec<String> {
    let seconds = table.time_to_live_s;
    let mut remarks = Vec::new();
    if seconds > 0 {
        remarks.push(format!(
            "rows vanish {seconds} s after they were written (default_time_to_live), rows that Mingle writes, too"
        ));
    }
    remarks.extend(table.indexes.iter().map(|(index, target)| {
        format!(
            "index {index} on {target}: a store in Cassandra has no `index by`; a declared `query` can use it"
        )
    }));
    remarks
}

/// Returns the set, map or log that a table is, with the table of the object that it belongs to; or the reason why it is
/// left out.
fn collection(
    table: &TableDescription,
    owners: &[&TableDescription],
) -> Result<(String, Collection), String> {
    if let Some(why) = &table.obstacle {
        return Err(why.clone());
    }
    let key = &table.partition_key;
    if let ([own], []) = (&key[..], &table.clustering_key[..]) {
        return Err(key_obstacle(table, own).unwrap_or_default());
    }
    let ([key], [clustering]) = (&key[..], &table.clustering_key[..]) else {
        let (partition, clustering) = (key.join(", "), table.clustering_key.join(", "));
        let clustering = if clustering.is_empty() { clustering } else { format!(", {clustering}") };
        return Err(format!(
            "its primary key is (({partition}){clustering}): the key of an object is one column, and a set, map or \
             log has one clustering column beside it; a declared `query` can read it"
        ));
    };
    if let Some(why) = key_obstacle(table, key) {
        return Err(why);
    }
    let at = table.column(clustering).expect("the clustering column is a column");
    let unit = at.fits.as_ref();
    let unit = unit.map_err(|why| format!("its column {clustering} is {}: {why}", at.cql_type))?;
    let owner = owner::find(table, owners)?;
    let rest = table.columns.iter();
    let rest: Vec<&ColumnDescription> =
        rest.filter(|column| ![key, clustering].contains(&&column.name)).collect();
    let mut remark =
        vec![format!("belongs to {}, as the name of its column {key} says", owner.name)];
    let (declared, entry, order, value) = match rest[..] {
        [ColumnDescription { name: value, fits: Ok(of), .. }] => match &*at.cql_type {
            "timeuuid" => (format!("log<{of}>"), None, Some(clustering.clone()), value),
            _ => (map_of(unit, of), Some(clustering.clone()), None, value),
        },
        _ => {
            let names: Vec<&str> = rest.iter().map(|column| &*column.name).collect();
            if !names.is_empty() {
                remark.push(format!("left out of {}: {}", table.name, names.join(", ")));
            }
            (format!("set<{unit}>"), None, None, clustering)
        }
    };
    remark.extend(remarks(table));
    let collection = Collection {
        name: owner::field_name(&table.name, &owner.name),
        declared,
        table: table.name.clone(),
        key: key.clone(),
        entry,
        order,
        value: value.clone(),
        remark: Some(remark.join("; ")),
    };
    Ok((owner.name.clone(), collection))
}

fn map_of(key: &Type, value: &Type) -> String {
    format!("map<{key}, {value}>")
}

/// Returns the reason why a column is no key of an object; none if it is one.
fn key_obstacle(table: &TableDescription, key: &str) -> Option<String> {
    let column = table.column(key)?;
    let why = column.fits.as_ref().err().or(column.key_obstacle.as_ref())?;
    Some(format!("its key {key} is {}: {why}", column.cql_type))
}
