//! Indexes and `unique`s of objects, from the indexes of their tables.

use mingle_store_postgres::TableDescription;

use super::names::Taken;
use super::objects::Field;

/// The greatest number of fields of an index.
const FIELDS_MAX: usize = 8;

/// An index of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its fields.
    pub fields: Vec<String>,
    /// Its name, if it is not the usual one.
    pub name: Option<String>,
    /// True if the database keeps the values of its fields unique.
    pub is_unique: bool,
}

/// Returns the indexes of an object whose registers are these, the `unique`s first. An index of the database that goes
/// on with columns which no register holds serves for its first columns.
pub fn indexes(table: &TableDescription, fields: &[Field]) -> Vec<Index> {
    let mut taken = Taken::default();
    for field in fields {
        taken.take(field.name.clone());
    }
    let leading = |columns: &[String]| leading(table, fields, columns);
    let uniques = table.uniques.iter().map(|columns| (leading(columns), columns.len()));
    let uniques =
        uniques.filter(|((_, covered), all)| covered == all).map(|((fields, _), _)| (fields, true));
    let others = table.indexes.iter().map(|columns| (leading(columns).0, false));
    let mut found: Vec<Index> = Vec::new();
    for (fields, is_unique) in uniques.chain(others) {
        if fields.is_empty() || found.iter().any(|index| index.fields == fields) {
            continue;
        }
        let usual = format!("by_{}", fields.join("_"));
        let name = taken.take(usual.clone());
        found.push(Index { fields, name: (name != usual).then_some(name), is_unique });
    }
    found
}

/// Returns the fields that hold the first columns of an index, and the number of those columns. A ref of several
/// columns stands for them where they are next to each other, in any order.
fn leading(table: &TableDescription, fields: &[Field], columns: &[String]) -> (Vec<String>, usize) {
    let (mut found, mut covered) = (Vec::new(), 0);
    while found.len() < FIELDS_MAX {
        let rest = &columns[covered..];
        let is_next = |field: &&Field| {
            let next = rest.get(..=field.more.len());
            next.is_some_and(|next| field.columns().all(|column| next.contains(column)))
        };
        let Some(field) = fields.iter().find(is_next) else { break };
        if !is_fit(field) || !field.columns().all(|column| is_exact(table, column)) {
            break;
        }
        found.push(field.name.clone());
        covered += 1 + field.more.len();
    }
    (found, covered)
}

/// True if a register's type can be that of an index.
fn is_fit(field: &Field) -> bool {
    let declared = &*field.declared;
    let inner = declared.strip_prefix("option<").and_then(|rest| rest.strip_suffix('>'));
    let inner = inner.unwrap_or(declared);
    ["string", "int", "bool", "bytes", "time", "date", "decimal"].contains(&inner)
        || inner.starts_with("ref ")
}

/// True if the database finds only values in a column that the program takes for equal.
fn is_exact(table: &TableDescription, column: &str) -> bool {
    let mut columns = table.columns.iter().filter(|described| described.name == column);
    columns.all(|described| !described.folds_case && described.key_obstacle.is_none())
}

impl Index {
    /// Returns its declaration.
    pub fn text(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" as {name}"));
        let word = if self.is_unique { "unique" } else { "index by" };
        format!("{word} {}{};", self.fields.join(", "), name.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::Type;
    use mingle_store_postgres::ColumnDescription;

    use super::*;

    fn field(name: &str, declared: &str) -> Field {
        let (name, declared) = (name.to_owned(), declared.to_owned());
        Field { column: format!("c_{name}"), more: Vec::new(), name, declared, is_read_only: false }
    }

    fn table(columns: &[&[&str]]) -> TableDescription {
        let list = |names: &&[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        TableDescription {
            name: "orders".into(),
            kind: "table",
            columns: Vec::new(),
            key: vec!["id".into()],
            foreign_keys: Vec::new(),
            indexes: columns.iter().map(list).collect(),
            uniques: Vec::new(),
            reaches: Vec::new(),
            obstacle: None,
            remarks: Vec::new(),
        }
    }

    fn found(columns: &[&[&str]], fields: &[Field]) -> Vec<String> {
        indexes(&table(columns), fields).iter().map(Index::text).collect()
    }

    #[test]
    fn an_index_has_the_first_columns_that_registers_hold() {
        let fields =
            [field("a", "ref Customer"), field("b", "option<time>"), field("c", "list<int>")];
        let columns: [&[&str]; 6] = [
            &["c_a", "id"],
            &["c_a", "c_b", "id"],
            &["c_a", "c_b"],
            &["id", "c_a"],
            &["c_c", "c_a"],
            &["c_b", "unknown", "c_a"],
        ];
        let expected = ["index by a;", "index by a, b;", "index by b;"];
        assert_eq!(found(&columns, &fields), expected);
    }

    #[test]
    fn a_column_that_is_compared_in_another_way_has_no_index() {
        let described = |folds_case, key_obstacle| ColumnDescription {
            name: "c_a".into(),
            sql_type: "text".into(),
            fits: Ok(Type::String),
            enumeration: None,
            key_obstacle,
            folds_case,
            is_not_null: true,
            has_default: false,
            is_read_only: false,
        };
        let fields = [field("a", "string"), field("b", "int")];
        for (folds_case, obstacle, count) in
            [(false, None, 1), (true, None, 0), (false, Some("its collation".to_owned()), 0)]
        {
            let table = TableDescription {
                columns: vec![described(folds_case, obstacle)],
                ..table(&[&["c_a", "c_b"]])
            };
            assert_eq!(indexes(&table, &fields).len(), count);
        }
    }

    #[test]
    fn a_unique_index_over_registers_alone_is_a_unique() {
        let fields = [field("a", "option<int>"), field("b", "string"), field("c", "float")];
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let all: [&[&str]; 4] = [&["c_b"], &["c_b", "c_a"], &["c_a", "id"], &["c_b", "c_c"]];
        let uniques: Vec<Vec<String>> = all.iter().copied().map(list).collect();
        let table = TableDescription { uniques, ..table(&all) };
        let found: Vec<String> = indexes(&table, &fields).iter().map(Index::text).collect();
        assert_eq!(found, ["unique b;", "unique b, a;", "index by a;"]);
    }

    #[test]
    fn a_ref_of_several_columns_stands_for_all_of_them() {
        let order = Field { more: vec!["shop".into()], ..field("order", "ref Order") };
        let fields = [order, field("a", "int")];
        let columns: [&[&str]; 5] = [
            &["shop", "c_order", "c_a"],
            &["c_order", "shop"],
            &["c_order", "c_a"],
            &["c_a", "shop", "c_order"],
            &["c_a", "shop", "id", "c_order"],
        ];
        let expected =
            ["index by order, a;", "index by order;", "index by a, order;", "index by a;"];
        assert_eq!(found(&columns, &fields), expected);
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let fields = [field("a", "int"), field("by_a", "int"), field("a_b", "int")];
        let columns: [&[&str]; 2] = [&["c_a"], &["c_a_b"]];
        let expected = ["index by a as by_a_2;", "index by a_b;"];
        assert_eq!(found(&columns, &fields), expected);
    }

    #[test]
    fn an_enum_a_float_and_a_document_have_no_index() {
        for declared in ["Status", "option<Status>", "float", "json", "option<float>", "list<int>"]
        {
            assert_eq!(found(&[&["c_a"]], &[field("a", declared)]), [""; 0], "{declared}");
        }
        let nine: Vec<Field> = (0..9).map(|n| field(&format!("f{n}"), "int")).collect();
        let columns: Vec<&str> = nine.iter().map(|field| &*field.column).collect();
        assert_eq!(found(&[&columns], &nine), ["index by f0, f1, f2, f3, f4, f5, f6, f7;"]);
    }
}
