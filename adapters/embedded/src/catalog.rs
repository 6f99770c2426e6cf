//! The catalog: the stored part of a program's schema, so that rows are never read with the wrong
//! type.
//!
//! Kinds and fields have ids that are assigned once and never reused. At open, new declarations of the
//! program are added; declarations that it no longer has stay, with their rows; changed ones are refused.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{FieldType, IndexRead, Name, ObjectType, Schema, Type};
use mingle_store::{StoreOperation, StoreSchema};
use serde_json::{Map, Value as Json, json};

use crate::config::OpenError;
use crate::encoding::catalog::{self as form, FORMAT, FORMAT_INDEXED, FORMAT_UNIQUE};
use crate::index::{Fields, Indexed, Indexes};
use crate::layout::{FieldLayout, KindLayout, Layout, Shape};
use crate::limits::FIELDS_MAX;

/// The stored part of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    level: String,
    replicas: Vec<String>,
    kinds: BTreeMap<String, Kind>,
    /// Layout of each struct that rows may hold.
    structs: BTreeMap<String, String>,
    /// Type of the key of each object that rows may name.
    references: BTreeMap<String, String>,
    /// The indexes that have rows: the kind's id, and the fields' ids.
    indexes: Indexes,
    /// Those of them in which no two objects have the same values.
    uniques: Indexes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    id: u32,
    key: String,
    /// Id and type by name.
    fields: BTreeMap<String, (u16, String)>,
}

impl Catalog {
    /// The catalog of an empty store.
    pub fn new(schema: &StoreSchema, replicas: &[Name]) -> Self {
        Self {
            level: schema.level.name().to_owned(),
            replicas: replicas.iter().map(ToString::to_string).collect(),
            kinds: BTreeMap::new(),
            structs: BTreeMap::new(),
            references: BTreeMap::new(),
            indexes: BTreeSet::new(),
            uniques: BTreeSet::new(),
        }
    }

    /// Returns the indexes that have rows.
    pub fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    /// Keeps the indexes of an earlier program too: it may go on at the same time.
    pub fn keep_indexes_of(&mut self, earlier: &Self) {
        self.indexes.extend(earlier.indexes.iter().cloned());
    }

    /// Returns the indexes in which no two objects have the same values.
    pub fn uniques(&self) -> &Indexes {
        &self.uniques
    }

    /// Adds the new declarations of `schema`, and returns the layout with which it reads and writes rows.
    ///
    /// # Errors
    ///
    /// When the schema changes a stored declaration; the error names the item and both declarations.
    pub fn merge(&mut self, schema: &StoreSchema, replicas: &[Name]) -> Result<Layout, OpenError> {
        let store = &schema.store;
        let fresh = Self::new(schema, replicas);
        let changed = |what: String, kept: &str, wanted: &str| OpenError::Changed {
            store: store.clone(),
            what,
            kept: kept.to_owned(),
            wanted: wanted.to_owned(),
        };
        if self.level != fresh.level {
            return Err(changed("the level".into(), &self.level, &fresh.level));
        }
        if self.replicas != fresh.replicas {
            let (kept, wanted) = (self.replicas.join(", "), fresh.replicas.join(", "));
            return Err(changed("the replicas".into(), &kept, &wanted));
        }
        let reached = Reached::from_store(schema);
        for (name, text) in reached.structs {
            let kept = self.structs.entry(name.clone()).or_insert(text.clone());
            if *kept != text {
                return Err(changed(format!("struct {name}"), kept, &text));
            }
        }
        for (name, text) in reached.references {
            let kept = self.references.entry(name.clone()).or_insert(text.clone());
            if *kept != text {
                return Err(changed(format!("the key of object {name}"), kept, &text));
            }
        }
        let mut layout = Layout::default();
        for object in own_objects(schema) {
            let kind = self.merge_kind(object, &changed)?;
            layout.kinds.insert(object.name.clone(), kind);
        }
        for (name, kind) in &self.kinds {
            layout.names.insert(kind.id, name.as_str().into());
            for (id, text) in kind.fields.values() {
                layout.shapes.insert((kind.id, *id), Shape::parse(text));
            }
        }
        let refused = |reason| OpenError::Config { store: store.clone(), reason };
        self.indexes = indexes_of(schema, &layout, |_| true).map_err(refused)?;
        self.uniques = indexes_of(schema, &layout, |read| read.is_unique).map_err(refused)?;
        for (kind, fields) in &self.indexes {
            layout.indexes.entry(*kind).or_default().push(fields.clone());
        }
        Ok(layout)
    }

    /// Returns the kinds that have rows here and that `schema` declares in another store: their ids,
    /// their names, and that store.
    pub fn moved<'a>(
        &'a self,
        schema: &'a StoreSchema,
    ) -> impl Iterator<Item = (u32, &'a str, &'a Name)> {
        self.kinds.iter().filter_map(|(name, kind)| {
            let declared = schema.schema.objects.get(name.as_str())?;
            (declared.store != schema.store).then_some((kind.id, name.as_str(), &declared.store))
        })
    }

    fn merge_kind(
        &mut self,
        object: &ObjectType,
        changed: &impl Fn(String, &str, &str) -> OpenError,
    ) -> Result<KindLayout, OpenError> {
        let next = self.kinds.values().map(|kind| kind.id).max().unwrap_or(0) + 1;
        let key = object.key_type.to_string();
        let kind = self.kinds.entry(object.name.to_string()).or_insert_with(|| Kind {
            id: next,
            key: key.clone(),
            fields: BTreeMap::new(),
        });
        if kind.key != key {
            let what = format!("the key of object {}", object.name);
            return Err(changed(what, &kind.key, &key));
        }
        let mut fields = Vec::with_capacity(object.fields.len());
        for field in &object.fields {
            let text = field.field_type.to_string();
            let last = kind.fields.values().map(|(id, _)| *id).max().unwrap_or(0);
            let next = last.checked_add(1).ok_or_else(|| OpenError::Config {
                store: object.store.clone(),
                reason: format!("object {} has had {FIELDS_MAX} fields", object.name),
            })?;
            let (id, kept) =
                kind.fields.entry(field.name.to_string()).or_insert((next, text.clone()));
            if *kept != text {
                let what = format!("field {}.{}", object.name, field.name);
                return Err(changed(what, kept, &text));
            }
            fields.push(FieldLayout {
                id: *id,
                name: field.name.clone(),
                field_type: field.field_type.clone(),
                default: field.default.clone(),
            });
        }
        Ok(KindLayout { id: kind.id, key_type: object.key_type.clone(), fields })
    }

    /// The row form: JSON, so that it can be read by a person too.
    pub fn encode(&self) -> Vec<u8> {
        let kinds: Map<String, Json> = self
            .kinds
            .iter()
            .map(|(name, kind)| {
                let fields: Map<String, Json> = kind
                    .fields
                    .iter()
                    .map(|(name, (id, text))| (name.clone(), json!({ "id": id, "type": text })))
                    .collect();
                let json = json!({ "id": kind.id, "key": kind.key, "fields": fields });
                (name.clone(), json)
            })
            .collect();
        let mut json = json!({
            "format": self.format(),
            "level": self.level,
            "replicas": self.replicas,
            "kinds": kinds,
            "structs": self.structs,
            "references": self.references,
        });
        if !self.indexes.is_empty() {
            let shown = |index: &(u32, Fields)| {
                let mut shown = json!({ "kind": index.0, "fields": index.1 });
                if self.uniques.contains(index) {
                    shown["unique"] = true.into();
                }
                shown
            };
            json["indexes"] = self.indexes.iter().map(shown).collect();
        }
        json.to_string().into_bytes()
    }

    fn format(&self) -> u64 {
        match (self.indexes.is_empty(), self.uniques.is_empty()) {
            (true, _) => FORMAT,
            (false, true) => FORMAT_INDEXED,
            (false, false) => FORMAT_UNIQUE,
        }
    }

    /// Returns the format of a catalog's row, if it has one that this engine does not read.
    pub fn unknown_format(row: &[u8]) -> Option<u64> {
        form::unknown_format(&serde_json::from_slice(row).ok()?)
    }

    /// From the row form; none where it is of another format or no catalog at all.
    pub fn decode(row: &[u8]) -> Option<Self> {
        let json = form::parse(row)?;
        let mut kinds = BTreeMap::new();
        for (name, kind) in json.get("kinds")?.as_object()? {
            kinds.insert(name.clone(), decode_kind(kind)?);
        }
        let replicas = json.get("replicas")?.as_array()?.iter();
        Some(Self {
            level: json.get("level")?.as_str()?.to_owned(),
            replicas: replicas
                .map(|name| Some(name.as_str()?.to_owned()))
                .collect::<Option<_>>()?,
            kinds,
            structs: decode_texts(json.get("structs")?)?,
            references: decode_texts(json.get("references")?)?,
            indexes: form::indexes(&json, |_| true)?,
            uniques: form::indexes(&json, |index| index.get("unique") == Some(&true.into()))?,
        })
    }
}

/// Returns the indexes that a program declares.
fn indexes_of(
    schema: &StoreSchema,
    layout: &Layout,
    is_wanted: impl Fn(&IndexRead) -> bool,
) -> Result<Indexes, String> {
    let reads = schema.operations.values().filter_map(StoreOperation::index);
    let indexed = |read| {
        let index = Indexed::new(read, layout)?;
        Ok((layout.kind(&read.object)?.id, index.fields().clone()))
    };
    reads.filter(|read| is_wanted(read)).map(indexed).collect()
}

fn decode_kind(json: &Json) -> Option<Kind> {
    let mut fields = BTreeMap::new();
    for (name, field) in json.get("fields")?.as_object()? {
        let id = u16::try_from(field.get("id")?.as_u64()?).ok()?;
        let text = field.get("type")?.as_str()?.to_owned();
        fields.insert(name.clone(), (id, text));
    }
    Some(Kind {
        id: u32::try_from(json.get("id")?.as_u64()?).ok()?,
        key: json.get("key")?.as_str()?.to_owned(),
        fields,
    })
}

fn decode_texts(json: &Json) -> Option<BTreeMap<String, String>> {
    let texts = json.as_object()?.iter();
    texts.map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}

fn own_objects(schema: &StoreSchema) -> impl Iterator<Item = &ObjectType> {
    let objects = schema.schema.objects.values().map(AsRef::as_ref);
    objects.filter(|object| object.store == schema.store)
}

/// The structs and objects that values in a store's rows can name.
#[derive(Default)]
struct Reached {
    structs: BTreeMap<String, String>,
    references: BTreeMap<String, String>,
    seen: BTreeSet<Name>,
}

impl Reached {
    fn from_store(schema: &StoreSchema) -> Self {
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
            Type::Struct(name) if self.seen.insert(name.clone()) => {
                let Some(declared) = schema.structs.get(name) else {
                    return;
                };
                let fields: Vec<String> = declared
                    .fields
                    .iter()
                    .map(|(name, inner)| format!("{name}: {inner}"))
                    .collect();
                let text = format!("{{ {} }}", fields.join(", "));
                self.structs.insert(name.to_string(), text);
                for (_, inner) in &declared.fields {
                    self.visit(schema, inner);
                }
            }
            Type::Ref(name) if !self.references.contains_key(&**name) => {
                let Some(declared) = schema.objects.get(name) else {
                    return;
                };
                self.references.insert(name.to_string(), declared.key_type.to_string());
                self.visit(schema, &declared.key_type);
            }
            _ => {}
        }
    }
}
