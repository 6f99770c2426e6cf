//! Strong transactions whose coordinator is silent.
//!
//! The leader of a participant that has voted for a transaction asks the other participants, at
//! their replicas in its data center, for their votes. A participant without a vote first refuses
//! the transaction. With all votes the leader knows the decision, as the coordinator would. Each
//! participant's leader does this for itself.

use std::collections::BTreeMap;

use mingle_model::TransactionId;

use super::entry::{Vote, decide};
use super::group::Group;
use super::message::{GroupMessage, Voted};
use crate::flaw::Flaw;
use crate::timestamp::{Now, PartitionId};

/// An undecided transaction, with the known votes of the other participants.
#[derive(Clone, Debug)]
pub struct Resolving {
    /// The time at which the others are asked, or asked again.
    at_us: u64,
    votes: BTreeMap<PartitionId, Vote>,
}

impl Group {
    /// Asks the other participants about transactions that have been undecided for long.
    pub(super) fn resolve(&mut self, now: Now) {
        let after_us = self.config.resolve_after_ms * 1_000;
        let is_leader = self.is_leader() && !self.makes(Flaw::UndecidedLeft);
        let own = self.config.certifier.partition;
        let mut queries = Vec::new();
        let mut resolving = std::mem::take(&mut self.resolving);
        for proposal in self.certifier.undecided() {
            let at_us = now.mono_us.saturating_add(after_us);
            let known = resolving.remove(&proposal.id);
            let mut known = known.unwrap_or(Resolving { at_us, votes: BTreeMap::new() });
            if known.at_us <= now.mono_us && is_leader {
                known.at_us = at_us;
                let (id, begun_us) = (proposal.id, proposal.begun_us);
                let others = proposal.participants.iter().filter(|partition| **partition != own);
                queries.extend(others.map(|partition| (*partition, id, begun_us)));
            }
            self.resolving.insert(proposal.id, known);
        }
        for (partition, id, begun_us) in queries {
            self.send(partition, GroupMessage::Query { id, begun_us, must_refuse: true });
        }
    }

    pub(super) fn on_voted(&mut self, now: Now, voted: &Voted) {
        let Some(vote) = voted.vote else { return };
        let id: TransactionId = voted.id;
        let Some(resolving) = self.resolving.get_mut(&id) else { return };
        resolving.votes.insert(voted.partition, vote);
        let Some(proposal) = self.certifier.undecided().find(|proposal| proposal.id == id) else {
            return;
        };
        let own = self.config.certifier.partition;
        let votes = proposal.participants.iter().map(|partition| {
            if *partition == own {
                self.certifier.vote(&id, proposal.begun_us)
            } else {
                resolving.votes.get(partition).copied()
            }
        });
        if let Some(decision) = decide(votes) {
            let begun_us = proposal.begun_us;
            self.want_decided(now, id, begun_us, decision);
        }
    }
}
