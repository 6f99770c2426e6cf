//! The object that a table's partition key names. Cassandra keeps no foreign keys, so names must tell.

use mingle_store_cassandra::TableDescription;

use crate::init::names::{of_object, of_variable};

/// Names that a key has in any table, so that they tell nothing about it.
const PLAIN: [&str; 5] = ["id", "key", "uuid", "name", "pk"];

/// Finds the table of the object that the partition key of `table` names, among the tables of all objects.
///
/// # Errors
///
/// When it names none, or several equally well: the reason.
pub fn find<'t>(
    table: &TableDescription,
    objects: &[&'t TableDescription],
) -> Result<&'t TableDescription, String> {
    let key = &table.partition_key[0];
    let of = |table: &TableDescription, column: &str| {
        table.column(column).map(|column| column.cql_type.clone())
    };
    let score = |object: &&TableDescription| {
        let own = &object.partition_key[0];
        let is_alike = of(table, key) == of(object, own);
        if is_alike { score(table, key, object, own) } else { 0 }
    };
    let best = objects.iter().map(score).max().unwrap_or(0);
    let found: Vec<&TableDescription> =
        objects.iter().filter(|object| best > 0 && score(object) == best).copied().collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(format!(
            "its partition key {key} names no object: a set, map or log belongs to the object whose whole primary \
             key it has, such as a column customer or customer_id for a table customers"
        )),
        _ => {
            let names: Vec<&str> = found.iter().map(|table| &*table.name).collect();
            Err(format!("its partition key {key} could name a row of {}", names.join(" or of ")))
        }
    }
}

/// Returns a number for the likelihood that a column names rows of a table: 0 if nothing says so.
fn score(table: &TableDescription, column: &str, object: &TableDescription, key: &str) -> u32 {
    let lower = |name: &str| name.to_lowercase();
    let (column, key, table, target) =
        (lower(column), lower(key), lower(&table.name), lower(&object.name));
    let one = of_variable(&of_object(&target));
    let named = [&target, &one].into_iter().flat_map(|name| {
        let bare = PLAIN.iter().map(move |plain| format!("{name}_{plain}"));
        bare.chain([name.clone(), format!("{name}_{key}"), format!("{name}{key}")])
    });
    if named.collect::<Vec<_>>().contains(&column) {
        return 3;
    }
    if column != key {
        return 0;
    }
    let is_named_after = [&target, &one].into_iter().any(|name| {
        table.starts_with(&format!("{name}_")) || table.ends_with(&format!("_by_{name}"))
    });
    match (is_named_after, PLAIN.contains(&&*key)) {
        (true, _) => 2,
        (false, false) => 1,
        (false, true) => 0,
    }
}

/// Returns the name of a field for the rows of a table that belong to an object: without the object's name.
pub fn field_name(table: &str, object: &str) -> String {
    let one = of_variable(&of_object(object));
    for name in [object, &one] {
        let rest = table.strip_prefix(&format!("{name}_"));
        let rest = rest.or_else(|| table.strip_suffix(&format!("_by_{name}")));
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            return rest.to_owned();
        }
    }
    match table.split_once("_by_") {
        Some((name, _)) if !name.is_empty() => name.to_owned(),
        _ => table.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::Type;
    use mingle_store_cassandra::ColumnDescription;

    use super::*;

    fn table(name: &str, key: &str, cql_type: &str) -> TableDescription {
        let column = ColumnDescription {
            name: key.into(),
            cql_type: cql_type.into(),
            fits: Ok(Type::String),
            key_obstacle: None,
        };
        TableDescription {
            name: name.into(),
            partition_key: vec![key.into()],
            clustering_key: Vec::new(),
            columns: vec![column],
            time_to_live_s: 0,
            indexes: Vec::new(),
            obstacle: None,
        }
    }

    #[test]
    fn a_partition_key_names_the_object_that_its_name_says() {
        let customers = table("customers", "email", "text");
        let orders = table("orders", "id", "uuid");
        let places = table("places", "id", "uuid");
        let boxes = table("Box", "code", "text");
        let objects = [&customers, &orders, &places, &boxes];
        for (name, key, cql_type, expected) in [
            ("posts", "customer", "text", Some("customers")),
            ("posts", "customers", "text", Some("customers")),
            ("posts", "customer_id", "text", Some("customers")),
            ("posts", "customer_email", "text", Some("customers")),
            ("posts", "email", "text", Some("customers")),
            ("posts", "customer", "uuid", None),
            ("items", "order_id", "uuid", Some("orders")),
            ("items", "orderid", "uuid", Some("orders")),
            ("order_items", "id", "uuid", Some("orders")),
            ("items_by_order", "id", "uuid", Some("orders")),
            ("items", "id", "uuid", None),
            ("lots", "BOX", "text", Some("Box")),
        ] {
            let found = find(&table(name, key, cql_type), &objects);
            let found = found.map(|table| &*table.name);
            assert_eq!(found.as_ref().ok(), expected.as_ref(), "{name} {key}: {found:?}");
        }
        let others = [&customers, &table("people", "email", "text")];
        let both = find(&table("posts", "email", "text"), &others);
        assert!(both.is_err_and(|why| why.contains("a row of customers or of people")));
    }

    #[test]
    fn a_field_is_called_after_its_table_without_the_object() {
        for (name, object, expected) in [
            ("customer_tags", "customers", "tags"),
            ("customers_tags", "customers", "tags"),
            ("posts_by_customer", "customers", "posts"),
            ("posts_by_day", "customers", "posts"),
            ("posts", "customers", "posts"),
            ("_by_customer", "customers", "_by_customer"),
        ] {
            assert_eq!(field_name(name, object), expected, "{name}");
        }
    }
}
