//! Names of types as CQL writes them.

use scylla::cluster::metadata::{CollectionType, ColumnType, NativeType};

/// Returns the name of a column's type, for example `frozen<map<text, int>>`.
pub fn name(column: &ColumnType<'_>) -> String {
    match column {
        ColumnType::Native(native) => native_name(native),
        ColumnType::Collection { frozen, typ } => {
            let plain = match typ {
                CollectionType::List(of) => format!("list<{}>", name(of)),
                CollectionType::Set(of) => format!("set<{}>", name(of)),
                CollectionType::Map(key, value) => format!("map<{}, {}>", name(key), name(value)),
                other => format!("{other:?}").to_lowercase(),
            };
            if *frozen { format!("frozen<{plain}>") } else { plain }
        }
        ColumnType::Vector { typ, dimensions } => format!("vector<{}, {dimensions}>", name(typ)),
        ColumnType::UserDefinedType { frozen, definition } => {
            let plain = format!("{}.{}", definition.keyspace, definition.name);
            if *frozen { format!("frozen<{plain}>") } else { plain }
        }
        ColumnType::Tuple(parts) => {
            let parts: Vec<String> = parts.iter().map(name).collect();
            // Tuples are always frozen, with or without the keyword.
            format!("frozen<tuple<{}>>", parts.join(", "))
        }
        other => format!("{other:?}").to_lowercase(),
    }
}

fn native_name(native: &NativeType) -> String {
    // The driver's names are those of CQL, except for capitals.
    format!("{native:?}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_cql_writes_them() {
        let native = |of: NativeType| Box::new(ColumnType::Native(of));
        let map = |frozen| ColumnType::Collection {
            frozen,
            typ: CollectionType::Map(native(NativeType::Text), native(NativeType::BigInt)),
        };
        let list = CollectionType::List(Box::new(map(true)));
        for (column, expected) in [
            (map(false), "map<text, bigint>"),
            (map(true), "frozen<map<text, bigint>>"),
            (
                ColumnType::Collection { frozen: false, typ: list },
                "list<frozen<map<text, bigint>>>",
            ),
            (ColumnType::Native(NativeType::Timeuuid), "timeuuid"),
            (ColumnType::Tuple(vec![ColumnType::Native(NativeType::Inet)]), "frozen<tuple<inet>>"),
        ] {
            assert_eq!(name(&column), expected);
        }
    }
}
