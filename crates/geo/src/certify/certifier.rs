//! The state machine that follows the log of a partition.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use mingle_model::TransactionId;
use serde::{Deserialize, Serialize};

use super::configuration::Configuration;
use super::conflict::Conflicts;
use super::entry::{Decision, Entry, Proposal, Vote};
use super::index::Index;
use crate::flaw::{Flaw, Planted};
use crate::members::Membership;
use crate::replica::Delivery;
use crate::timestamp::{DcId, PartitionId, Timestamp};
use crate::tx::Transaction;

/// Settings that all replicas of a partition share: votes depend on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertifierConfig {
    /// The partition.
    pub partition: PartitionId,
    /// The conflict relation.
    pub conflicts: Conflicts,
    /// A transaction that began this long before the newest strong timestamp is no longer accepted,
    /// and its outcome is forgotten.
    pub outcome_ms_max: u64,
    /// The maximum number of remembered touches of committed transactions. A snapshot so old that
    /// it might conflict with forgotten ones is refused.
    pub index_max: usize,
    /// The number of transactions kept for lagging replicas; more are kept while too few replicas
    /// have them. Replicas that lag further need a state transfer.
    pub keep_max: usize,
    /// A planted mistake; see [`flaw`](crate::flaw).
    pub planted: Planted,
}

impl CertifierConfig {
    /// Returns the usual settings.
    pub fn new(partition: PartitionId, conflicts: Conflicts) -> Self {
        Self {
            partition,
            conflicts,
            outcome_ms_max: 60_000,
            index_max: 100_000,
            keep_max: 100_000,
            planted: Planted::default(),
        }
    }
}

/// An error: a replica lags so far that its missing transactions are no longer kept, so it needs a
/// state transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped;

/// The state that results from a partition's log.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use mingle_geo::certify::{Access, Certifier, CertifierConfig, Conflicts, Decision};
/// use mingle_geo::certify::{Entry, Proposal, Touch, Vote};
/// use mingle_geo::{Key, Kind, PartitionId, Timestamp, Vector};
/// use mingle_model::{Origin, TransactionId};
///
/// let partition = PartitionId(0);
/// let mut certifier = Certifier::new(CertifierConfig::new(partition, Conflicts::default()));
/// let propose = |sequence| {
///     let seat = Key::new(Kind::Register, "seat:12A");
///     Entry::Prepare(Arc::new(Proposal {
///         id: TransactionId { origin: Origin(1), sequence },
///         begun_us: 1_000,
///         participants: vec![partition],
///         touches: vec![Touch::new(seat, Access::Write)],
///         updates: Vec::new(),
///         snap_vec: Vector::ZERO,
///         clock: Timestamp::new(1_000, partition),
///         stable: Timestamp::ZERO,
///         everywhere: Timestamp::ZERO,
///         uniform: Timestamp::ZERO,
///     }))
/// };
/// certifier.apply(&propose(1));
/// certifier.apply(&propose(2));
/// let vote = |sequence| certifier.vote(&TransactionId { origin: Origin(1), sequence }, 1_000);
/// assert!(matches!(vote(1), Some(Vote::Yes(_))));
/// // Neither has seen the other.
/// assert!(matches!(vote(2), Some(Vote::Conflict(_))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certifier {
    config: CertifierConfig,
    /// Later proposals are above this.
    last: Timestamp,
    undecided: BTreeMap<TransactionId, Undecided>,
    /// The proposed timestamps of undecided transactions with a yes vote.
    proposed: BTreeSet<Timestamp>,
    /// Committed transactions, kept for replicas that have not delivered them.
    committed: BTreeMap<Timestamp, Arc<Transaction>>,
    /// The transactions in `committed` are those above this.
    dropped: Timestamp,
    ended: BTreeMap<TransactionId, Ended>,
    /// The keys of `ended` by begin time, to find the oldest.
    ended_at: BTreeSet<(u64, TransactionId)>,
    /// All partitions of the proposer's data center have delivered up to here.
    stable: Timestamp,
    index: Index,
    membership: Membership,
    stopped: Option<Stopped>,
}

/// The end of the group's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stopped {
    next: Configuration,
    /// The number of later entries, which have no effect.
    void: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Undecided {
    proposal: Arc<Proposal>,
    /// The timestamp of its yes vote.
    proposed: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ended {
    decision: Decision,
    /// The vote; [`Vote::No`] if the transaction was refused without one.
    vote: Vote,
}

impl Certifier {
    /// Creates the certifier of an empty log.
    pub fn new(config: CertifierConfig) -> Self {
        Self {
            config,
            last: Timestamp::ZERO,
            undecided: BTreeMap::new(),
            proposed: BTreeSet::new(),
            committed: BTreeMap::new(),
            dropped: Timestamp::ZERO,
            ended: BTreeMap::new(),
            ended_at: BTreeSet::new(),
            stable: Timestamp::ZERO,
            index: Index::default(),
            membership: Membership::default(),
            stopped: None,
        }
    }

    /// Returns its settings.
    pub fn config(&self) -> &CertifierConfig {
        &self.config
    }

    /// Applies the next entry of the log. An entry that comes too late has no effect.
    pub fn apply(&mut self, entry: &Entry) {
        if let Some(stopped) = &mut self.stopped {
            stopped.void += 1;
            return;
        }
        match entry {
            Entry::Prepare(proposal) => self.prepare(proposal),
            Entry::Refuse { id, begun_us } => {
                if !self.undecided.contains_key(id) && !self.is_over(id, *begun_us) {
                    self.end(*id, *begun_us, Decision::Abort, Vote::No);
                }
            }
            Entry::Decide { id, begun_us, decision } => self.decided(*id, *begun_us, *decision),
            Entry::Advance { to } => self.last = self.last.max(*to),
            Entry::Fence { .. } | Entry::Frozen { .. } | Entry::Admit { .. } => {
                self.membership.apply_with(entry, self.config.planted);
            }
            Entry::Stop(next) => {
                self.stopped = Some(Stopped { next: next.clone(), void: 0 });
            }
        }
    }

    /// True if the configuration of the group has ended.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Continues in the next configuration if one has ended. Returns that configuration, and the
    /// number of entries that came after the end.
    pub(super) fn go_on(&mut self) -> Option<(Configuration, usize)> {
        self.stopped.take().map(|Stopped { next, void }| (next, void))
    }

    /// True if a transaction has ended, or began too long ago to be accepted.
    fn is_over(&self, id: &TransactionId, begun_us: u64) -> bool {
        self.ended.contains_key(id) || begun_us <= self.floor_us()
    }

    /// Returns the age floor: transactions that began at or before it (microseconds since 1970) are
    /// refused.
    pub fn floor_us(&self) -> u64 {
        self.last.micros().saturating_sub(self.config.outcome_ms_max.saturating_mul(1_000))
    }

    fn prepare(&mut self, proposal: &Arc<Proposal>) {
        let id = proposal.id;
        self.stable = self.stable.max(proposal.stable);
        self.drop_committed(proposal);
        let is_known = self.is_over(&id, proposal.begun_us) && !self.is_overruled(&id);
        if self.undecided.contains_key(&id) || is_known {
            return;
        }
        let Proposal { touches, snap_vec, .. } = &**proposal;
        if let Some(missing) = self.index.in_the_way(&self.config, touches, snap_vec) {
            return self.end(id, proposal.begun_us, Decision::Abort, Vote::Conflict(missing));
        }
        let proposed = self.propose(proposal);
        self.last = proposed;
        if proposal.participants == [self.config.partition] {
            // No other partition votes.
            return self.commit(proposal, proposed, proposed);
        }
        self.proposed.insert(proposed);
        self.index.hold(id, touches, proposed);
        let proposal = proposal.clone();
        self.undecided.insert(id, Undecided { proposal, proposed });
    }

    /// True if a prepare counts although its transaction is over; this happens only by a planted
    /// mistake.
    fn is_overruled(&self, id: &TransactionId) -> bool {
        match self.ended.get(id).map(|ended| ended.vote) {
            Some(Vote::No) => self.makes(Flaw::RefusalOverruled),
            Some(Vote::Yes(_)) => self.makes(Flaw::CertifiedTwice),
            _ => false,
        }
    }

    fn makes(&self, flaw: Flaw) -> bool {
        self.config.planted.is(flaw)
    }

    /// Returns a timestamp above the snapshot and above all that were proposed, decided or promised
    /// here.
    fn propose(&self, proposal: &Proposal) -> Timestamp {
        let partition = self.config.partition;
        let mut above = self.last.max(proposal.snap_vec.highest());
        if self.makes(Flaw::ProposalBelowSnapshot) {
            above = self.last.max(proposal.snap_vec[DcId::STRONG]);
        }
        let next = Timestamp::new(proposal.clock.micros().max(above.micros()), partition);
        if next > above { next } else { Timestamp::new(above.micros() + 1, partition) }
    }

    fn decided(&mut self, id: TransactionId, begun_us: u64, decision: Decision) {
        let Some(Undecided { proposal, proposed }) = self.undecided.remove(&id) else {
            // It did not vote for it, so it can only be aborted.
            if !self.is_over(&id, begun_us) {
                self.end(id, begun_us, Decision::Abort, Vote::No);
            }
            return;
        };
        self.proposed.remove(&proposed);
        self.index.release(id, &proposal.touches);
        match decision {
            Decision::Commit(_) if self.makes(Flaw::OwnTimestamp) => {
                self.commit(&proposal, proposed, proposed);
            }
            Decision::Commit(timestamp) => self.commit(&proposal, proposed, timestamp),
            Decision::Abort => {
                self.end(id, proposal.begun_us, decision, Vote::Yes(proposed));
            }
        }
    }

    fn commit(&mut self, proposal: &Proposal, proposed: Timestamp, timestamp: Timestamp) {
        let Proposal { id, begun_us, touches, updates, snap_vec, .. } = proposal;
        let (id, begun_us) = (*id, *begun_us);
        self.last = self.last.max(timestamp);
        let commit_vec = snap_vec.with(DcId::STRONG, timestamp);
        self.index.add(touches, &commit_vec);
        self.index.bound(self.config.index_max);
        if !updates.is_empty() {
            let transaction = Transaction {
                id,
                begun_us,
                origin: DcId::STRONG,
                commit_vec,
                snapshot_own: snap_vec[DcId::STRONG],
                updates: updates.clone(),
            };
            self.committed.insert(timestamp, Arc::new(transaction));
        }
        self.end(id, begun_us, Decision::Commit(timestamp), Vote::Yes(proposed));
    }

    /// Remembers the outcome of a transaction, and forgets old ones. An abort is forgotten once the
    /// transaction is too old to be prepared. A commit is forgotten only if, in addition, all
    /// partitions have delivered it, since until then another participant may be undecided.
    fn end(&mut self, id: TransactionId, begun_us: u64, decision: Decision, vote: Vote) {
        self.ended.insert(id, Ended { decision, vote });
        self.ended_at.insert((begun_us, id));
        let floor_us = self.floor_us();
        while let Some((begun_us, id)) = self.ended_at.first().copied()
            && begun_us <= floor_us
        {
            let ended = self.ended.get(&id).map(|ended| ended.decision);
            if matches!(ended, Some(Decision::Commit(timestamp)) if timestamp > self.stable) {
                return;
            }
            self.ended.remove(&id);
            self.ended_at.remove(&(begun_us, id));
        }
    }

    /// Returns the partition's vote, or `None` if there is none yet. The vote is no for a
    /// transaction that was refused or began too long ago, and also for one whose outcome is
    /// forgotten: only participants where it is undecided may ask, and then it did not commit.
    pub fn vote(&self, id: &TransactionId, begun_us: u64) -> Option<Vote> {
        if let Some(undecided) = self.undecided.get(id) {
            return Some(Vote::Yes(undecided.proposed));
        }
        match self.ended.get(id) {
            Some(ended) => Some(ended.vote),
            None => (begun_us <= self.floor_us()).then_some(Vote::No),
        }
    }

    /// True if a transaction began so long ago that its outcome may have been forgotten.
    pub fn is_forgotten(&self, id: &TransactionId, begun_us: u64) -> bool {
        let is_known = self.undecided.contains_key(id) || self.ended.contains_key(id);
        !is_known && begun_us <= self.floor_us()
    }

    /// Returns the outcome of a transaction, if the log has it and it is remembered.
    pub fn outcome(&self, id: &TransactionId) -> Option<Decision> {
        self.ended.get(id).map(|ended| ended.decision)
    }

    /// Drops transactions that all replicas of this partition have delivered. Beyond `keep_max` it
    /// also drops the oldest that enough replicas have for the others to copy.
    fn drop_committed(&mut self, proposal: &Proposal) {
        while let Some((first, _)) = self.committed.first_key_value() {
            let is_over = self.committed.len() > self.config.keep_max && *first <= proposal.uniform;
            if *first > proposal.everywhere && !is_over {
                return;
            }
            self.dropped = *first;
            self.committed.pop_first();
        }
    }

    /// Returns the timestamp just below the lowest undecided proposal: nothing commits at or below
    /// it any more.
    pub fn complete(&self) -> Timestamp {
        let lowest = self.proposed.first().filter(|_| !self.makes(Flaw::DeliveryPastUndecided));
        lowest.map_or(self.last, |lowest| lowest.before())
    }

    /// Returns the transactions to deliver to a replica that has all up to `after`, in timestamp
    /// order. No later commit is at or below the end. `None` if there is nothing new.
    ///
    /// # Errors
    ///
    /// [`Dropped`] if some of them are no longer kept.
    pub fn deliver(&self, after: Timestamp) -> Result<Option<Delivery>, Dropped> {
        let to = self.complete();
        if to <= after {
            return Ok(None);
        }
        if after < self.dropped {
            return Err(Dropped);
        }
        let new = self.committed.range((Bound::Excluded(after), Bound::Included(to)));
        let transactions = new.map(|(_, transaction)| transaction.clone()).collect();
        Ok(Some(Delivery { to, transactions }))
    }

    /// Returns the bound that all later proposals exceed.
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// Returns the undecided transactions, for the replica that finishes those whose coordinator is
    /// silent.
    pub fn undecided(&self) -> impl Iterator<Item = &Arc<Proposal>> {
        self.undecided.values().map(|undecided| &undecided.proposal)
    }

    /// Returns the membership state of the log.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Returns the numbers of remembered outcomes and of remembered touches of committed
    /// transactions.
    pub fn remembered(&self) -> (usize, usize) {
        (self.ended.len(), self.index.len())
    }
}
