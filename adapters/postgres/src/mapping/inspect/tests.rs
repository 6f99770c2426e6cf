//! Tests of the mappings that are allowed for an object's fields.

use std::sync::Arc;

use mingle_model::{Field, StructType, Value};

use super::*;
use crate::mapping::CollectionMapping;

fn object() -> ObjectType {
    let field =
        |name: &str, field_type| Field { name: name.into(), field_type, default: Value::list([]) };
    ObjectType {
        name: "Customer".into(),
        store: "shop".into(),
        key_name: "id".into(),
        key_type: Type::Int,
        fields: vec![
            field("email", FieldType::Register(Type::String)),
            field("visits", FieldType::Counter),
            field("tags", FieldType::Set(Type::String)),
        ],
    }
}

fn refused(columns: &[&str], fields: &[&str]) -> Option<String> {
    let mapping = ObjectMapping {
        columns: columns.iter().map(|name| ((*name).into(), vec!["x".into()])).collect(),
        fields: fields.iter().map(|name| ((*name).into(), CollectionMapping::default())).collect(),
        ..ObjectMapping::default()
    };
    check_fields(&Schema::default(), &object(), &mapping).err()
}

#[test]
fn registers_have_columns_and_collections_tables_of_their_own() {
    assert_eq!(refused(&[], &["tags"]), None);
    assert_eq!(refused(&["email", "visits"], &["tags"]), None);
    assert_eq!(refused(&["mail"], &["tags"]), Some("it has no field mail".into()));
    assert_eq!(refused(&[], &["tags", "marks"]), Some("it has no field marks".into()));
    let lacks = refused(&[], &[]).expect("the set has no table");
    assert!(lacks.contains("Customer.tags") && lacks.contains("a table of its own"), "{lacks}");
    let has = refused(&[], &["tags", "visits"]).expect("a counter has no table");
    assert!(has.contains("Customer.visits") && has.contains("a column"), "{has}");
}

/// Several columns are for refs to objects whose keys are structs, one for each part.
#[test]
fn several_columns_are_for_refs_by_structs() {
    let mut schema = Schema::default();
    let parts = [("shop", Type::Int), ("number", Type::Int)];
    let fields = parts.map(|(name, part)| (name.into(), part)).to_vec();
    schema.structs.insert("OrderKey".into(), StructType { name: "OrderKey".into(), fields }.into());
    let order = ObjectType {
        name: "Order".into(),
        key_type: Type::Struct("OrderKey".into()),
        fields: Vec::new(),
        ..object()
    };
    schema.objects.insert("Order".into(), order.into());
    let registers = [
        ("order", Type::Ref("Order".into())),
        ("maybe", Type::Option(Arc::new(Type::Ref("Order".into())))),
        ("email", Type::String),
    ];
    let field = |(name, inner): (&str, Type)| Field {
        name: name.into(),
        field_type: FieldType::Register(inner),
        default: Value::list([]),
    };
    let mut fields = registers.map(field).to_vec();
    fields.push(Field {
        name: "visits".into(),
        field_type: FieldType::Counter,
        default: Value::Int(0),
    });
    let line = ObjectType { fields, ..object() };
    let refused = |field: &str, columns: &[&str]| {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        let columns = BTreeMap::from([(field.to_owned(), columns)]);
        check_fields(&schema, &line, &ObjectMapping { columns, ..ObjectMapping::default() }).err()
    };
    for field in ["order", "maybe"] {
        assert_eq!(refused(field, &["shop", "order_number"]), None);
        for columns in [&[][..], &["a", "b", "c"]] {
            let why = refused(field, columns).expect("it has two parts");
            let says =
                format!("the 2 parts of the key of Order, but `columns` lists {}", columns.len());
            assert!(why.contains(&says), "{why}");
        }
    }
    for (field, field_type) in [("email", "string"), ("visits", "counter")] {
        for columns in [&[][..], &["a", "b"]] {
            let why = refused(field, columns).expect("it has one column");
            assert!(
                why.contains(&format!("Customer.{field} is {field_type}, which needs one column")),
                "{why}"
            );
        }
    }
}
