//! `unique`s of the program in existing tables: other programs write them, too, so the database must keep the
//! promise.

use mingle_model::{IndexRead, ObjectType};
use mingle_store::{StoreOperation, StoreSchema};
use tokio_postgres::Client;

use super::{ObjectMapping, Table};
use crate::error::message;
use crate::name::quote;

/// Selects the unique indexes of a table over exactly some columns, sorted by name, that compare all rows at once
/// as the program does.
const KEPT: &str = "\
SELECT n.nspname::text, c.relname::text \
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid \
JOIN pg_namespace AS n ON n.oid = c.relnamespace \
CROSS JOIN LATERAL unnest(i.indkey::int2[], i.indclass::oid[], i.indcollation::oid[]) \
WITH ORDINALITY AS k(attnum, class, collation_id, place) \
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum JOIN pg_opclass AS o ON o.oid = k.class \
WHERE i.indrelid = $1::text::regclass AND i.indisunique AND i.indisvalid AND i.indimmediate \
AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts \
GROUP BY i.indexrelid, n.nspname, c.relname, to_jsonb(i) \
HAVING array_agg(a.attname::text ORDER BY a.attname::text) = $2::text[] \
AND bool_and(o.opcdefault AND coalesce((SELECT l.collisdeterministic FROM pg_collation AS l \
WHERE l.oid = k.collation_id), true)) \
AND (bool_and(a.attnotnull) OR NOT coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)) \
ORDER BY 1, 2";

impl Table {
    /// Returns the indexes of the database, by schema and name, that keep the `unique`s of an object.
    ///
    /// # Errors
    ///
    /// The reason why the database does not keep one of them, with the statement that makes an index.
    pub(super) async fn uniques(
        &self,
        client: &Client,
        schema: &StoreSchema,
        object: &ObjectType,
        mapping: &ObjectMapping,
    ) -> Result<Vec<(String, String)>, String> {
        let reads = schema.operations.values().filter_map(StoreOperation::index);
        // One of the queries of each index.
        let is_one = |read: &&IndexRead| {
            read.is_unique && !read.counts && !read.has_range() && read.object == object.name
        };
        let mut found = Vec::new();
        for read in reads.filter(is_one) {
            let mut columns = Vec::with_capacity(read.fields.len());
            for field in &read.fields {
                for column in mapping.columns_of(field) {
                    self.is_exact(column, &format!("{}.{field}", object.name))?;
                    columns.push(column.to_owned());
                }
            }
            let mut sorted = columns.clone();
            sorted.sort();
            sorted.dedup();
            let rows = client.query(KEPT, &[&self.name, &sorted]).await;
            let rows = rows.map_err(|error| message(&error))?;
            if rows.is_empty() {
                return Err(self.not_kept(read, &columns));
            }
            found.extend(rows.iter().map(|row| (row.get(0), row.get(1))));
        }
        Ok(found)
    }

    /// Refuses a column in which the database takes different values for equal.
    fn is_exact(&self, name: &str, what: &str) -> Result<(), String> {
        let column = self.column(name)?;
        let is_text = !column.is_deterministic || column.base == "citext";
        if is_text {
            return Err(format!(
                "column {name} of {} takes different texts for equal ({}), so {what} cannot be `unique`: for the program \
                 they differ",
                self.name, column.shown
            ));
        }
        Ok(())
    }

    fn not_kept(&self, read: &IndexRead, columns: &[String]) -> String {
        let fields: Vec<&str> = read.fields.iter().map(|field| &**field).collect();
        let quoted: Vec<String> = columns.iter().map(|name| quote(name)).collect();
        let (fields, listed, quoted) = (fields.join(", "), columns.join(", "), quoted.join(", "));
        format!(
            "the database does not keep `unique {fields}`, and other programs may write {} too: `CREATE UNIQUE INDEX ON {} \
             ({quoted})` makes an index over exactly {listed}, of all rows",
            self.name, self.name
        )
    }
}
