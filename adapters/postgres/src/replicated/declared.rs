//! The stored declarations of a program, the same at every server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_model::{Name, Schema};
use mingle_store::StoreSchema;
use tokio_postgres::{Client, Error};

use crate::catalog::{Reached, own_objects};
use crate::codec::Codec;
use crate::config::OpenError;
use crate::layout::{Field, Kind, Layout, Place, system};
use crate::name::literal;
use crate::wire::text;

/// The format of the tables that this version creates and reads.
const FORMAT: &str = "1, over several servers";

/// One declaration: its object and field, and its text.
struct Declared {
    key: (String, String),
    what: String,
    says: String,
}

/// The declarations stored at a server, by object and field.
pub type Kept = BTreeMap<(String, String), String>;

/// Loads the declarations stored at a server; empty if it has no tables yet.
pub async fn load(client: &Client, schema: &str) -> Result<Kept, Error> {
    let there = "SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
                 WHERE n.nspname = $1::text AND c.relname = 'mingle_catalog'";
    if client.query(there, &[&schema]).await?.is_empty() {
        return Ok(Kept::new());
    }
    let sql = format!("SELECT object, field, type FROM {}", system(schema, "catalog"));
    let rows = client.query(&sql, &[]).await?;
    let column = |row, index| text(row, index).unwrap_or_default().to_owned();
    Ok(rows.iter().map(|row| ((column(row, 0), column(row, 1)), column(row, 2))).collect())
}

fn declared(schema: &StoreSchema) -> Vec<Declared> {
    let one = |object: &str, field: &str, what: String, says: String| Declared {
        key: (object.to_owned(), field.to_owned()),
        what,
        says,
    };
    let mut all = vec![
        one("", "format", "the format of the tables".into(), FORMAT.into()),
        one("", "store", "the name of the store".into(), schema.store.to_string()),
    ];
    let reached = Reached::from_store(schema);
    for (name, says) in reached.structs {
        let what = format!("struct {name}");
        all.push(one("", &what, what.clone(), says));
    }
    for (name, says) in reached.references {
        let what = format!("the key of object {name}");
        all.push(one("", &what, what.clone(), says));
    }
    for object in own_objects(schema) {
        let what = format!("the key of object {}", object.name);
        all.push(one(&object.name, "", what, object.key_type.to_string()));
        for field in &object.fields {
            let what = format!("field {}.{}", object.name, field.name);
            all.push(one(&object.name, &field.name, what, field.field_type.to_string()));
        }
    }
    all
}

/// Returns the statements that add missing declarations to a server; none if nothing is missing.
///
/// # Errors
///
/// When the program changes a stored declaration; the error names it, the old and the new text.
pub fn missing(kept: &Kept, schema: &StoreSchema, own: &str) -> Result<Vec<String>, OpenError> {
    let changed = |what: String, kept: &str, wanted: &str| OpenError::Changed {
        store: schema.store.clone(),
        what,
        kept: kept.to_owned(),
        wanted: wanted.to_owned(),
    };
    let objects: BTreeSet<&str> =
        kept.keys().map(|(object, _)| &**object).filter(|object| !object.is_empty()).collect();
    for name in objects {
        let declared = schema.schema.objects.get(name);
        if let Some(object) = declared.filter(|object| object.store != schema.store) {
            let (kept, wanted) = (format!("in {}", schema.store), format!("in {}", object.store));
            return Err(changed(format!("object {name}"), &kept, &wanted));
        }
    }
    let mut statements = Vec::new();
    for Declared { key, what, says } in declared(schema) {
        match kept.get(&key) {
            Some(before) if *before != says => return Err(changed(what, before, &says)),
            Some(_) => {}
            // This place prevents the single-server adapter from looking for a table of the object.
            None => statements.push(format!(
                "INSERT INTO {} (object, field, type, place) VALUES ({}, {}, {}, 'mapped units') \
                 ON CONFLICT DO NOTHING",
                system(own, "catalog"),
                literal(&key.0),
                literal(&key.1),
                literal(&says)
            )),
        }
    }
    Ok(statements)
}

/// Returns the kinds of the store. All of them share the same tables, so the kinds have no table
/// names.
pub fn layout(schema: &StoreSchema, own: String) -> Layout {
    let kinds = own_objects(schema).map(|object| {
        let fields = object.fields.iter().map(|field| Field {
            name: field.name.clone(),
            field_type: field.field_type.clone(),
            slot: 0,
            column: String::new(),
            table: String::new(),
        });
        let place = Place::Own {
            table: String::new(),
            key: String::new(),
            key_codec: codec(&schema.schema, object),
        };
        let kind = Kind {
            name: object.name.clone(),
            key_type: object.key_type.clone(),
            fields: fields.collect(),
            place,
        };
        (object.name.clone(), kind)
    });
    Layout {
        schema: Arc::clone(&schema.schema),
        own,
        kinds: kinds.collect::<BTreeMap<Name, Kind>>(),
        key_indexes: BTreeSet::new(),
        texts: Arc::default(),
    }
}

fn codec(schema: &Schema, object: &mingle_model::ObjectType) -> Codec {
    Codec::of(schema, &object.key_type)
}
