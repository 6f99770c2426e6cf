//! The catalog: the stored copy of a program's declarations. It keeps rows from being read as a
//! type that they do not have.
//!
//! New declarations are added. Declarations that the program no longer has stay, with their rows.
//! Changed declarations are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_model::{FieldType, IndexRead, Name, ObjectType, Schema, Type};
use mingle_store::{StoreOperation, StoreSchema};
use tokio_postgres::{Client, Error};

use crate::config::{OpenError, PostgresConfig};
use crate::layout::{Field, Kind, Layout, Place, Shape, UNIQUE_INDEX, system};
use crate::mapping::Mapped;
use crate::name::{fit, literal, of_collection, quote};
use crate::tables;
use crate::wire::{int, text};

/// One declaration: of a field, of an object (no field), or of something else (no object).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    declared: String,
    slot: i32,
    place: String,
}

/// The stored declarations; empty if the tables do not exist yet.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    entries: BTreeMap<(String, String), Entry>,
    /// Kinds whose tables hold rows.
    filled: BTreeSet<String>,
}

/// The result of merging a program's declarations into a catalog.
pub struct Merged {
    /// The places of everything in the store.
    pub layout: Layout,
    /// The SQL that is still to be run, one statement each; empty if nothing is missing.
    pub migration: Vec<String>,
    /// The `unique`s that are new for tables which are there, by one of their queries.
    pub new_uniques: Vec<IndexRead>,
}

/// Names of the catalog's entries that concern no object.
const STORE: (&str, &str) = ("", "store");
const LEVEL: (&str, &str) = ("", "level");
const FORMAT: (&str, &str) = ("", "format");
const FUNCTIONS: (&str, &str) = ("", "functions");

impl Catalog {
    /// Loads the catalog of a schema.
    ///
    /// # Errors
    ///
    /// When the server refuses.
    pub async fn load(client: &Client, schema: &str) -> Result<Self, Error> {
        let table = system(schema, "catalog");
        // PostgreSQL caches the lookup of a name until something is locked. Only a query on
        // `pg_class` finds a table that another connection has just created.
        let there = "SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n \
                     ON n.oid = c.relnamespace WHERE n.nspname = $1::text \
                     AND c.relname = 'mingle_catalog')";
        let there = client.query(there, &[&schema]).await?;
        let mut catalog = Self::default();
        if !there.first().is_some_and(|row| row.get(0)) {
            return Ok(catalog);
        }
        let sql = format!(
            "SELECT object, field, type, coalesce(slot, 0)::bigint, coalesce(place, '') FROM {table}"
        );
        for row in client.query(&sql, &[]).await? {
            let column = |index| text(&row, index).unwrap_or_default().to_owned();
            let entry = Entry {
                declared: column(2),
                slot: i32::try_from(int(&row, 3)).unwrap_or_default(),
                place: column(4),
            };
            catalog.entries.insert((column(0), column(1)), entry);
        }
        for ((object, _), entry) in
            catalog.entries.iter().filter(|((o, f), _)| !o.is_empty() && f.is_empty())
        {
            if entry.place.starts_with("mapped ") {
                continue;
            }
            let own = format!("{}.{}", quote(schema), quote(&entry.place));
            let found = client.query(&format!("SELECT FROM {own} LIMIT 1"), &[]).await?;
            if !found.is_empty() {
                catalog.filled.insert(object.clone());
            }
        }
        Ok(catalog)
    }

    /// Merges the declarations of `schema` into the catalog.
    ///
    /// # Errors
    ///
    /// When the program changes a stored declaration; the error names it, the old and the new text.
    pub fn merge(
        &self,
        schema: &StoreSchema,
        config: &PostgresConfig,
        mapped: BTreeMap<Name, Mapped>,
    ) -> Result<Merged, OpenError> {
        let own = config.schema_of(&schema.store);
        let mut merging = Merging {
            kept: self,
            store: &schema.store,
            schema: &schema.schema,
            own: &own,
            migration: Vec::new(),
            new_uniques: Vec::new(),
        };
        if self.entries.is_empty() {
            merging.migration.extend(tables::system_tables(&own));
        }
        merging.functions();
        merging.keep(FORMAT, "the format of the tables", tables::FORMAT, 0, "")?;
        merging.keep(STORE, "the name of the store", &schema.store, 0, "")?;
        merging.level(schema);
        merging.moved(schema)?;
        let reached = Reached::from_store(schema);
        for (name, declared) in &reached.structs {
            let what = format!("struct {name}");
            merging.keep(("", &what), &what, declared, 0, "")?;
        }
        for (name, declared) in &reached.references {
            let what = format!("the key of object {name}");
            merging.keep(("", &what), &what, declared, 0, "")?;
        }
        let mut mapped = mapped;
        let mut key_indexes: BTreeSet<(String, String)> =
            mapped.values().flat_map(|m| m.key_indexes.iter().cloned()).collect();
        let mut kinds = BTreeMap::new();
        for object in own_objects(schema) {
            let kind = match mapped.remove(&object.name) {
                Some(mapped) => merging.mapped_kind(object, mapped)?,
                None => merging.own_kind(object)?,
            };
            kinds.insert(object.name.clone(), kind);
        }
        merging.indexes(schema, &kinds)?;
        merging.numbers(schema, &kinds)?;
        let uniques = merging.uniques(schema, &kinds)?;
        key_indexes.extend(uniques.into_iter().map(|index| (own.clone(), index)));
        let (migration, new_uniques) = (merging.migration, merging.new_uniques);
        let layout = Layout {
            schema: Arc::clone(&schema.schema),
            own,
            kinds,
            key_indexes,
            texts: Arc::default(),
        };
        Ok(Merged { layout, migration, new_uniques })
    }
}

struct Merging<'a> {
    kept: &'a Catalog,
    store: &'a Name,
    schema: &'a Schema,
    own: &'a str,
    migration: Vec<String>,
    new_uniques: Vec<IndexRead>,
}

impl Merging<'_> {
    fn find(&self, key: (&str, &str)) -> Option<&Entry> {
        self.kept.entries.get(&(key.0.to_owned(), key.1.to_owned()))
    }

    fn note(&mut self, key: (&str, &str), declared: &str, slot: i32, place: &str) {
        self.migration.push(format!(
            "INSERT INTO {} (object, field, type, slot, place) VALUES ({}, {}, {}, {slot}, {}) \
             ON CONFLICT (object, field) DO UPDATE SET type = excluded.type",
            system(self.own, "catalog"),
            literal(key.0),
            literal(key.1),
            literal(declared),
            literal(place)
        ));
    }

    /// Returns true if the entry is new; fails if the stored one differs.
    fn keep(
        &mut self,
        key: (&str, &str),
        what: &str,
        declared: &str,
        slot: i32,
        place: &str,
    ) -> Result<bool, OpenError> {
        let changed = |kept: &str, wanted: &str| OpenError::Changed {
            store: self.store.clone(),
            what: what.to_owned(),
            kept: kept.to_owned(),
            wanted: wanted.to_owned(),
        };
        match self.find(key) {
            Some(entry) if entry.declared != declared => Err(changed(&entry.declared, declared)),
            Some(entry) if entry.place != place => Err(changed(
                &format!("{declared} in {}", entry.place),
                &format!("{declared} in {place}"),
            )),
            Some(_) => Ok(false),
            None => {
                self.note(key, declared, slot, place);
                Ok(true)
            }
        }
    }

    /// Recreates the functions of an older version; those of a newer version are compatible with
    /// this one.
    fn functions(&mut self) {
        let version = self.find(FUNCTIONS).and_then(|entry| entry.declared.parse::<u32>().ok());
        if version.is_none_or(|version| version < tables::FUNCTIONS) {
            self.migration.extend(tables::functions(self.own));
            self.note(FUNCTIONS, &tables::FUNCTIONS.to_string(), 0, "");
        }
    }

    /// Records the level. It may change: both levels of this adapter keep the same rows.
    fn level(&mut self, schema: &StoreSchema) {
        let level = schema.level.name();
        if self.find(LEVEL).is_none_or(|entry| entry.declared != level) {
            self.note(LEVEL, level, 0, "");
        }
    }

    /// Refuses an object that moved to another store: its rows would stay behind, unseen.
    fn moved(&self, schema: &StoreSchema) -> Result<(), OpenError> {
        for name in &self.kept.filled {
            let declared = schema.schema.objects.get(name.as_str());
            if let Some(object) = declared.filter(|object| object.store != schema.store) {
                return Err(OpenError::Changed {
                    store: schema.store.clone(),
                    what: format!("object {name}"),
                    kept: format!("in {}", schema.store),
                    wanted: format!("in {}", object.store),
                });
            }
        }
        Ok(())
    }

    /// Makes the indexes of Mingle's own tables; those that the program no longer has stay.
    fn indexes(
        &mut self,
        schema: &StoreSchema,
        kinds: &BTreeMap<Name, Kind>,
    ) -> Result<(), OpenError> {
        let mut seen = BTreeSet::new();
        let reads = schema.operations.values().filter_map(StoreOperation::index);
        for read in reads.filter(|read| !read.is_unique) {
            let Some(kind) = kinds.get(&read.object) else { continue };
            let Place::Own { table, .. } = &kind.place else { continue };
            let declared = format!("index by {}", listed(read));
            if !seen.insert((read.object.clone(), declared.clone())) {
                continue;
            }
            // A field has no blank in its name.
            if self.keep((&read.object, &declared), &declared, &declared, 0, "")? {
                let columns = kind.index_columns(self.schema, read);
                self.migration.push(format!(
                    "CREATE INDEX ON {table} ({}) WHERE mingle_exists",
                    columns.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Makes the sequences that number the keys of Mingle's own tables.
    fn numbers(
        &mut self,
        schema: &StoreSchema,
        kinds: &BTreeMap<Name, Kind>,
    ) -> Result<(), OpenError> {
        for object in schema.operations.values().filter_map(StoreOperation::draws) {
            let Some(kind) = kinds.get(object) else { continue };
            let Place::Own { .. } = &kind.place else { continue };
            let declared = "numbers of the key";
            if self.keep((object, declared), declared, declared, 0, "")? {
                let sequence = crate::layout::numbers(self.own, &kind.name);
                self.migration.push(format!("CREATE SEQUENCE {sequence}"));
            }
        }
        Ok(())
    }

    /// Makes the indexes of `unique`s in Mingle's own tables, drops those that the program no longer has, since they
    /// would refuse its writes, and returns the names of the others.
    fn uniques(
        &mut self,
        schema: &StoreSchema,
        kinds: &BTreeMap<Name, Kind>,
    ) -> Result<BTreeSet<String>, OpenError> {
        let (mut names, mut declared_now) = (BTreeSet::new(), BTreeSet::new());
        let reads = schema.operations.values().filter_map(StoreOperation::index);
        // One of the queries of each `unique`.
        for read in reads.filter(|read| read.is_unique && !read.counts && !read.has_range()) {
            let Some(kind) = kinds.get(&read.object) else { continue };
            let Place::Own { table, .. } = &kind.place else { continue };
            let declared = format!("unique {}", listed(read));
            let name = fit(&format!("{UNIQUE_INDEX}{} {}", read.object, listed(read)));
            let is_there = self.find((&read.object, "")).is_some()
                && read.fields.iter().all(|field| self.find((&read.object, field)).is_some());
            if self.keep((&read.object, &declared), &declared, &declared, 0, &name)? {
                let columns = kind.index_columns(self.schema, read).join(", ");
                self.migration.push(format!(
                    "CREATE UNIQUE INDEX {} ON {table} ({columns}) WHERE mingle_exists",
                    quote(&name)
                ));
                self.new_uniques.extend(is_there.then(|| read.clone()));
            }
            declared_now.insert((read.object.to_string(), declared));
            names.insert(name);
        }
        let kept = self.kept;
        let gone = kept.entries.iter().filter(|(key, _)| {
            !key.0.is_empty() && key.1.starts_with("unique ") && !declared_now.contains(*key)
        });
        for ((object, declared), entry) in gone {
            let index = format!("{}.{}", quote(self.own), quote(&entry.place));
            self.migration.push(format!("DROP INDEX IF EXISTS {index}"));
            self.migration.push(format!(
                "DELETE FROM {} WHERE object = {} AND field = {}",
                system(self.own, "catalog"),
                literal(object),
                literal(declared)
            ));
        }
        Ok(names)
    }

    fn mapped_kind(&mut self, object: &ObjectType, mapped: Mapped) -> Result<Kind, OpenError> {
        let place = format!("mapped {}", mapped.rows.table);
        let what = format!("the key of object {}", object.name);
        self.keep((&object.name, ""), &what, &object.key_type.to_string(), 0, &place)?;
        let fields = object.fields.iter().map(|field| Field {
            name: field.name.clone(),
            field_type: field.field_type.clone(),
            slot: 0,
            column: String::new(),
            table: String::new(),
        });
        Ok(Kind {
            name: object.name.clone(),
            key_type: object.key_type.clone(),
            fields: fields.collect(),
            place: Place::Mapped(Box::new(mapped)),
        })
    }

    fn own_kind(&mut self, object: &ObjectType) -> Result<Kind, OpenError> {
        let in_schema = |name: &str| format!("{}.{}", quote(self.own), quote(name));
        let name = fit(&object.name);
        let (table, key) = (in_schema(&name), quote(&fit(&object.key_name)));
        let key_codec = crate::codec::Codec::of(self.schema, &object.key_type);
        let what = format!("the key of object {}", object.name);
        let declared = object.key_type.to_string();
        let places: Vec<String> = object
            .fields
            .iter()
            .map(|field| in_schema(&of_collection(&object.name, &field.name)))
            .collect();
        if self.keep((&object.name, ""), &what, &declared, 0, &name)? {
            self.migration.extend(tables::kind_table(&table, &key, &key_codec));
        }
        let used =
            self.kept.entries.iter().filter(|((o, f), _)| **o == *object.name && !f.is_empty());
        let mut next = used.map(|(_, entry)| entry.slot).max().unwrap_or(0);
        let mut fields = Vec::with_capacity(object.fields.len());
        for (field, collection) in object.fields.iter().zip(places) {
            let slot = match self.find((&object.name, &field.name)) {
                Some(entry) => entry.slot,
                None => {
                    next += 1;
                    next
                }
            };
            let column = quote(&fit(&field.name));
            let declared = field.field_type.to_string();
            let what = format!("field {}.{}", object.name, field.name);
            if self.keep((&object.name, &field.name), &what, &declared, slot, "")? {
                let key = (&*key, &key_codec);
                self.migration.extend(tables::field(
                    self.schema,
                    &table,
                    key,
                    &field.field_type,
                    &column,
                    &collection,
                ));
            }
            let is_table =
                !matches!(Shape::of(&field.field_type), Shape::Register | Shape::Counter);
            fields.push(Field {
                name: field.name.clone(),
                field_type: field.field_type.clone(),
                slot,
                column,
                table: if is_table { collection } else { String::new() },
            });
        }
        let place = Place::Own { table, key, key_codec };
        Ok(Kind { name: object.name.clone(), key_type: object.key_type.clone(), fields, place })
    }
}

/// Returns the names of the fields of an index.
fn listed(read: &IndexRead) -> String {
    let fields: Vec<&str> = read.fields.iter().map(|field| &**field).collect();
    fields.join(", ")
}

/// Returns the objects of a store.
pub fn own_objects(schema: &StoreSchema) -> impl Iterator<Item = &ObjectType> {
    let objects = schema.schema.objects.values().map(AsRef::as_ref);
    objects.filter(|object| object.store == schema.store)
}

/// The structs and objects that values in a store's rows can name.
#[derive(Default)]
pub struct Reached {
    /// The declaration of each struct.
    pub structs: BTreeMap<String, String>,
    /// The type of each object's key.
    pub references: BTreeMap<String, String>,
}

impl Reached {
    /// Collects the structs and objects that the store's objects reach.
    pub fn from_store(schema: &StoreSchema) -> Self {
        let mut reached = Self::default();
        for object in own_objects(schema) {
            reached.visit(&schema.schema, &object.key_type);
            for field in &object.fields {
                match &field.field_type {
                    FieldType::Counter => {}
                    FieldType::Register(inner) | FieldType::Set(inner) | FieldType::Log(inner) => {
                        reached.visit(&schema.schema, inner);
                    }
                    FieldType::Map(key, value) => {
                        reached.visit(&schema.schema, key);
                        reached.visit(&schema.schema, value);
                    }
                }
            }
        }
        reached
    }

    fn visit(&mut self, schema: &Schema, value_type: &Type) {
        match value_type {
            Type::Option(inner) | Type::List(inner) => self.visit(schema, inner),
            Type::Struct(name) if !self.structs.contains_key(&**name) => {
                let Some(declared) = schema.structs.get(name) else { return };
                let fields: Vec<String> = declared
                    .fields
                    .iter()
                    .map(|(name, inner)| format!("{name}: {inner}"))
                    .collect();
                self.structs.insert(name.to_string(), format!("{{ {} }}", fields.join(", ")));
                for (_, inner) in &declared.fields {
                    self.visit(schema, inner);
                }
            }
            Type::Ref(name) if !self.references.contains_key(&**name) => {
                let Some(declared) = schema.objects.get(name) else { return };
                self.references.insert(name.to_string(), declared.key_type.to_string());
                self.visit(schema, &declared.key_type);
            }
            _ => {}
        }
    }
}
