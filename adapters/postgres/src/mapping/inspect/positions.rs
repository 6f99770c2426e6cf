//! Checks of the columns that order logs.

use tokio_postgres::Client;

use super::Table;
use crate::error::message;
use crate::mapping::{Order, Positions};
use crate::name::quote;

/// Returns the column that orders a log's lines, and the source of its positions.
pub(super) async fn check_order(
    client: &Client,
    table: &Table,
    order: Option<&str>,
    what: &str,
) -> Result<Order, String> {
    let Some(name) = order else {
        return Err(format!(
            "{what} is a log, which needs `order`, the column that says the order"
        ));
    };
    let described = table.column(name)?;
    let wrong = |why: &str| {
        Err(format!("column {name} is {}, but the order of {what} needs {why}", described.shown))
    };
    let positions = match &*described.base {
        "smallint" | "integer" | "bigint" if !described.has_default => Positions::Counted,
        "smallint" | "integer" | "bigint" => {
            let found = client.query_opt(SEQUENCE, &[&table.name, &name]).await;
            let found = found.map_err(|error| message(&error))?;
            match found.map(|row| (row.get(0), row.get(1), row.get(2))) {
                Some((1_i64, 1_i64.., false)) => Positions::Sequence,
                Some((cache @ 2.., _, _)) => {
                    return wrong(&format!(
                        "numbers in the order of their commits, and its sequence gives them out in blocks \
                         (CACHE {cache}): CACHE 1 would fit"
                    ));
                }
                Some(_) => return wrong("a sequence that counts up and does not begin anew"),
                None => return wrong("a sequence as its default, or no default"),
            }
        }
        "timestamp with time zone" | "timestamp without time zone" if described.has_default => {
            let step_us = 10_u32.pow(6_u32.saturating_sub(described.second_digits));
            Positions::Clock { sql_type: described.sql_type.clone(), step_us }
        }
        _ => return wrong("an integer, or a timestamp that the database fills"),
    };
    Ok(Order { name: quote(name), positions })
}

/// Selects the sequence that fills a column: the number of values that a connection caches, its
/// step, and whether it cycles.
const SEQUENCE: &str = "\
SELECT s.seqcache, s.seqincrement, s.seqcycle FROM pg_sequence AS s \
WHERE s.seqrelid = pg_get_serial_sequence($1::text, $2::text)::regclass OR s.seqrelid IN \
(SELECT d.refobjid FROM pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum \
JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid \
AND d.refclassid = 'pg_class'::regclass \
WHERE f.adrelid = $1::text::regclass AND a.attname = $2::text) LIMIT 1";
