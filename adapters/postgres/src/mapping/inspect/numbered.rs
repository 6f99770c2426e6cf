//! The sequence that numbers the rows of a table.

use mingle_model::Type;
use tokio_postgres::Client;

use super::Table;
use crate::error::message;
use crate::mapping::Sequence;

/// Selects the sequence behind the default of a column, or behind its identity: its name, quoted and with its schema,
/// and if this user may draw from it.
const SEQUENCE: &str = "\
SELECT format('%I.%I', n.nspname, c.relname), has_sequence_privilege(c.oid, 'USAGE, UPDATE') \
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind = 'S' AND \
(c.oid = pg_get_serial_sequence($1::text, $2::text)::regclass OR c.oid IN \
(SELECT d.refobjid FROM pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum \
JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid \
AND d.refclassid = 'pg_class'::regclass \
WHERE f.adrelid = $1::text::regclass AND a.attname = $2::text)) LIMIT 1";

/// Returns the sequence that numbers the keys of a table, if its key is one column of whole numbers that has one.
pub(super) async fn sequence(
    client: &Client,
    table: &Table,
    key_types: &[Type],
    key: &[String],
) -> Result<Option<Sequence>, String> {
    let ([Type::Int], [name]) = (key_types, key) else { return Ok(None) };
    if !table.column(name)?.has_default {
        return Ok(None);
    }
    let found = client.query_opt(SEQUENCE, &[&table.name, name]).await;
    let found = found.map_err(|error| message(&error))?;
    Ok(found.map(|row| Sequence { name: row.get(0), is_permitted: row.get(1) }))
}
