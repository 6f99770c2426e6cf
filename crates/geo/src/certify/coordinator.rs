//! The coordinator of one strong transaction, which the session runs.
//!
//! It asks the participants' replicas in its data center to certify, collects their votes and sends
//! them the decision. Nothing depends on it: the participants can finish without it, with the same
//! outcome.

use std::collections::BTreeMap;

use mingle_model::TransactionId;

use super::entry::{Decision, Proposal, Vote, decide};
use super::message::{GroupEnvelope, GroupMessage, Voted};
use crate::message::Address;
use crate::timestamp::{DcId, PartitionId, Timestamp};
use crate::vector::Vector;

/// The result of a transaction's certification, as its coordinator knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certified {
    /// It committed, with this commit vector.
    Committed(Vector),
    /// It is aborted. A retry on a snapshot that covers this may succeed.
    Conflict(Vector),
    /// It is aborted: a replica that found it unfinished has refused it.
    Refused,
    /// It began too long ago: its outcome is no longer known.
    Forgotten,
}

/// The coordinator of one strong transaction.
#[derive(Clone, Debug)]
pub struct Coordinator {
    dc: DcId,
    id: TransactionId,
    begun_us: u64,
    snap_vec: Vector,
    partition_count: u16,
    parts: BTreeMap<PartitionId, Proposal>,
    votes: BTreeMap<PartitionId, Vote>,
    is_forgotten: bool,
}

impl Coordinator {
    /// Creates the coordinator, in data center `dc`, of a transaction with these parts by
    /// partition. There is at least one part, and all have the same uniform snapshot.
    pub fn new(dc: DcId, partition_count: u16, parts: BTreeMap<PartitionId, Proposal>) -> Self {
        let first = parts.values().next();
        let id = first.map(|part| part.id);
        Self {
            dc,
            id: id.unwrap_or(TransactionId { origin: mingle_model::Origin(0), sequence: 0 }),
            begun_us: first.map_or(0, |part| part.begun_us),
            snap_vec: first.map_or(Vector::ZERO, |part| part.snap_vec),
            partition_count,
            parts,
            votes: BTreeMap::new(),
            is_forgotten: false,
        }
    }

    /// Returns the coordinator moved to another data center, since its own may be lost.
    #[must_use]
    pub fn at_data_center(self, dc: DcId) -> Self {
        Self { dc, votes: BTreeMap::new(), ..self }
    }

    /// Sets another snapshot, before any participant was asked.
    pub(crate) fn set_snapshot(&mut self, snap_vec: Vector) {
        self.snap_vec = snap_vec;
        for part in self.parts.values_mut() {
            part.snap_vec = snap_vec;
        }
    }

    fn at(&self, partition: PartitionId, message: GroupMessage) -> GroupEnvelope {
        GroupEnvelope { to: Address::Replica(self.dc, partition), message }
    }

    /// Asks the participants that have not voted; the call may be repeated.
    pub fn ask(&self, out: &mut Vec<GroupEnvelope>) {
        for (partition, part) in &self.parts {
            if !self.votes.contains_key(partition) {
                out.push(self.at(*partition, GroupMessage::Certify(part.clone())));
            }
        }
    }

    /// Takes a vote. Once the outcome is known, returns it and tells the participants.
    pub fn on_voted(&mut self, voted: &Voted, out: &mut Vec<GroupEnvelope>) -> Option<Certified> {
        let vote = voted.vote.filter(|_| voted.id == self.id)?;
        if !self.parts.contains_key(&voted.partition) {
            return None;
        }
        self.is_forgotten |= voted.is_forgotten;
        self.votes.insert(voted.partition, vote);
        let votes = self.parts.keys().map(|partition| self.votes.get(partition).copied());
        let decision = decide(votes)?;
        if self.is_forgotten {
            return Some(Certified::Forgotten);
        }
        let (id, begun_us) = (self.id, self.begun_us);
        if self.parts.len() > 1 {
            for partition in self.parts.keys() {
                let decided = GroupMessage::Decided { id, begun_us, decision };
                out.push(self.at(*partition, decided));
            }
        }
        Some(match decision {
            Decision::Commit(timestamp) => {
                self.advance(timestamp, out);
                Certified::Committed(self.snap_vec.with(DcId::STRONG, timestamp))
            }
            Decision::Abort => self.why(),
        })
    }

    /// Advances the other partitions: nothing becomes visible at `timestamp` before all partitions
    /// of a data center are past it.
    fn advance(&self, timestamp: Timestamp, out: &mut Vec<GroupEnvelope>) {
        for partition in (0..self.partition_count).map(PartitionId) {
            if !self.parts.contains_key(&partition) {
                out.push(self.at(partition, GroupMessage::Advance { to: timestamp }));
            }
        }
    }

    fn why(&self) -> Certified {
        let mut until = Vector::ZERO;
        for vote in self.votes.values() {
            match vote {
                Vote::Conflict(missing) => until.join(missing),
                Vote::No => return Certified::Refused,
                Vote::Yes(_) => {}
            }
        }
        Certified::Conflict(until)
    }
}
