//! The stored declarations of a program, so that data is never read as another type.
//!
//! A declaration that a program adds is added. One that it no longer has stays, with its data. One that
//! it has changed is refused.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{FieldType, Name, ObjectType, Schema, Type};
use serde_json::{Map, Value as Json, json};

use crate::declared::StoreSchema;

const FORMAT: u64 = 1;

/// The stored part of a schema: names, and types as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    level: String,
    kinds: BTreeMap<String, Kind>,
    /// Fields of each struct that data may hold.
    structs: BTreeMap<String, String>,
    /// Type of the key of each object that data may name.
    references: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    key: String,
    fields: BTreeMap<String, String>,
}

/// A declaration of the program that differs from the stored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The changed declaration, such as `field User.name`.
    pub what: String,
    /// The stored declaration.
    pub kept: String,
    /// The declaration in the program.
    pub wanted: String,
}

fn changed(what: String, kept: &str, wanted: &str) -> Changed {
    Changed { what, kept: kept.to_owned(), wanted: wanted.to_owned() }
}

impl Catalog {
    /// The catalog of an empty store.
    pub fn new(schema: &StoreSchema) -> Self {
        Self { level: schema.level.name().to_owned(), ..Self::default() }
    }

    /// Adds the new declarations of a schema.
    ///
    /// # Errors
    ///
    /// The changed declaration, with its stored and its wanted text.
    pub fn merge(&mut self, schema: &StoreSchema) -> Result<(), Changed> {
        if self.level != schema.level.name() {
            return Err(changed("the level".into(), &self.level, schema.level.name()));
        }
        let mut reached = Reached::default();
        let objects = schema.schema.objects.values();
        for declared in objects.filter(|declared| declared.store == schema.store) {
            reached.visit_object(&schema.schema, declared);
            self.merge_kind(declared)?;
        }
        merge_texts(&mut self.structs, reached.structs, "struct ")?;
        merge_texts(&mut self.references, reached.references, "the key of object ")
    }

    fn merge_kind(&mut self, object: &ObjectType) -> Result<(), Changed> {
        let key = object.key_type.to_string();
        let fresh = || Kind { key: key.clone(), fields: BTreeMap::new() };
        let kind = self.kinds.entry(object.name.to_string()).or_insert_with(fresh);
        if kind.key != key {
            return Err(changed(format!("the key of object {}", object.name), &kind.key, &key));
        }
        for field in &object.fields {
            let text = field.field_type.to_string();
            let kept = kind.fields.entry(field.name.to_string()).or_insert(text.clone());
            if *kept != text {
                let what = format!("field {}.{}", object.name, field.name);
                return Err(changed(what, kept, &text));
            }
        }
        Ok(())
    }

    /// As it is kept: JSON, so that a person can read it too.
    pub fn encode(&self) -> String {
        let kinds = self
            .kinds
            .iter()
            .map(|(name, kind)| (name.clone(), json!({ "key": kind.key, "fields": kind.fields })));
        let kinds: Map<String, Json> = kinds.collect();
        json!({
            "format": FORMAT,
            "level": self.level,
            "kinds": kinds,
            "structs": self.structs,
            "references": self.references,
        })
        .to_string()
    }

    /// Decodes a stored catalog; none if `kept` has another format or is no catalog.
    pub fn decode(kept: &str) -> Option<Self> {
        let json: Json = serde_json::from_str(kept).ok()?;
        if json.get("format")?.as_u64()? != FORMAT {
            return None;
        }
        let mut kinds = BTreeMap::new();
        for (name, kind) in json.get("kinds")?.as_object()? {
            let key = kind.get("key")?.as_str()?.to_owned();
            kinds.insert(name.clone(), Kind { key, fields: texts(kind.get("fields")?)? });
        }
        Some(Self {
            level: json.get("level")?.as_str()?.to_owned(),
            kinds,
            structs: texts(json.get("structs")?)?,
            references: texts(json.get("references")?)?,
        })
    }
}

fn texts(json: &Json) -> Option<BTreeMap<String, String>> {
    let texts = json.as_object()?.iter();
    texts.map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}

fn merge_texts(
    kept: &mut BTreeMap<String, String>,
    wanted: BTreeMap<String, String>,
    what: &str,
) -> Result<(), Changed> {
    for (name, text) in wanted {
        let kept = kept.entry(name.clone()).or_insert(text.clone());
        if *kept != text {
            return Err(changed(format!("{what}{name}"), kept, &text));
        }
    }
    Ok(())
}

/// The structs and objects that the values of a store can name.
#[derive(Default)]
struct Reached {
    structs: BTreeMap<String, String>,
    references: BTreeMap<String, String>,
    seen: BTreeSet<Name>,
}

impl Reached {
    fn visit_object(&mut self, schema: &Schema, object: &ObjectType) {
        self.visit(schema, &object.key_type);
        for field in &object.fields {
            match &field.field_type {
                FieldType::Counter => {}
                FieldType::Register(inner) | FieldType::Set(inner) | FieldType::Log(inner) => {
                    self.visit(schema, inner);
                }
                FieldType::Map(key, value) => {
                    self.visit(schema, key);
                    self.visit(schema, value);
                }
            }
        }
    }

    fn visit(&mut self, schema: &Schema, value_type: &Type) {
        match value_type {
            Type::Option(inner) | Type::List(inner) => self.visit(schema, inner),
            Type::Struct(name) if self.seen.insert(name.clone()) => {
                let Some(declared) = schema.structs.get(name) else { return };
                let fields = declared.fields.iter().map(|(name, inner)| format!("{name}: {inner}"));
                let fields: Vec<String> = fields.collect();
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
