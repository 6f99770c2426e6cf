//! Prepared transactions whose coordinator is silent.
//!
//! A waiting participant asks the others. If all are prepared, the transaction commits at the
//! highest timestamp; a live coordinator reaches the same decision. A participant that never saw it
//! first writes a refusal to disk, so that a later prepare finds the refusal; then all participants
//! abort. A participant that has decided answers with the outcome, and with the commit vector if
//! there is one.
//!
//! Stale entries are never just dropped. Outcomes are remembered until no participant can ask for
//! them. A refusal is kept until the persisted floor on the age of transactions replaces it. A
//! commit is kept until `stable_vec[d]` has reached it, which is impossible while a participant is
//! prepared below it.

use mingle_model::TransactionId;

use super::Replica;
use crate::flaw::Flaw;
use crate::message::{Address, Message, Status, StatusQuery, StatusReply};
use crate::timestamp::Now;
use crate::tx::Outcome;

impl Replica {
    /// Asks the other participants about transactions that have been prepared for long.
    pub(super) fn resolve_stale(&mut self, now: Now) {
        if self.makes(Flaw::StaleDropped) {
            return self.drop_stale(now);
        }
        let again_us = now.mono_us.saturating_add(self.config.resolve_after_ms * 1_000);
        let own = self.config.partition;
        let mut queries = Vec::new();
        let mut alone = Vec::new();
        for (id, prepared) in &mut self.prepared_causal {
            if prepared.resolve_at_us > now.mono_us {
                continue;
            }
            prepared.resolve_at_us = again_us;
            if prepared.participants.iter().all(|partition| *partition == own) {
                alone.push(*id);
            }
            for partition in prepared.participants.iter().filter(|partition| **partition != own) {
                queries.push((*partition, StatusQuery { id: *id, begun_us: prepared.begun_us }));
            }
        }
        for (partition, query) in queries {
            self.send_now(self.peer(partition), Message::StatusQuery(query));
        }
        for id in alone {
            self.commit_if_all_prepared(now, id);
        }
    }

    pub(super) fn on_status_query(&mut self, from: Address, query: StatusQuery) {
        let status = if let Some(outcome) = self.outcomes.get(&query.id) {
            Status::Decided(outcome)
        } else if let Some(prepared) = self.prepared_causal.get(&query.id) {
            Status::Prepared(prepared.timestamp)
        } else {
            let must_forget = self.makes(Flaw::LatePrepare);
            if !must_forget && !self.outcomes.is_past(&query.id, query.begun_us) {
                self.record_refusal(query.id, query.begun_us);
            }
            Status::Decided(Outcome::Aborted)
        };
        let reply = StatusReply { id: query.id, partition: self.config.partition, status };
        self.send(from, Message::StatusReply(reply));
    }

    pub(super) fn on_status_reply(&mut self, now: Now, reply: StatusReply) {
        let Some(prepared) = self.prepared_causal.get_mut(&reply.id) else { return };
        if !prepared.participants.contains(&reply.partition) {
            return;
        }
        match reply.status {
            Status::Decided(outcome) => {
                self.counters.resolved += 1;
                self.decide(now, reply.id, outcome);
            }
            Status::Prepared(timestamp) => {
                prepared.proposals.insert(reply.partition, timestamp);
                self.commit_if_all_prepared(now, reply.id);
            }
        }
    }

    fn commit_if_all_prepared(&mut self, now: Now, id: TransactionId) {
        let own = self.config.partition;
        let Some(prepared) = self.prepared_causal.get(&id) else { return };
        let mut others = prepared.participants.iter().filter(|partition| **partition != own);
        if !others.all(|partition| prepared.proposals.contains_key(partition)) {
            return;
        }
        let highest = prepared.proposals.values().copied().max().unwrap_or_default();
        let timestamp = highest.max(prepared.timestamp);
        let commit_vec = prepared.snap_vec.with(self.config.dc, timestamp);
        self.counters.resolved += 1;
        self.decide(now, id, Outcome::Committed(commit_vec));
    }

    /// Makes the planted mistake [`Flaw::StaleDropped`].
    fn drop_stale(&mut self, now: Now) {
        let prepared = self.prepared_causal.iter();
        let stale = prepared.filter(|(_, prepared)| prepared.resolve_at_us <= now.mono_us);
        let stale: Vec<TransactionId> = stale.map(|(id, _)| *id).collect();
        for id in stale {
            self.decide(now, id, Outcome::Aborted);
        }
    }
}
