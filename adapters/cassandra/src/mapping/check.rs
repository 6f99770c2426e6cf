//! Checks of a mapping against its object and the existing tables.

use std::collections::BTreeMap;

use mingle_model::{Field, FieldType, Name, ObjectType, Schema, Type};
use mingle_store::StoreSchema;
use scylla::client::session::Session;
use scylla::cluster::metadata::{ColumnKind, ColumnType, NativeType, Table};
use scylla::value::{CqlValue, Row};

use super::{Collection, CollectionMapping, Column, Mapped, ObjectMapping};
use crate::config::{CassandraConfig, OpenError};
use crate::cql_type;
use crate::open::quoted;
use crate::scalar::{self, Kind};

/// Checks all mappings; returns them by object, with warnings about their tables.
pub async fn mapped(
    cluster: &Session,
    config: &CassandraConfig,
    schema: &StoreSchema,
) -> Result<(BTreeMap<Name, Mapped>, Vec<String>), OpenError> {
    let (mut all, mut warnings) = (BTreeMap::new(), Vec::new());
    for (declared, mapping) in declared(config, schema)? {
        let refused = |reason: String| OpenError::Mapping {
            store: schema.store.clone(),
            object: declared.name.clone(),
            reason,
        };
        let check = Check { cluster, schema: &schema.schema };
        all.insert(declared.name.clone(), check.object(declared, mapping).map_err(refused)?);
        let others = mapping.fields.values().map(|field| &field.table);
        for table in others.chain([&mapping.table]) {
            let ttl = time_to_live(cluster, table).await.map_err(refused)?;
            if ttl > 0 {
                warnings.push(format!(
                    "store {}: rows of {table} vanish {ttl} s after they were written \
                     (default_time_to_live), as if somebody had deleted them",
                    schema.store
                ));
            }
        }
    }
    Ok((all, warnings))
}

/// Returns the mapped objects, after the checks that do not need their tables.
pub fn declared<'a>(
    config: &'a CassandraConfig,
    schema: &'a StoreSchema,
) -> Result<Vec<(&'a ObjectType, &'a ObjectMapping)>, OpenError> {
    let checked = config.objects.iter().map(|(name, mapping)| {
        let refused = |reason: String| OpenError::Mapping {
            store: schema.store.clone(),
            object: name.as_str().into(),
            reason,
        };
        let declared = schema.schema.objects.get(name.as_str());
        let declared = declared.filter(|declared| declared.store == schema.store);
        let declared = declared.ok_or_else(|| refused("no such object lives here".into()))?;
        let named = mapping.columns.keys().chain(mapping.fields.keys());
        let unknown = named.into_iter().find(|field| declared.field_index(field).is_none());
        if let Some(unknown) = unknown {
            return Err(refused(format!("it has no field {unknown}")));
        }
        for table in mapping.fields.values().map(|field| &field.table).chain([&mapping.table]) {
            split(table).map_err(refused)?;
        }
        Ok((&**declared, mapping))
    });
    checked.collect()
}

async fn time_to_live(cluster: &Session, table: &str) -> Result<i32, String> {
    let (keyspace, table) = split(table)?;
    let query = "SELECT default_time_to_live FROM system_schema.tables \
                 WHERE keyspace_name = ? AND table_name = ?";
    let found = cluster.query_unpaged(query, (keyspace, table)).await;
    let rows = found.map_err(|error| error.to_string())?.into_rows_result();
    let rows = rows.map_err(|error| error.to_string())?;
    let row = rows.maybe_first_row::<Row>().map_err(|error| error.to_string())?;
    let column = row.and_then(|row| row.columns.into_iter().next().flatten());
    Ok(column.as_ref().and_then(CqlValue::as_int).unwrap_or(0))
}

/// Splits a table's name into keyspace and table.
fn split(table: &str) -> Result<(&str, &str), String> {
    let named = table.split_once('.').filter(|(_, table)| !table.contains('.'));
    named.ok_or_else(|| format!("expected KEYSPACE.TABLE, found {table:?}"))
}

struct Check<'a> {
    cluster: &'a Session,
    schema: &'a Schema,
}

impl Check<'_> {
    fn object(&self, declared: &ObjectType, mapping: &ObjectMapping) -> Result<Mapped, String> {
        for name in mapping.columns.keys().chain(mapping.fields.keys()) {
            if !declared.fields.iter().any(|field| *field.name == **name) {
                return Err(format!("it has no field {name}"));
            }
        }
        let table = self.table(&mapping.table)?;
        let keys = [&table.partition_key[..], &table.clustering_key].concat();
        if keys != [mapping.key.clone()] {
            return Err(format!(
                "column {} is not the whole primary key of {}, which is {}",
                mapping.key,
                mapping.table,
                keys.join(", ")
            ));
        }
        let key = column(self.schema, &table, &mapping.table, &mapping.key, &declared.key_type)?;
        let (mut registers, mut collections) = (BTreeMap::new(), BTreeMap::new());
        for field in &declared.fields {
            let name = field.name.to_string();
            if let FieldType::Register(of) = &field.field_type {
                let called = mapping.columns.get(&name).unwrap_or(&name);
                let found = column(self.schema, &table, &mapping.table, called, of)?;
                registers.insert(name, found);
            } else if mapping.columns.contains_key(&name) {
                let called = &mapping.columns[&name];
                let found = table.columns.get(called).map(|column| &column.typ);
                return Err(not_a_column(field, called, found));
            } else if let Some(mapped) = mapping.fields.get(&name) {
                let found = self.collection(declared, field, mapped);
                collections
                    .insert(name, found.map_err(|why| format!("field {}: {why}", field.name))?);
            } else if let Some(column) = table.columns.get(&name) {
                // The field would be mistaken for this column, and other applications continue to
                // use the column.
                return Err(not_mapped(field, &mapping.table, &column.typ));
            }
        }
        Ok(Mapped { table: full(&mapping.table)?, key, registers, collections })
    }

    fn collection(
        &self,
        object: &ObjectType,
        field: &Field,
        mapping: &CollectionMapping,
    ) -> Result<Collection, String> {
        let table = self.table(&mapping.table)?;
        let at = |name: &str, of: &Type| column(self.schema, &table, &mapping.table, name, of);
        let (clustering, value) = match (&field.field_type, &mapping.entry, &mapping.order) {
            (FieldType::Set(of), None, None) => (at(&mapping.value, of)?, None),
            (FieldType::Map(of, value), Some(entry), None) => {
                (at(entry, of)?, Some(at(&mapping.value, value)?))
            }
            (FieldType::Log(of), None, Some(order)) => {
                let order = at(order, &Type::String)?;
                if order.kind != Kind::TimeUuid {
                    return Err(format!(
                        "column {} says the order of a log, so it must be a timeuuid",
                        order.name
                    ));
                }
                (order, Some(at(&mapping.value, of)?))
            }
            (FieldType::Map(..), _, _) => return Err("a map needs `entry`, and no `order`".into()),
            (FieldType::Log(_), _, _) => return Err("a log needs `order`, and no `entry`".into()),
            (FieldType::Set(_), _, _) => {
                return Err("a set needs neither `entry` nor `order`".into());
            }
            _ => return Err(not_a_column(field, &mapping.value, None)),
        };
        let called = mapping.entry.as_ref().or(mapping.order.as_ref()).unwrap_or(&mapping.value);
        if table.partition_key != [mapping.key.clone()] || table.clustering_key != [called.clone()]
        {
            return Err(format!(
                "the primary key of {} is (({}), {}), expected (({}), {called})",
                mapping.table,
                table.partition_key.join(", "),
                table.clustering_key.join(", "),
                mapping.key,
            ));
        }
        let key = at(&mapping.key, &object.key_type)?;
        Ok(Collection { table: full(&mapping.table)?, key, clustering, value })
    }

    fn table(&self, name: &str) -> Result<Table, String> {
        let (keyspace, table) = split(name)?;
        let state = self.cluster.get_cluster_state();
        let found = state.get_keyspace(keyspace).and_then(|keyspace| keyspace.tables.get(table));
        found.cloned().ok_or_else(|| format!("there is no table {name}"))
    }
}

fn full(table: &str) -> Result<String, String> {
    let (keyspace, table) = split(table)?;
    Ok(format!("{}.{}", quoted(keyspace), quoted(table)))
}

/// Returns the reason why a field that is no register cannot be in this column.
fn not_a_column(field: &Field, column: &str, found: Option<&ColumnType<'_>>) -> String {
    let column = found
        .map_or_else(|| column.to_owned(), |found| format!("{column} ({})", cql_type::name(found)));
    match field.field_type {
        FieldType::Counter => format!(
            "field {} is a counter, and column {column} cannot hold it: a native counter counts \
             again what is sent again, and a number does not merge what is added at the same time; \
             leave it out, and it is kept in a table of our own",
            field.name
        ),
        _ => format!(
            "field {} is a {}, which cannot be in column {column}: a native collection does not say when \
             each element was written; map it to a table of its own (`fields.{}`)",
            field.name, field.field_type, field.name
        ),
    }
}

/// Returns the reason why a field cannot be in the store's own table while the object's table has a
/// column with its name.
fn not_mapped(field: &Field, table: &str, found: &ColumnType<'_>) -> String {
    let (name, found) = (&field.name, cql_type::name(found));
    let (why, instead) = match field.field_type {
        FieldType::Counter => ("no column can hold a counter", String::new()),
        _ => (
            "elements of a native collection do not say when they were written",
            format!("map it to a table of its own (`fields.{name}`), or "),
        ),
    };
    format!(
        "field {name} is a {}, and column {name} of {table} is a {found}, in which it cannot be: {why}; \
         {instead}give the field another name, and it is kept in a table of our own",
        field.field_type
    )
}

fn column(
    schema: &Schema,
    table: &Table,
    shown: &str,
    name: &str,
    of: &Type,
) -> Result<Column, String> {
    let missing = || format!("table {shown} has no column {name}");
    let found = table.columns.get(name).ok_or_else(missing)?;
    if found.typ == ColumnType::Native(NativeType::Counter) {
        return Err(format!(
            "column {name} of {shown} is a native counter, which counts again what is sent again"
        ));
    }
    if found.kind == ColumnKind::Static {
        return Err(format!(
            "column {name} of {shown} is static: one for a whole partition, not for a row"
        ));
    }
    let kind = Kind::of(&found.typ);
    let kind = kind.ok_or_else(|| {
        format!(
            "column {name} of {shown} is a {}, which has no form in a program",
            cql_type::name(&found.typ)
        )
    })?;
    if kind == Kind::Number && found.kind == ColumnKind::PartitionKey {
        return Err(format!(
            "column {name} of {shown} is a decimal and part of a key: Cassandra would take 1.5 and 1.50 for two keys"
        ));
    }
    scalar::check(schema, kind, of).map_err(|why| format!("column {name} of {shown}: {why}"))?;
    Ok(Column { name: quoted(name), kind })
}
