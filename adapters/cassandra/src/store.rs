//! The store, and its opening.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use futures_util::lock::Mutex as AsyncMutex;
use mingle_model::{Name, TransactionId, Version};
use mingle_store::catalog::{Catalog, Changed};
use mingle_store::{
    Address, BoxFuture, Capabilities, Data, DataStore, Once, Outcome, Read, Refusal, Session,
    StoreError, StoreSchema, Transaction, World, Write,
};
use scylla::value::CqlValue;

use crate::apart::Apart;
use crate::bind::text;
use crate::block::Registered;
use crate::change::Change;
use crate::clock::Clock;
use crate::commands::Commands;
use crate::config::{CassandraConfig, OpenError, Outcomes};
use crate::error::Failed;
use crate::layout::Layout;
use crate::limits::{CATALOG_TRIES_MAX, READS_MAX, REMEMBERED_MAX};
use crate::link::{Site, Taken, connect};
use crate::mapping;
use crate::open::{check, check_datacenters, make, quoted};
use crate::operation::{self, Operation, Operations};
use crate::statement::Statement;
use crate::trailing::Trailing;
use crate::transaction::{CassandraTransaction, record_answer};
use crate::whole::Whole;

/// A store in a cluster.
pub struct Cassandra {
    core: Arc<Core>,
    capabilities: Capabilities,
    warnings: Vec<String>,
}

/// The state that a store shares with its transactions.
pub(crate) struct Core {
    pub store: Name,
    pub layout: Layout,
    pub operations: Operations,
    pub sites: Vec<Site>,
    pub clock: Clock,
    /// The name of this process in the rows that it adds.
    pub writer: u128,
    pub outcomes: Outcomes,
    pub keep_outcomes: Duration,
    pub apart: Option<Arc<Apart>>,
    pub world: Arc<dyn World>,
    /// The longest time that a request may take.
    pub patience: Duration,
    /// Blocks of the runtime's rows that are known to be registered.
    pub registered: Registered,
    /// Pending requests for the witness rows of the whole store, by replica.
    pub whole: Vec<Whole>,
    /// Knowledge about processes with commands.
    pub commands: Commands,
    /// Pending commit witnesses, by replica.
    pub trailing: Vec<Trailing>,
    /// Counters being folded.
    pub folding: Mutex<BTreeSet<Address>>,
    /// Commits with lost answers, and the replicas they were sent to.
    lost: Mutex<BTreeMap<TransactionId, (usize, Vec<Change>)>>,
}

impl Core {
    /// Runs work in a task of its own, because other tasks may wait for it: it continues if the
    /// caller is dropped, or does not poll for a long time.
    pub fn attended<T: Clone + Send + Sync + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Shared<BoxFuture<'static, T>> {
        let work = work.boxed().shared();
        self.world.spawn(Box::pin(work.clone().map(drop)));
        work
    }

    pub fn refused(&self, why: impl Into<Refusal>) -> StoreError {
        why.into().at(self.store.clone())
    }

    pub fn unavailable(&self, reason: impl Into<String>) -> StoreError {
        StoreError::Unavailable { store: self.store.clone(), reason: reason.into() }
    }

    pub fn unknown(&self, id: Option<TransactionId>) -> StoreError {
        StoreError::Unknown { store: self.store.clone(), id }
    }

    /// Returns the error for a request that changes nothing.
    pub fn failed(&self, failed: &Failed) -> StoreError {
        match failed {
            Failed::No(why) => self.refused(why.clone()),
            Failed::Unsent(reason) | Failed::Lost(reason) => self.unavailable(reason.as_str()),
        }
    }

    pub fn check_write(&self, write: &Write) -> Result<(), Refusal> {
        match write {
            Write::Command { operation, arguments } => {
                self.operation(operation, true)?.bound(&self.layout.schema, arguments).map(drop)
            }
            write => Ok(self.layout.check_write(write)?),
        }
    }

    /// Returns a declared operation.
    pub fn operation(&self, name: &Name, is_command: bool) -> Result<&Operation, String> {
        let found = self.operations.get(name).filter(|found| found.is_command == is_command);
        let what = if is_command { "command" } else { "query" };
        found.ok_or_else(|| format!("no {what} {name} has a body in the binding"))
    }

    /// Remembers a commit with a lost answer.
    pub fn remember(&self, id: TransactionId, replica: usize, changes: &[Change]) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if lost.len() >= REMEMBERED_MAX {
            lost.pop_first();
        }
        lost.insert(id, (replica, changes.to_vec()));
    }

    /// Answers a read that does not read an object.
    pub async fn other(
        self: &Arc<Self>,
        replica: usize,
        read: &Read,
    ) -> Result<(Data, Version), StoreError> {
        match read {
            Read::Record(key) => {
                let at = self.layout.record(key);
                let mut found = self.records_at(replica, std::slice::from_ref(&at)).await?;
                Ok(record_answer(found.remove(&at)))
            }
            Read::Records { kind, from, limit } => {
                let records = self.records(replica, *kind, from, *limit).await?;
                Ok((Data::Records(records), Version(0)))
            }
            Read::Witnesses { from, limit } => {
                let rows = self.witnesses(replica, *from, *limit).await?;
                Ok((Data::Witnesses(rows), Version(0)))
            }
            Read::Query { operation, arguments } => {
                let refused = |reason: String| self.refused(reason);
                let operation = self.operation(operation, false).map_err(refused)?;
                let schema = &self.layout.schema;
                let values = operation.bound(schema, arguments);
                let values = values.map_err(|why| self.refused(why))?;
                let found = self.sites[replica].query(&operation.text, values).await;
                let (columns, rows) = found.map_err(|failed| self.failed(&failed))?;
                let value = operation.answer(schema, &columns, &rows).map_err(refused)?;
                Ok((Data::Result(value), Version(0)))
            }
            _ => Err(self.refused("it reads an object")),
        }
    }
}

impl Cassandra {
    /// Connects to the cluster and opens the store that `schema` describes.
    ///
    /// Needs a tokio runtime with I/O and time, as does all later work of the store.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be reached, or cannot provide the level; when the program changes
    /// the stored declarations; when a mapping or the body of an operation does not fit.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn open(
    /// #     schema: mingle_store::StoreSchema,
    /// #     world: std::sync::Arc<dyn mingle_store::World>,
    /// # ) -> Result<(), mingle_store_cassandra::OpenError> {
    /// use mingle_store_cassandra::{Cassandra, CassandraConfig};
    ///
    /// let mut config = CassandraConfig::at(["127.0.0.1:9042"], ["oslo", "rome"]);
    /// config.replication = [("oslo".into(), 3), ("rome".into(), 3)].into();
    /// let store = Cassandra::connect(config, schema, world).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(
        config: CassandraConfig,
        schema: StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Arc<Self>, OpenError> {
        check(&config, &schema)?;
        let store = schema.store.clone();
        let unavailable = |reason: String| OpenError::Unavailable { store: store.clone(), reason };
        let cluster = Arc::new(connect(&config).await.map_err(unavailable)?);
        check_datacenters(&config, &store, &cluster)?;
        let (keyspace, area) = (config.keyspace.clone(), config.area_of(&schema.store));
        let keyspaces: Vec<String> = match &config.apart {
            None => vec![keyspace],
            Some(_) => {
                let each = 0..config.datacenters.len();
                each.map(|index| format!("{keyspace}_{index}")).collect()
            }
        };
        // Servers can fail if the same table is created twice at a time.
        static MAKING: AsyncMutex<()> = AsyncMutex::new(());
        let making = MAKING.lock().await;
        for keyspace in &keyspaces {
            make(&cluster, &config, &store, keyspace).await?;
        }
        drop(making);
        let mut sites = Vec::new();
        for (index, datacenter) in config.datacenters.iter().enumerate() {
            let keyspace = quoted(&keyspaces[index % keyspaces.len()]);
            let site =
                Site::prepare(&cluster, &world, &config, datacenter, (&keyspace, &area)).await;
            sites.push(site.map_err(|failed| unavailable(failed.reason().to_owned()))?);
        }
        let (mapped, warnings) = mapping::mapped(&cluster, &config, &schema).await?;
        let operations = operation::prepare(&cluster, &schema, &keyspaces).await?;
        let capabilities = capabilities(&config, &schema);
        let writer = (u128::from(world.random()) << 64) | u128::from(world.random());
        let core = Core {
            store: store.clone(),
            layout: Layout::new(&schema, area, mapped),
            operations,
            whole: sites.iter().map(|_| Whole::default()).collect(),
            commands: Commands::new(sites.len()),
            trailing: sites.iter().map(|_| Trailing::default()).collect(),
            sites,
            clock: Clock::new(world.clone()),
            world,
            patience: config.answer_timeout,
            registered: Registered::default(),
            folding: Mutex::default(),
            writer,
            outcomes: config.outcomes,
            keep_outcomes: config.keep_outcomes,
            apart: config.apart,
            lost: Mutex::default(),
        };
        core.introduce(&schema).await?;
        Ok(Arc::new(Self { core: Arc::new(core), capabilities, warnings }))
    }

    /// Checks that a store can be opened, as far as possible without its cluster.
    ///
    /// # Errors
    ///
    /// As [`Cassandra::connect`].
    pub fn check(config: &CassandraConfig, schema: &StoreSchema) -> Result<(), OpenError> {
        check(config, schema)?;
        mapping::declared(config, schema).map(|_| ())
    }

    /// Returns warnings about tables of the application, one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Replaces the rows of a counter by one row, which makes it faster to read; false if there was
    /// nothing to do, or another process is folding it. The store folds a counter by itself when a
    /// read finds many rows that are older than ten minutes. `wait` is the longest time that any
    /// process takes from reading the counter until its writes there are carried out.
    ///
    /// # Errors
    ///
    /// When a replica cannot be reached: all of them are needed. When the field is no counter.
    pub async fn fold(&self, address: &Address, wait: Duration) -> Result<bool, StoreError> {
        let now = self.core.clock.next();
        self.core.fold(0, address, now, wait).await
    }

    /// For tests: delivers one commit in transit between keyspaces that stand for data centers;
    /// false if there is none.
    ///
    /// # Errors
    ///
    /// When the cluster does not accept it.
    pub async fn deliver_one(&self) -> Result<bool, StoreError> {
        for replica in 0..self.core.sites.len() {
            self.core.await_trailing(replica, None).await?;
        }
        let taken = self.core.apart.as_ref().and_then(|apart| apart.take());
        let Some((replica, changes)) = taken else { return Ok(false) };
        let applied = self.core.sites[replica].apply(&changes).await;
        applied.map_err(|failed| self.core.failed(&failed))?;
        Ok(true)
    }
}

impl Core {
    /// Writes the program's declarations, and announces commands if it has any.
    async fn introduce(&self, schema: &StoreSchema) -> Result<(), OpenError> {
        self.declare(schema).await?;
        if self.operations.values().any(|operation| operation.is_command) {
            let told = self.tell_of_commands().await;
            told.map_err(|error| OpenError::Unavailable {
                store: schema.store.clone(),
                reason: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Adds the program's declarations to the catalog, unless they are there.
    async fn declare(&self, schema: &StoreSchema) -> Result<(), OpenError> {
        let unavailable = |failed: Failed| OpenError::Unavailable {
            store: schema.store.clone(),
            reason: failed.reason().to_owned(),
        };
        let odd = |reason: &str| OpenError::Config {
            store: schema.store.clone(),
            reason: reason.to_owned(),
        };
        let (site, area) = (&self.sites[0], &self.layout.area);
        for _ in 0..CATALOG_TRIES_MAX {
            let rows =
                site.rows(Statement::Catalog, vec![text(area)]).await.map_err(unavailable)?;
            let kept = rows.into_iter().next().and_then(|row| row.columns.into_iter().next()?);
            let kept = kept.and_then(CqlValue::into_string);
            let mut catalog = match &kept {
                None => Catalog::new(schema),
                Some(kept) => Catalog::decode(kept)
                    .ok_or_else(|| odd("it holds no catalog that this version understands"))?,
            };
            catalog.merge(schema).map_err(|Changed { what, kept, wanted }| OpenError::Changed {
                store: schema.store.clone(),
                what,
                kept,
                wanted,
            })?;
            let wanted = catalog.encode();
            if kept.as_ref() == Some(&wanted) {
                return Ok(());
            }
            let taken = match &kept {
                None => site.take(Statement::NewCatalog, vec![text(area), text(&wanted)]).await,
                Some(kept) => {
                    let values = vec![text(&wanted), text(area), text(kept)];
                    site.take(Statement::NextCatalog, values).await
                }
            };
            match taken {
                Ok(Taken::Set) => return Ok(()),
                Ok(Taken::Not(_)) | Err(Failed::Lost(_)) => {}
                Err(failed) => return Err(unavailable(failed)),
            }
        }
        Err(odd("others change its catalog all the time"))
    }
}

fn capabilities(config: &CassandraConfig, schema: &StoreSchema) -> Capabilities {
    Capabilities {
        store: schema.store.clone(),
        level: schema.level,
        // A logged batch is carried out as a whole, but readers can see a part of it.
        atomic_commit: false,
        serializable: false,
        once: Once::ById,
        may_lose_answers: true,
        floor_suffices: true,
        replicas: config.replicas().iter().map(|name| name.as_str().into()).collect(),
        weaker_answers: Vec::new(),
        operations_per_round_trip: READS_MAX,
        round_trip: config.round_trip,
    }
}

impl DataStore for Cassandra {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn place(&self, replica: Option<&Name>) -> Option<String> {
        let replicas = &self.capabilities.replicas;
        let at = replica.and_then(|name| replicas.iter().position(|known| known == name));
        self.core.sites.get(at.unwrap_or(0)).map(Site::place)
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        let names = &self.capabilities.replicas;
        let replica = match &session.replica {
            None => Ok(0),
            Some(name) => names.iter().position(|known| known == name).ok_or_else(|| {
                let names = names.join(", ");
                self.core.refused(format!("it has no replica {name}; it has {names}"))
            }),
        };
        let begun = replica.map(|replica| {
            let core = Arc::clone(&self.core);
            Box::new(CassandraTransaction::new(core, replica)) as Box<dyn Transaction>
        });
        Box::pin(std::future::ready(begun))
    }

    fn time(&self) -> u64 {
        self.core.clock.next().unsigned_abs()
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move {
            let core = &self.core;
            let lost = core.lost.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
            if let Some((replica, changes)) = lost {
                // Mutations that were sent once can be sent again: the repetition changes nothing.
                core.send(replica, &changes, Some(id)).await?;
                core.lost.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                return Ok(Outcome::Committed);
            }
            match core.outcomes {
                Outcomes::Remembered => Ok(Outcome::Unknown),
                Outcomes::Decided => core.decide(id).await,
            }
        })
    }
}
