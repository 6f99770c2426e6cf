//! The store, and opening it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use mingle_model::{IndexRead, Level, Name, TransactionId};
use mingle_store::{
    BoxFuture, Capabilities, DataStore, Listed, Listing, Once, Outcome, Session, StoreError,
    StoreSchema, Transaction, World,
};
use tokio_postgres::Client;

use crate::again::Declared;
use crate::catalog::{Catalog, Merged};
use crate::commit;
use crate::config::{Migrate, OpenError, PostgresConfig};
use crate::connect::{Connector, Isolation};
use crate::error::message;
use crate::inside::Own;
use crate::layout::{Layout, Place};
use crate::limits::READS_MAX;
use crate::mapping::MayRefuse;
use crate::mapping::inspect::{check_declared, inspect};
use crate::name::literal;
use crate::operation::{Indexed, Operation, Operations};
use crate::outcome::{self, Ageing};
use crate::pool::{Lease, Pool};
use crate::session::Step;
use crate::transaction::PostgresTransaction;

/// A PostgreSQL store.
pub struct Postgres {
    current: Arc<Current>,
    capabilities: Capabilities,
}

/// The state that new transactions share. It is replaced after existing tables have changed.
pub(crate) struct Current(RwLock<Arc<Inner>>);

impl Current {
    pub(crate) fn get(&self) -> Arc<Inner> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set(&self, inner: Arc<Inner>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = inner;
    }
}

/// The state shared by transactions of a store.
pub(crate) struct Inner {
    pub(crate) store: Name,
    pub(crate) layout: Layout,
    /// The declarations of the program and the binding about existing tables.
    pub(crate) declared: Arc<Declared>,
    pub(crate) operations: Operations,
    pub(crate) pool: Arc<Pool>,
    /// The time that outcomes are kept, as an SQL interval.
    pub(crate) keep: String,
    /// The ages of outcomes.
    pub(crate) ageing: Arc<Ageing>,
    /// The database identity and the settings of its own connections, once they were read.
    pub(crate) own: Mutex<Option<Arc<Own>>>,
}

impl Inner {
    /// Removes old outcomes, periodically and when a floor was raised. It runs concurrently and at
    /// a lower isolation level: at the store's own level it would conflict with commits.
    pub(crate) fn clean_up(self: &Arc<Self>, id: Option<TransactionId>, floors: &[TransactionId]) {
        let now = self.pool.world().elapsed();
        let old = floors.iter().filter_map(|last| self.ageing.raised(*last, now));
        let mut steps: Vec<Step> =
            old.map(|last| outcome::forget(&self.layout, last, &self.keep)).collect();
        if id.is_some() && self.ageing.is_purge_due(now) {
            steps.push(outcome::purge(&self.layout, &self.keep));
        }
        if steps.is_empty() {
            return;
        }
        let steps = Step::beside(steps);
        let inner = Arc::clone(self);
        self.pool.world().spawn(Box::pin(async move {
            // Rows that are not removed now are removed the next time.
            let Ok(mut lease) = inner.pool.lease().await else { return };
            if let Some(Ok(())) = lease.prepare(&steps).await {
                lease.soil();
                if let Some(results) = lease.run(&steps).await {
                    lease.settle(&results);
                }
            }
        }));
    }
}

/// The statements that a store's tables still need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migration {
    /// SQL, one statement each; empty if nothing is missing.
    pub statements: Vec<String>,
}

impl Migration {
    /// Returns the SQL as text.
    pub fn sql(&self) -> String {
        self.statements.iter().flat_map(|statement| [statement, ";\n"]).collect()
    }
}

/// The connections for opening a store, before there are transactions.
pub(crate) struct Opening {
    config: PostgresConfig,
    schema: StoreSchema,
    /// The pool of the store's transactions.
    pool: Arc<Pool>,
    /// The connections with which opening looks at the catalog: such a look takes part in no serializability
    /// conflict with stores that are opened at the same time.
    looks: Arc<Pool>,
}

impl Postgres {
    /// Opens the store that `schema` describes. Must be called on a tokio runtime, on which the
    /// tasks of `world` run too.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, the program changes a stored declaration, tables are
    /// missing and may not be created, or a mapping or an operation does not fit the database.
    pub async fn connect(
        config: PostgresConfig,
        schema: StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Arc<Self>, OpenError> {
        let opening = Opening::new(config, schema, world)?;
        let mut lease = opening.lease().await?;
        let mut merged = opening.plan(&lease).await?;
        if !merged.migration.is_empty() {
            if opening.config.migrate == Migrate::Refuse {
                let migration = Migration { statements: merged.migration };
                let store = opening.schema.store.clone();
                return Err(OpenError::Missing { store, sql: migration.sql() });
            }
            opening.migrate(&mut lease).await?;
            merged = opening.plan(&lease).await?;
        }
        let operations = opening.operations(&lease, &merged.layout).await?;
        drop(lease);
        let config = opening.config;
        let store = opening.schema.store.clone();
        let current = Arc::new_cyclic(|current| {
            let (schema, objects) = (opening.schema.clone(), config.objects);
            Current(RwLock::new(Arc::new(Inner {
                store: store.clone(),
                layout: merged.layout,
                declared: Arc::new(Declared { schema, objects, current: current.clone() }),
                operations,
                pool: opening.pool,
                keep: interval(config.keep_outcomes),
                ageing: Arc::new(Ageing::new(config.keep_outcomes)),
                own: Mutex::new(None),
            })))
        });
        let capabilities = Capabilities {
            store,
            level: opening.schema.level,
            atomic_commit: true,
            serializable: true,
            once: Once::Serial,
            may_lose_answers: true,
            floor_suffices: false,
            replicas: Vec::new(),
            weaker_answers: Vec::new(),
            operations_per_round_trip: READS_MAX,
            round_trip: config.round_trip,
        };
        Ok(Arc::new(Self { current, capabilities }))
    }

    pub(crate) fn inner(&self) -> Arc<Inner> {
        self.current.get()
    }

    /// Returns the schema of Mingle's own tables.
    pub fn schema(&self) -> String {
        self.inner().layout.own.clone()
    }

    /// Returns, by kind, the parts of existing tables that may refuse a change of an object even if
    /// the program has checked it.
    pub fn constraints_that_may_refuse(&self) -> BTreeMap<Name, MayRefuse> {
        may_refuse(&self.inner().layout)
    }

    /// Returns the numbers of idle connections and of connections that may still be leased.
    pub fn connections(&self) -> (usize, usize) {
        self.inner().pool.idle_and_free()
    }
}

/// Returns, by kind, the parts of existing tables that may refuse a change of an object.
pub(crate) fn may_refuse(layout: &Layout) -> BTreeMap<Name, MayRefuse> {
    let mapped = layout.kinds.iter().filter_map(|(name, kind)| match &kind.place {
        Place::Mapped(mapped) if !mapped.constraints.is_empty() => {
            Some((name.clone(), mapped.constraints.clone()))
        }
        Place::Mapped(_) | Place::Own { .. } => None,
    });
    mapped.collect()
}

/// Checks that a store can be opened, as far as possible without its servers.
///
/// # Errors
///
/// As [`Postgres::connect`].
pub fn check(
    config: PostgresConfig,
    schema: StoreSchema,
    world: Arc<dyn World>,
) -> Result<(), OpenError> {
    if !config.servers.is_empty() {
        return crate::replicated::may_open(config, schema, &world);
    }
    check_declared(&schema, &config.objects).map_err(|(object, reason)| OpenError::Mapping {
        store: schema.store.clone(),
        object,
        reason,
    })?;
    Opening::new(config, schema, world).map(|_| ())
}

/// Returns the SQL that a store's tables still need, without running it.
///
/// # Errors
///
/// As [`Postgres::connect`].
pub async fn plan_migration(
    config: PostgresConfig,
    schema: StoreSchema,
    world: Arc<dyn World>,
) -> Result<Migration, OpenError> {
    if !config.servers.is_empty() {
        return crate::replicated::plan(config, schema, world).await;
    }
    let opening = Opening::new(config, schema, world)?;
    let lease = opening.lease().await?;
    let merged = opening.plan(&lease).await?;
    Ok(Migration { statements: merged.migration })
}

/// Runs the SQL that a store's tables still need, all of it or nothing, and returns it.
///
/// # Errors
///
/// As [`Postgres::connect`].
pub async fn migrate(
    config: PostgresConfig,
    schema: StoreSchema,
    world: Arc<dyn World>,
) -> Result<Migration, OpenError> {
    if !config.servers.is_empty() {
        return crate::replicated::migrate(config, schema, world).await;
    }
    let opening = Opening::new(config, schema, world)?;
    let mut lease = opening.lease().await?;
    opening.migrate(&mut lease).await
}

impl Opening {
    pub(crate) fn new(
        config: PostgresConfig,
        schema: StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Self, OpenError> {
        let refuse = |reason: String| OpenError::Config { store: schema.store.clone(), reason };
        if !matches!(schema.level, Level::Linearizable | Level::Snapshot) {
            return Err(refuse(format!(
                "PostgreSQL gives the levels linearizable and snapshot; {} is for an engine with \
                 replicas",
                schema.level
            )));
        }
        if config.pool == 0 {
            return Err(refuse("pool: expected at least 1, found 0".into()));
        }
        if config.schema_of(&schema.store).len() > crate::limits::NAME_BYTES_MAX {
            return Err(refuse("schema: the name is longer than 63 bytes".into()));
        }
        let connector = Connector::new(&config, Isolation::Serializable).map_err(refuse)?;
        let looks = Connector::new(&config, Isolation::ReadCommitted).map_err(refuse)?;
        let looks = Pool::new(looks, &config, world.clone());
        let pool = Pool::new(connector, &config, world);
        Ok(Self { config, schema, pool, looks })
    }

    /// Returns host and port of its server.
    pub(crate) fn place(&self) -> String {
        self.pool.place()
    }

    /// Returns the places of everything in the store, and the SQL that is still to be run.
    pub(crate) async fn merged(&self) -> Result<Merged, OpenError> {
        let lease = self.lease().await?;
        self.plan(&lease).await
    }

    /// Opens a connection to a server of a version that will do, and that takes writes.
    pub(crate) async fn lease(&self) -> Result<Lease, OpenError> {
        let store = self.schema.store.clone();
        let lease = self.looks.lease().await;
        let lease =
            lease.map_err(|reason| OpenError::Unavailable { store: store.clone(), reason })?;
        let sql = "SELECT current_setting('server_version_num')::bigint, pg_is_in_recovery()";
        let found = lease.connection().client().query_one(sql, &[]).await;
        let row = found.map_err(|error| self.server("a look at its version", &error))?;
        let (version, is_standby): (i64, bool) = (row.get(0), row.get(1));
        if version < 140_000 {
            let reason = format!("expected PostgreSQL 14 or newer, found version {version}");
            return Err(OpenError::Config { store, reason });
        }
        if is_standby {
            let reason = "the server is a standby: it takes no writes".into();
            return Err(OpenError::Config { store, reason });
        }
        Ok(lease)
    }

    fn server(&self, what: &str, error: &tokio_postgres::Error) -> OpenError {
        let store = self.schema.store.clone();
        OpenError::Server { store, what: what.into(), reason: message(error) }
    }

    async fn plan(&self, lease: &Lease) -> Result<Merged, OpenError> {
        let client = lease.connection().client();
        let own = self.config.schema_of(&self.schema.store);
        let catalog = Catalog::load(client, &own)
            .await
            .map_err(|error| self.server("a look at the catalog", &error))?;
        let mapped = inspect(client, &self.schema, &self.config.objects).await;
        let mapped = mapped.map_err(|(object, reason)| OpenError::Mapping {
            store: self.schema.store.clone(),
            object,
            reason,
        })?;
        let merged = catalog.merge(&self.schema, &self.config, mapped)?;
        for read in &merged.new_uniques {
            self.check_unique(client, &merged.layout, read).await?;
        }
        Ok(merged)
    }

    /// Refuses a new `unique` if two objects have the same values already.
    async fn check_unique(
        &self,
        client: &Client,
        layout: &Layout,
        read: &IndexRead,
    ) -> Result<(), OpenError> {
        let refuse = |reason| OpenError::Config { store: self.schema.store.clone(), reason };
        let index = Indexed::new(layout, read).map_err(refuse)?;
        let rows = client.query(&index.twice_text(), &[]).await;
        let rows = rows.map_err(|error| self.server("a look at its objects", &error))?;
        match index.twice(layout, &rows).map_err(refuse)? {
            Some(reason) => Err(refuse(reason)),
            None => Ok(()),
        }
    }

    /// Creates the missing tables; concurrent callers wait.
    async fn migrate(&self, lease: &mut Lease) -> Result<Migration, OpenError> {
        lease.soil();
        let migrated = self.migrate_within(lease).await?;
        lease.clean();
        Ok(migrated)
    }

    async fn migrate_within(&self, lease: &Lease) -> Result<Migration, OpenError> {
        let client = lease.connection().client();
        let own = self.config.schema_of(&self.schema.store);
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = 0; \
             SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(hashtextextended({}, 0))",
            literal(&format!("mingle {own}"))
        );
        let run = async |sql: &str| {
            client.batch_execute(sql).await.map_err(|error| self.server("the migration", &error))
        };
        run(&begin).await?;
        let migrated = async {
            let merged = self.plan(lease).await?;
            let migration = Migration { statements: merged.migration };
            if !migration.statements.is_empty() {
                run(&migration.sql()).await?;
            }
            Ok(migration)
        };
        let migrated = migrated.await;
        let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
        run(end).await?;
        migrated
    }

    async fn operations(&self, lease: &Lease, layout: &Layout) -> Result<Operations, OpenError> {
        let mut operations = Operations::new();
        for (name, declared) in &self.schema.operations {
            let refused = |reason| OpenError::Operation {
                store: self.schema.store.clone(),
                operation: name.clone(),
                reason,
            };
            let operation = Operation::new(layout, name, declared).map_err(refused)?;
            let client = lease.connection().client();
            let checked = operation.check(client, &layout.schema, &layout.own).await;
            checked.map_err(refused)?;
            operations.insert(name.clone(), operation);
        }
        Ok(operations)
    }
}

fn interval(duration: Duration) -> String {
    format!("{} milliseconds", duration.as_millis())
}

impl DataStore for Postgres {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        _session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        let transaction: Box<dyn Transaction> = Box::new(PostgresTransaction::new(self.inner()));
        Box::pin(std::future::ready(Ok(transaction)))
    }

    fn place(&self, _replica: Option<&Name>) -> Option<String> {
        Some(self.inner().pool.place())
    }

    fn list<'a>(
        &'a self,
        _session: &'a Session,
        listing: &'a Listing,
    ) -> BoxFuture<'a, Result<Listed, StoreError>> {
        let transaction = PostgresTransaction::new(self.inner());
        Box::pin(transaction.list(listing))
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        let inner = self.inner();
        Box::pin(async move { commit::ask(&inner, id).await })
    }
}
