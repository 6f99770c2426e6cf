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
    /// What conflicts.
    pub conflicts: Conflicts,
    /// A transaction that began so much before the newest strong timestamp is not accepted any more,
    /// and its end is forgotten.
    pub outcome_ms_max: u64,
    /// So many touches of transactions that committed are remembered. A snapshot so old that it might
    /// conflict with others is refused.
    pub index_max: usize,
    /// So many transactions are kept for replicas that lag, and more while not enough have them. Those
    /// that lag further are brought up by state transfer.
    pub keep_max: usize,
    /// A mistake to make; see [`flaw`](crate::flaw).
    pub planted: Planted,
}

impl CertifierConfig {
    /// The usual settings.
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

/// A replica lags so far that what it lacks is no longer kept: it has to be brought up by state
/// transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped;

/// What a partition's log says.
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
    /// No proposal from now on is at or below this.
    last: Timestamp,
    undecided: BTreeMap<TransactionId, Undecided>,
    /// What was proposed for undecided transactions that were voted for.
    proposed: BTreeSet<Timestamp>,
    /// Transactions that committed, for replicas that have not delivered them.
    committed: BTreeMap<Timestamp, Arc<Transaction>>,
    /// They are kept above this.
    dropped: Timestamp,
    ended: BTreeMap<TransactionId, Ended>,
    /// The same by when they began, so that the oldest are found.
    ended_at: BTreeSet<(u64, TransactionId)>,
    /// All partitions have delivered up to here.
    stable: Timestamp,
    index: Index,
    membership: Membership,
    stopped: Option<Stopped>,
}

/// The configuration of the group has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stopped {
    next: Configuration,
    /// So many entries came after that, and have no effect.
    void: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Undecided {
    proposal: Arc<Proposal>,
    /// It was voted for, at this timestamp.
    proposed: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ended {
    decision: Decision,
    /// What was voted, if anything was.
    vote: Vote,
}

impl Certifier {
    /// That of an empty log.
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

    /// Its settings.
    pub fn config(&self) -> &CertifierConfig {
        &self.config
    }

    /// Follows the next entry of the log. An entry that comes too late has no effect.
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
                self.membership.apply(entry);
            }
            Entry::Stop(next) => {
                self.stopped = Some(Stopped { next: next.clone(), void: 0 });
            }
        }
    }

    /// Whether the configuration of the group has ended.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Goes on in the next configuration, if one has ended: which that is, and how many entries were
    /// given that came after the end.
    pub(super) fn go_on(&mut self) -> Option<(Configuration, usize)> {
        self.stopped.take().map(|Stopped { next, void }| (next, void))
    }

    /// Whether a transaction has ended, or began too long ago to be accepted.
    fn is_over(&self, id: &TransactionId, begun_us: u64) -> bool {
        self.ended.contains_key(id) || begun_us <= self.floor_us()
    }

    /// Transactions that began up to then, in microseconds since 1970, are not accepted any more.
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
            // Nobody else has a say.
            return self.commit(proposal, proposed, proposed);
        }
        self.proposed.insert(proposed);
        self.index.hold(id, touches, proposed);
        let proposal = proposal.clone();
        self.undecided.insert(id, Undecided { proposal, proposed });
    }

    /// Whether a preparation counts although its transaction is over: never, but for a mistake.
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

    /// A timestamp above the snapshot, and above all that was proposed, decided or promised here.
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

    /// Remembers how a transaction ended, and forgets what nobody asks about any more: an abort once
    /// the transaction is too old to be prepared; a commit only if, beyond that, all partitions have
    /// delivered it, since until then another participant may be undecided.
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

    /// What the partition has voted; none if it has not. One that was refused, or began too long
    /// ago, is voted against. So it is with one whose end is forgotten: only those may ask to whom
    /// it is undecided, and then it did not commit.
    pub fn vote(&self, id: &TransactionId, begun_us: u64) -> Option<Vote> {
        if let Some(undecided) = self.undecided.get(id) {
            return Some(Vote::Yes(undecided.proposed));
        }
        match self.ended.get(id) {
            Some(ended) => Some(ended.vote),
            None => (begun_us <= self.floor_us()).then_some(Vote::No),
        }
    }

    /// Whether a transaction began so long ago that its end may have been forgotten.
    pub fn is_forgotten(&self, id: &TransactionId, begun_us: u64) -> bool {
        let is_known = self.undecided.contains_key(id) || self.ended.contains_key(id);
        !is_known && begun_us <= self.floor_us()
    }

    /// How a transaction ended, as far as the log says and it is remembered.
    pub fn outcome(&self, id: &TransactionId) -> Option<Decision> {
        self.ended.get(id).map(|ended| ended.decision)
    }

    /// Forgets transactions that all replicas of this partition have delivered, and beyond
    /// `keep_max` the oldest of those that enough have, to bring up the others.
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

    /// Nothing commits at or below this any more: all below the lowest undecided proposal.
    pub fn complete(&self) -> Timestamp {
        let lowest = self.proposed.first().filter(|_| !self.makes(Flaw::DeliveryPastUndecided));
        lowest.map_or(self.last, |lowest| lowest.before())
    }

    /// What is to be delivered to a replica that has all up to `after`, in the order of timestamps.
    /// Nothing that commits later lies below. None if nothing is new.
    ///
    /// # Errors
    ///
    /// [`Dropped`] if that is not kept any more.
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

    /// No proposal from now on is at or below this.
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// Undecided transactions, for whoever finishes those whose coordinator is silent.
    pub fn undecided(&self) -> impl Iterator<Item = &Arc<Proposal>> {
        self.undecided.values().map(|undecided| &undecided.proposal)
    }

    /// What the log says of members.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// How many ends it remembers, and how many touches of transactions that committed.
    pub fn remembered(&self) -> (usize, usize) {
        (self.ended.len(), self.index.len())
    }
}
