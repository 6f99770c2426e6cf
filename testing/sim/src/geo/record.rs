//! The recorded history of a run, in the terms of `mingle-checker`.

use std::collections::{BTreeMap, HashMap};

use mingle_checker::geo::{
    Action, Claim, Commit, Conflicts, Content, Cut, Fault, FaultKind, Floor, Item, ItemKind, Loss,
    Op, OpId, Outcome as CheckedOutcome, Run, Session as CheckedSession, Sighting, System,
    Transaction, Vector, What,
};
use mingle_geo::members;
use mingle_geo::session::{Floor as ProcessFloor, Token};
use mingle_geo::{
    Baseline, DcId, Key, Kind, Outcome, PartitionId, Record, Replica, Session, State, Timestamp,
};
use mingle_model::TransactionId;

use super::columns::{Columns, Incarnation, NEWEST};
use super::fault::Event;
use super::items;
use super::setup::Setup;
use super::strong::WITHDRAW;

/// Returns the vector that new sessions see at a replica's data center.
pub(super) fn visible(replica: &Replica) -> mingle_geo::Vector {
    let (stable, own) = (replica.stable_vec(), replica.config().dc);
    replica.uniform_vec().with(own, stable[own]).with(DcId::STRONG, stable[DcId::STRONG])
}

/// Returns the data center and incarnation of a replica.
pub(super) fn incarnation_of(replica: &Replica) -> Incarnation {
    (replica.config().dc.0, replica.config().incarnation)
}

/// Returns the visible content of an item for the transaction `own`, whose snapshot has reached this
/// time.
pub(super) fn content(state: &State, now_us: u64, own: TransactionId) -> Content {
    match state.kind() {
        Kind::Register => {
            let siblings = state.as_register().map(mingle_geo::types::Register::siblings);
            Content::Register(
                siblings.into_iter().flatten().map(|(_, value)| value.clone()).collect(),
            )
        }
        Kind::Counter => {
            Content::Counter(state.as_counter().map_or(0, mingle_geo::types::Counter::value))
        }
        Kind::Set => {
            Content::Set(state.as_set().into_iter().flat_map(|set| set.iter().cloned()).collect())
        }
        Kind::Map => {
            let map = state.as_map();
            let entries = map.into_iter().flat_map(mingle_geo::types::Map::entries);
            let counts = map.into_iter().flat_map(mingle_geo::types::Map::counts);
            Content::Map {
                entries: entries.map(|(key, value)| (key.clone(), value.clone())).collect(),
                counts: counts.map(|(key, count)| (key.clone(), count.value())).collect(),
            }
        }
        Kind::Item => items::content(state, now_us, own),
        Kind::Log => {
            Content::Log(state.as_log().into_iter().flat_map(|log| log.iter().cloned()).collect())
        }
    }
}

/// Converts an operation of the transaction `own` to the checkers' form. Clients never submit the forms used on the wire.
pub(super) fn op(from: &mingle_geo::Op, own: TransactionId) -> Op {
    use mingle_geo::Op as Geo;
    match from {
        Geo::Write(value) => Op::Write(value.clone()),
        Geo::Erase => Op::Erase,
        Geo::Add(amount) => Op::Add(*amount),
        Geo::Reset => Op::Reset,
        Geo::Insert(value) => Op::Insert(value.clone()),
        Geo::Remove(value) => Op::Remove(value.clone()),
        Geo::Clear => Op::Clear,
        Geo::Put(key, value) => Op::Put(key.clone(), value.clone()),
        Geo::Increment(key, amount) => Op::Increment(key.clone(), *amount),
        Geo::Delete(key) => Op::Delete(key.clone()),
        Geo::Empty => Op::Empty,
        Geo::Append(value) => Op::Append(value.clone()),
        Geo::Item(op) => Op::Item(items::op(op, own)),
        Geo::ResetSeen(_) | Geo::DeleteSeen(..) | Geo::EmptySeen(_) | Geo::Nothing => {
            unreachable!("no client writes {from:?}")
        }
    }
}

pub(super) fn op_id(from: mingle_geo::OpId) -> OpId {
    let mingle_geo::OpId { transaction, phase, position } = from;
    OpId { transaction, phase, position }
}

/// The facts about a multi-partition transaction known from its preparations.
struct Preparing {
    snap_vec: mingle_geo::Vector,
    participants: Vec<PartitionId>,
    proposals: BTreeMap<PartitionId, Timestamp>,
}

/// The recorder of a run.
pub(super) struct Recorder {
    pub run: Run,
    pub columns: Columns,
    items: HashMap<Key, Item>,
    preparing: HashMap<TransactionId, Preparing>,
    commits: HashMap<TransactionId, Commit>,
    /// The committed transactions by timestamp and origin.
    by_version: HashMap<(u64, u8), TransactionId>,
    /// For each data center, the transactions committed elsewhere and not visible there yet.
    unseen: Vec<Vec<(TransactionId, Vector)>>,
    timestamps: HashMap<u64, u8>,
    /// The number of transaction pairs of two data centers with equal timestamps.
    pub ties: u64,
}

impl Recorder {
    pub fn new(setup: &Setup, schedule: &[Event]) -> Self {
        let config = &setup.config;
        let columns = Columns::new(config.dc_count, schedule);
        let items = setup.keys.iter().enumerate();
        let items: HashMap<Key, Item> =
            items.map(|(index, key)| (key.clone(), item(index, key))).collect();
        let partition_of = items.iter();
        let partition_of =
            partition_of.map(|(key, item)| (*item, key.partition(config.partition_count).0));
        let strong_only = items.iter().filter(|(key, _)| config.is_strong_only(key));
        let system = System {
            dc_count: columns.count(),
            losses_max: config.f,
            partition_count: config.partition_count,
            partition_of: partition_of.collect(),
            conflicts: match setup.system {
                Baseline::RedBlue => Conflicts::all(),
                _ => Conflicts::new([(WITHDRAW.to_owned(), WITHDRAW.to_owned())]),
            },
            accounts: setup.accounts().iter().map(|key| items[key]).collect(),
            strong_only: strong_only.map(|(_, item)| *item).collect(),
        };
        Self {
            run: Run { system, ..Run::default() },
            items,
            preparing: HashMap::new(),
            commits: HashMap::new(),
            by_version: HashMap::new(),
            unseen: vec![Vec::new(); usize::from(columns.count())],
            columns,
            timestamps: HashMap::new(),
            ties: 0,
        }
    }

    pub fn item(&self, key: &Key) -> Item {
        self.items[key]
    }

    /// Converts a vector of a replica to the checkers' form.
    pub fn of_replica(&self, vector: &mingle_geo::Vector, replica: &Replica) -> Vector {
        self.columns.vector(vector, replica.members().epoch(), Some(incarnation_of(replica)))
    }

    /// Converts a vector of a session to the checkers' form.
    pub fn of_session(&self, vector: &mingle_geo::Vector, session: &Session) -> Vector {
        self.columns.vector(vector, session.token().epoch, None)
    }

    /// Converts what a process has acknowledged.
    pub fn of_floor(&self, floor: &ProcessFloor) -> Vector {
        self.columns.vector(&floor.vector(), floor.epoch(), None)
    }

    /// Converts the past of a token. After a join of tokens of several epochs, an entry may belong
    /// to one incarnation or to the next; it then stands for both.
    pub fn of_token(&self, token: &Token) -> Vector {
        let of = |epoch| self.columns.vector(&token.past_vec, epoch, None);
        let mut past_vec = of(token.epoch);
        if token.newest != token.epoch {
            past_vec.join(&of(token.newest));
        }
        past_vec
    }

    /// Returns the number of the data center that a session uses.
    pub fn dc_of(&self, session: &Session) -> u8 {
        self.columns.of((session.dc().0, session.token().incarnation))
    }

    /// Handles a record that has reached the disk of a replica.
    pub fn on_record(&mut self, at: Incarnation, partition: u16, record: &Record) {
        let dc = at.0;
        match record {
            Record::Commit(transaction) => {
                let (snap_vec, commit_vec) = (transaction.snap_vec(), transaction.commit_vec);
                self.committed(transaction.id, Some(at), &snap_vec, &commit_vec);
            }
            Record::Prepare(prepared) => {
                let preparing = self.preparing.entry(prepared.id).or_insert_with(|| Preparing {
                    snap_vec: prepared.snap_vec,
                    participants: prepared.participants.clone(),
                    proposals: BTreeMap::new(),
                });
                preparing.proposals.insert(PartitionId(partition), prepared.timestamp);
                if preparing.proposals.len() == preparing.participants.len() {
                    let highest = preparing.proposals.values().max().copied().unwrap_or_default();
                    let snap_vec = preparing.snap_vec;
                    let commit_vec = snap_vec.with(DcId(dc), highest);
                    self.committed(prepared.id, Some(at), &snap_vec, &commit_vec);
                }
            }
            Record::Decide(decided) => {
                if let Outcome::Committed(commit_vec) = &decided.outcome
                    && let Some(preparing) = self.preparing.get(&decided.id)
                {
                    let snap_vec = preparing.snap_vec;
                    self.committed(decided.id, Some(at), &snap_vec, commit_vec);
                }
            }
            Record::Delivered(interval) => {
                for transaction in &interval.transactions {
                    let (id, commit_vec) = (transaction.id, transaction.commit_vec);
                    self.committed(id, None, &transaction.snap_vec(), &commit_vec);
                }
            }
            Record::OpFloors(floors) => {
                for (_, raised) in floors.iter().filter(|(of, _)| of.0 == dc) {
                    let (origin, sequence) = (raised.origin, raised.sequence);
                    let (dc, at) = (self.columns.of(at), raised.at.0);
                    self.run.floors.push(Floor { dc, partition, origin, sequence, at });
                }
            }
            _ => {}
        }
    }

    /// Records a commit by this incarnation of a data center, or by none if strong. The entries
    /// that the transaction has seen of other data centers were uniform, so they lie below the cuts
    /// of those or belong to later incarnations.
    fn committed(
        &mut self,
        id: TransactionId,
        by: Option<Incarnation>,
        snap_vec: &mingle_geo::Vector,
        commit_vec: &mingle_geo::Vector,
    ) {
        let dc = by.map_or(DcId::STRONG, |(dc, _)| DcId(dc));
        self.by_version.insert((commit_vec[dc].0, dc.0), id);
        let origin = by.map_or(DcId::STRONG.0, |by| self.columns.of(by));
        let snap_vec = self.columns.vector(snap_vec, NEWEST, by);
        let mut commit_vec = self.columns.vector(commit_vec, NEWEST, by);
        if by.is_some() {
            // The transaction need not have seen the remaining part of an earlier incarnation.
            for column in self.columns.before(origin) {
                commit_vec = commit_vec.with(column, snap_vec.get(column));
            }
        }
        let commit = Commit { origin, snap_vec, commit_vec };
        if self.commits.insert(id, commit).is_some() {
            return;
        }
        let other = *self.timestamps.entry(commit.timestamp()).or_insert(origin);
        self.ties += u64::from(other != origin);
        for (dc, unseen) in self.unseen.iter_mut().enumerate() {
            if dc != usize::from(origin) {
                unseen.push((id, commit_vec));
            }
        }
    }

    /// Records the transactions that have become visible to new sessions at a data center.
    pub fn sight(&mut self, at_us: u64, replica: &Replica) {
        let visible = self.of_replica(&visible(replica), replica);
        let dc = self.columns.of(incarnation_of(replica));
        let sightings = &mut self.run.sightings;
        self.unseen[usize::from(dc)].retain(|(transaction, commit_vec)| {
            let is_seen = visible.covers(commit_vec);
            if is_seen {
                sightings.push(Sighting { dc, transaction: *transaction, at_us });
            }
            !is_seen
        });
    }

    /// Records the uniform vector that a replica claims.
    pub fn claim(&mut self, at_us: u64, replica: &Replica) {
        let partition = replica.config().partition.0;
        let dc = self.columns.of(incarnation_of(replica));
        let uniform_vec = self.of_replica(&replica.uniform_vec(), replica);
        self.run.claims.push(Claim { dc, partition, at_us, uniform_vec });
    }

    pub fn cut(&mut self, cut: members::Cut) {
        let dc = self.columns.of((cut.dc.0, cut.incarnation));
        self.run.cuts.push(Cut { dc, at: cut.at.0 });
        self.columns.cut(cut);
    }

    pub fn lose(&mut self, lost: Incarnation, at_us: u64) {
        let dc = self.columns.of(lost);
        self.run.losses.push(Loss { dc, at_us });
    }

    /// Records a fault that lasts from `begin_us` until [`put_right`](Self::put_right).
    pub fn wrong(&mut self, kind: FaultKind, begin_us: u64) -> usize {
        self.run.faults.push(Fault { kind, begin_us, end_us: u64::MAX });
        self.run.faults.len() - 1
    }

    pub fn put_right(&mut self, fault: usize, end_us: u64) {
        let end = &mut self.run.faults[fault].end_us;
        *end = (*end).min(end_us);
    }

    pub fn session(&mut self, session: CheckedSession) {
        self.run.sessions.push(session);
    }

    /// Returns the run, with the facts known of each commit.
    pub fn finish(mut self) -> Run {
        items::resolve(&mut self.run, &self.by_version);
        self.run.admissions = self.columns.admissions();
        let faults = std::mem::take(&mut self.run.faults).into_iter();
        let faults = faults.flat_map(|fault| {
            let kinds = self.columns.kinds(&fault.kind).into_iter();
            kinds.map(move |kind| Fault { kind, ..fault })
        });
        self.run.faults = faults.collect();
        for session in &mut self.run.sessions {
            for call in &mut session.calls {
                match &mut call.what {
                    What::Transaction(transaction) => {
                        let commit = self.commits.get(&transaction.id).copied();
                        transaction.commit = commit;
                        if let CheckedOutcome::Committed { commit_vec, .. } =
                            &mut transaction.outcome
                        {
                            self.columns.seen_before(commit_vec, commit);
                        }
                        if !self.run.floors.is_empty() {
                            leave_out(transaction);
                        }
                    }
                    What::Learned { id, commit_vec } => {
                        self.columns.seen_before(commit_vec, self.commits.get(id).copied());
                    }
                    _ => {}
                }
            }
        }
        self.run
    }
}

/// Removes reads that have no promise. A session does not know floors. If a transaction is refused
/// for an id below a floor, its read of an item that it changed under that id counts the operation,
/// although the operation may have been counted before and forgotten.
fn leave_out(transaction: &mut Transaction) {
    if matches!(transaction.outcome, CheckedOutcome::Committed { .. }) {
        return;
    }
    let mut changed = Vec::new();
    transaction.actions.retain(|action| match action {
        Action::Update { item, id, .. } => {
            if id.is_some() {
                changed.push(*item);
            }
            true
        }
        Action::Read { item, .. } => !changed.contains(item),
    });
}

fn item(index: usize, key: &Key) -> Item {
    let kind = match key.kind {
        Kind::Register => ItemKind::Register,
        Kind::Counter => ItemKind::Counter,
        Kind::Set => ItemKind::Set,
        Kind::Map => ItemKind::Map,
        Kind::Log => ItemKind::Log,
        Kind::Item => ItemKind::Item,
    };
    Item { kind, key: index as u64 }
}
