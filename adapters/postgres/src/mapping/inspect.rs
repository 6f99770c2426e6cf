//! Checks of mappings against the existing tables.

use std::collections::BTreeMap;

use mingle_model::{FieldType, Name, ObjectType, Schema, Type};
use mingle_store::StoreSchema;
use tokio_postgres::Client;

use super::cascades::{Cascade, mark_reached};
use super::circles::{mark_circles, reference};
use super::column::{Column, Described, Use};
use super::joined::check_count;
use super::queries::{CASCADES, COLUMNS, CONSTRAINTS, REFERENCES, REST, UNIQUE, UPDATES};
use super::{CollectionMapping, Mapped, MappedField, MayRefuse, ObjectMapping, Reference, Rows};
use crate::catalog::own_objects;
use crate::error::message;
use crate::name::quote;
use listed::described;
use positions::check_order;

/// The description of a table.
pub(crate) struct Table {
    /// Its name, quoted and with its schema.
    name: String,
    /// Its columns, in order.
    pub(crate) columns: Vec<Described>,
    /// Unique indexes: schema, name, and columns sorted by name.
    unique: Vec<(String, String, Vec<String>)>,
    /// The parts that may refuse a change, apart from columns.
    constraints: MayRefuse,
    /// Triggers that run before a row is changed.
    triggers: Vec<String>,
    /// Its foreign keys.
    references: Vec<Reference>,
    /// The foreign keys by which the deletion of its rows reaches others.
    pub(crate) cascades: Vec<Cascade>,
    /// The foreign keys by which a write of its columns reaches others.
    pub(crate) updates: Vec<Cascade>,
    /// Tables that inherit from it and have rows of their own.
    children: Vec<String>,
    /// True if policies restrict the rows that are visible and can be changed.
    pub(crate) has_row_security: bool,
}

/// Checks all mappings of a store.
///
/// # Errors
///
/// The name of the first object that does not fit, and the reason.
pub(crate) async fn inspect(
    client: &Client,
    schema: &StoreSchema,
    objects: &BTreeMap<String, ObjectMapping>,
) -> Result<BTreeMap<Name, Mapped>, (Name, String)> {
    let mut found = BTreeMap::new();
    for (object, mapping) in check_declared(schema, objects)? {
        let mapped = check(client, schema, object, mapping).await;
        found.insert(object.name.clone(), mapped.map_err(|why| (object.name.clone(), why))?);
    }
    check_folded(client, &found).await?;
    mark_circles(&mut found);
    mark_reached(&mut found);
    Ok(found)
}

/// Checks the keys that take capital letters for small ones. A ref in such a column is read in small letters, so the key
/// of its object must be of the same kind: to another key the spelling would matter.
async fn check_folded(
    client: &Client,
    found: &BTreeMap<Name, Mapped>,
) -> Result<(), (Name, String)> {
    let mut is_checked = false;
    for (name, mapped) in found {
        for column in mapped.columns().filter(|column| column.is_folded()) {
            if !is_checked {
                let checked = super::form::check_folding(client).await;
                checked.map_err(|why| (name.clone(), format!("column {}: {why}", column.name)))?;
                is_checked = true;
            }
        }
        for (column, kind, at) in mapped.referring().filter(|(column, ..)| column.is_folded()) {
            let target = found.get(kind).and_then(|mapped| mapped.rows.keys.get(at));
            if !target.is_some_and(Column::is_folded) {
                let why = format!(
                    "column {} is citext, but the key of {kind} is not: it tells capital letters from small ones",
                    column.name
                );
                return Err((name.clone(), why));
            }
        }
    }
    Ok(())
}

/// Checks the mappings as far as possible without their tables; returns each with its object.
///
/// # Errors
///
/// The name of the object, and the reason.
pub(crate) fn check_declared<'a>(
    schema: &'a StoreSchema,
    objects: &'a BTreeMap<String, ObjectMapping>,
) -> Result<Vec<(&'a ObjectType, &'a ObjectMapping)>, (Name, String)> {
    let checked = objects.iter().map(|(name, mapping)| {
        let object = own_objects(schema).find(|object| *object.name == **name);
        let object = object.ok_or_else(|| {
            (name.as_str().into(), "no object of this name lives in this store".to_owned())
        })?;
        check_fields(&schema.schema, object, mapping).map_err(|why| (object.name.clone(), why))?;
        Ok((object, mapping))
    });
    checked.collect()
}

fn check_fields(
    schema: &Schema,
    object: &ObjectType,
    mapping: &ObjectMapping,
) -> Result<(), String> {
    let known = |name: &String| object.field_index(name).is_some();
    let named = mapping.columns.keys().chain(mapping.fields.keys());
    if let Some(unknown) = named.into_iter().find(|name| !known(name)) {
        return Err(format!("it has no field {unknown}"));
    }
    for field in &object.fields {
        let is_column = matches!(field.field_type, FieldType::Register(_) | FieldType::Counter);
        if is_column == mapping.fields.contains_key(&*field.name) {
            let needs = if is_column { "a column" } else { "a table of its own, in `fields`" };
            let what = format!("{}.{}", object.name, field.name);
            return Err(format!("{what} is {}, which needs {needs}", field.field_type));
        }
        let columns = mapping.columns.get(&*field.name).filter(|columns| columns.len() != 1);
        if let Some(columns) = columns {
            let what = format!("{}.{}", object.name, field.name);
            check_count(schema, &field.field_type, columns.len(), &what)?;
        }
    }
    Ok(())
}

async fn check(
    client: &Client,
    program: &StoreSchema,
    object: &ObjectType,
    mapping: &ObjectMapping,
) -> Result<Mapped, String> {
    let (schema, table) = (&program.schema, Table::of_objects(client, &mapping.table).await?);
    let key_types = key_types(schema, &object.key_type);
    let keys = table.keys(schema, &key_types, &mapping.key, &object.name)?;
    let (numbered, mut used) = (table.numbered(&mapping.key), mapping.key.clone());
    let mut key_indexes = table.unique_key(&mapping.key)?;
    key_indexes.extend(table.uniques(client, program, object, mapping).await?);
    let mut constraints = table.constraints.clone();
    let listed = table.listed(schema, object, mapping)?;
    let mut fields = Vec::with_capacity(object.fields.len());
    for field in &object.fields {
        let what = format!("{}.{}", object.name, field.name);
        let name = field.name.to_string();
        let collection = mapping.fields.get(&name);
        if let Some(collection) = collection {
            let (field, may_refuse, indexes) =
                check_collection(client, schema, &key_types, &field.field_type, collection, &what)
                    .await?;
            constraints.add(may_refuse);
            key_indexes.extend(indexes);
            fields.push(field);
            continue;
        }
        let (field, may_refuse) = table.row_field(schema, field, mapping, (&key_types, &what))?;
        used.extend(mapping.columns_of(&name).into_iter().map(str::to_owned));
        constraints.add(may_refuse);
        fields.push(field);
    }
    // A column that lists its values refuses none of the program's.
    constraints.writes.retain(|refusal| !listed.explains(refusal));
    constraints.writes.extend(table.demands(&used).into_iter().chain(listed.bounds(&table, &used)));
    constraints.deletions.extend(listed.bounds(&table, &mapping.key));
    if let Some(column) = &numbered {
        constraints.writes.insert(format!(
            "GENERATED ALWAYS {column} of {}: only rows that are there can be written",
            table.name
        ));
    }
    let sequence = numbered::sequence(client, &table, &key_types, &mapping.key).await?;
    let (rows, updates) = (table.rows(keys), table.updates(object, mapping));
    let cascades = table.cascades;
    Ok(Mapped { rows, numbered, sequence, fields, constraints, cascades, updates, key_indexes })
}

impl Table {
    /// Returns the foreign keys by which a write of a field reaches other rows, with the field.
    fn updates(&self, object: &ObjectType, mapping: &ObjectMapping) -> Vec<(Name, Cascade)> {
        let registers =
            object.fields.iter().filter(|field| !mapping.fields.contains_key(&*field.name));
        let found = registers.flat_map(|field| {
            let columns = mapping.columns_of(&field.name);
            let updates = self.updates.iter();
            let updates = updates
                .filter(move |update| update.written.iter().any(|it| columns.contains(&&**it)));
            updates.map(|update| (field.name.clone(), update.clone()))
        });
        found.collect()
    }
}

/// Returns the types of a key's columns.
fn key_types(schema: &Schema, key_type: &Type) -> Vec<Type> {
    match key_type {
        Type::Struct(name) => match schema.structs.get(name) {
            Some(declared) => declared.fields.iter().map(|(_, inner)| inner.clone()).collect(),
            None => Vec::new(),
        },
        single => vec![single.clone()],
    }
}

async fn check_collection(
    client: &Client,
    schema: &Schema,
    key_types: &[Type],
    field_type: &FieldType,
    mapping: &CollectionMapping,
    what: &str,
) -> Result<(MappedField, MayRefuse, Vec<(String, String)>), String> {
    let table = Table::of_objects(client, &mapping.table).await?;
    let keys = table.keys(schema, key_types, &mapping.key, what)?;
    if let Some(column) = table.numbered(&mapping.key) {
        return Err(format!("{what}: the database alone gives {column} (GENERATED ALWAYS)"));
    }
    let rows = table.rows(keys);
    let element = |name: &str, declared: &Type| -> Result<Column, String> {
        if matches!(declared, Type::Option(_)) {
            return Err(format!("{what}: a column of elements cannot hold {declared}"));
        }
        let used = if matches!(field_type, FieldType::Log(_)) { Use::Plain } else { Use::Unit };
        Column::new(schema, table.column(name)?, declared, what, used)
    };
    let mut used = mapping.key.clone();
    used.push(mapping.value.clone());
    used.extend(mapping.entry.iter().chain(&mapping.order).cloned());
    let field = match field_type {
        FieldType::Set(inner) => {
            MappedField::Set { rows, element: element(&mapping.value, inner)? }
        }
        FieldType::Map(entry, value) => {
            let Some(name) = &mapping.entry else {
                return Err(format!(
                    "{what} is a map, which needs `entry`, the column of its keys"
                ));
            };
            if table.unique(&mapping.key, std::slice::from_ref(name)).is_empty() {
                return Err(format!(
                    "{what} is a map, but {}, {name} is not unique in {}",
                    mapping.key.join(", "),
                    table.name
                ));
            }
            let described = table.column(&mapping.value)?;
            let value = Column::new(schema, described, value, what, Use::Plain)?;
            MappedField::Map { rows, entry: element(name, entry)?, value }
        }
        FieldType::Log(inner) => {
            let order = check_order(client, &table, mapping.order.as_deref(), what).await?;
            MappedField::Log { rows, line: element(&mapping.value, inner)?, order }
        }
        _ => return Err(format!("{what} is no collection")),
    };
    let mut may_refuse = table.constraints.clone();
    // Writes of a collection also remove rows.
    may_refuse.writes.extend(may_refuse.deletions.iter().cloned());
    may_refuse.writes.extend(table.demands(&used));
    may_refuse.writes.extend(table.bounds(&used));
    let element = mapping.entry.as_ref().unwrap_or(&mapping.value);
    let indexes = table.unique(&mapping.key, std::slice::from_ref(element));
    Ok((field, may_refuse, indexes))
}

impl Table {
    /// Loads the description of a table, `customers` or `shop.customers`.
    ///
    /// # Errors
    ///
    /// When there is no such table.
    pub(crate) async fn load(client: &Client, name: &str) -> Result<Self, String> {
        let quoted: Vec<String> = name.split('.').map(quote).collect();
        let quoted = match &quoted[..] {
            [table] => format!("\"public\".{table}"),
            [schema, table] => format!("{schema}.{table}"),
            _ => return Err(format!("`{name}` is no table: expected `table` or `schema.table`")),
        };
        let failed = |error: tokio_postgres::Error| message(&error);
        let kind = "SELECT relkind::text FROM pg_class WHERE oid = to_regclass($1::text)";
        let kind = client.query_opt(kind, &[&quoted]).await.map_err(failed)?;
        match kind.map(|row| row.get::<_, String>(0)).as_deref() {
            Some("r" | "p") => {}
            Some(_) => return Err(format!("{quoted} is no table")),
            None => return Err(format!("there is no table {quoted}")),
        }
        let columns = client.query(COLUMNS, &[&quoted]).await.map_err(failed)?;
        let columns = columns.iter().map(described);
        let unique = client.query(UNIQUE, &[&quoted]).await.map_err(failed)?;
        let rows = client.query(CONSTRAINTS, &[&quoted]).await.map_err(failed)?;
        let rest = client.query_one(REST, &[&quoted]).await.map_err(failed)?;
        let references = client.query(REFERENCES, &[&quoted]).await.map_err(failed)?;
        let cascades = client.query(CASCADES, &[&quoted]).await.map_err(failed)?;
        let updates = client.query(UPDATES, &[&quoted]).await.map_err(failed)?;
        let that = |column: usize| {
            let found = rows.iter().filter(|row| row.get(column));
            found.map(|row| row.get(0)).collect()
        };
        Ok(Self {
            name: quoted,
            columns: columns.collect(),
            unique: unique.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect(),
            constraints: MayRefuse { writes: that(1), deletions: that(2), ..MayRefuse::default() },
            triggers: rest.get(0),
            children: rest.get(1),
            has_row_security: rest.get(2),
            references: references.iter().map(reference).collect(),
            cascades: cascades.iter().map(Cascade::of_deletion).collect(),
            updates: updates.iter().map(Cascade::of_write).collect(),
        })
    }

    /// Loads a table for objects.
    ///
    /// # Errors
    ///
    /// When there is no such table, or it cannot hold objects.
    async fn of_objects(client: &Client, name: &str) -> Result<Self, String> {
        let table = Self::load(client, name).await?;
        table.obstacle().map_or(Ok(table), Err)
    }

    /// Returns the rows of an object, whose key is in these columns.
    fn rows(&self, keys: Vec<Column>) -> Rows {
        Rows {
            table: self.name.clone(),
            keys,
            triggers: self.triggers.clone(),
            references: self.references.clone(),
        }
    }

    /// Returns the reason why the table cannot hold objects, if there is one: a unique key of the
    /// table is not unique across the tables that inherit from it, and every statement sees their
    /// rows.
    pub(crate) fn obstacle(&self) -> Option<String> {
        let children = self.children.join(", ");
        (!children.is_empty()).then(|| {
            format!(
                "{} has tables that inherit from it ({children}), whose rows it shows as its own: no key of it is \
                 unique; partitions would fit",
                self.name
            )
        })
    }

    fn column(&self, name: &str) -> Result<&Described, String> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|column| &*column.name).collect();
            format!("{} has no column {name}; it has {}", self.name, names.join(", "))
        })
    }

    /// Returns the columns of a unique index none of which may be null, those of the smallest one first in the
    /// order of names; empty if there is none.
    pub(crate) fn unique_columns(&self) -> Vec<String> {
        let is_filled = |name: &String| self.column(name).is_ok_and(|column| column.is_not_null);
        let indexes = self.unique.iter().map(|(_, _, columns)| columns);
        let fitting = indexes.filter(|columns| columns.iter().all(is_filled));
        fitting
            .min_by_key(|columns| (columns.len(), (*columns).clone()))
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the columns of a key; each must be NOT NULL.
    fn keys(
        &self,
        schema: &Schema,
        types: &[Type],
        names: &[String],
        what: &str,
    ) -> Result<Vec<Column>, String> {
        if types.len() != names.len() {
            return Err(format!(
                "the key of {what} has {} parts, but `key` names {} columns",
                types.len(),
                names.len()
            ));
        }
        let key = |(name, value_type): (&String, &Type)| {
            let described = self.column(name)?;
            if !described.is_not_null {
                return Err(format!("column {name} is part of a key, but may be null"));
            }
            if matches!(value_type, Type::Option(_) | Type::List(_) | Type::Struct(_)) {
                return Err(format!("a key of type {value_type} has no column"));
            }
            Column::of_key(schema, described, value_type, &format!("the key of {what}"))
        };
        names.iter().zip(types).map(key).collect()
    }

    /// Returns the first of these columns that only the database can set.
    fn numbered(&self, names: &[String]) -> Option<String> {
        let mut columns = self.columns.iter();
        columns.find(|c| c.is_generated && names.contains(&c.name)).map(|c| c.name.clone())
    }

    /// Returns the unique indexes over exactly these columns.
    fn unique(&self, names: &[String], more: &[String]) -> Vec<(String, String)> {
        let mut wanted = [names, more].concat();
        wanted.sort();
        let found = self.unique.iter().filter(|(_, _, columns)| *columns == wanted);
        found.map(|(schema, name, _)| (schema.clone(), name.clone())).collect()
    }

    /// Returns the unique indexes over exactly the columns of a key; there must be at least one.
    fn unique_key(&self, names: &[String]) -> Result<Vec<(String, String)>, String> {
        let found = self.unique(names, &[]);
        if found.is_empty() {
            return Err(format!(
                "{} is not unique in {}: a primary key or a unique index over exactly these \
                 columns would fit",
                names.join(", "),
                self.name
            ));
        }
        Ok(found)
    }

    /// Returns the unmapped columns that must have a value.
    fn demands(&self, used: &[String]) -> Vec<String> {
        let demands = |column: &&Described| {
            column.is_not_null && !column.has_default && !used.contains(&column.name)
        };
        let demanding = self.columns.iter().filter(demands);
        let says = |column: &Described| {
            format!(
                "NOT NULL {} of {}: it has no default, and is not mapped",
                column.name, self.name
            )
        };
        demanding.map(says).collect()
    }

    /// Returns the columns whose types hold less than those of the language.
    fn bounds(&self, used: &[String]) -> Vec<String> {
        let says = |column: &Described| {
            let items = column.base.strip_suffix("[]");
            let refused = match items.unwrap_or(&column.base) {
                _ if column.is_enum || column.has_enum_items => "text that is none of its values",
                "uuid" => "text that is no UUID in small letters",
                "character" => "longer text, and blanks at the end",
                "citext" if items.is_none() => "capital letters in keys and refs",
                "real" => "numbers that it would round",
                "smallint" | "integer" | "numeric" => "numbers out of its range",
                "character varying" if column.shown.contains('(') => "longer text",
                _ if column.sql_type != column.base => "what the domain refuses",
                _ => return None,
            };
            let Described { name, shown, .. } = column;
            Some(format!("column {name} of {}: it is {shown}, and refuses {refused}", self.name))
        };
        let used = self.columns.iter().filter(|column| used.contains(&column.name));
        used.filter_map(says).collect()
    }
}

mod fields;
mod listed;
mod numbered;
mod positions;
#[cfg(test)]
mod tests;
mod unique;
