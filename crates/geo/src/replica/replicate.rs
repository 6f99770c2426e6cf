//! Replication between siblings (2:1-18).
//!
//! Each message names the interval of its origin's timestamps that it covers, and contains all of
//! the origin's transactions in the interval; an empty one is a heartbeat. A receiver that lacks
//! transactions below the interval asks for them. So a heartbeat that overtakes transactions does
//! not advance the receiver past them. A lost message is noticed with the next one. No two
//! transactions of an origin have the same timestamp, so none is taken for another.

use super::Replica;
use crate::flaw::Flaw;
use crate::limits::BATCHES_PER_TICK_MAX;
use crate::message::{Ask, Behind, Message, Replicate};
use crate::record::{Alarm, Interval, Record};
use crate::timestamp::{DcId, Now, Timestamp};
use crate::tx::Transaction;

impl Replica {
    /// PROPAGATE_LOCAL_TXS (2:1-8). Transactions above `known_vec[d]` wait, since one with a lower
    /// timestamp may still commit.
    pub(super) fn replicate_local(&mut self, now: Now) {
        let own = self.config.dc;
        self.recompute_known(now);
        for dc in self.others_in() {
            let mut from = self.sent[usize::from(dc.0)];
            for _ in 0..BATCHES_PER_TICK_MAX {
                let to = self.send_range(dc, own, from);
                if to <= from {
                    break;
                }
                from = to;
            }
            self.sent[usize::from(dc.0)] = from;
        }
    }

    /// Sends one batch of `origin`'s transactions above `from` to data center `to`, and returns the
    /// end of the batch.
    pub(super) fn send_range(&mut self, to: DcId, origin: DcId, from: Timestamp) -> Timestamp {
        let committed = &self.committed_causal[usize::from(origin.0)];
        let (dc, cut) = (self.config.dc, committed.cut());
        if from < cut {
            if self.global_matrix[usize::from(to.0)][origin] >= cut {
                // The receiver has them: `from` is this replica's outdated value.
                return cut;
            }
            let epoch = self.members.epoch();
            self.send(self.sibling(to), Message::Behind(Behind { epoch, dc, origin, cut }));
            return from;
        }
        let (transactions, end) = committed.batch(from, self.known_vec[origin]);
        if end > from {
            let floors = committed.floors(from, end);
            let epoch = self.members.epoch();
            let (sender, to_dc, to) = (dc, to, end);
            let message = Replicate { epoch, sender, origin, from, to, transactions, floors };
            self.send(self.sibling(to_dc), Message::Replicate(message));
        }
        end
    }

    /// REPLICATE (2:9-15) and HEARTBEAT (2:16-18).
    pub(super) fn on_replicate(&mut self, now: Now, replicate: Replicate) {
        let Replicate { sender, origin, from: start, to: end, .. } = replicate;
        if !self.is_sound(&replicate) {
            return self.alarm(Alarm::Malformed("an interval of transactions"));
        }
        if self.is_own(origin) {
            return;
        }
        if self.is_cut_off(origin, end) && !self.makes(Flaw::FencedAccepted) {
            return;
        }
        let known = self.known_vec[origin];
        let is_believed = replicate.transactions.is_empty() && self.makes(Flaw::HeartbeatOverGap);
        if start > known && !is_believed {
            self.counters.gaps += 1;
            return self.ask(now, sender, origin);
        }
        if end > self.highest_accepted(now) {
            self.counters.clock_ahead += 1;
            // It is refused for now. It will be sent again, since this replica lags behind the
            // sender.
            return self.alarm(Alarm::ClockAhead { dc: origin, timestamp: end });
        }
        let new = replicate.transactions.into_iter();
        let new: Vec<_> = new.filter(|transaction| transaction.timestamp() > known).collect();
        for transaction in &new {
            self.apply(transaction);
        }
        if end > known {
            self.known_vec[origin] = end;
            let floors = replicate.floors;
            for raised in &floors {
                self.note_floor(origin, *raised);
            }
            if !new.is_empty() || !floors.is_empty() {
                let interval = Interval { origin, to: end, transactions: new, floors };
                self.write(Record::Replicated(interval));
            }
        }
    }

    fn is_sound(&self, replicate: &Replicate) -> bool {
        let transactions = &replicate.transactions;
        let mut above = replicate.from;
        replicate.origin.0 < self.config.dc_count
            && replicate.from <= replicate.to
            && transactions.iter().all(|transaction| {
                let timestamp = transaction.timestamp();
                let is_next = timestamp > above && timestamp <= replicate.to;
                above = timestamp;
                is_next && transaction.origin == replicate.origin && self.fits_here(transaction)
            })
    }

    /// True if this partition can hold the transaction.
    pub(super) fn fits_here(&self, transaction: &Transaction) -> bool {
        let origin = transaction.origin;
        let mut updates = transaction.updates.iter();
        (origin.0 < self.config.dc_count || origin == DcId::STRONG)
            && updates.all(|update| {
                update.op.fits(update.key.kind) && self.check_partition(&update.key).is_ok()
            })
    }

    /// Asks for the missing transactions of an origin, at most once per tick.
    pub(super) fn ask(&mut self, now: Now, sibling: DcId, origin: DcId) {
        let asked_us = &mut self.asked_us[usize::from(origin.0)];
        let pause_us = self.config.tick_ms * 1_000;
        if *asked_us != 0 && now.mono_us < asked_us.saturating_add(pause_us) {
            return;
        }
        *asked_us = now.mono_us.max(1);
        let (dc, known, epoch) = (self.config.dc, self.known_vec[origin], self.members.epoch());
        self.send_now(self.sibling(sibling), Message::Ask(Ask { epoch, dc, origin, known }));
    }

    pub(super) fn on_ask(&mut self, now: Now, ask: Ask) {
        let is_known = ask.origin.0 < self.config.dc_count && ask.dc.0 < self.config.dc_count;
        if !is_known || ask.dc == self.config.dc {
            return self.alarm(Alarm::Malformed("an ask of no known data center"));
        }
        self.recompute_known(now);
        let mut from = ask.known;
        for _ in 0..BATCHES_PER_TICK_MAX {
            let to = self.send_range(ask.dc, ask.origin, from);
            if to <= from {
                break;
            }
            from = to;
        }
        if self.is_own(ask.origin) {
            self.sent[usize::from(ask.dc.0)] = from;
        }
    }
}
