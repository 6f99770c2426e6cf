//! The objects that the suite works with.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{Field, FieldType, Level, ObjectType, Ref, Schema, StructType, Type, Value};

use crate::declared::StoreSchema;
use crate::operation::Address;

/// `Thing.text`, a register of `string`.
pub const TEXT: u16 = 0;
/// `Thing.number`, a register of `int`.
pub const NUMBER: u16 = 1;
/// `Thing.count`, a counter.
pub const COUNT: u16 = 2;
/// `Thing.tags`, a `set<string>`.
pub const TAGS: u16 = 3;
/// `Thing.marks`, a `map<string, int>`.
pub const MARKS: u16 = 4;
/// `Thing.lines`, a `log<string>`.
pub const LINES: u16 = 5;

/// Fields of `Zeros`, which all hold floats.
pub mod zeros {
    /// A `set<float>`.
    pub const FLOATS: u16 = 0;
    /// A `set<Spot>`.
    pub const SPOTS: u16 = 1;
    /// A `set<list<float>>`.
    pub const LISTS: u16 = 2;
    /// A `set<option<float>>`.
    pub const OPTIONS: u16 = 3;
    /// A `map<float, int>`.
    pub const BY_FLOAT: u16 = 4;
    /// A `map<Spot, int>`.
    pub const BY_SPOT: u16 = 5;
    /// A register of `Spot`.
    pub const SPOT: u16 = 6;
    /// A `log<Spot>`.
    pub const TRAIL: u16 = 7;
    /// A `map<string, Spot>`.
    pub const MARKS: u16 = 8;
}

/// One field of `Odd` for each type of [`odd_types`]: registers, then sets, then maps to `float` (a register instead
/// of a set or map, for types that are not those of keys), then logs.
pub fn odd_field(shape: u16, value_type: u16) -> u16 {
    let count = u16::try_from(odd_types().len()).expect("a handful of types");
    shape * count + value_type
}

/// True if a type may be that of elements and of keys of maps: the language has none with documents.
pub fn may_be_key(value_type: &Type) -> bool {
    match value_type {
        Type::Json => false,
        Type::Option(inner) | Type::List(inner) => may_be_key(inner),
        _ => true,
    }
}

/// Types that are hard to keep.
pub fn odd_types() -> Vec<Type> {
    let option = |inner: Type| Type::Option(Arc::new(inner));
    let list = |inner: Type| Type::List(Arc::new(inner));
    vec![
        Type::Bool,
        Type::Int,
        Type::Float,
        Type::String,
        Type::Bytes,
        Type::Time,
        Type::Struct("Point".into()),
        Type::Ref("Thing".into()),
        option(option(Type::Int)),
        list(Type::String),
        list(option(Type::Struct("Point".into()))),
        Type::Date,
        option(Type::Date),
        list(Type::Date),
        Type::Decimal,
        option(Type::Decimal),
        list(Type::Decimal),
        Type::Json,
        option(Type::Json),
        list(option(Type::Json)),
    ]
}

fn fields(schema: &Schema, types: impl IntoIterator<Item = (String, FieldType)>) -> Vec<Field> {
    let field = |(name, field_type): (String, FieldType)| Field {
        name: name.into(),
        default: match &field_type {
            FieldType::Register(inner) => schema.default_of(inner),
            _ => Value::list([]),
        },
        field_type,
    };
    types.into_iter().map(field).collect()
}

/// The schema of the suite's store, which is called `suite`.
pub fn store_schema(level: Level) -> StoreSchema {
    let mut schema = Schema::default();
    let point = StructType {
        name: "Point".into(),
        fields: vec![
            ("x".into(), Type::Int),
            ("label".into(), Type::Option(Arc::new(Type::String))),
        ],
    };
    schema.structs.insert("Point".into(), Arc::new(point));
    let spot = StructType {
        name: "Spot".into(),
        fields: vec![
            ("at".into(), Type::Float),
            ("more".into(), Type::Option(Arc::new(Type::Float))),
        ],
    };
    schema.structs.insert("Spot".into(), Arc::new(spot));
    let thing = [
        ("text", FieldType::Register(Type::String)),
        ("number", FieldType::Register(Type::Int)),
        ("count", FieldType::Counter),
        ("tags", FieldType::Set(Type::String)),
        ("marks", FieldType::Map(Type::String, Type::Int)),
        ("lines", FieldType::Log(Type::String)),
    ];
    let thing = thing.map(|(name, field_type)| (name.to_owned(), field_type));
    add_object(&mut schema, "Thing", Type::String, thing);
    let odd = ["register", "set", "map", "log"].into_iter().flat_map(|shape| {
        let types = odd_types().into_iter().enumerate();
        types.map(move |(index, inner)| {
            let field_type = match shape {
                "register" => FieldType::Register(inner),
                "set" if may_be_key(&inner) => FieldType::Set(inner),
                "map" if may_be_key(&inner) => FieldType::Map(inner, Type::Float),
                "set" | "map" => FieldType::Register(inner),
                _ => FieldType::Log(inner),
            };
            (format!("{shape}_{index}"), field_type)
        })
    });
    add_object(&mut schema, "Odd", Type::Int, odd);
    add_object(&mut schema, "Zeros", Type::Int, zero_fields());
    for (name, key) in odd_keys() {
        let count = [("count".to_owned(), FieldType::Counter)];
        add_object(&mut schema, name, key, count);
    }
    StoreSchema {
        store: "suite".into(),
        level,
        schema: Arc::new(schema),
        operations: BTreeMap::new(),
    }
}

/// The objects whose keys are not strings, each with the type of its key.
pub fn odd_keys() -> [(&'static str, Type); 7] {
    [
        ("ByInt", Type::Int),
        ("ByBool", Type::Bool),
        ("ByBytes", Type::Bytes),
        ("ByTime", Type::Time),
        ("ByDate", Type::Date),
        ("ByDecimal", Type::Decimal),
        ("ByRef", Type::Ref("Thing".into())),
    ]
}

/// The fields of `Zeros`, in the order of [`zeros`].
fn zero_fields() -> impl Iterator<Item = (String, FieldType)> {
    let spot = || Type::Struct("Spot".into());
    let fields = [
        ("floats", FieldType::Set(Type::Float)),
        ("spots", FieldType::Set(spot())),
        ("lists", FieldType::Set(Type::List(Arc::new(Type::Float)))),
        ("options", FieldType::Set(Type::Option(Arc::new(Type::Float)))),
        ("by_float", FieldType::Map(Type::Float, Type::Int)),
        ("by_spot", FieldType::Map(spot(), Type::Int)),
        ("spot", FieldType::Register(spot())),
        ("trail", FieldType::Log(spot())),
        ("marks", FieldType::Map(Type::String, spot())),
    ];
    fields.into_iter().map(|(name, field_type)| (name.to_owned(), field_type))
}

pub(super) fn add_object(
    schema: &mut Schema,
    name: &str,
    key_type: Type,
    types: impl IntoIterator<Item = (String, FieldType)>,
) {
    let object = ObjectType {
        name: name.into(),
        store: "suite".into(),
        key_name: "key".into(),
        key_type,
        fields: fields(schema, types),
    };
    schema.objects.insert(name.into(), Arc::new(object));
}

/// The `Thing` with this key.
pub fn thing(key: &str) -> Ref {
    Ref::new("Thing", Value::from(key))
}

/// A field of the `Thing` with this key.
pub fn at(key: &str, field: u16) -> Address {
    Address { object: thing(key), field }
}
