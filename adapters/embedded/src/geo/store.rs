//! The interface: a store over several data centers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mingle_geo::limits::{READ_KEYS_MAX, UPDATES_MAX};
use mingle_geo::message::RaiseFloor;
use mingle_geo::{DcId, Key, Refusal, Update, Vector};
use mingle_model::{Name, Origin, Stamp, TransactionId};
use mingle_store::{
    BoxFuture, Capabilities, DataStore, EngineId, Listed, Listing, Outcome, Session, StoreError,
    Transaction, United,
};

use super::agreed::Known;
use super::client::{Client, Trouble};
use super::cluster::{Cluster, Phase};
use super::config::GeoConfig;
use super::fate::Fates;
use super::fetch::{Fetch, Found};
use super::net::Net;
use super::relation::Relation;
use super::site::Site;
use super::space::{Engine, Space};
use super::sweep::Sweep;
use super::transaction::GeoTransaction;
use super::united::UnitedTransaction;
use crate::core::Core;

/// Interval at which a transaction that waits for updates seen by its session looks again.
const ATTACH_STEP: Duration = Duration::from_millis(2);

/// Longest time that a data center takes to catch up after the store is opened.
const READY_WAIT_MAX: Duration = Duration::from_secs(5);

/// A store over several data centers.
pub struct GeoStore {
    pub(super) shared: Arc<Shared>,
    pub(super) capabilities: Capabilities,
}

/// The state that transactions share.
pub struct Shared {
    /// The store.
    pub core: Arc<Core>,
    /// The data centers.
    pub net: Arc<dyn Cluster>,
    /// The same, if they are in this process.
    pub(super) own: Option<Arc<Net>>,
    /// Known outcomes of commits.
    pub fates: Arc<Fates>,
    /// The search for old notes of outcomes.
    pub(super) sweep: Arc<Sweep>,
    pub(super) config: GeoConfig,
    /// The space of its items.
    pub space: Space,
    /// The key of an item of each partition.
    pub probes: Vec<Key>,
    /// The declared relation of conflicts, if any.
    pub relation: Option<Relation>,
    /// The indexes of all programs of the store.
    pub indexes: Known,
    /// The state shared with other stores of the engine.
    pub engine: Arc<Engine>,
    /// State by data center.
    pub(super) sites: Arc<[Site]>,
}

impl GeoStore {
    /// True if the store is kept in a folder.
    pub(crate) fn is_kept(&self) -> bool {
        self.shared.core.storage.is_durable()
    }

    /// Returns the data centers and the distances between them.
    pub(crate) fn config(&self) -> &GeoConfig {
        &self.shared.config
    }

    /// Returns the names of the data centers.
    pub fn datacenters(&self) -> &[Name] {
        &self.shared.config.datacenters
    }

    /// True if a data center runs.
    ///
    /// # Errors
    ///
    /// When no data center has this name.
    pub fn is_up(&self, datacenter: &str) -> Result<bool, StoreError> {
        let dc = self.shared.dc(datacenter)?;
        Ok(self.shared.net.with(|inner| inner.is_up(dc)))
    }

    /// Stops a data center: its replicas, and all work of its clients. Messages that have left it
    /// still arrive. Transactions there find it unavailable from now on.
    ///
    /// # Errors
    ///
    /// When no data center has this name.
    pub fn kill(&self, datacenter: &str) -> Result<(), StoreError> {
        let dc = self.shared.dc(datacenter)?;
        self.shared.own()?.with(|inner| inner.set_up(dc, false));
        Ok(())
    }

    /// Starts a data center that was stopped, with all its data.
    ///
    /// # Errors
    ///
    /// When no data center has this name, it has lost its data, or it was given up.
    pub fn start(&self, datacenter: &str) -> Result<(), StoreError> {
        let dc = self.shared.dc(datacenter)?;
        self.shared.check_may_start(dc)?;
        self.shared.own()?.with(|inner| inner.set_up(dc, true));
        Ok(())
    }

    /// Returns the stamp visible in a data center: a session that has seen no more can continue
    /// there.
    ///
    /// # Errors
    ///
    /// When no data center has this name.
    pub fn visible(&self, datacenter: &str) -> Result<Stamp, StoreError> {
        let dc = self.shared.dc(datacenter)?;
        Ok(self.shared.net.with(|inner| inner.stamp(&inner.visible(dc))))
    }

    /// Returns the approximate size of all replicas' logs on disk in bytes; 0 without a disk.
    pub fn log_bytes(&self) -> usize {
        let own = self.shared.own.as_ref();
        let bytes = own.and_then(|net| net.with(|inner| inner.with_disk(|disk, _| disk.bytes())));
        bytes.unwrap_or(0)
    }

    /// Returns how often transactions of this name failed certification because they had not seen a
    /// conflicting transaction, and then began again or were certified again; over all stores of
    /// this engine.
    pub fn conflicts_of(&self, transaction: &str) -> u64 {
        self.shared.engine.conflicts_of(transaction)
    }

    /// Returns the number of changes of the membership, and the names that stamps have for incarnations of data centers
    /// that were cut off, with the time up to which the commits of each are kept.
    pub fn ends(&self) -> (u32, BTreeMap<Name, u64>) {
        self.shared.net.with(|inner| (inner.members().epoch(), inner.ends()))
    }

    /// Tells the replicas that can be reached from here that no operation of these origins with a lower number
    /// will come, as a store does itself at the data center where a floor is written.
    pub fn raise_floors(&self, floors: &[(Origin, u64)]) {
        let floors = floors
            .iter()
            .map(|(origin, sequence)| RaiseFloor { origin: *origin, sequence: *sequence });
        self.shared.raise(floors.collect());
    }

    /// Returns the last hundred alarms of the core: wrong clocks, data centers that lag.
    pub fn alarms(&self) -> Vec<String> {
        let own = self.shared.own.as_ref();
        own.map_or_else(Vec::new, |net| net.with(|inner| inner.alarms()))
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
        Box::pin(async {
            self.shared.serve().await?;
            let begun = self.shared.begin(session)?;
            Ok(Box::new(begun) as Box<dyn Transaction>)
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.shared.serve())
    }

    fn engine(&self) -> Option<EngineId> {
        self.shared.engine.is_shared().then(|| self.shared.engine.id())
    }

    fn begin_united<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn United>, StoreError>> {
        Box::pin(async {
            self.shared.serve().await?;
            let united = UnitedTransaction::new(self.shared.begin(session)?)?;
            Ok(Box::new(united) as Box<dyn United>)
        })
    }

    fn list<'a>(
        &'a self,
        session: &'a Session,
        listing: &'a Listing,
    ) -> BoxFuture<'a, Result<Listed, StoreError>> {
        Box::pin(async {
            self.shared.serve().await?;
            self.shared.begin(session)?.list(listing).await
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move {
            self.shared.serve().await?;
            self.shared.outcome(id).await
        })
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        let is_silent = self.shared.is_silent();
        let everywhere = (!is_silent).then(|| self.shared.net.with(|inner| inner.everywhere()));
        let everywhere = everywhere.unwrap_or_default();
        Box::pin(std::future::ready(Ok(everywhere)))
    }

    fn departed(&self) -> Vec<Name> {
        let names = (0..).map(DcId).zip(self.datacenters());
        let is_over = |dc| self.shared.net.with(|inner| inner.phase(dc)) == Phase::GivenUp;
        names.filter(|(dc, _)| is_over(*dc)).map(|(_, name)| name.clone()).collect()
    }

    fn kept(&self, seen: &Stamp) -> Stamp {
        self.shared.net.with(|inner| inner.kept(seen))
    }
}

impl Shared {
    /// Returns the replicas of all data centers, if they are in this process.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`], if they run elsewhere.
    pub(super) fn own(&self) -> Result<&Arc<Net>, StoreError> {
        let elsewhere = "its data centers are processes of their own, and are stopped, given up and admitted there";
        self.own.as_ref().ok_or_else(|| self.core.refused(elsewhere.into()))
    }

    /// Returns the data center that is used here, if there are others that are processes of their own.
    pub(super) fn here(&self) -> Option<DcId> {
        let are_several = self.sites.len() > 1;
        if are_several { self.net.with(|inner| inner.here()) } else { None }
    }

    /// True if transactions are strong.
    pub fn is_strong(&self) -> bool {
        self.config.is_strong
    }

    /// Checks that a data center reaches enough others to agree on the order of strong
    /// transactions.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], with the names of the data centers it does not reach.
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

    /// Waits, at most `most`, until every new strong transaction in a data center sees `vector`;
    /// returns true if so.
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
            self.net.with(|inner| inner.stay_busy());
            self.core.world.sleep(ATTACH_STEP).await;
        }
    }

    pub(super) fn dc(&self, name: &str) -> Result<DcId, StoreError> {
        let names = &self.config.datacenters;
        let place = names.iter().position(|known| **known == *name).ok_or_else(|| {
            let reason = format!("it has no data center {name}; it has {}", names.join(", "));
            self.core.refused(reason)
        })?;
        Ok(DcId(place as u8))
    }

    pub(super) fn name(&self, dc: DcId) -> &Name {
        &self.config.datacenters[usize::from(dc.0)]
    }

    fn begin(self: &Arc<Self>, session: &Session) -> Result<GeoTransaction, StoreError> {
        self.core.check()?;
        // A session without a replica is served by the first data center that runs.
        let first = || {
            self.net.with(|inner| {
                let running = inner.running();
                let whole = running.iter().find(|dc| !inner.is_coming_up(**dc));
                whole.or(running.first()).copied().unwrap_or(DcId(0))
            })
        };
        let dc = session.replica.as_ref().map_or_else(|| Ok(first()), |name| self.dc(name))?;
        if !self.has_stamps() {
            self.check_up(dc)?;
            let none = Stamp::default();
            let mut begun = GeoTransaction::new(self, dc, none, session.transaction.clone());
            begun.is_weaker = session.level.is_some();
            return Ok(begun);
        }
        let unknown = self.net.with(|inner| {
            let mut names = session.after.iter().map(|(name, _)| name);
            names.find(|name| !inner.is_known(name)).cloned()
        });
        let are_several = self.config.datacenters.len() > 1;
        if let Some(name) = unknown.filter(|_| are_several && !self.is_strong()) {
            let reason = format!("a session has seen its data center {name}, which it has not");
            return Err(self.core.refused(reason));
        }
        self.check_up(dc)?;
        let after = session.after.clone();
        let mut begun = GeoTransaction::new(self, dc, after, session.transaction.clone());
        begun.is_weaker = session.level.is_some();
        Ok(begun)
    }

    /// Checks that a data center serves. One that is coming up does not serve yet: as with one that
    /// is down, the client gets an error at once and may use another.
    fn check_up(&self, dc: DcId) -> Result<(), StoreError> {
        match self.net.with(|inner| (inner.is_up(dc), inner.is_coming_up(dc))) {
            (true, false) => Ok(()),
            (true, true) => Err(self.not_ready(dc, Duration::ZERO)),
            (false, _) => Err(self.down(dc)),
        }
    }

    /// Returns a session of the core at a data center that has all of `after`; waits for that if
    /// necessary.
    pub async fn client(&self, dc: DcId, after: &Stamp) -> Result<Client, StoreError> {
        self.client_of(dc, after, self.is_strong()).await
    }

    /// Does the same; only a strong transaction needs to reach the other data centers and to see all that
    /// this one has acknowledged.
    pub(super) async fn client_of(
        &self,
        dc: DcId,
        after: &Stamp,
        is_strong: bool,
    ) -> Result<Client, StoreError> {
        let is_counted = self.config.datacenters.len() > 1;
        let (begin, seen) = (self.core.world.elapsed(), after);
        self.check_kept(seen)?;
        let after = loop {
            self.check_up(dc)?;
            let is_ready = self.net.with(|inner| inner.is_ready(dc));
            let (after, visible) = self.net.with(|inner| (inner.vector(seen), inner.visible(dc)));
            // Its own commits are here, with any timestamp.
            let is_here = !is_counted || visible.with(dc, after[dc]).covers(&after);
            if is_ready && is_here {
                break after;
            }
            let waited = self.core.world.elapsed().saturating_sub(begin);
            if !is_ready && waited >= READY_WAIT_MAX {
                return Err(self.not_ready(dc, waited));
            }
            if is_ready && waited >= self.config.attach_wait {
                self.check_kept(seen)?;
                let replica = self.name(dc).clone();
                return Err(StoreError::Behind { store: self.core.store.clone(), replica });
            }
            self.net.with(|inner| inner.stay_busy());
            self.core.world.sleep(ATTACH_STEP).await;
        };
        if is_strong {
            self.check_quorum(dc)?;
            // Otherwise it would conflict with earlier commits of this data center.
            if !self.catch_up(dc, &self.last_certified(dc), READY_WAIT_MAX).await {
                self.check_quorum(dc)?;
                let name = self.name(dc);
                let reason = format!("its data center {name} lags after {READY_WAIT_MAX:?}");
                return Err(self.core.unavailable(reason));
            }
        }
        let mut client = self.idle(dc).unwrap_or_else(|| {
            Client::new(&self.net, dc, self.config.partitions, self.space.clone())
                .deferring(self.is_mixed())
        });
        if is_counted {
            client.reach(&after).await.map_err(|trouble| self.trouble(trouble, None))?;
        }
        Ok(client)
    }

    /// Reads items, in batches of at most the core's limit.
    pub async fn read(&self, client: &mut Client, fetch: Fetch) -> Result<Found, StoreError> {
        let mut states = Vec::new();
        for keys in fetch.keys().chunks(READ_KEYS_MAX) {
            let read = client.read(keys.to_vec()).await;
            states.extend(read.map_err(|trouble| self.trouble(trouble, None))?);
        }
        Ok(fetch.found(states))
    }

    /// Converts a failure of the core to an error of the store.
    pub fn trouble(&self, trouble: Trouble, id: Option<TransactionId>) -> StoreError {
        match trouble {
            Trouble::Down(_) if self.core.is_broken() => {
                self.core.check().err().unwrap_or(StoreError::Conflict)
            }
            Trouble::Down(dc) => self.down(dc),
            Trouble::Alone(dc) => self.check_quorum(dc).err().unwrap_or(StoreError::Conflict),
            Trouble::Refused(Refusal::Fenced { dc, .. }) => self.down(dc),
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

    /// True if the stamps of sessions matter. A strong transaction that conflicts with all unseen
    /// ones sees all acknowledged commits without a stamp. But a session that then reads a causal
    /// store of the same engine, or whose transaction conflicts with only some others, must not see
    /// less.
    pub(super) fn has_stamps(&self) -> bool {
        !self.is_strong() || self.engine.is_shared() || self.relation.is_some()
    }

    /// True if sessions carry no stamps.
    fn is_silent(&self) -> bool {
        self.config.datacenters.len() < 2 || !self.has_stamps()
    }

    /// Converts a vector that is visible to all to a stamp, where there are several data centers.
    pub fn stamp(&self, vector: &Vector) -> Stamp {
        if self.is_silent() { Stamp::default() } else { self.net.with(|inner| inner.stamp(vector)) }
    }

    /// Converts a client's vector to a stamp.
    pub fn stamp_of(&self, vector: &Vector, client: &Client) -> Stamp {
        if self.is_silent() {
            return Stamp::default();
        }
        let home = (client.dc(), client.incarnation());
        self.net.with(|inner| inner.stamp_of(vector, Some(home)))
    }

    /// Checks that the core can take this many operations in one commit.
    pub fn check_count(&self, updates: &[Update]) -> Result<(), StoreError> {
        // One operation is reserved for the outcome.
        let (found, most) = (updates.len(), UPDATES_MAX - 1);
        if found > most {
            return Err(self.core.refused(format!(
                "a commit to several data centers comes to at most {most} operations, not {found}"
            )));
        }
        Ok(())
    }
}
