//! The queries of indexes as messages.
//!
//! A message names the object and the fields. Parameters and result follow from these, so no sender can declare
//! others. A `unique` and the draw of a key have no form here: data centers serve neither.

use mingle_model::index::indexed_type;
use mingle_model::limits::INDEX_FIELDS_MAX;
use mingle_model::{BuiltinQuery, FieldType, IndexRead, Name, ObjectType, Schema, Type};
use mingle_store::StoreOperation;
use serde::{Deserialize, Serialize};

/// A query of an index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexQuery {
    object: Name,
    index: Name,
    fields: Vec<Name>,
    /// The number of leading fields that are compared with a value.
    equal: u8,
    /// True if it counts.
    counts: bool,
}

impl IndexQuery {
    /// Returns a query as a message.
    pub fn of(read: &IndexRead) -> Self {
        Self {
            object: read.object.clone(),
            index: read.index.clone(),
            fields: read.fields.clone(),
            equal: u8::try_from(read.equal).unwrap_or(u8::MAX),
            counts: read.counts,
        }
    }

    /// Returns the number of declarations for which it counts.
    pub fn weight(&self) -> usize {
        1 + self.fields.len()
    }

    /// Returns the query of a store.
    ///
    /// # Errors
    ///
    /// When no object of the store has such fields, or they cannot be those of an index.
    pub fn read(self, store: &Name, schema: &Schema) -> Result<StoreOperation, String> {
        let Self { object, index, fields, equal, counts } = self;
        let wrong = |why: String| Err(format!("the index {object}.{index} {why}"));
        let (count, equal) = (fields.len(), usize::from(equal));
        if count == 0 || count > INDEX_FIELDS_MAX {
            return wrong(format!("has 1 to {INDEX_FIELDS_MAX} fields, not {count}"));
        }
        if equal > count {
            return wrong(format!("compares {equal} of its {count} fields"));
        }
        let Some(declared) = schema.objects.get(&object).filter(|it| it.store == *store) else {
            return wrong(format!("is of no object of store {store}"));
        };
        let mut types = Vec::with_capacity(count);
        for (at, field) in fields.iter().enumerate() {
            if fields[..at].contains(field) {
                return wrong(format!("has field {field} twice"));
            }
            match register(declared, field) {
                Some(of) => types.push(indexed_type(of).clone()),
                None => return wrong(format!("needs a register {field}, which {object} has not")),
            }
        }
        let read = IndexRead { object, index, fields, equal, counts, is_unique: false };
        Ok(StoreOperation {
            is_command: false,
            parameters: read.parameters(&types),
            result: Some(read.result()),
            body: None,
            builtin: Some(BuiltinQuery::Index(read)),
        })
    }
}

/// Returns the type of a register of an object.
fn register<'o>(object: &'o ObjectType, name: &Name) -> Option<&'o Type> {
    let field = object.fields.iter().find(|field| field.name == *name)?;
    match &field.field_type {
        FieldType::Register(of) => Some(of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mingle_model::{Field, Value};

    use super::*;

    fn schema() -> Schema {
        let field = |name: &str, field_type| Field {
            name: name.into(),
            field_type,
            default: Value::Int(0),
        };
        let maybe = Type::Option(Arc::new(Type::String));
        let object = |store: &str| ObjectType {
            name: if store == "vault" { "Box".into() } else { "Note".into() },
            store: store.into(),
            key_name: "key".into(),
            key_type: Type::String,
            fields: vec![
                field("on", FieldType::Counter),
                field("owner", FieldType::Register(maybe.clone())),
                field("weight", FieldType::Register(Type::Int)),
            ],
        };
        let objects = ["vault", "wall"].map(|store| Arc::new(object(store)));
        let objects = objects.into_iter().map(|object| (object.name.clone(), object)).collect();
        Schema { objects, ..Schema::default() }
    }

    fn query(object: &str, fields: &[&str], equal: u8) -> IndexQuery {
        let fields = fields.iter().map(|field| Name::from(*field)).collect();
        IndexQuery { object: object.into(), index: "by_it".into(), fields, equal, counts: false }
    }

    #[test]
    fn queries_of_no_index_are_refused() {
        let read = |query: IndexQuery| query.read(&"vault".into(), &schema());
        let good = read(query("Box", &["owner", "weight"], 1)).expect("it is one");
        let names: Vec<&str> = good.parameters.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["owner", "from", "before", "reversed", "most"]);
        assert_eq!(good.parameters[0].1, Type::String, "an index finds what is there");
        let again = read(IndexQuery::of(good.index().expect("it reads one")));
        assert_eq!(again.as_ref(), Ok(&good), "the same as a message, and back");
        for (query, expected) in [
            (query("Box", &[], 0), "has 1 to 8 fields, not 0"),
            (query("Box", &["weight"; 9], 0), "has 1 to 8 fields, not 9"),
            (query("Box", &["weight"], 2), "compares 2 of its 1 fields"),
            (query("Box", &["weight", "weight"], 0), "has field weight twice"),
            (query("Box", &["on"], 0), "needs a register on, which Box has not"),
            (query("Box", &["size"], 0), "needs a register size, which Box has not"),
            (query("Note", &["weight"], 0), "is of no object of store vault"),
            (query("Crate", &["weight"], 0), "is of no object of store vault"),
        ] {
            let error = read(query).expect_err(expected);
            assert!(error.starts_with("the index ") && error.ends_with(expected), "{error}");
        }
    }
}
