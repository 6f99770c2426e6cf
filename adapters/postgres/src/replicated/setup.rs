//! The setup of servers: tables and subscriptions. The next process that opens the store finishes
//! an interrupted setup.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use mingle_model::{Level, Name};
use mingle_store::{StoreSchema, World};

use super::declared;
use super::link;
use super::store::Server;
use crate::config::{Migrate, OpenError, PostgresConfig};
use crate::connect::{Connector, Isolation};
use crate::error::message;
use crate::layout::{Layout, system};
use crate::limits::{NAME_BYTES_MAX, SERVERS_MAX};
use crate::name::{literal, quote};
use crate::outcome::Ageing;
use crate::pool::{Lease, Pool};
use crate::store::Migration;
use crate::wire::{boolean, int, text};

const TABLES: &str = include_str!("tables.sql");
const FUNCTIONS: &str = include_str!("functions.sql");

/// The state needed to open servers, now or later.
pub struct Opening {
    /// The program's declarations.
    pub schema: StoreSchema,
    /// The schema of Mingle's tables.
    pub own: String,
    names: Vec<Name>,
    migrate: Migrate,
}

/// A server that can be reached.
pub struct There {
    /// A connection to it.
    pub lease: Lease,
    /// The name of its database.
    pub database: String,
}

/// A statement, and the index of the server that it is for.
pub type Planned = (usize, String);

impl Opening {
    /// Creates the opening of the servers of `config`; it contacts none of them.
    ///
    /// # Errors
    ///
    /// When the store does not fit several servers.
    pub fn new(
        config: PostgresConfig,
        schema: StoreSchema,
        world: &Arc<dyn World>,
    ) -> Result<(Self, Vec<Server>), OpenError> {
        let store = schema.store.clone();
        let refuse = |reason: String| OpenError::Config { store: store.clone(), reason };
        check(&config, &schema)?;
        let mut servers = Vec::with_capacity(config.servers.len());
        for (name, url) in &config.servers {
            let config = PostgresConfig { url: url.clone(), ..config.clone() };
            let connector = Connector::new(&config, Isolation::ReadCommitted)
                .map_err(|why| refuse(format!("servers.{name}: {why}")))?;
            servers.push(Server {
                name: name.as_str().into(),
                pool: Pool::new(connector, &config, Arc::clone(world)),
                link: config.links.get(name).unwrap_or(url).clone(),
                is_ready: AtomicBool::new(false),
                ageing: Ageing::new(config.keep_outcomes),
            });
        }
        let names = servers.iter().map(|server| server.name.clone()).collect();
        let own = config.schema_of(&schema.store);
        Ok((Self { schema, own, names, migrate: config.migrate }, servers))
    }

    /// Returns the layout of the store.
    pub fn layout(&self) -> Layout {
        declared::layout(&self.schema, self.own.clone())
    }

    /// Opens all servers, and creates the missing parts.
    ///
    /// # Errors
    ///
    /// As [`super::ReplicatedPostgres::connect`].
    pub async fn open(&self, servers: &[Server]) -> Result<(), OpenError> {
        let leases = self.leases(servers).await;
        let away = leases.iter().find_map(|lease| lease.as_ref().err().cloned());
        let there: Vec<Option<There>> = leases.into_iter().map(Result::ok).collect();
        let planned = if there.iter().any(Option::is_some) {
            self.plan(servers, &there).await?
        } else {
            Vec::new()
        };
        match away {
            // If nothing is missing at the others, the absent server is not needed.
            Some(away) if !planned.is_empty() || there.iter().all(Option::is_none) => {
                return Err(away);
            }
            _ => {}
        }
        self.make(servers, &there, planned).await?;
        for (server, lease) in servers.iter().zip(&there) {
            server.is_ready.store(lease.is_some(), Ordering::Release);
        }
        Ok(())
    }

    /// Opens a server that was unreachable before.
    ///
    /// # Errors
    ///
    /// As [`Opening::open`].
    pub async fn open_late(&self, servers: &[Server], late: usize) -> Result<(), OpenError> {
        let mut leases = self.leases(servers).await;
        if let Some(Err(error)) = leases.get(late) {
            return Err(error.clone());
        }
        let there: Vec<Option<There>> = leases.drain(..).map(Result::ok).collect();
        let planned = self.plan(servers, &there).await?;
        self.make(servers, &there, planned).await?;
        for (server, lease) in servers.iter().zip(&there) {
            if lease.is_some() {
                server.is_ready.store(true, Ordering::Release);
            }
        }
        Ok(())
    }

    async fn make(
        &self,
        servers: &[Server],
        there: &[Option<There>],
        planned: Vec<Planned>,
    ) -> Result<(), OpenError> {
        if planned.is_empty() {
            return Ok(());
        }
        if self.migrate == Migrate::Refuse {
            let sql = self.shown(&planned).sql();
            return Err(OpenError::Missing { store: self.schema.store.clone(), sql });
        }
        self.migrate(servers, there).await
    }

    /// Connects to the reachable servers, and checks their settings.
    async fn leases(&self, servers: &[Server]) -> Vec<Result<There, OpenError>> {
        let leases = servers.iter().map(|server| async move {
            let lease = server.pool.lease().await.map_err(|reason| OpenError::Unavailable {
                store: self.schema.store.clone(),
                reason: format!("{}: {reason}", server.name),
            })?;
            let database = self.look(server, &lease).await?;
            Ok(There { lease, database })
        });
        join_all(leases).await
    }

    /// Checks that a server's settings allow replication; returns the name of its database.
    async fn look(&self, server: &Server, lease: &Lease) -> Result<String, OpenError> {
        let sql = "SELECT current_setting('server_version_num')::bigint, pg_is_in_recovery(), \
                   current_setting('wal_level'), \
                   current_setting('max_logical_replication_workers')::bigint, \
                   (SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_isolation'), \
                   current_database()::text";
        let found = lease.connection().client().query_one(sql, &[]).await;
        let row = found.map_err(|error| self.server(&server.name, "a look at it", &error))?;
        let refuse = |reason: String| {
            let reason = format!("servers.{}: {reason}", server.name);
            Err(OpenError::Config { store: self.schema.store.clone(), reason })
        };
        let (version, workers) = (int(&row, 0), int(&row, 3));
        let others = self.names.len() - 1;
        if version < 160_000 {
            return refuse(format!(
                "expected PostgreSQL 16 or newer, which has `origin = none`, found version {version}"
            ));
        }
        if boolean(&row, 1) {
            return refuse("the server is a standby: it takes no writes".into());
        }
        if text(&row, 2) != Some("logical") {
            let found = text(&row, 2).unwrap_or_default();
            return refuse(format!("expected wal_level = logical, found {found}"));
        }
        if workers < i64::try_from(others).unwrap_or(i64::MAX) {
            return refuse(format!(
                "max_logical_replication_workers: expected at least {others}, one for each other \
                 server, found {workers}"
            ));
        }
        if text(&row, 4) != Some("read committed") {
            return refuse(
                "default_transaction_isolation: expected read committed, in which arriving updates \
                 are applied"
                    .into(),
            );
        }
        Ok(text(&row, 5).unwrap_or_default().to_owned())
    }

    pub(super) fn server(
        &self,
        name: &str,
        what: &str,
        error: &tokio_postgres::Error,
    ) -> OpenError {
        OpenError::Server {
            store: self.schema.store.clone(),
            what: format!("{what} at {name}"),
            reason: message(error),
        }
    }

    /// Returns the statements that the reachable servers need: tables, then subscriptions.
    async fn plan(
        &self,
        servers: &[Server],
        there: &[Option<There>],
    ) -> Result<Vec<Planned>, OpenError> {
        let tables = there.iter().enumerate().map(|(index, there)| async move {
            let Some(there) = there else { return Ok((Vec::new(), false)) };
            self.tables(index, &there.lease).await
        });
        let tables: Result<Vec<_>, OpenError> = join_all(tables).await.into_iter().collect();
        let tables = tables?;
        let links = pairs(there.len()).map(|(at, from)| {
            let is_new = tables[at].1 || tables[from].1;
            async move {
                let (Some(subscriber), Some(publisher)) = (&there[at], &there[from]) else {
                    return Ok(Vec::new());
                };
                let link = link::Link { opening: self, servers, at, from };
                link.plan(subscriber, publisher, is_new).await
            }
        });
        let links: Result<Vec<_>, OpenError> = join_all(links).await.into_iter().collect();
        let links = links?.into_iter().flatten();
        let tables = tables.into_iter().enumerate();
        let tables = tables.flat_map(|(index, (statements, _))| {
            statements.into_iter().map(move |sql| (index, sql))
        });
        Ok(tables.chain(links).collect())
    }

    /// Returns the statements that create the tables that a server lacks, and true if it has none
    /// yet.
    ///
    /// # Errors
    ///
    /// When the program changes a stored declaration, or the server knows the store with other
    /// servers.
    async fn tables(&self, index: usize, lease: &Lease) -> Result<(Vec<String>, bool), OpenError> {
        let name = &self.names[index];
        let client = lease.connection().client();
        let failed =
            |error: tokio_postgres::Error| self.server(name, "a look at the catalog", &error);
        let kept = declared::load(client, &self.own).await.map_err(failed)?;
        let mut statements = Vec::new();
        if kept.is_empty() {
            statements.extend(self.new_tables(index));
        }
        statements.extend(declared::missing(&kept, &self.schema, &self.own)?);
        if !kept.is_empty() {
            let sql = format!(
                "SELECT (SELECT own FROM {})::bigint, \
                 (SELECT string_agg(name, ', ' ORDER BY server) FROM {})",
                system(&self.own, "state"),
                system(&self.own, "servers")
            );
            let row = client.query_one(&sql, &[]).await.map_err(failed)?;
            self.check_servers(index, int(&row, 0), text(&row, 1).unwrap_or_default())?;
        }
        Ok((statements, kept.is_empty()))
    }

    fn check_servers(&self, index: usize, own: i64, kept: &str) -> Result<(), OpenError> {
        let store = self.schema.store.clone();
        let wanted = self.names.join(", ");
        if kept != wanted {
            return Err(OpenError::Changed {
                store,
                what: format!("the servers, at {},", self.names[index]),
                kept: kept.to_owned(),
                wanted,
            });
        }
        let known = usize::try_from(own - 1).ok().and_then(|own| self.names.get(own));
        if known != Some(&self.names[index]) {
            let known = known.map_or("another", |name| &**name);
            let reason = format!("servers.{}: the server there is {known}", self.names[index]);
            return Err(OpenError::Config { store, reason });
        }
        Ok(())
    }

    fn new_tables(&self, index: usize) -> Vec<String> {
        let (own, count) = (quote(&self.own), self.names.len());
        let mark = crate::name::mark(&[&own]);
        let mut statements = vec![format!("CREATE SCHEMA IF NOT EXISTS {own}")];
        for sql in [TABLES, FUNCTIONS] {
            let sql = sql.replace("$mingle$", &mark);
            let all = sql.split("\n\n").map(|one| one.trim().replace("{schema}", &own));
            statements.extend(all);
        }
        let none = format!("array_fill(0::bigint, ARRAY[{count}])");
        statements.push(format!(
            "INSERT INTO {own}.mingle_state SELECT {}, {none}, 0, 0, false, false, {none}, 0",
            index + 1
        ));
        for (server, name) in (1..).zip(&self.names) {
            statements.push(format!(
                "INSERT INTO {own}.mingle_servers VALUES ({server}, {})",
                literal(name)
            ));
        }
        statements.push(format!(
            "INSERT INTO {own}.mingle_known SELECT server, 0, {none} FROM {own}.mingle_servers"
        ));
        statements.push(format!(
            "CREATE PUBLICATION {own} FOR TABLE {own}.mingle_log, {own}.mingle_seen \
             WITH (publish = 'insert')"
        ));
        statements
    }

    /// Creates the missing parts; concurrent callers wait.
    async fn migrate(&self, servers: &[Server], there: &[Option<There>]) -> Result<(), OpenError> {
        let tables = there.iter().enumerate().map(|(index, there)| async move {
            let Some(There { lease, .. }) = there else { return Ok(()) };
            self.locked(index, lease, async {
                let (statements, _) = self.tables(index, lease).await?;
                let sql: String = statements.iter().flat_map(|sql| [&**sql, ";\n"]).collect();
                self.run(index, lease, "the migration", &sql).await
            })
            .await
        });
        for made in join_all(tables).await {
            made?;
        }
        // One after another: a slot cannot be created on a connection that is inside a transaction.
        for (at, from) in pairs(there.len()) {
            if let (Some(subscriber), Some(publisher)) = (&there[at], &there[from]) {
                let link = link::Link { opening: self, servers, at, from };
                link.make(subscriber, publisher).await?;
            }
        }
        Ok(())
    }

    /// Runs work in a transaction of its own that excludes other setups of the store at this
    /// server.
    pub(super) async fn locked(
        &self,
        index: usize,
        lease: &Lease,
        work: impl Future<Output = Result<(), OpenError>>,
    ) -> Result<(), OpenError> {
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = 0; \
             SELECT pg_advisory_xact_lock(hashtextextended({}, 0))",
            literal(&format!("mingle {}", self.own))
        );
        self.run(index, lease, "the migration", &begin).await?;
        let done = work.await;
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.run(index, lease, "the migration", end).await?;
        done
    }

    pub(super) async fn run(
        &self,
        index: usize,
        lease: &Lease,
        what: &str,
        sql: &str,
    ) -> Result<(), OpenError> {
        let done = lease.connection().client().batch_execute(sql).await;
        done.map_err(|error| self.server(&self.names[index], what, &error))
    }

    /// Formats statements for an operator, each with its server.
    fn shown(&self, planned: &[Planned]) -> Migration {
        // A comment ends with its line, and the binding may give a server any name.
        let at = |index: usize| self.names[index].replace(|c: char| c.is_control(), " ");
        let shown = planned.iter().map(|(index, sql)| format!("-- at {}\n{sql}", at(*index)));
        Migration { statements: shown.collect() }
    }
}

/// Checks that a store can be on several servers.
fn check(config: &PostgresConfig, schema: &StoreSchema) -> Result<(), OpenError> {
    let store = schema.store.clone();
    let refuse = |reason: String| Err(OpenError::Config { store: store.clone(), reason });
    let count = config.servers.len();
    if !matches!(schema.level, Level::Causal | Level::Eventual) {
        return refuse(format!(
            "several servers give the levels causal and eventual, not {}: bind it to one, by its url",
            schema.level
        ));
    }
    if !(2..=SERVERS_MAX).contains(&count) {
        return refuse(format!("servers: expected 2 to {SERVERS_MAX}, found {count}"));
    }
    if let Some(name) = config.links.keys().find(|name| !config.servers.contains_key(*name)) {
        return refuse(format!("links.{name}: there is no such server"));
    }
    if config.pool == 0 {
        return refuse("pool: expected at least 1, found 0".into());
    }
    schema.refuse_builtins("a store of several servers").or_else(refuse)?;
    if config.schema_of(&schema.store).len() > NAME_BYTES_MAX {
        return refuse("schema: the name is longer than 63 bytes".into());
    }
    if let Some(object) = config.objects.keys().next() {
        return Err(OpenError::Mapping {
            store,
            object: object.as_str().into(),
            reason: "a table that was there before cannot be in a store over several servers: its \
                     rows say nothing of who has seen what, so servers would overwrite each other's"
                .into(),
        });
    }
    if let Some(operation) = schema.operations.keys().next() {
        return Err(OpenError::Operation {
            store,
            operation: operation.clone(),
            reason:
                "a store over several servers has no operations of its own: its tables hold what \
                     is to be merged, not what is read"
                    .into(),
        });
    }
    Ok(())
}

/// Returns all pairs of different indexes.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |at| (0..count).map(move |from| (at, from))).filter(|(a, b)| a != b)
}

/// Checks that a store can be opened, as far as possible without its servers.
///
/// # Errors
///
/// As [`super::ReplicatedPostgres::connect`].
pub fn may_open(
    config: PostgresConfig,
    schema: StoreSchema,
    world: &Arc<dyn World>,
) -> Result<(), OpenError> {
    Opening::new(config, schema, world).map(|_| ())
}

/// Returns the SQL that servers still need, without running it.
///
/// # Errors
///
/// As [`super::ReplicatedPostgres::connect`].
pub async fn plan(
    config: PostgresConfig,
    schema: StoreSchema,
    world: Arc<dyn World>,
) -> Result<Migration, OpenError> {
    let (opening, servers) = Opening::new(config, schema, &world)?;
    let there = opening.all(&servers).await?;
    Ok(opening.shown(&opening.plan(&servers, &there).await?))
}

/// Runs the SQL that servers still need, and returns it.
///
/// # Errors
///
/// As [`super::ReplicatedPostgres::connect`].
pub async fn migrate(
    config: PostgresConfig,
    schema: StoreSchema,
    world: Arc<dyn World>,
) -> Result<Migration, OpenError> {
    let (opening, servers) = Opening::new(config, schema, &world)?;
    let there = opening.all(&servers).await?;
    let planned = opening.plan(&servers, &there).await?;
    if !planned.is_empty() {
        opening.migrate(&servers, &there).await?;
    }
    Ok(opening.shown(&planned))
}

impl Opening {
    /// Connects to all servers.
    async fn all(&self, servers: &[Server]) -> Result<Vec<Option<There>>, OpenError> {
        self.leases(servers).await.into_iter().map(|there| there.map(Some)).collect()
    }
}
