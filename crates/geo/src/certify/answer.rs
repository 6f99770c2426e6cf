//! Handling of new log entries: satisfied requests of this replica are removed, and processes that
//! wait for a vote are answered.

use std::collections::BTreeSet;

use mingle_model::TransactionId;

use super::configuration::Base;
use super::entry::{Entry, Vote};
use super::group::{Group, Wanted};
use super::message::{GroupEnvelope, GroupMessage, Voted};
use crate::message::Address;

/// The transactions that new log entries concern, since the last look.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// These transactions.
    ids: BTreeSet<TransactionId>,
    /// True if others may be concerned too: a state replaced entries, or time passed and
    /// transactions became too old.
    is_all: bool,
}

impl Followed {
    /// Makes the next look check everything that is waiting.
    pub fn must_look_at_all(&mut self) {
        self.is_all = true;
    }

    fn note(&mut self, entry: &Entry) {
        match entry {
            Entry::Prepare(proposal) => drop(self.ids.insert(proposal.id)),
            Entry::Refuse { id, .. } | Entry::Decide { id, .. } => drop(self.ids.insert(*id)),
            // No single transaction waits for these.
            Entry::Advance { .. }
            | Entry::Fence { .. }
            | Entry::Frozen { .. }
            | Entry::Admit { .. }
            | Entry::Stop(_) => {}
        }
    }
}

impl Group {
    /// Follows the log up to an index.
    pub(super) fn follow(&mut self, index: usize) {
        if let Some((compacted, state)) = self.consensus.log().state_beyond(self.applied) {
            self.certifier = state;
            self.applied = compacted;
            self.followed.must_look_at_all();
        }
        for entry in self.consensus.log().decided_from(self.applied, index) {
            if self.certifier.is_stopped() {
                break;
            }
            self.certifier.apply(&entry);
            self.followed.note(&entry);
            self.applied += 1;
        }
        if let Some((next, void)) = self.certifier.go_on() {
            // Entries decided beyond the end have no effect.
            self.applied -= void;
            self.decided.clear();
            let (index, certifier) = (self.applied, self.certifier.clone());
            self.consensus.begin(next, Base { index, certifier });
        }
    }

    /// Removes wanted entries that the log has, and answers the processes that wait for votes. It
    /// checks only transactions that new entries concern, since a service that certifies for many
    /// partitions has thousands in progress.
    pub(super) fn answer(&mut self) {
        let Followed { ids, is_all } = std::mem::take(&mut self.followed);
        let wanted: Vec<Wanted> = if is_all {
            self.wanted.keys().copied().collect()
        } else {
            let of_ids = ids.iter().flat_map(|id| {
                let votes = Wanted::Vote(*id, 0)..=Wanted::Vote(*id, u64::MAX);
                let outcomes = Wanted::Outcome(*id, 0)..=Wanted::Outcome(*id, u64::MAX);
                self.wanted.range(votes).chain(self.wanted.range(outcomes))
            });
            of_ids.map(|(wanted, _)| *wanted).chain([Wanted::Advance]).collect()
        };
        for wanted in wanted {
            let has = |(entry, _): &(Entry, u64)| self.has(wanted, entry);
            if self.wanted.get(&wanted).is_some_and(has) {
                self.wanted.remove(&wanted);
            }
        }
        let asked: Vec<TransactionId> =
            if is_all { self.asked.keys().copied().collect() } else { ids.into_iter().collect() };
        for id in asked {
            let Some((begun_us, _)) = self.asked.get(&id) else { continue };
            if self.certifier.vote(&id, *begun_us).is_none() {
                continue;
            }
            let Some((begun_us, waiting)) = self.asked.remove(&id) else { continue };
            for to in waiting {
                self.say_vote(to, id, begun_us);
            }
        }
    }

    pub(super) fn say_vote(&mut self, to: Address, id: TransactionId, begun_us: u64) {
        let voted = Voted {
            id,
            partition: self.config.certifier.partition,
            vote: self.certifier.vote(&id, begun_us),
            decision: self.certifier.outcome(&id),
            is_forgotten: self.certifier.is_forgotten(&id, begun_us),
        };
        self.then.push(GroupEnvelope { to, message: GroupMessage::Voted(voted) });
    }

    /// Makes a planted mistake: sends a vote that is not in the log.
    pub(super) fn say(&mut self, to: Address, id: TransactionId, vote: Option<Vote>) {
        let partition = self.config.certifier.partition;
        let voted = Voted { id, partition, vote, decision: None, is_forgotten: false };
        self.sends.push(GroupEnvelope { to, message: GroupMessage::Voted(voted) });
    }
}
