//! The store: its servers, and its work besides transactions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use mingle_model::{Level, Name, Stamp, TransactionId};
use mingle_store::{
    BoxFuture, Capabilities, DataStore, Once, Outcome, Session, StoreError, StoreSchema,
    Transaction, World,
};

use super::commit;
use super::setup::Opening;
use super::transaction::ReplicatedTransaction;
use super::vector::{Vector, everywhere};
use crate::config::{OpenError, PostgresConfig};
use crate::layout::Layout;
use crate::limits::{ACKNOWLEDGE_AFTER, ACKNOWLEDGE_EVERY_MAX, READS_MAX};
use crate::outcome::{self, Ageing};
use crate::pool::Pool;
use crate::session::{Step, StepResult};
use crate::wire::{boolean, int, ints};

/// Versions from here on belong to writes that are not committed.
const TENTATIVE: u64 = 1 << 63;

/// A store on several servers.
pub struct ReplicatedPostgres {
    core: Arc<Core>,
    capabilities: Capabilities,
}

/// The state shared by all transactions of a store.
pub struct Core {
    pub(super) store: Name,
    pub(super) layout: Layout,
    /// In order of their names; the server at index `n` is number `n + 1` in tables.
    pub(super) servers: Vec<Server>,
    pub(super) names: Vec<Name>,
    /// True if the store reports the updates that servers have seen.
    pub(super) is_counted: bool,
    opening: Opening,
    /// The time that outcomes are kept, as an SQL interval.
    keep: String,
    tentative: AtomicU64,
    is_acknowledging: AtomicBool,
}

/// One server.
pub struct Server {
    pub(super) name: Name,
    pub(super) pool: Arc<Pool>,
    /// The address that the other servers use for it.
    pub(super) link: String,
    /// True if it was found to be set up.
    pub(super) is_ready: AtomicBool,
    /// The ages of its outcomes.
    pub(super) ageing: Ageing,
}

impl ReplicatedPostgres {
    /// Opens the store that `schema` describes, over the servers of `config`. Must be called on a tokio
    /// runtime, on which the tasks of `world` run too.
    ///
    /// Servers that are set up may be unreachable: sessions there receive an error.
    ///
    /// # Errors
    ///
    /// When the store does not fit several servers, no server can be reached, a server cannot be
    /// reached before all are set up, a server's settings do not allow replication, or the program
    /// changes a stored declaration.
    pub async fn connect(
        config: PostgresConfig,
        schema: StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Arc<Self>, OpenError> {
        let keep = format!("{} milliseconds", config.keep_outcomes.as_millis());
        let round_trip = config.round_trip;
        let (opening, servers) = Opening::new(config, schema, &world)?;
        opening.open(&servers).await?;
        let names: Vec<Name> = servers.iter().map(|server| server.name.clone()).collect();
        let capabilities = Capabilities {
            store: opening.schema.store.clone(),
            level: opening.schema.level,
            atomic_commit: true,
            serializable: false,
            once: Once::Home,
            may_lose_answers: true,
            floor_suffices: false,
            replicas: names.clone(),
            weaker_answers: Capabilities::weaker_than(opening.schema.level, names.len()),
            operations_per_round_trip: READS_MAX,
            round_trip,
        };
        let core = Core {
            store: opening.schema.store.clone(),
            layout: opening.layout(),
            servers,
            names,
            is_counted: opening.schema.level == Level::Causal,
            opening,
            keep,
            tentative: AtomicU64::new(TENTATIVE),
            is_acknowledging: AtomicBool::new(false),
        };
        Ok(Arc::new(Self { core: Arc::new(core), capabilities }))
    }

    /// Returns the schema of Mingle's own tables, the same at every server.
    pub fn schema(&self) -> &str {
        &self.core.layout.own
    }

    async fn begin_at(&self, session: &Session) -> Result<Box<dyn Transaction>, StoreError> {
        let core = &self.core;
        let server = match &session.replica {
            None => 0,
            Some(name) => core.names.iter().position(|known| known == name).ok_or_else(|| {
                let names = core.names.join(", ");
                core.refused(format!("it has no replica {name}; it has {names}"))
            })?,
        };
        let mut after = Vector::default();
        if core.is_counted {
            let unknown = session.after.iter().find(|(name, _)| !core.names.contains(name));
            if let Some((name, _)) = unknown {
                let reason = format!("a session has seen its replica {name}, which it has not");
                return Err(core.refused(reason));
            }
            after = Vector::of(&session.after, &core.names);
        }
        if !core.servers[server].is_ready.load(Ordering::Acquire) {
            core.set_up(server).await?;
        }
        Ok(Box::new(ReplicatedTransaction::new(core, server, after)))
    }
}

impl Core {
    pub(super) fn refused(&self, reason: String) -> StoreError {
        StoreError::Refused { store: self.store.clone(), reason }
    }

    pub(super) fn unavailable(&self, server: usize, reason: &str) -> StoreError {
        let reason = format!("{}: {reason}", self.names[server]);
        StoreError::Unavailable { store: self.store.clone(), reason }
    }

    pub(super) fn behind(&self, server: usize) -> StoreError {
        StoreError::Behind { store: self.store.clone(), replica: self.names[server].clone() }
    }

    pub(super) fn stamp(&self, vector: &Vector) -> Stamp {
        if self.is_counted { vector.stamp(&self.names) } else { Stamp::default() }
    }

    pub(super) fn next_tentative(&self) -> u64 {
        self.tentative.fetch_add(1, Ordering::Relaxed)
    }

    /// Sets up a server that was unreachable when the store was opened.
    async fn set_up(&self, server: usize) -> Result<(), StoreError> {
        let found = self.opening.open_late(&self.servers, server).await;
        found.map_err(|error| match error {
            OpenError::Unavailable { reason, .. } => self.unavailable(server, &reason),
            other => self.refused(other.to_string()),
        })
    }

    /// Starts the background work after a commit.
    pub(super) fn committed(
        self: &Arc<Self>,
        server: usize,
        id: Option<TransactionId>,
        floors: &[TransactionId],
    ) {
        let (site, now) = (&self.servers[server], self.servers[server].pool.world().elapsed());
        let old = floors.iter().filter_map(|last| site.ageing.raised(*last, now));
        let mut steps: Vec<Step> =
            old.map(|last| outcome::forget(&self.layout, last, &self.keep)).collect();
        if id.is_some() && site.ageing.is_purge_due(now) {
            steps.push(outcome::purge(&self.layout, &self.keep));
        }
        if !steps.is_empty() {
            let core = Arc::clone(self);
            self.servers[server].pool.world().spawn(Box::pin(async move {
                // Rows that are not removed now are removed the next time.
                let _ = core.run(server, &steps).await;
            }));
        }
        if !self.is_acknowledging.swap(true, Ordering::AcqRel) {
            let world = Arc::clone(self.servers[server].pool.world());
            let core = Arc::downgrade(self);
            world.clone().spawn(Box::pin(acknowledge(core, world)));
        }
    }

    /// Returns true if a server keeps updates that another server may lack; none if it cannot be
    /// asked.
    async fn keeps(&self, server: usize) -> Option<bool> {
        let sql = format!("SELECT EXISTS (SELECT FROM {})", self.layout.system("log"));
        let rows = self.run(server, &[Step::new(sql, Vec::new())]).await?.pop()?.ok()?;
        rows.first().map(|row| boolean(row, 0))
    }

    /// Runs independent steps at a server; none if one fails.
    async fn run(&self, server: usize, steps: &[Step]) -> Option<Vec<StepResult>> {
        let lease = self.servers[server].pool.lease().await.ok()?;
        lease.prepare(steps).await?.ok()?;
        lease.run_each(steps).await
    }

    /// Makes a server report its updates, and returns the reports that it has received: a vector
    /// for each server, by its index. None if it cannot be asked.
    async fn known(&self, server: usize) -> Option<Vec<(usize, Vector)>> {
        let say = format!("SELECT {}()", self.layout.system("acknowledge"));
        let look = format!("SELECT server::bigint, vector FROM {}", self.layout.system("known"));
        let steps = [Step::new(say, Vec::new()), Step::new(look, Vec::new())];
        let rows = self.run(server, &steps).await?.pop()?.ok()?;
        let known = rows.iter().map(|row| {
            let other = usize::try_from(int(row, 0) - 1).unwrap_or(usize::MAX);
            (other, Vector(ints(row, 1)))
        });
        Some(known.filter(|(other, _)| *other != server).collect())
    }

    async fn everywhere(&self) -> Result<Stamp, StoreError> {
        if !self.is_counted {
            return Ok(Stamp::default());
        }
        let count = self.servers.len();
        let asked = join_all((0..count).map(|server| self.known(server))).await;
        if asked.iter().all(Option::is_none) {
            return Err(self.unavailable(0, "neither it nor any other server answers"));
        }
        // A server's crash may lose updates that it has just applied, but not those that it has
        // reported to others.
        let mut known = vec![Vector(vec![0; count]); count];
        for (server, vector) in asked.into_iter().flatten().flatten() {
            let Some(best) = known.get_mut(server) else { continue };
            if vector.covers(best) {
                *best = vector;
            }
        }
        Ok(self.stamp(&everywhere(&known)))
    }

    async fn outcome(&self, id: TransactionId) -> Result<Outcome, StoreError> {
        let count = self.servers.len();
        let asked = join_all((0..count).map(|server| commit::ask(self, server, id))).await;
        if asked.contains(&Ok(Outcome::Committed)) {
            return Ok(Outcome::Committed);
        }
        // The commit took effect nowhere only if every server bars it.
        let is_barred = asked.iter().all(|asked| *asked == Ok(Outcome::NotCommitted));
        if is_barred {
            return Ok(Outcome::NotCommitted);
        }
        if asked.iter().all(Result::is_err) {
            return asked.into_iter().next().unwrap_or(Ok(Outcome::Unknown));
        }
        Ok(Outcome::Unknown)
    }
}

/// Makes servers report their updates to each other until no server keeps an update that all have.
/// It ends with the store.
async fn acknowledge(core: Weak<Core>, world: Arc<dyn World>) {
    let mut wait = ACKNOWLEDGE_AFTER;
    loop {
        world.sleep(wait).await;
        let Some(core) = core.upgrade() else { return };
        let all = || 0..core.servers.len();
        join_all(all().map(|server| core.known(server))).await;
        // A commit from now on starts the task again.
        core.is_acknowledging.store(false, Ordering::Release);
        let is_kept = join_all(all().map(|server| core.keeps(server))).await;
        let is_over = is_kept.iter().all(|is_kept| *is_kept == Some(false));
        if is_over || core.is_acknowledging.swap(true, Ordering::AcqRel) {
            return;
        }
        wait = (wait * 2).min(ACKNOWLEDGE_EVERY_MAX);
    }
}

impl DataStore for ReplicatedPostgres {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn place(&self, replica: Option<&Name>) -> Option<String> {
        let mut servers = self.core.servers.iter();
        let server = servers.find(|server| replica.is_none_or(|name| server.name == *name));
        server.map(|server| server.pool.place())
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(self.begin_at(session))
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(self.core.outcome(id))
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(self.core.everywhere())
    }
}
