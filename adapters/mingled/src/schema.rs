//! The declarations of a program's stores as a message.
//!
//! A type is a list of wrappers around a plain type, so that no sender can make the decoder nest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_model::{Field, FieldType, Level, Name, ObjectType, Schema, StructType, Type, Value};
use mingle_store::{StoreOperation, StoreSchema};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::limits::{DECLARATIONS_MAX, STORES_MAX, TYPE_DEPTH_MAX};

mod index;

use index::IndexQuery;

/// The declarations of one store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Declared {
    store: Name,
    level: Level,
    structs: Vec<(Name, Vec<(Name, Written)>)>,
    objects: Vec<Object>,
    operations: Vec<(Name, Operation)>,
    /// The queries of indexes, by name.
    indexes: Vec<(Name, IndexQuery)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Object {
    name: Name,
    store: Name,
    key: (Name, Written),
    fields: Vec<(Name, WrittenField, Value)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Operation {
    is_command: bool,
    parameters: Vec<(Name, Written)>,
    result: Option<Written>,
    body: Option<String>,
}

/// A type: its wrappers, the outermost first, and the plain type within.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Written(Vec<Wrapper>, Plain);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Wrapper {
    Option,
    List,
    Rushed,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Plain {
    Bool,
    Int,
    Float,
    String,
    Bytes,
    Time,
    Date,
    Decimal,
    Struct(Name),
    Ref(Name),
    Json,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum WrittenField {
    Register(Written),
    Counter,
    Set(Written),
    Map(Written, Written),
    Log(Written),
}

/// Returns the digest of declarations in their encoded form.
pub fn digest(encoded: &[u8]) -> [u8; 32] {
    Sha256::digest(encoded).into()
}

/// Returns the declarations as a message. It has no place for `unique`s and for draws of keys, which the data centers
/// do not serve: the caller refuses them.
pub fn declared(schema: &StoreSchema) -> Declared {
    let typed = |(name, of): &(Name, Type)| (name.clone(), Written::of(of));
    let structs = schema
        .schema
        .structs
        .values()
        .map(|declared| (declared.name.clone(), declared.fields.iter().map(typed).collect()));
    let objects = schema.schema.objects.values().map(|object| Object {
        name: object.name.clone(),
        store: object.store.clone(),
        key: (object.key_name.clone(), Written::of(&object.key_type)),
        fields: object
            .fields
            .iter()
            .map(|field| {
                (field.name.clone(), WrittenField::of(&field.field_type), field.default.clone())
            })
            .collect(),
    });
    let bodies = schema.operations.iter().filter(|(_, operation)| operation.builtin.is_none());
    let operations = bodies.map(|(name, operation)| {
        let written = Operation {
            is_command: operation.is_command,
            parameters: operation.parameters.iter().map(typed).collect(),
            result: operation.result.as_ref().map(Written::of),
            body: operation.body.clone(),
        };
        (name.clone(), written)
    });
    let indexes = schema
        .operations
        .iter()
        .filter_map(|(name, operation)| Some((name.clone(), IndexQuery::of(operation.index()?))));
    Declared {
        store: schema.store.clone(),
        level: schema.level,
        structs: structs.collect(),
        objects: objects.collect(),
        operations: operations.collect(),
        indexes: indexes.collect(),
    }
}

/// Returns the declarations in messages.
///
/// # Errors
///
/// The first fault: too many declarations, a type that nests too deep, a name that is not declared, a
/// struct or a key that contains itself, an index over fields that an object does not have.
pub fn schemas(declared: Vec<Declared>) -> Result<Vec<StoreSchema>, String> {
    if declared.len() > STORES_MAX {
        let found = declared.len();
        return Err(format!("a program has at most {STORES_MAX} stores in a cluster, not {found}"));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = declared.iter().find(|of| !names.insert(of.store.clone())) {
        return Err(format!("store {} is declared twice", twice.store));
    }
    declared.into_iter().map(schema).collect()
}

fn schema(declared: Declared) -> Result<StoreSchema, String> {
    let Declared { store, level, structs, objects, operations, indexes } = declared;
    let fields = |object: &Object| object.fields.len();
    let count = structs.iter().map(|(_, fields)| 1 + fields.len()).sum::<usize>()
        + objects.iter().map(|object| 1 + fields(object)).sum::<usize>()
        + operations.iter().map(|(_, operation)| 1 + operation.parameters.len()).sum::<usize>()
        + indexes.iter().map(|(_, index)| index.weight()).sum::<usize>();
    if count > DECLARATIONS_MAX {
        return Err(format!("a store has at most {DECLARATIONS_MAX} declarations, not {count}"));
    }
    let typed = |(name, of): (Name, Written)| Ok::<_, String>((name, of.read()?));
    let mut schema = Schema::default();
    for (name, fields) in structs {
        let fields = fields.into_iter().map(typed).collect::<Result<_, _>>()?;
        schema.structs.insert(name.clone(), Arc::new(StructType { name, fields }));
    }
    for object in objects {
        let name = object.name.clone();
        schema.objects.insert(name, Arc::new(object.read()?));
    }
    let mut read = BTreeMap::new();
    for (name, operation) in operations {
        let Operation { is_command, parameters, result, body } = operation;
        let parameters = parameters.into_iter().map(typed).collect::<Result<_, _>>()?;
        let result = result.map(Written::read).transpose()?;
        read.insert(name, StoreOperation { is_command, parameters, result, body, builtin: None });
    }
    check(&schema, &read)?;
    for (name, index) in indexes {
        let operation = index.read(&store, &schema)?;
        if read.insert(name.clone(), operation).is_some() {
            return Err(format!("operation {name} is declared twice"));
        }
    }
    Ok(StoreSchema { store, level, schema: Arc::new(schema), operations: read })
}

/// Checks that all types are declared, and no struct contains itself by value.
fn check(schema: &Schema, operations: &BTreeMap<Name, StoreOperation>) -> Result<(), String> {
    let in_structs = schema.structs.values().flat_map(|of| of.fields.iter().map(|field| &field.1));
    let in_objects = schema.objects.values().flat_map(|object| {
        let fields = object.fields.iter().flat_map(|field| match &field.field_type {
            FieldType::Counter => Vec::new(),
            FieldType::Register(of) | FieldType::Set(of) | FieldType::Log(of) => vec![of],
            FieldType::Map(key, value) => vec![key, value],
        });
        fields.chain([&object.key_type])
    });
    let in_operations = operations.values().flat_map(|operation| {
        operation.parameters.iter().map(|parameter| &parameter.1).chain(&operation.result)
    });
    for of in in_structs.chain(in_objects).chain(in_operations) {
        let found = match plain(of) {
            Type::Struct(name) => schema.structs.contains_key(name),
            Type::Ref(name) => schema.objects.contains_key(name),
            _ => true,
        };
        if !found {
            return Err(format!("the declarations lack the type {of}"));
        }
    }
    check_structs(schema)
}

/// Checks that no struct contains itself by value, and no key; it visits those first that contain no
/// other.
fn check_structs(schema: &Schema) -> Result<(), String> {
    // Structs and keys of objects have separate names.
    let part = |of: &Type| match of {
        Type::Struct(name) => Some((true, name.clone())),
        Type::Ref(name) => Some((false, name.clone())),
        _ => None,
    };
    let structs = schema.structs.iter().map(|(name, of)| {
        ((true, name.clone()), of.fields.iter().filter_map(|(_, of)| part(of)).collect())
    });
    let keys = schema
        .objects
        .iter()
        .map(|(name, of)| ((false, name.clone()), part(&of.key_type).into_iter().collect()));
    let mut left: BTreeMap<(bool, Name), BTreeSet<(bool, Name)>> = structs.chain(keys).collect();
    for _ in 0..TYPE_DEPTH_MAX {
        let done = left.iter().filter(|(_, parts)| parts.is_empty());
        let done: BTreeSet<(bool, Name)> = done.map(|(name, _)| name.clone()).collect();
        if done.is_empty() {
            break;
        }
        left.retain(|name, _| !done.contains(name));
        for parts in left.values_mut() {
            parts.retain(|part| !done.contains(part));
        }
    }
    left.keys().next().map_or(Ok(()), |(_, name)| {
        Err(format!("{name} contains itself, or nests deeper than {TYPE_DEPTH_MAX}"))
    })
}

/// Returns the type within all wrappers.
fn plain(mut of: &Type) -> &Type {
    while let Type::Option(inner) | Type::List(inner) | Type::Rushed(inner) = of {
        of = inner;
    }
    of
}

impl Written {
    fn of(mut of: &Type) -> Self {
        let mut wrappers = Vec::new();
        let plain = loop {
            let (wrapper, inner) = match of {
                Type::Option(inner) => (Wrapper::Option, inner),
                Type::List(inner) => (Wrapper::List, inner),
                Type::Rushed(inner) => (Wrapper::Rushed, inner),
                Type::Bool => break Plain::Bool,
                Type::Int => break Plain::Int,
                Type::Float => break Plain::Float,
                // A data center sees labels.
                Type::String | Type::Enum(_) => break Plain::String,
                Type::Bytes => break Plain::Bytes,
                Type::Time => break Plain::Time,
                Type::Date => break Plain::Date,
                Type::Decimal => break Plain::Decimal,
                Type::Json => break Plain::Json,
                Type::Struct(name) => break Plain::Struct(name.clone()),
                Type::Ref(name) => break Plain::Ref(name.clone()),
            };
            wrappers.push(wrapper);
            of = inner;
        };
        Self(wrappers, plain)
    }

    fn read(self) -> Result<Type, String> {
        let Self(wrappers, plain) = self;
        if wrappers.len() > TYPE_DEPTH_MAX {
            let found = wrappers.len();
            return Err(format!("a type nests at most {TYPE_DEPTH_MAX} deep, not {found}"));
        }
        let plain = match plain {
            Plain::Bool => Type::Bool,
            Plain::Int => Type::Int,
            Plain::Float => Type::Float,
            Plain::String => Type::String,
            Plain::Bytes => Type::Bytes,
            Plain::Time => Type::Time,
            Plain::Date => Type::Date,
            Plain::Decimal => Type::Decimal,
            Plain::Json => Type::Json,
            Plain::Struct(name) => Type::Struct(name),
            Plain::Ref(name) => Type::Ref(name),
        };
        Ok(wrappers.into_iter().rev().fold(plain, |inner, wrapper| match wrapper {
            Wrapper::Option => Type::Option(Arc::new(inner)),
            Wrapper::List => Type::List(Arc::new(inner)),
            Wrapper::Rushed => Type::Rushed(Arc::new(inner)),
        }))
    }
}

impl WrittenField {
    fn of(of: &FieldType) -> Self {
        match of {
            FieldType::Register(inner) => Self::Register(Written::of(inner)),
            FieldType::Counter => Self::Counter,
            FieldType::Set(inner) => Self::Set(Written::of(inner)),
            FieldType::Map(key, value) => Self::Map(Written::of(key), Written::of(value)),
            FieldType::Log(inner) => Self::Log(Written::of(inner)),
        }
    }

    fn read(self) -> Result<FieldType, String> {
        Ok(match self {
            Self::Register(inner) => FieldType::Register(inner.read()?),
            Self::Counter => FieldType::Counter,
            Self::Set(inner) => FieldType::Set(inner.read()?),
            Self::Map(key, value) => FieldType::Map(key.read()?, value.read()?),
            Self::Log(inner) => FieldType::Log(inner.read()?),
        })
    }
}

impl Object {
    fn read(self) -> Result<ObjectType, String> {
        let fields = self.fields.into_iter().map(|(name, of, default)| {
            Ok::<_, String>(Field { name, field_type: of.read()?, default })
        });
        Ok(ObjectType {
            name: self.name,
            store: self.store,
            key_name: self.key.0,
            key_type: self.key.1.read()?,
            fields: fields.collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(structs: &[(&str, Written)], key: Written) -> Declared {
        let part = |(name, of): &(&str, Written)| {
            (Name::from(*name), vec![(Name::from("part"), of.clone())])
        };
        let key = (Name::from("key"), key);
        let fields = vec![("on".into(), WrittenField::Counter, Value::Int(0))];
        Declared {
            store: "vault".into(),
            level: Level::Causal,
            structs: structs.iter().map(part).collect(),
            objects: vec![Object { name: "Box".into(), store: "vault".into(), key, fields }],
            operations: Vec::new(),
            indexes: Vec::new(),
        }
    }

    fn plainly(plain: Plain) -> Written {
        Written(Vec::new(), plain)
    }

    #[track_caller]
    fn check(declared: Declared, expected: Result<(), &str>) {
        match (schemas(vec![declared]), expected) {
            (Ok(schemas), Ok(())) => {
                // The same again as a message, and back.
                let again = super::schemas(vec![super::declared(&schemas[0])]).expect("it was");
                assert_eq!(again[0].schema, schemas[0].schema);
            }
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, _) => panic!("{found:?}"),
        }
    }

    #[test]
    fn declarations_that_no_program_has_are_refused() {
        let of = |name: &str| plainly(Plain::Struct(name.into()));
        check(store(&[("A", of("B")), ("B", plainly(Plain::Int))], of("A")), Ok(()));
        let wrapped = Written(vec![Wrapper::Option], Plain::Struct("A".into()));
        check(store(&[("A", wrapped)], plainly(Plain::String)), Ok(()));
        check(store(&[("A", of("A"))], plainly(Plain::Int)), Err("A contains itself"));
        check(
            store(&[("A", of("B")), ("B", of("A"))], plainly(Plain::Int)),
            Err("contains itself"),
        );
        check(store(&[], plainly(Plain::Ref("Box".into()))), Err("Box contains itself"));
        check(store(&[], of("C")), Err("the declarations lack the type C"));
        let deep = Written(vec![Wrapper::List; TYPE_DEPTH_MAX + 1], Plain::Int);
        check(store(&[], deep), Err("a type nests at most 64 deep, not 65"));
        let twice = vec![store(&[], plainly(Plain::Int)), store(&[], plainly(Plain::Int))];
        assert_eq!(schemas(twice).map(|_| ()), Err("store vault is declared twice".to_owned()));
        let many = vec![store(&[], plainly(Plain::Int)); STORES_MAX + 1];
        assert!(schemas(many).expect_err("too many").contains("at most 100 stores"));
    }
}
