//! Types as the page's forms need them.

use mingle_model::{Schema, Type};
use serde_json::{Map, Value as Json, json};

/// Returns the parts of a type. The fields of structs are in [`structs`], since a struct can contain
/// itself.
pub(crate) fn shape(schema: &Schema, value_type: &Type) -> Json {
    let inner = |found: &Type| shape(schema, found);
    match value_type {
        Type::Struct(name) => json!({ "kind": "struct", "name": &**name }),
        Type::Ref(name) => {
            let key = inner(&schema.objects[name].key_type);
            json!({ "kind": "ref", "object": &**name, "key": key })
        }
        Type::Enum(declared) => {
            let values: Vec<&str> = declared.values.iter().map(|value| &*value.label).collect();
            json!({ "kind": "enum", "name": &*declared.name, "values": values })
        }
        Type::Option(found) => json!({ "kind": "option", "of": inner(found) }),
        Type::List(found) => json!({ "kind": "list", "of": inner(found) }),
        Type::Rushed(found) => json!({ "kind": "rushed", "of": inner(found) }),
        plain => json!({ "kind": plain.to_string() }),
    }
}

/// Returns the fields of each struct, by its name.
pub(crate) fn structs(schema: &Schema) -> Json {
    let structs = schema.structs.iter().map(|(name, declared)| {
        let fields = declared.fields.iter();
        let fields =
            fields.map(|(field, found)| json!({ "name": &**field, "shape": shape(schema, found) }));
        (name.to_string(), fields.collect::<Vec<_>>().into())
    });
    structs.collect::<Map<String, Json>>().into()
}
