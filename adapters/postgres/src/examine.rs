//! The examination of a store's servers, for an operator. It changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mingle_model::{Level, Name};
use mingle_store::{Finding, Judgement, StoreOperation, StoreSchema, World};
use tokio_postgres::{Client, Row};

use crate::config::{Migrate, OpenError, PostgresConfig};
use crate::error::message;
use crate::layout::Layout;
use crate::mapping::MayRefuse;
use crate::name::quote;
use crate::operation::Indexed;
use crate::store::{Opening, may_refuse, plan_migration};

/// The results of an examination.
#[derive(Debug, Default)]
pub struct Examination {
    /// The findings, in order: of each server, and then of the store's tables.
    pub findings: Vec<Finding>,
    /// By kind of object, the parts of existing tables that may refuse a change.
    pub may_refuse: BTreeMap<Name, MayRefuse>,
}

/// Examines the servers of a store: whether they answer, their versions, rights, clocks and settings, and the
/// tables that are still missing. Changes nothing.
pub async fn examine(
    config: PostgresConfig,
    schema: StoreSchema,
    world: Arc<dyn World>,
) -> Examination {
    let mut examination = Examination::default();
    if let Err(error) = crate::store::check(config.clone(), schema.clone(), world.clone()) {
        examination.findings.push(Finding::wrong("binding", reason(&error)));
        return examination;
    }
    if config.servers.is_empty() {
        let found = one(config.clone(), &schema, &world, &mut examination.may_refuse).await;
        examination.findings.extend(found);
    } else {
        // Each of the servers has one copy.
        let schema = StoreSchema { level: Level::Snapshot, ..schema.clone() };
        for (name, url) in &config.servers {
            let of_one =
                PostgresConfig { url: url.clone(), servers: BTreeMap::new(), ..config.clone() };
            let found = server(&of_one, &schema, &world).await;
            let named = |finding: Finding| Finding {
                subject: format!("{name} {}", finding.subject),
                ..finding
            };
            examination.findings.extend(found.1.into_iter().map(named));
        }
    }
    let is_sound = examination.findings.iter().all(|found| found.judgement != Judgement::Wrong);
    if is_sound {
        examination.findings.push(tables(config, schema, world).await);
    }
    examination
}

/// Examines a store at one server.
async fn one(
    config: PostgresConfig,
    schema: &StoreSchema,
    world: &Arc<dyn World>,
    found_refusals: &mut BTreeMap<Name, MayRefuse>,
) -> Vec<Finding> {
    let (opening, mut findings) = server(&config, schema, world).await;
    if findings.iter().any(|found| found.judgement == Judgement::Wrong) {
        return findings;
    }
    let Some(opening) = opening else { return findings };
    match opening.merged().await {
        Ok(merged) => {
            *found_refusals = may_refuse(&merged.layout);
            match opening.lease().await {
                Ok(lease) => {
                    let client = lease.connection().client();
                    findings.extend(indexes(client, &merged.layout, schema).await);
                }
                Err(error) => findings.push(Finding::wrong("connection", reason(&error))),
            }
        }
        Err(error) => findings.push(Finding::wrong("tables", reason(&error))),
    }
    findings
}

/// Selects the columns of each index of all rows of a table, in their order; an expression has no name.
const COLUMNS: &str = "SELECT (SELECT array_agg(coalesce(a.attname::text, '') ORDER BY k.place) \
        FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place) \
        LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
        WHERE k.place <= i.indnkeyatts) \
    FROM pg_index AS i WHERE i.indrelid = $1::text::regclass AND i.indisvalid AND i.indpred IS NULL";

/// True if an index of these columns begins with those of the fields. The columns of one field, a ref, may stand in any
/// order.
fn begins_with(columns: &[String], fields: &[Vec<String>]) -> bool {
    let mut rest = columns;
    fields.iter().all(|field| {
        let Some((next, others)) = rest.split_at_checked(field.len()) else { return false };
        rest = others;
        field.iter().all(|column| next.contains(column))
    })
}

/// Looks for the database's indexes behind those of the program.
async fn indexes(client: &Client, layout: &Layout, schema: &StoreSchema) -> Vec<Finding> {
    let mut findings = Vec::new();
    let reads = schema.operations.values().filter_map(StoreOperation::index);
    // Each index has several queries.
    for read in reads.filter(|read| read.equal == 0 && !read.counts) {
        let Ok(index) = Indexed::new(layout, read) else { continue };
        let Some((table, fields)) = index.columns() else { continue };
        let listed = fields.concat().join(", ");
        let covers =
            |row: &tokio_postgres::Row| begins_with(&row.get::<_, Vec<String>>(0), &fields);
        findings.push(match client.query(COLUMNS, &[&table]).await {
            Ok(rows) if rows.iter().any(covers) => {
                Finding::good("index", format!("{} has an index of {table}", index.name()))
            }
            Ok(_) => Finding::warning(
                "index",
                format!(
                    "no index of {table} begins with {listed}: a read of {} goes through the whole table and conflicts with whatever writes it; `CREATE INDEX ON {table} ({listed})` makes one",
                    index.name()
                ),
            ),
            Err(error) => Finding::wrong("index", message(&error)),
        });
    }
    findings
}

/// Examines one server.
async fn server(
    config: &PostgresConfig,
    schema: &StoreSchema,
    world: &Arc<dyn World>,
) -> (Option<Opening>, Vec<Finding>) {
    let opening = match Opening::new(config.clone(), schema.clone(), world.clone()) {
        Ok(opening) => opening,
        Err(error) => return (None, vec![Finding::wrong("binding", reason(&error))]),
    };
    let place = opening.place();
    // This checks the version, and that the server takes writes.
    let lease = match opening.lease().await {
        Ok(lease) => lease,
        Err(error @ OpenError::Unavailable { .. }) => {
            let text = format!("{place} does not answer: {}", reason(&error));
            return (None, vec![Finding::wrong("connection", text)]);
        }
        Err(error) => return (None, vec![Finding::wrong("server", reason(&error))]),
    };
    let client = lease.connection().client();
    let findings = match settings(client, &place, config, schema).await {
        Ok(findings) => findings,
        Err(error) => vec![Finding::wrong("server", message(&error))],
    };
    drop(lease);
    (Some(opening), findings)
}

/// The settings that matter, in one row. Connections of Mingle set `synchronous_commit` themselves, so its
/// value is that of the server's configuration.
const SETTINGS: &str = "SELECT current_setting('server_version'), \
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
    current_setting('fsync'), current_setting('full_page_writes'), \
    current_setting('max_connections')::bigint \
        - current_setting('superuser_reserved_connections')::bigint, \
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), \
    current_user::text, current_database()::text, \
    has_database_privilege(current_database(), 'CREATE'), \
    (SELECT has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE') \
        FROM pg_namespace WHERE nspname = $1)";

async fn settings(
    client: &Client,
    place: &str,
    config: &PostgresConfig,
    schema: &StoreSchema,
) -> Result<Vec<Finding>, tokio_postgres::Error> {
    let own = config.schema_of(&schema.store);
    let statement = client.prepare(SETTINGS).await?;
    let (begin, now) = (Instant::now(), now_ms());
    let row = client.query_one(&statement, &[&own]).await?;
    let took = i64::try_from(begin.elapsed().as_millis()).unwrap_or(i64::MAX);
    let version: String = row.get(0);
    let mut findings = vec![
        Finding::good("connection", format!("{place} answers in {took} ms")),
        Finding::good("version", format!("PostgreSQL {version}")),
        Finding::clock(row.get::<_, i64>(1) - now - took / 2, took),
        durability(&row),
        connections(&row, config),
        own_tables(&row, &own, config),
    ];
    let tables = config.objects.values().flat_map(|mapping| {
        let fields = mapping.fields.values().map(|field| field.table.as_str());
        fields.chain([mapping.table.as_str()])
    });
    for table in tables {
        findings.push(rights(client, table).await?);
    }
    Ok(findings)
}

fn durability(row: &Row) -> Finding {
    let (fsync, pages): (String, String) = (row.get(2), row.get(3));
    if fsync == "on" && pages == "on" {
        return Finding::good("durability", "a commit that was acknowledged survives a crash");
    }
    Finding::warning(
        "durability",
        format!(
            "a crash of its machine may lose or damage data (fsync {fsync}, full_page_writes {pages}); \
             set both to on"
        ),
    )
}

fn connections(row: &Row, config: &PostgresConfig) -> Finding {
    let (most, used): (i64, i64) = (row.get(4), row.get(5));
    let wanted = i64::try_from(config.pool).unwrap_or(i64::MAX);
    let text = format!("{used} of {most} in use; this store takes up to {wanted} for each process");
    if wanted.saturating_add(used) <= most {
        return Finding::good("connections", text);
    }
    let remedy = "raise max_connections, or lower `pool`";
    Finding::warning("connections", format!("{text}, and may find none; {remedy}"))
}

fn own_tables(row: &Row, own: &str, config: &PostgresConfig) -> Finding {
    let (user, database): (String, String) = (row.get(6), row.get(7));
    let (may_create, may_use): (bool, Option<bool>) = (row.get(8), row.get(9));
    let is_manual = matches!(config.migrate, Migrate::Refuse);
    match may_use {
        Some(true) => {
            Finding::good("rights", format!("{user} may use schema {own} and create tables there"))
        }
        Some(false) if is_manual => Finding::warning(
            "rights",
            format!(
                "{user} may not create tables in schema {own}; `mingle migrate` needs another user"
            ),
        ),
        Some(false) => Finding::wrong(
            "rights",
            format!(
                "{user} may not create tables in schema {own}; GRANT USAGE, CREATE ON SCHEMA \"{own}\" TO {user}"
            ),
        ),
        None if may_create => Finding::good(
            "rights",
            format!("{user} may create schema {own} in database {database}"),
        ),
        None => Finding::wrong(
            "rights",
            format!(
                "there is no schema {own}, and {user} may not create it; GRANT CREATE ON DATABASE \"{database}\" TO {user}"
            ),
        ),
    }
}

/// Checks the rights on a table of the application.
async fn rights(client: &Client, table: &str) -> Result<Finding, tokio_postgres::Error> {
    let sql = "SELECT array_remove(ARRAY[\
        CASE WHEN NOT has_schema_privilege(n.oid, 'USAGE') THEN 'USAGE of its schema' END, \
        CASE WHEN NOT has_table_privilege(c.oid, 'SELECT') THEN 'SELECT' END, \
        CASE WHEN NOT has_table_privilege(c.oid, 'INSERT') THEN 'INSERT' END, \
        CASE WHEN NOT has_table_privilege(c.oid, 'UPDATE') THEN 'UPDATE' END, \
        CASE WHEN NOT has_table_privilege(c.oid, 'DELETE') THEN 'DELETE' END], NULL), \
        current_user::text \
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE c.oid = to_regclass($1::text)";
    let Some(row) = client.query_opt(sql, &[&quoted(table)]).await? else {
        return Ok(Finding::wrong("table", format!("there is no table {table}")));
    };
    let (lacks, user): (Vec<String>, String) = (row.get(0), row.get(1));
    if lacks.is_empty() {
        return Ok(Finding::good("table", format!("{user} may read and write {table}")));
    }
    let lacks = lacks.join(", ");
    Ok(Finding::warning(
        "table",
        format!("{user} lacks {lacks} on {table}; transactions that need it are refused"),
    ))
}

/// Looks for tables that are still missing, and checks those that are there.
async fn tables(config: PostgresConfig, schema: StoreSchema, world: Arc<dyn World>) -> Finding {
    let is_manual = matches!(config.migrate, Migrate::Refuse);
    match plan_migration(config, schema, world).await {
        Ok(migration) if migration.statements.is_empty() => {
            Finding::good("tables", "all tables are there and fit the program")
        }
        Ok(migration) => {
            let count = migration.statements.len();
            let text =
                format!("{count} statements are still to be run (`mingle migrate` shows them)");
            if is_manual {
                return Finding::wrong(
                    "tables",
                    format!("{text}; `mingle migrate --apply` runs them"),
                );
            }
            Finding::good("tables", format!("{text}; the first start runs them"))
        }
        Err(error) => Finding::wrong("tables", reason(&error)),
    }
}

/// Quotes a table's name for PostgreSQL; without a schema it is in `public`.
fn quoted(table: &str) -> String {
    let parts: Vec<String> = table.split('.').map(quote).collect();
    match &parts[..] {
        [table] => format!("\"public\".{table}"),
        parts => parts.join("."),
    }
}

/// Returns the reason of an error without the store's name, which the caller shows.
fn reason(error: &OpenError) -> String {
    match error {
        OpenError::Unavailable { reason, .. } | OpenError::Config { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_begins_with_the_columns_of_each_field() {
        let list = |names: &str| names.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (columns, fields, expected) in [
            ("shop order amount", "shop order|amount", true),
            ("order shop amount", "shop order|amount", true),
            ("order amount shop", "shop order|amount", false),
            ("amount shop order", "shop order", false),
            ("order shop", "shop order|amount", false),
            ("order  shop", "shop order", false),
            ("a b", "a|b", true),
            ("b a", "a|b", false),
        ] {
            let fields: Vec<Vec<String>> = fields.split('|').map(list).collect();
            assert_eq!(begins_with(&list(columns), &fields), expected, "{columns}: {fields:?}");
        }
    }
}
