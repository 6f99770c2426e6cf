//! A description of an existing database, for writing a first mapping.

use std::sync::Arc;

use mingle_model::{Schema, Type};
use mingle_store::World;
use tokio_postgres::Client;

use crate::config::{OpenError, PostgresConfig};
use crate::connect::{Connector, Isolation};
use crate::error::message;
use crate::mapping::cascades::Cascade;
use crate::mapping::column::{Column, Described};
use crate::mapping::form::check_folding;
use crate::mapping::inspect::Table;

/// An existing table or view.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDescription {
    /// Its name, without the schema.
    pub name: String,
    /// The kind of relation: `table`, `view`, `materialized view` or `foreign table`.
    pub kind: &'static str,
    /// Its columns in order; for tables only.
    pub columns: Vec<ColumnDescription>,
    /// The columns of its primary key in order, or those of a unique index without nulls; empty if it has neither.
    pub key: Vec<String>,
    /// Its foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// The columns of each ordinary index of all its rows (a B-tree of columns, in one direction), except
    /// the one of its primary key.
    pub indexes: Vec<Vec<String>>,
    /// The columns of each unique index that keeps a `unique` of a program, except the one of its primary key.
    pub uniques: Vec<Vec<String>>,
    /// The tables of which the database changes rows when rows of this one are deleted.
    pub reaches: Vec<Reach>,
    /// The reason why no object can be in it, independent of its columns.
    pub obstacle: Option<String>,
    /// Remarks for the author of a mapping.
    pub remarks: Vec<String>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDescription {
    /// Its name.
    pub name: String,
    /// Its type in SQL.
    pub sql_type: String,
    /// The type of its values in a program, without the `option` of a column that may be null; or
    /// the reason why there is none.
    pub fits: Result<Type, String>,
    /// The values that it can hold, if they are listed.
    pub enumeration: Option<Enumeration>,
    /// The reason why it cannot be part of a key or hold elements, if it holds values of a type.
    pub key_obstacle: Option<String>,
    /// True if the database takes capital letters in it for small ones (`citext`).
    pub folds_case: bool,
    /// True if null is refused.
    pub is_not_null: bool,
    /// True if the database fills the column when no value is given.
    pub has_default: bool,
    /// True if only the database can set its values, and it is no part of the key.
    pub is_read_only: bool,
}

/// The values that a column can hold: of an enumeration, or of a text with a check that lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enumeration {
    /// The name of the enumeration or domain in the database; none if the check is the column's own.
    pub name: Option<String>,
    /// The values, in the order of the database.
    pub labels: Vec<String>,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// The columns.
    pub columns: Vec<String>,
    /// The schema of the referenced table.
    pub schema: String,
    /// The referenced table.
    pub table: String,
    /// The referenced columns, in the order of `columns`.
    pub target: Vec<String>,
}

/// What the deletion of a row does to another table (`ON DELETE CASCADE`, `SET NULL`, `SET DEFAULT`),
/// also by way of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The schema of the other table.
    pub schema: String,
    /// The other table.
    pub table: String,
    /// What happens, and by which foreign key, such as
    /// `deletes rows of pets (FOREIGN KEY pets_owner of pets)`.
    pub text: String,
}

const ROW_SECURITY: &str = "row level security is on: rows that its policies hide from the binding's user are as if \
                            they were not there, and a write of one is refused";

const RELATIONS: &str = "\
SELECT c.relname::text, c.relkind::text, coalesce((SELECT array_agg(a.attname::text ORDER BY k.place) \
FROM pg_constraint AS p CROSS JOIN LATERAL unnest(p.conkey) WITH ORDINALITY AS k(attnum, place) \
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum \
WHERE p.conrelid = c.oid AND p.contype = 'p'), '{}') \
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition \
AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass \
AND d.objid = c.oid AND d.deptype = 'e') ORDER BY c.relname::text";

const FOREIGN_KEYS: &str = "\
SELECT array_agg(a.attname::text ORDER BY k.place), n.nspname::text, t.relname::text, \
array_agg(b.attname::text ORDER BY k.place) \
FROM pg_constraint AS f JOIN pg_class AS c ON c.oid = f.conrelid \
JOIN pg_namespace AS m ON m.oid = c.relnamespace \
JOIN pg_class AS t ON t.oid = f.confrelid JOIN pg_namespace AS n ON n.oid = t.relnamespace \
CROSS JOIN LATERAL unnest(f.conkey, f.confkey) WITH ORDINALITY AS k(own, other, place) \
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.own \
JOIN pg_attribute AS b ON b.attrelid = t.oid AND b.attnum = k.other \
WHERE f.contype = 'f' AND m.nspname = $1::text AND c.relname = $2::text \
GROUP BY f.oid, f.conname, n.nspname, t.relname ORDER BY f.conname";

/// Selects the columns of the ordinary indexes of a table. The bits of an index's options are its direction
/// and the place of nulls.
const INDEXES: &str = "\
SELECT array_agg(a.attname::text ORDER BY k.place) \
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS m ON m.oid = c.relam \
JOIN pg_class AS t ON t.oid = i.indrelid JOIN pg_namespace AS n ON n.oid = t.relnamespace \
CROSS JOIN LATERAL unnest(i.indkey::int2[], i.indclass::oid[], i.indoption::int2[]) \
WITH ORDINALITY AS k(attnum, class, options, place) \
JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.attnum JOIN pg_opclass AS o ON o.oid = k.class \
WHERE n.nspname = $1::text AND t.relname = $2::text AND m.amname = 'btree' AND i.indisvalid \
AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT i.indisprimary AND k.place <= i.indnkeyatts \
GROUP BY i.indexrelid, c.relname HAVING bool_and(o.opcdefault) AND min(k.options) = max(k.options) \
ORDER BY c.relname";

/// Selects the columns of the unique indexes of a table that hold for all its rows at once, compare as the program
/// does, and let nulls differ.
const UNIQUES: &str = "\
SELECT array_agg(a.attname::text ORDER BY k.place) \
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid \
JOIN pg_class AS t ON t.oid = i.indrelid JOIN pg_namespace AS n ON n.oid = t.relnamespace \
CROSS JOIN LATERAL unnest(i.indkey::int2[], i.indclass::oid[], i.indcollation::oid[]) \
WITH ORDINALITY AS k(attnum, class, collation_id, place) \
JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.attnum JOIN pg_opclass AS o ON o.oid = k.class \
WHERE n.nspname = $1::text AND t.relname = $2::text AND i.indisunique AND i.indisvalid AND i.indimmediate \
AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT i.indisprimary AND k.place <= i.indnkeyatts \
GROUP BY i.indexrelid, c.relname, to_jsonb(i) \
HAVING bool_and(o.opcdefault AND coalesce((SELECT l.collisdeterministic FROM pg_collation AS l \
WHERE l.oid = k.collation_id), true)) \
AND (bool_and(a.attnotnull) OR NOT coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)) \
ORDER BY c.relname";

/// Describes the tables and views of a schema, in order of their names.
///
/// # Errors
///
/// When the server cannot be reached, or refuses. Error messages call the store `store`.
pub async fn describe(
    store: &str,
    config: &PostgresConfig,
    schema: &str,
    world: Arc<dyn World>,
) -> Result<Vec<TableDescription>, OpenError> {
    let connector = Connector::new(config, Isolation::ReadCommitted)
        .map_err(|reason| OpenError::Config { store: store.into(), reason })?;
    let connection = connector.connect(&world).await;
    let connection =
        connection.map_err(|reason| OpenError::Unavailable { store: store.into(), reason })?;
    tables(connection.client(), schema).await.map_err(|reason| OpenError::Server {
        store: store.into(),
        what: format!("a look at the schema {schema}"),
        reason,
    })
}

async fn tables(client: &Client, schema: &str) -> Result<Vec<TableDescription>, String> {
    let failed = |error: tokio_postgres::Error| message(&error);
    let mut all = Vec::new();
    let mut folding = None;
    for row in client.query(RELATIONS, &[&schema]).await.map_err(failed)? {
        let (name, kind): (String, String) = (row.get(0), row.get(1));
        let kind = match &*kind {
            "v" => "view",
            "m" => "materialized view",
            "f" => "foreign table",
            _ => "table",
        };
        let mut table = TableDescription {
            name,
            kind,
            columns: Vec::new(),
            key: row.get(2),
            foreign_keys: Vec::new(),
            indexes: Vec::new(),
            uniques: Vec::new(),
            reaches: Vec::new(),
            obstacle: None,
            remarks: Vec::new(),
        };
        if kind == "table" && !table.name.contains('.') {
            let found = Table::load(client, &format!("{schema}.{}", table.name)).await?;
            table.obstacle = found.obstacle();
            table.remarks.extend(found.has_row_security.then(|| ROW_SECURITY.to_owned()));
            if table.key.is_empty() {
                table.key = found.unique_columns();
            }
            if folding.is_none() && found.columns.iter().any(|column| column.base == "citext") {
                folding = Some(check_folding(client).await.err());
            }
            let described = found.columns.iter().map(|found| {
                let is_key = table.key.contains(&found.name);
                column(found, is_key, folding.as_ref().and_then(Option::as_deref))
            });
            table.columns = described.collect();
            let written = found.updates.iter().filter_map(|update| update.remark(&table.key));
            table.remarks.extend(written);
            let reached = found.cascades.into_iter().map(Cascade::described);
            table.reaches =
                reached.map(|(schema, table, text)| Reach { schema, table, text }).collect();
            let indexes = client.query(INDEXES, &[&schema, &table.name]).await;
            table.indexes = indexes.map_err(failed)?.iter().map(|row| row.get(0)).collect();
            let uniques = client.query(UNIQUES, &[&schema, &table.name]).await;
            table.uniques = uniques.map_err(failed)?.iter().map(|row| row.get(0)).collect();
            table.foreign_keys = foreign_keys(client, schema, &table.name).await.map_err(failed)?;
        }
        all.push(table);
    }
    Ok(all)
}

async fn foreign_keys(
    client: &Client,
    schema: &str,
    table: &str,
) -> Result<Vec<ForeignKey>, tokio_postgres::Error> {
    let rows = client.query(FOREIGN_KEYS, &[&schema, &table]).await?;
    let keys = rows.iter().map(|row| ForeignKey {
        columns: row.get(0),
        schema: row.get(1),
        table: row.get(2),
        target: row.get(3),
    });
    Ok(keys.collect())
}

fn column(found: &Described, is_key: bool, folding: Option<&str>) -> ColumnDescription {
    let fits = fitting(found);
    let key_obstacle = fits.as_ref().ok().and_then(|fits| match fits {
        Type::Float => Some("a float is no key".into()),
        Type::List(_) => Some("a list is no key".into()),
        Type::Json => Some("a json document is no key".into()),
        Type::String if !found.is_deterministic => {
            Some("its collation takes different texts for equal".into())
        }
        Type::String if found.base == "citext" => folding.map(str::to_owned),
        _ => None,
    });
    ColumnDescription {
        name: found.name.clone(),
        sql_type: found.shown.clone(),
        fits,
        enumeration: found.labels.clone().map(|it| Enumeration { name: it.name, labels: it.list }),
        key_obstacle,
        folds_case: found.base == "citext",
        is_not_null: found.is_not_null,
        has_default: found.has_default,
        is_read_only: found.is_generated && !is_key,
    }
}

/// Returns the type of a column's values that a mapping would accept.
fn fitting(found: &Described) -> Result<Type, String> {
    let schema = Schema::default();
    // A register that may be null is asked for like one that may not.
    let fits = |candidate: &Type| Column::of_register(&schema, found, candidate, "it").is_ok();
    let scalars = [
        Type::Bool,
        Type::Int,
        Type::Float,
        Type::String,
        Type::Bytes,
        Type::Time,
        Type::Date,
        Type::Decimal,
        Type::Json,
    ];
    let mut all = scalars.to_vec();
    if found.base.ends_with("[]") {
        all.extend(scalars.map(|items| Type::List(items.into())));
    }
    all.into_iter().find(fits).ok_or_else(|| reason(&found.base).into())
}

/// Returns the reason why no type of the language fits a type of the database.
fn reason(base: &str) -> &'static str {
    match base {
        "tsvector" | "tsquery" => "it is for searches, which a declared `query` can make",
        "interval" => "its months and days have no fixed length, and no type has them",
        "money" => "its digits depend on a setting of the server; numeric would fit",
        "time without time zone" | "time with time zone" => {
            "no type is a time of day; text or an integer would fit"
        }
        _ if base.ends_with("range") => "no type is a range; two columns would fit",
        _ if base.ends_with(".citext") => {
            "the extension citext is in a schema that is not in the search path, so it would be \
             compared like text"
        }
        _ if base.ends_with("[]") => {
            "no list has items of its type; json or a table of its own would fit"
        }
        _ => "no type of the language is like it",
    }
}
