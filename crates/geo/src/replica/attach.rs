//! Barriers (1:49-50), and sessions that attach here (1:51-52).

use std::mem;

use super::Replica;
use crate::error::Refusal;
use crate::flaw::Flaw;
use crate::limits::WAITERS_MAX;
use crate::message::{
    Address, Attach, AttachReply, Attached, Barrier, BarrierReply, Message, Missing,
};
use crate::timestamp::{DcId, Now};
use crate::vector::Vector;

/// Barriers and attaches that wait for uniformity.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    waiters: Vec<Waiter>,
    /// Attaches of sessions that know a later epoch than this replica, with that epoch.
    unheard: Vec<(u32, Waiter)>,
}

#[derive(Clone, Debug)]
struct Waiter {
    from: Address,
    request: u64,
    past_vec: Vector,
    /// The epoch of `past_vec`.
    epoch: u32,
    is_barrier: bool,
    deadline_us: u64,
}

impl Waiting {
    pub fn count(&self) -> usize {
        self.waiters.len() + self.unheard.len()
    }
}

impl Replica {
    /// UNIFORM_BARRIER (1:49-50): replies once all of the session's past survives `f` losses.
    pub(super) fn on_barrier(&mut self, now: Now, from: Address, barrier: Barrier) {
        let (epoch, deadline_us) = (self.members.epoch(), self.wait_until_us(now));
        let Barrier { request, past_vec, .. } = barrier;
        let waiter = Waiter { from, request, past_vec, epoch, is_barrier: true, deadline_us };
        self.wait_for_past(now, waiter);
    }

    /// ATTACH (1:51-52): replies at once with the missing parts, and once more when the wait is
    /// over.
    pub(super) fn on_attach(&mut self, now: Now, from: Address, attach: Attach) {
        let Attach { request, past_vec, epoch, newest } = attach;
        let deadline_us = self.wait_until_us(now);
        let waiter = Waiter { from, request, past_vec, epoch, is_barrier: false, deadline_us };
        if newest <= self.members.epoch() {
            return self.wait_for_past(now, waiter);
        }
        // This replica cannot interpret the vector yet. Its own data center may even have been
        // given up without its knowledge.
        self.attaching.unheard.retain(|(_, it)| (it.from, it.request) != (from, request));
        if self.attaching.count() >= WAITERS_MAX {
            return self.answer(&waiter, Err(Refusal::Busy));
        }
        self.attaching.unheard.push((newest, waiter));
    }

    /// Continues the attaches that waited for an epoch that has begun.
    pub(super) fn hear_attaching(&mut self, now: Now) {
        let epoch = self.members.epoch();
        let heard = self.attaching.unheard.extract_if(.., |(newest, _)| *newest <= epoch);
        for (_, waiter) in heard.collect::<Vec<_>>() {
            self.wait_for_past(now, waiter);
        }
    }

    fn wait_until_us(&self, now: Now) -> u64 {
        now.mono_us.saturating_add(self.config.wait_ms_max * 1_000)
    }

    fn wait_for_past(&mut self, now: Now, waiter: Waiter) {
        self.refresh(now);
        let (past_vec, is_barrier) = (waiter.past_vec, waiter.is_barrier);
        if let Err(refusal) = self.check_past(now, &past_vec) {
            return self.answer(&waiter, Err(refusal));
        }
        let missing = self.missing(&waiter);
        if is_settled(&missing) {
            return self.answer(&waiter, Ok(missing));
        }
        if self.attaching.count() >= WAITERS_MAX {
            return self.answer(&waiter, Err(Refusal::Busy));
        }
        if !is_barrier {
            self.answer(&waiter, Ok(missing));
        }
        self.counters.past_waited += 1;
        // The clock of an idle partition would otherwise advance only later.
        let own = self.config.dc;
        self.clock.observe(past_vec[own]);
        self.attaching.waiters.push(waiter);
    }

    /// Refuses a past that no data center of this system can have, or not yet.
    fn check_past(&mut self, now: Now, past_vec: &Vector) -> Result<(), Refusal> {
        let most = self.highest_accepted(now);
        for (dc, want) in past_vec.iter() {
            if dc.0 >= self.config.dc_count && dc != DcId::STRONG && want > self.known_vec[dc] {
                return Err(Refusal::Ahead { dc, have: self.known_vec[dc], want });
            }
            if want > most {
                self.counters.clock_ahead += 1;
                return Err(Refusal::ClockAhead { timestamp: want, most });
            }
        }
        Ok(())
    }

    /// Returns the parts of a past that are not here or not uniform. An attach does not require
    /// uniformity of this data center's own transactions, since they are here.
    fn missing(&self, waiter: &Waiter) -> Vec<Missing> {
        let Waiter { past_vec, epoch, is_barrier, .. } = *waiter;
        let others = self.config.others();
        let ignored = others.last().filter(|_| !is_barrier && self.makes(Flaw::AttachIgnoresEntry));
        let entries = past_vec.iter().filter(|(dc, _)| Some(*dc) != ignored);
        let missing = entries.filter_map(|(dc, want)| {
            let have = if dc == DcId::STRONG || dc == self.config.dc && !is_barrier {
                self.stable_vec[dc]
            } else {
                self.uniform_vec[dc]
            };
            let mut cuts = self.members.cuts_after(epoch);
            if let Some(cut) = cuts.find(|cut| cut.dc == dc && want > cut.at) {
                // Any later transactions of that data center belong to another incarnation. The
                // remaining transactions up to the cut may still have to arrive.
                let have = have.min(cut.at);
                return Some(Missing { dc, have, want, is_lost: have == cut.at });
            }
            (want > have).then_some(Missing { dc, have, want, is_lost: false })
        });
        missing.collect()
    }

    pub(super) fn wake_attaching(&mut self, now: Now) {
        // The client has repeated the request, or has given up.
        self.attaching.unheard.retain(|(_, waiter)| waiter.deadline_us > now.mono_us);
        if self.attaching.waiters.is_empty() {
            return;
        }
        for waiter in mem::take(&mut self.attaching.waiters) {
            let missing = self.missing(&waiter);
            if is_settled(&missing) {
                self.answer(&waiter, Ok(missing));
            } else if waiter.deadline_us <= now.mono_us {
                self.answer(&waiter, Err(Refusal::TimedOut { on: None }));
            } else {
                self.attaching.waiters.push(waiter);
            }
        }
    }

    /// Takes all waiting requests out of this replica.
    pub(super) fn take_attaching(&mut self) -> impl Iterator<Item = (Address, Message)> + use<> {
        let incarnation = self.config.incarnation;
        let Waiting { waiters, unheard } = mem::take(&mut self.attaching);
        // A waiter whose past is awaited knows no later epoch than its vector's.
        let waiters = waiters.into_iter().map(|waiter| (waiter.epoch, waiter));
        waiters.chain(unheard).map(move |(newest, waiter)| {
            let Waiter { from, request, past_vec, epoch, is_barrier, .. } = waiter;
            let message = if is_barrier {
                Message::Barrier(Barrier { incarnation, request, past_vec })
            } else {
                Message::Attach(Attach { request, past_vec, epoch, newest })
            };
            (from, message)
        })
    }

    fn answer(&mut self, waiter: &Waiter, result: Result<Vec<Missing>, Refusal>) {
        let (request, handout) = (waiter.request, self.handout());
        let incarnation = self.config.incarnation;
        let message = if waiter.is_barrier {
            Message::BarrierReply(BarrierReply { request, result: result.map(|_| ()), handout })
        } else {
            let result = result.map(|missing| {
                if missing.is_empty() { Attached::Resumed } else { Attached::Waiting(missing) }
            });
            Message::AttachReply(AttachReply { incarnation, request, result, handout })
        };
        self.send(waiter.from, message);
    }
}

/// True if waiting is pointless: every missing part is lost.
fn is_settled(missing: &[Missing]) -> bool {
    missing.iter().all(|missing| missing.is_lost)
}
