//! The interface: stores and transactions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::{Level, Name, Ref, Stamp, TransactionId, Version, WitnessRow};
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, DataStore, Once, Outcome, Read, Session,
    StoreError, StoreSchema, Transaction, World, Write,
};

use crate::config::{REPLICAS_MAX, ReplayConfig};
use crate::fit::Fit;
use crate::reading::{answer, holds};
use crate::replica::Replica;
use crate::size::Sizes;
use crate::state::State;

/// A replicated store that keeps every update.
pub struct ReplayStore {
    shared: Arc<Shared>,
}

struct Shared {
    capabilities: Capabilities,
    config: ReplayConfig,
    fit: Fit,
    sizes: Sizes,
    world: Arc<dyn World>,
    inner: Mutex<Inner>,
}

struct Inner {
    replicas: Vec<Replica>,
    /// For each id that was committed or asked for: true if it has taken effect.
    fates: BTreeMap<TransactionId, bool>,
    /// The next version of writes that are flushed and not committed.
    tentative: u64,
}

/// The first version of writes that are not committed.
const TENTATIVE: u64 = 1 << 63;

impl ReplayStore {
    /// Creates an empty store.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] when it cannot have the requested properties.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use mingle_store::{DataStore, Once, StoreError, StoreSchema, World};
    /// use mingle_store_replay::{ReplayConfig, ReplayStore};
    ///
    /// fn open(schema: StoreSchema, world: Arc<dyn World>) -> Result<Arc<dyn DataStore>, StoreError> {
    ///     ReplayStore::open(ReplayConfig::new(3, Once::ById), schema, world)
    /// }
    /// ```
    pub fn open(
        config: ReplayConfig,
        schema: StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Arc<dyn DataStore>, StoreError> {
        let refused = |reason| StoreError::Refused { store: schema.store.clone(), reason };
        check(&config, &schema).map_err(refused)?;
        let fit = Fit::new(&schema);
        let sizes = Sizes::new(&schema, &fit).map_err(refused)?;
        let capabilities = Capabilities {
            store: schema.store.clone(),
            level: schema.level,
            atomic_commit: true,
            serializable: false,
            once: config.once,
            may_lose_answers: false,
            floor_suffices: config.floor_suffices,
            replicas: config.replicas.clone(),
            weaker_answers: Capabilities::weaker_than(schema.level, config.replicas.len()),
            operations_per_round_trip: usize::MAX,
            round_trip: Duration::ZERO,
        };
        let count = config.replicas.len();
        let inner = Inner {
            replicas: (0..count).map(|index| Replica::new(index, count)).collect(),
            fates: BTreeMap::new(),
            tentative: TENTATIVE,
        };
        let inner = Mutex::new(inner);
        let shared = Shared { capabilities, config, fit, sizes, world, inner };
        Ok(Arc::new(Self { shared: Arc::new(shared) }))
    }
}

fn check(config: &ReplayConfig, schema: &StoreSchema) -> Result<(), String> {
    let count = config.replicas.len();
    if count == 0 || count > REPLICAS_MAX {
        return Err(format!("it needs 1 to {REPLICAS_MAX} replicas, not {count}"));
    }
    if config.replicas.iter().collect::<BTreeSet<_>>().len() < count {
        return Err(format!("two replicas have one name among {}", config.replicas.join(", ")));
    }
    if !matches!(schema.level, Level::Causal | Level::Eventual) {
        return Err(format!("it is causal or eventual, not {}", schema.level));
    }
    if config.floor_suffices && (config.once != Once::ById || count > 1) {
        let what = "one replica that counts one of several copies";
        return Err(format!("floors suffice where there is {what}, not in {config:?}"));
    }
    if config.once == Once::Serial {
        return Err("its replicas cannot judge one after the other, so it is not serial".into());
    }
    Ok(())
}

impl DataStore for ReplayStore {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move { self.shared.begin(session) })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move {
            // An id that has not committed is barred, so that the answer stays true.
            let has_committed = *self.shared.lock().fates.entry(id).or_insert(false);
            Ok(if has_committed { Outcome::Committed } else { Outcome::NotCommitted })
        })
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(async move {
            if !self.shared.is_counted() {
                return Ok(Stamp::default());
            }
            let mut inner = self.shared.lock();
            let stamps = (0..inner.replicas.len()).map(|replica| {
                self.shared.deliver(&mut inner, replica);
                self.shared.stamp(&inner.replicas[replica])
            });
            let met = stamps.reduce(|mut met, stamp| {
                met.meet(&stamp);
                met
            });
            Ok(met.unwrap_or_default())
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self) -> Name {
        self.capabilities.store.clone()
    }

    fn refused(&self, reason: String) -> StoreError {
        StoreError::Refused { store: self.name(), reason }
    }

    fn is_causal(&self) -> bool {
        self.capabilities.level == Level::Causal
    }

    /// True if replicas report the updates that they have received.
    fn is_counted(&self) -> bool {
        self.is_causal() && self.config.replicas.len() > 1
    }

    /// Returns the updates that a replica has received; empty if replicas do not report them.
    fn stamp(&self, replica: &Replica) -> Stamp {
        if !self.is_counted() {
            return Stamp::default();
        }
        let counts = self.config.replicas.iter().enumerate();
        counts.map(|(index, name)| (name.clone(), replica.context.prefix(index))).collect()
    }

    /// Refuses to serve a session that has seen more than its replica.
    fn check_seen(&self, replica: &Replica, after: &Stamp) -> Result<(), StoreError> {
        let seen = self.stamp(replica);
        if !self.is_counted() || seen.covers(after) {
            return Ok(());
        }
        let name = self.config.replicas[replica.index()].clone();
        Err(StoreError::Behind { store: self.name(), replica: name })
    }

    fn begin(self: &Arc<Self>, session: &Session) -> Result<Box<dyn Transaction>, StoreError> {
        let names = &self.config.replicas;
        let replica = match &session.replica {
            None => 0,
            Some(name) => names.iter().position(|known| known == name).ok_or_else(|| {
                self.refused(format!("it has no replica {name}; it has {}", names.join(", ")))
            })?,
        };
        Ok(Box::new(ReplayTransaction {
            shared: Arc::clone(self),
            replica,
            after: session.after.clone(),
            snapshot: None,
            flushed: Vec::new(),
            seen: Version(0),
        }))
    }

    /// Applies due updates at a replica.
    fn deliver(&self, inner: &mut Inner, replica: usize) {
        let names = &self.config.replicas;
        let hears = |from: usize| {
            let links = self.config.links.as_ref();
            links.is_none_or(|links| links.is_up(&names[from], &names[replica]))
        };
        inner.replicas[replica].deliver(self.world.elapsed(), self.is_causal(), hears);
    }

    /// Returns the due time of an update that is sent now.
    fn due(&self) -> Duration {
        let (delay, jitter) = (self.config.delay, self.config.jitter);
        let due = self.world.elapsed() + delay;
        if jitter.is_zero() {
            return due;
        }
        let range = u64::try_from(jitter.as_nanos() * 2).unwrap_or(u64::MAX - 1);
        let drawn = Duration::from_nanos(self.world.random() % (range + 1));
        (due + drawn).saturating_sub(jitter)
    }

    /// Answers reads that fit.
    fn answers(
        &self,
        snapshot: &Snapshot,
        flushed: &[Write],
        reads: &[Read],
    ) -> Result<Vec<Answer>, StoreError> {
        let answer = |read: &Read| match read {
            Read::Query { operation, arguments } => {
                let strong = snapshot.replica.complete();
                let state = tentative(&strong, flushed, 0);
                let answer = self.sizes.answer(operation, arguments, &state);
                answer.map_err(|reason| self.refused(reason))
            }
            read => Ok(answer(&snapshot.state, read)),
        };
        reads.iter().map(answer).collect()
    }

    fn commit(
        &self,
        at: usize,
        writes: Vec<Write>,
        commit: &Commit,
    ) -> Result<Committed, StoreError> {
        let mut inner = self.lock();
        self.deliver(&mut inner, at);
        let inner = &mut *inner;
        if let Some(id) = commit.id
            && inner.fates.get(&id) == Some(&false)
        {
            return Err(self.refused(format!("{id} was said to be not committed")));
        }
        let replica = &inner.replicas[at];
        if !commit.guards.iter().all(|guard| holds(&replica.state, guard)) {
            return Err(StoreError::Conflict);
        }
        check_witnesses(&replica.state, &writes, commit)?;
        if let Some(id) = commit.id {
            inner.fates.insert(id, true);
        }
        if writes.is_empty() {
            return Ok(Committed { version: Version(0), stamp: self.stamp(replica) });
        }
        let operation = commit.operation.filter(|_| self.config.once == Once::ById);
        let mut parts = vec![(operation, writes)];
        if operation.is_some() && self.config.floor_suffices {
            // Records are kept whichever copy counts: the choice of one copy does not apply to
            // them.
            let is_record = |write: &mut Write| matches!(write, Write::Record(..));
            let records: Vec<Write> = parts[0].1.extract_if(.., is_record).collect();
            parts.push((None, records));
        }
        let mut version = Version(0);
        for (operation, writes) in parts.into_iter().filter(|(_, writes)| !writes.is_empty()) {
            let update = Arc::new(inner.replicas[at].update(operation, &writes));
            version = Version(inner.replicas[at].receive(Arc::clone(&update)));
            for (index, other) in inner.replicas.iter_mut().enumerate() {
                if index != at {
                    other.send(self.due(), Arc::clone(&update));
                }
            }
        }
        Ok(Committed { version, stamp: self.stamp(&inner.replicas[at]) })
    }
}

/// Checks that the writer of data knows the witness rows of its object and of the whole store. It
/// knows its own rows.
fn check_witnesses(state: &State, writes: &[Write], commit: &Commit) -> Result<(), StoreError> {
    if !writes.iter().any(Write::is_data) {
        return Ok(());
    }
    let objects: BTreeSet<&Ref> = writes.iter().filter_map(Write::object).collect();
    let of_objects = objects.into_iter().flat_map(|object| state.rows(Some(object)));
    let rows: Vec<WitnessRow> = of_objects.chain(state.rows(None)).cloned().collect();
    let is_own = |id| {
        let by_row = |write: &Write| matches!(write, Write::Witness(row) if row.id == id);
        commit.id == Some(id) || writes.iter().any(by_row)
    };
    if rows.iter().all(|row| commit.known.contains(&row.id) || is_own(row.id)) {
        return Ok(());
    }
    Err(StoreError::Witnessed { rows })
}

struct ReplayTransaction {
    shared: Arc<Shared>,
    replica: usize,
    /// The stamp that the replica must have received first.
    after: Stamp,
    snapshot: Option<Snapshot>,
    flushed: Vec<Write>,
    /// The newest version that was read.
    seen: Version,
}

struct Snapshot {
    /// The replica as it was at the first read.
    replica: Replica,
    /// The state that the transaction sees, including its flushed writes.
    state: State,
}

impl ReplayTransaction {
    /// Takes the snapshot with the first read, after applying the updates due by then.
    fn settle(&mut self) -> Result<&mut Snapshot, StoreError> {
        if self.snapshot.is_none() {
            let shared = &self.shared;
            let mut inner = shared.lock();
            shared.deliver(&mut inner, self.replica);
            let replica = inner.replicas[self.replica].clone();
            shared.check_seen(&replica, &self.after)?;
            let state = replica.state.clone();
            self.snapshot = Some(Snapshot { replica, state });
        }
        Ok(self.snapshot.as_mut().expect("it was just taken"))
    }

    fn prepare(&self, writes: &[Write]) -> Result<(), StoreError> {
        let checked = writes.iter().try_for_each(|write| self.shared.fit.write(write));
        checked.map_err(|reason| self.shared.refused(reason))
    }
}

/// Returns the state that the transaction sees after a flush; `version` is the version of its
/// writes.
fn tentative(replica: &Replica, writes: &[Write], version: u64) -> State {
    let mut state = replica.state.clone();
    state.apply(&replica.update(None, writes), version);
    state
}

impl Transaction for ReplayTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(async move {
            let shared = Arc::clone(&self.shared);
            let checked = reads.iter().try_for_each(|read| shared.fit.read(read));
            checked.map_err(|reason| shared.refused(reason))?;
            let flushed = std::mem::take(&mut self.flushed);
            let snapshot = self.settle();
            let found = snapshot.and_then(|snapshot| shared.answers(snapshot, &flushed, reads));
            self.flushed = flushed;
            let answers = found?;
            for answer in &answers {
                if answer.version.0 < TENTATIVE {
                    self.seen = self.seen.max(answer.version);
                }
            }
            Ok(answers)
        })
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.prepare(&writes)?;
            self.settle()?;
            self.flushed.extend(writes);
            let mut inner = self.shared.lock();
            inner.tentative += 1;
            let version = inner.tentative;
            drop(inner);
            let snapshot = self.snapshot.as_mut().expect("settle took it");
            snapshot.state = tentative(&snapshot.replica, &self.flushed, version);
            Ok(())
        })
    }

    fn commit(
        self: Box<Self>,
        mut commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            self.prepare(&commit.writes)?;
            let mut this = *self;
            let mut writes = std::mem::take(&mut this.flushed);
            writes.append(&mut commit.writes);
            let (seen, replica) = (this.seen, this.replica);
            let shared = Arc::clone(&this.shared);
            let snapshot = this.settle()?;
            if writes.is_empty() && commit.guards.is_empty() {
                return Ok(Committed { version: seen, stamp: shared.stamp(&snapshot.replica) });
            }
            drop(this);
            let committed = shared.commit(replica, writes, &commit)?;
            Ok(Committed { version: seen.max(committed.version), ..committed })
        })
    }
}
