//! Applications without Mingle, on the same tables at the same time.

mod beside;
mod composite;
mod joined;
mod keys;
mod reaching;
mod refusing;
mod unique;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mingle_services::Engine;
use tokio_postgres::{Client, NoTls};

use crate::engines::site::{block_on, bound, space};

/// Tables of another application, in a schema of their own.
pub struct Legacy {
    url: String,
    /// Their schema.
    pub name: String,
    space: String,
    pub client: Client,
}

impl Legacy {
    /// Makes the tables; `legacy.` in `sql` stands for the schema. None if PostgreSQL is not installed.
    pub fn new(sql: &str) -> Option<Self> {
        block_on(async {
            let server = mingle_services::shared(Engine::Postgres).await?;
            let (url, space) = (server.url().to_owned(), space());
            let (client, name) = (connect(&url).await, format!("{space}_legacy"));
            let tables = sql.replace("legacy.", &format!("{name}."));
            let made = client.batch_execute(&format!("CREATE SCHEMA {name}; {tables}")).await;
            made.unwrap_or_else(|error| panic!("{error:?}"));
            Some(Self { url, name, space, client })
        })
    }

    /// Opens another connection to the tables, as another program does.
    pub async fn connect(&self) -> Client {
        let client = connect(&self.url).await;
        let at_home = format!("SET search_path = {}; SET lock_timeout = '20s'", self.name);
        client.batch_execute(&at_home).await.expect("the connection is set up");
        client
    }

    /// The binding of a store to the tables; `legacy.` in `objects` stands for the schema.
    pub fn binding(&self, store: &str, objects: &str) -> String {
        let place = block_on(bound(store, Some(Engine::Postgres), &self.space));
        let objects = objects.replace("legacy.", &format!("{}.", self.name));
        place.expect("the server is still there") + &objects
    }

    /// The binding of a store to a server of this engine, or to this process if the engine is not installed.
    pub fn beside(&self, store: &str, engine: Engine) -> String {
        block_on(bound(store, Some(engine), &self.space)).unwrap_or_default()
    }

    /// Runs SQL as the other program.
    pub fn execute(&self, sql: &str) {
        let sql = sql.replace("legacy.", &format!("{}.", self.name));
        let done = block_on(self.client.batch_execute(&sql));
        done.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The single number that a query returns.
    pub fn number(&self, sql: &str) -> i64 {
        let sql = sql.replace("legacy.", &format!("{}.", self.name));
        let row = block_on(self.client.query_one(&sql, &[]));
        row.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }

    /// Waits until a query gives this number.
    pub fn await_number(&self, sql: &str, wanted: i64) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.number(sql) != wanted {
            assert!(Instant::now() < deadline, "{sql} does not come to {wanted}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The number of rows of one of Mingle's own tables beside a store's data.
    pub fn rows_of_ours(&self, store: &str, table: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM {}_{store}.{table}", self.space))
    }

    /// All that a dump would show of the schema, except the rows.
    pub fn form(&self) -> String {
        let rows = block_on(self.client.query(FORM, &[&self.name])).expect("the catalog answers");
        let mut form = String::new();
        for row in rows {
            writeln!(form, "{} {}", row.get::<_, String>(0), row.get::<_, String>(1))
                .expect("a string takes all");
        }
        assert!(form.lines().count() > 5, "hardly a schema: {form}");
        form
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("the server takes connections");
    tokio::spawn(connection);
    client
}

/// The query for all parts of a schema: relations with their options and owners, columns, constraints,
/// indexes, triggers, rules, policies, functions, types and rights.
const FORM: &str = "\
WITH own AS (SELECT c.* FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
WHERE n.nspname = $1::text) \
SELECT 'relation', concat_ws(' ', relname, relkind, relowner::regrole, relpersistence, \
relrowsecurity, relreplident, reloptions, relacl) FROM own \
UNION ALL SELECT 'column', concat_ws(' ', relname, attnum, attname, \
format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated, attacl, \
pg_get_expr(adbin, adrelid)) FROM own JOIN pg_attribute ON attrelid = own.oid \
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attnum > 0 \
UNION ALL SELECT 'constraint', concat_ws(' ', relname, conname, condeferrable, convalidated, \
pg_get_constraintdef(pg_constraint.oid)) FROM own JOIN pg_constraint ON conrelid = own.oid \
UNION ALL SELECT 'index', pg_get_indexdef(indexrelid) FROM own JOIN pg_index ON indrelid = own.oid \
UNION ALL SELECT 'trigger', concat_ws(' ', tgenabled, pg_get_triggerdef(pg_trigger.oid)) \
FROM own JOIN pg_trigger ON tgrelid = own.oid \
UNION ALL SELECT 'rule', pg_get_ruledef(pg_rewrite.oid) FROM own \
JOIN pg_rewrite ON ev_class = own.oid \
UNION ALL SELECT 'policy', concat_ws(' ', relname, polname) FROM own \
JOIN pg_policy ON polrelid = own.oid \
UNION ALL SELECT 'function', pg_get_functiondef(p.oid) FROM pg_proc AS p \
JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = $1::text \
UNION ALL SELECT 'type', concat_ws(' ', t.typname, t.typtype) FROM pg_type AS t \
JOIN pg_namespace AS n ON n.oid = t.typnamespace WHERE n.nspname = $1::text \
ORDER BY 1, 2";
