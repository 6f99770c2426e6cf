//! Tests of the mappings that are allowed for an object's fields.

use mingle_model::Field;

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
        columns: columns.iter().map(|name| ((*name).into(), "x".into())).collect(),
        fields: fields.iter().map(|name| ((*name).into(), CollectionMapping::default())).collect(),
        ..ObjectMapping::default()
    };
    check_fields(&object(), &mapping).err()
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
