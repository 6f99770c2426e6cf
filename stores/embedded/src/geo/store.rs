//! The interface: a store over several data centers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mingle_geo::limits::{READ_KEYS_MAX, UPDATES_MAX};
use mingle_geo::message::{Message, RaiseFloor};
use mingle_geo::{Address, DcId, Envelope, PartitionId, Refusal, Update, Vector};
use mingle_model::{Level, Name, Stamp, TransactionId};
use mingle_store::record::read_floor;
use mingle_store::{
    BoxFuture, Capabilities, DataStore, EngineId, Once, Outcome, RecordKind, Session, StoreError,
    Transaction, United, Write,
};

use super::client::{Client, Trouble};
use super::config::{GeoConfig, STRONG_NAME};
use super::fate::Fates;
use super::fetch::{Fetch, Found};
use super::gate::Gate;
use super::net::{Inner, Net};
use super::space::{Engine, Space};
use super::transaction::GeoTransaction;
use super::united::UnitedTransaction;
use super::{disk, driver};
use crate::config::LinkTable;
use crate::core::Core;
use crate::storage::StorageError;

/// Who waits for what its session has seen looks again after this long.
const ATTACH_STEP: Duration = Duration::from_millis(2);

/// At most so long a data center takes to find together once the store is opened.
const READY_WAIT_MAX: Duration = Duration::from_secs(5);

/// A store over several data centers.
pub struct GeoStore {
    shared: Arc<Shared>,
    capabilities: Capabilities,
}

/// What transactions share.
pub struct Shared {
    /// The store.
    pub core: Arc<Core>,
    /// The replicas.
    pub net: Arc<Net>,
    /// What became of commits.
    pub fates: Fates,
    pub(super) config: GeoConfig,
    /// Which items are its own.
    pub space: Space,
    /// What it shares with other stores.
    pub engine: Arc<Engine>,
    /// By data center.
    sites: Vec<Site>,
}

#[derive(Default)]
struct Site {
    gate: Arc<Gate>,
    /// What its clients have committed.
    last: Mutex<Vector>,
    /// Sessions that nobody uses.
    idle: Mutex<Vec<Client>>,
}

impl GeoStore {
    /// The store over replicas that have what its storage has.
    ///
    /// # Errors
    ///
    /// When the disk fails, or what it holds is no store.
    pub(crate) fn new(
        core: Core,
        level: Level,
        config: &GeoConfig,
        links: Option<LinkTable>,
    ) -> Result<Self, StorageError> {
        let storage = core.storage.is_durable().then_some(&*core.storage);
        let net = Arc::new(Net::new(config, links, Arc::clone(&core.world), storage)?);
        let core = Arc::new(core);
        driver::start(&net);
        let signal = net.with(|inner| inner.with_disk(|disk, _| Arc::clone(&disk.signal)));
        if let Some(signal) = signal {
            disk::start(&net, &core, signal);
        }
        let engine = Arc::new(Engine::new());
        Ok(Self::over(core, level, config.clone(), (net, engine, Space::first())))
    }

    /// Another store in the engine of this one: the same data centers, and other items.
    pub(crate) fn beside(&self, core: Core, level: Level, is_strong: bool) -> Self {
        let config = GeoConfig { is_strong, ..self.shared.config.clone() };
        let space = Space::of(&core.store);
        let (net, engine) = (Arc::clone(&self.shared.net), Arc::clone(&self.shared.engine));
        Self::over(Arc::new(core), level, config, (net, engine, space))
    }

    fn over(
        core: Arc<Core>,
        level: Level,
        config: GeoConfig,
        (net, engine, space): (Arc<Net>, Arc<Engine>, Space),
    ) -> Self {
        let capabilities = Capabilities {
            store: core.store.clone(),
            level,
            atomic_commit: true,
            serializable: config.is_strong,
            once: if config.is_strong { Once::Serial } else { Once::ById },
            // That of a data center which stops before it has answered.
            may_lose_answers: true,
            replicas: config.datacenters.clone(),
            operations_per_round_trip: UPDATES_MAX,
            round_trip: Duration::ZERO,
        };
        let sites = config.datacenters.iter().map(|_| Site::default()).collect();
        let fates = Fates::default();
        let shared = Arc::new(Shared { core, net, fates, config, space, engine, sites });
        shared.engine.add(&shared);
        Self { shared, capabilities }
    }

    /// Whether it is kept in a folder.
    pub(crate) fn is_kept(&self) -> bool {
        self.shared.core.storage.is_durable()
    }

    /// The data centers, and how far they are from each other.
    pub(crate) fn config(&self) -> &GeoConfig {
        &self.shared.config
    }

    /// Names of the data centers.
    pub fn datacenters(&self) -> &[Name] {
        &self.shared.config.datacenters
    }

    /// Whether a data center runs.
    ///
    /// # Errors
    ///
    /// When there is none of this name.
    pub fn is_up(&self, datacenter: &str) -> Result<bool, StoreError> {
        let dc = self.shared.dc(datacenter)?;
        Ok(self.shared.net.with(|inner| inner.is_up(dc)))
    }

    /// Stops a data center: its replicas, and whatever its clients have under way. What has left it
    /// goes on its way. Transactions there find it unavailable from now on.
    ///
    /// # Errors
    ///
    /// When there is none of this name.
    pub fn kill(&self, datacenter: &str) -> Result<(), StoreError> {
        let dc = self.shared.dc(datacenter)?;
        self.shared.net.with(|inner| inner.set_up(dc, false));
        Ok(())
    }

    /// Starts a data center that was stopped, with all that it had.
    ///
    /// # Errors
    ///
    /// When there is none of this name.
    pub fn start(&self, datacenter: &str) -> Result<(), StoreError> {
        let dc = self.shared.dc(datacenter)?;
        self.shared.net.with(|inner| inner.set_up(dc, true));
        Ok(())
    }

    /// What a data center has to show: whoever has seen no more can go on there.
    ///
    /// # Errors
    ///
    /// When there is none of this name.
    pub fn visible(&self, datacenter: &str) -> Result<Stamp, StoreError> {
        let dc = self.shared.dc(datacenter)?;
        Ok(self.shared.net.with(|inner| inner.stamp(&inner.visible(dc))))
    }

    /// About how many bytes the logs of all replicas take on the disk; 0 where nothing is kept.
    pub fn log_bytes(&self) -> usize {
        let bytes = self.shared.net.with(|inner| inner.with_disk(|disk, _| disk.bytes()));
        bytes.unwrap_or(0)
    }

    /// What the core wanted known: clocks that are wrong, data centers that lag. The last hundred.
    pub fn alarms(&self) -> Vec<String> {
        self.shared.net.with(|inner| inner.alarms())
    }
}

impl DataStore for GeoStore {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        let begun = self.shared.begin(session);
        let begun = begun.map(|transaction| Box::new(transaction) as Box<dyn Transaction>);
        Box::pin(std::future::ready(begun))
    }

    fn engine(&self) -> Option<EngineId> {
        self.shared.engine.is_shared().then(|| self.shared.engine.id())
    }

    fn begin_united<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn United>, StoreError>> {
        let begun = self.shared.begin(session).and_then(UnitedTransaction::new);
        let begun = begun.map(|united| Box::new(united) as Box<dyn United>);
        Box::pin(std::future::ready(begun))
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(self.shared.outcome(id))
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        let everywhere = self.shared.net.with(|inner| inner.visible_everywhere());
        Box::pin(std::future::ready(Ok(self.shared.stamp(&everywhere))))
    }
}

impl Shared {
    /// Whether transactions are strong.
    pub fn is_strong(&self) -> bool {
        self.config.is_strong
    }

    /// Whether a data center reaches as many as agree on the order of strong transactions.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], with the names of those that it does not reach.
    pub fn check_quorum(&self, dc: DcId) -> Result<(), StoreError> {
        match self.net.with(|inner| inner.lacking(dc)) {
            None => Ok(()),
            Some(_) if !self.net.with(|inner| inner.is_up(dc)) => Err(self.down(dc)),
            Some((away, needed)) => {
                let away: Vec<&str> = away.iter().map(|dc| &**self.name(*dc)).collect();
                let (name, away, all) = (self.name(dc), away.join(", "), self.sites.len());
                Err(self.core.unavailable(format!(
                    "its data center {name} does not reach {away}, and to commit it needs {needed} of all {all}"
                )))
            }
        }
    }

    /// Waits until whoever begins in a data center sees this, but not for longer; says whether it does.
    pub async fn catch_up(&self, dc: DcId, vector: &Vector, most: Duration) -> bool {
        let begin = self.core.world.elapsed();
        loop {
            let (is_up, seen) =
                self.net.with(|inner| (inner.is_up(dc), inner.strongly_visible(dc)));
            if seen.covers(vector) {
                return true;
            }
            if !is_up || self.core.world.elapsed().saturating_sub(begin) >= most {
                return false;
            }
            self.net.with(Inner::stay_busy);
            self.core.world.sleep(ATTACH_STEP).await;
        }
    }

    fn dc(&self, name: &str) -> Result<DcId, StoreError> {
        let names = &self.config.datacenters;
        let place = names.iter().position(|known| **known == *name).ok_or_else(|| {
            let reason = format!("it has no data center {name}; it has {}", names.join(", "));
            self.core.refused(reason)
        })?;
        Ok(DcId(place as u8))
    }

    fn name(&self, dc: DcId) -> &Name {
        &self.config.datacenters[usize::from(dc.0)]
    }

    fn begin(self: &Arc<Self>, session: &Session) -> Result<GeoTransaction, StoreError> {
        self.core.check()?;
        // Whoever says nothing is served by the first that runs.
        let first = || self.net.with(|inner| inner.running().next().unwrap_or(DcId(0)));
        let dc = session.replica.as_ref().map_or_else(|| Ok(first()), |name| self.dc(name))?;
        if self.is_strong() && !self.engine.is_shared() {
            self.check_up(dc)?;
            return Ok(GeoTransaction::new(self, dc, &Stamp::default()));
        }
        let names = &self.config.datacenters;
        let is_known = |name: &Name| names.contains(name) || &**name == STRONG_NAME;
        let unknown = session.after.iter().find(|(name, _)| !is_known(name));
        if let Some((name, _)) = unknown.filter(|_| names.len() > 1 && !self.is_strong()) {
            let reason = format!("a session has seen its data center {name}, which it has not");
            return Err(self.core.refused(reason));
        }
        self.check_up(dc)?;
        Ok(GeoTransaction::new(self, dc, &session.after))
    }

    fn check_up(&self, dc: DcId) -> Result<(), StoreError> {
        if self.net.with(|inner| inner.is_up(dc)) { Ok(()) } else { Err(self.down(dc)) }
    }

    fn down(&self, dc: DcId) -> StoreError {
        self.core.unavailable(format!("its data center {} is down", self.name(dc)))
    }

    /// A session of the core at a data center that has all of `after`; waits a while for that.
    pub async fn client(&self, dc: DcId, after: &Stamp) -> Result<Client, StoreError> {
        let is_counted = self.config.datacenters.len() > 1;
        let begin = self.core.world.elapsed();
        let after = loop {
            let (is_up, is_ready) = self.net.with(|inner| (inner.is_up(dc), inner.is_ready(dc)));
            if !is_up {
                return Err(self.down(dc));
            }
            let (after, visible) = self.net.with(|inner| (inner.vector(after), inner.visible(dc)));
            // What is of this data center is here, wherever it stands.
            let is_here = !is_counted || visible.with(dc, after[dc]).covers(&after);
            if is_ready && is_here {
                break after;
            }
            let waited = self.core.world.elapsed().saturating_sub(begin);
            if !is_ready && waited >= READY_WAIT_MAX {
                let name = self.name(dc);
                let reason = format!("its data center {name} is not ready after {waited:?}");
                return Err(self.core.unavailable(reason));
            }
            if is_ready && waited >= self.config.attach_wait {
                let replica = self.name(dc).clone();
                return Err(StoreError::Behind { store: self.core.store.clone(), replica });
            }
            self.net.with(Inner::stay_busy);
            self.core.world.sleep(ATTACH_STEP).await;
        };
        if self.is_strong() {
            self.check_quorum(dc)?;
            // Else it would be in conflict with what was committed here.
            if !self.catch_up(dc, &self.last(dc), READY_WAIT_MAX).await {
                self.check_quorum(dc)?;
                let name = self.name(dc);
                let reason = format!("its data center {name} lags after {READY_WAIT_MAX:?}");
                return Err(self.core.unavailable(reason));
            }
        }
        let idle = &self.sites[usize::from(dc.0)].idle;
        let idle = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut client = idle.unwrap_or_else(|| {
            Client::new(&self.net, dc, self.config.partitions, self.space.clone())
        });
        if is_counted {
            client.reach(&after).await.map_err(|trouble| self.trouble(trouble, None))?;
        }
        Ok(client)
    }

    /// Keeps a session of the core for the next transaction.
    pub fn give_back(&self, mut client: Client) {
        client.rollback();
        client.enter(&self.space);
        if client.is_idle() {
            let idle = &self.sites[usize::from(client.dc().0)].idle;
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
    }

    /// Reads items, as many at once as the core takes.
    pub async fn read(&self, client: &mut Client, fetch: Fetch) -> Result<Found, StoreError> {
        let mut states = Vec::new();
        for keys in fetch.keys().chunks(READ_KEYS_MAX) {
            let read = client.read(keys.to_vec()).await;
            states.extend(read.map_err(|trouble| self.trouble(trouble, None))?);
        }
        Ok(fetch.found(states))
    }

    /// The error for what the core said.
    pub fn trouble(&self, trouble: Trouble, id: Option<TransactionId>) -> StoreError {
        match trouble {
            Trouble::Down(_) if self.core.is_broken() => {
                self.core.check().err().unwrap_or(StoreError::Conflict)
            }
            Trouble::Down(dc) => self.down(dc),
            Trouble::Alone(dc) => self.check_quorum(dc).err().unwrap_or(StoreError::Conflict),
            Trouble::Unknown(..) => self.core.unknown(id),
            Trouble::Refused(
                Refusal::SnapshotTooOld { .. }
                | Refusal::BelowFloor { .. }
                | Refusal::Aborted
                | Refusal::Conflict { .. },
            ) => StoreError::Conflict,
            Trouble::Refused(refusal) if refusal.is_retryable() => {
                self.core.unavailable(refusal.to_string())
            }
            Trouble::Refused(refusal) => self.core.refused(refusal.to_string()),
        }
    }

    /// What a vector says, where there are several data centers.
    pub fn stamp(&self, vector: &Vector) -> Stamp {
        // Whoever reads strongly sees all that was acknowledged; whoever then reads a causal store of the
        // same engine must not see less.
        let is_alone = self.is_strong() && !self.engine.is_shared();
        if self.config.datacenters.len() < 2 || is_alone {
            return Stamp::default();
        }
        self.net.with(|inner| inner.stamp(vector))
    }

    /// Where commits of a data center take turns.
    pub fn gate(&self, dc: DcId) -> Arc<Gate> {
        Arc::clone(&self.sites[usize::from(dc.0)].gate)
    }

    /// What has been committed in a data center.
    pub fn last(&self, dc: DcId) -> Vector {
        *self.sites[usize::from(dc.0)].last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction was committed in a data center.
    pub fn committed(&self, dc: DcId, commit_vec: &Vector) {
        let last = &self.sites[usize::from(dc.0)].last;
        last.lock().unwrap_or_else(PoisonError::into_inner).join(commit_vec);
    }

    /// The core takes so many operations at once.
    pub fn check_count(&self, updates: &[Update]) -> Result<(), StoreError> {
        // One more notes the outcome.
        let (found, most) = (updates.len(), UPDATES_MAX - 1);
        if found > most {
            return Err(self.core.refused(format!(
                "a commit to several data centers comes to at most {most} operations, not {found}"
            )));
        }
        Ok(())
    }

    /// Tells all replicas of floors that were raised: they need not remember so many ids.
    pub fn raise_floors(&self, writes: &[Write]) {
        let floors = writes.iter().filter_map(|write| match write {
            Write::Record(key, value) if key.kind == RecordKind::Floor => {
                Some(RaiseFloor { origin: key.origin()?, sequence: read_floor(value) })
            }
            _ => None,
        });
        let floors: Vec<RaiseFloor> = floors.collect();
        if floors.is_empty() {
            return;
        }
        self.net.with(|inner| {
            let client = inner.add_client();
            for floor in floors {
                for dc in 0..self.config.datacenters.len() as u8 {
                    for partition in 0..self.config.partitions {
                        let to = Address::Replica(DcId(dc), PartitionId(partition));
                        let message = Message::RaiseFloor(floor.clone());
                        inner.send(Address::Client(client), Envelope { to, message });
                    }
                }
            }
            inner.settle();
            inner.remove_client(client);
        });
    }
}
