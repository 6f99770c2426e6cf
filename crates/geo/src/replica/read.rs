//! Reads (1:18-25), and requests that wait for prepared transactions.

use std::mem;

use mingle_model::TransactionId;

use super::Replica;
use crate::error::{Counted, Refusal};
use crate::flaw::Flaw;
use crate::key::Key;
use crate::limits::{READ_KEYS_MAX, WAITERS_MAX};
use crate::message::{Address, Message, Read, ReadReply, Snapshot};
use crate::timestamp::{DcId, Now, Timestamp};
use crate::vector::Vector;

/// Requests that wait until their snapshots are complete here.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Vec<Waiter>);

#[derive(Clone, Debug)]
struct Waiter {
    from: Address,
    request: Message,
    snapshot: Vector,
    deadline_us: u64,
}

impl Waiting {
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Replica {
    pub(super) fn on_read(&mut self, now: Now, from: Address, mut read: Read) {
        self.counters.reads += 1;
        self.refresh(now);
        let snapshot = self.choose_snapshot(read.snapshot);
        // A waiting read keeps its snapshot.
        read.snapshot = Snapshot::At(snapshot);
        let request = read.request;
        let result = match self.reach(now, &snapshot, &read.keys) {
            Ok(true) => self.states(&snapshot, &read.keys).map(|states| (snapshot, states)),
            Ok(false) => {
                self.counters.reads_waited += 1;
                let Err(refusal) = self.wait(now, from, snapshot, Message::Read(read)) else {
                    return;
                };
                Err(refusal)
            }
            Err(refusal) => Err(refusal),
        };
        let reply = Message::ReadReply(ReadReply { request, result, handout: self.handout() });
        // A commit that is not on disk yet may be lost, so a reader must not see it before.
        let own = snapshot[self.config.dc];
        if self.disk.commits.iter().any(|(_, timestamp)| *timestamp <= own) {
            self.send(from, reply);
        } else {
            self.send_now(from, reply);
        }
    }

    /// Returns the snapshot of a transaction (1:2-7). It must be called after
    /// [`refresh`](Self::refresh).
    pub(super) fn choose_snapshot(&self, snapshot: Snapshot) -> Vector {
        match snapshot {
            Snapshot::At(snapshot) => snapshot,
            Snapshot::UniformAtLeast(past_vec) => {
                let mut snapshot = self.handout().strong_snapshot();
                snapshot.join(&past_vec);
                snapshot.join(&self.pins.folded());
                snapshot
            }
            Snapshot::AtLeast(past_vec) => {
                let mut snapshot = self.handout().causal_snapshot(self.config.dc);
                snapshot.join(&past_vec);
                // The state that a transfer brought is uniform, though not yet known to be stable
                // here.
                snapshot.join(&self.pins.folded());
                snapshot
            }
        }
    }

    fn states(
        &mut self,
        snapshot: &Vector,
        keys: &[Key],
    ) -> Result<Vec<std::sync::Arc<crate::types::State>>, Refusal> {
        let states = keys.iter().map(|key| self.op_log.read(key, snapshot));
        states.collect::<Result<_, _>>().map_err(|oldest| self.too_old(oldest))
    }

    pub(super) fn too_old(&mut self, oldest: Vector) -> Refusal {
        self.counters.too_old += 1;
        Refusal::SnapshotTooOld { oldest }
    }

    /// True if everything in `snapshot` is here; false if it will be once prepared transactions are
    /// decided. Moves the clock, so that nothing commits below the snapshot any more (instead of
    /// the wait of 1:21).
    fn reach(&mut self, now: Now, snapshot: &Vector, keys: &[Key]) -> Result<bool, Refusal> {
        if keys.len() > READ_KEYS_MAX {
            let (found, most) = (keys.len() as u64, READ_KEYS_MAX as u64);
            return Err(Refusal::TooMany { what: Counted::Keys, found, most });
        }
        for key in keys {
            self.check_partition(key)?;
        }
        self.check_snapshot(now, snapshot)?;
        Ok(self.has_reached(now, snapshot) || self.makes(Flaw::ReadDoesNotWait))
    }

    pub(super) fn check_partition(&self, key: &Key) -> Result<(), Refusal> {
        let partition = self.config.partition;
        if key.partition(self.config.partition_count) == partition {
            return Ok(());
        }
        Err(Refusal::WrongPartition { key: key.clone(), partition })
    }

    /// Checks that a snapshot can be served: other data centers' entries must not be above
    /// `known_vec`, and the own entry not too far in the future.
    pub(super) fn check_snapshot(&mut self, now: Now, snapshot: &Vector) -> Result<(), Refusal> {
        if self.makes(Flaw::ClientVectorMerged) {
            let own = self.config.dc;
            self.uniform_vec.join(&snapshot.with(own, Timestamp::ZERO));
            return Ok(());
        }
        let most = self.highest_accepted(now);
        for (dc, want) in snapshot.iter() {
            let have = self.known_vec[dc];
            if dc == self.config.dc {
                if want > most {
                    self.counters.clock_ahead += 1;
                    return Err(Refusal::ClockAhead { timestamp: want, most });
                }
            } else if want > have && dc != DcId::STRONG {
                self.counters.ahead += 1;
                return Err(Refusal::Ahead { dc, have, want });
            }
        }
        Ok(())
    }

    /// Moves the clock to a checked snapshot, and returns true if the snapshot is here.
    pub(super) fn has_reached(&mut self, now: Now, snapshot: &Vector) -> bool {
        let own = self.config.dc;
        if snapshot[own] > self.known_vec[own] {
            self.clock.observe(snapshot[own]);
            self.recompute_known(now);
        }
        self.is_here(snapshot)
    }

    fn is_here(&self, snapshot: &Vector) -> bool {
        let own = self.config.dc;
        // A session's first transactions after its own strong one may arrive before that is
        // delivered here.
        let strong = DcId::STRONG;
        self.known_vec[own] >= snapshot[own] && self.known_vec[strong] >= snapshot[strong]
    }

    pub(super) fn wait(
        &mut self,
        now: Now,
        from: Address,
        snapshot: Vector,
        request: Message,
    ) -> Result<(), Refusal> {
        if self.waiting.0.len() >= WAITERS_MAX {
            return Err(Refusal::Busy);
        }
        let deadline_us = now.mono_us.saturating_add(self.config.wait_ms_max * 1_000);
        self.waiting.0.push(Waiter { from, request, snapshot, deadline_us });
        Ok(())
    }

    /// Continues the requests whose snapshots are here now, and refuses those that waited too long.
    pub(super) fn wake(&mut self, now: Now) {
        if self.waiting.0.is_empty() {
            return;
        }
        self.recompute_known(now);
        for waiter in mem::take(&mut self.waiting.0) {
            if self.is_here(&waiter.snapshot) {
                self.on_message(now, waiter.from, waiter.request);
            } else if waiter.deadline_us <= now.mono_us {
                let on = self.in_the_way_of(waiter.snapshot[self.config.dc]);
                self.refuse_waiter(waiter, Refusal::TimedOut { on });
            } else {
                self.waiting.0.push(waiter);
            }
        }
    }

    /// Takes all waiting requests: reads, commits, prepares, barriers and attaches.
    pub(super) fn take_waiting(&mut self) -> Vec<(Address, Message)> {
        let requests = mem::take(&mut self.waiting.0).into_iter();
        let mut requests: Vec<_> = requests.map(|waiter| (waiter.from, waiter.request)).collect();
        requests.extend(self.take_attaching());
        requests
    }

    fn in_the_way_of(&self, snapshot: Timestamp) -> Option<TransactionId> {
        let prepared = self.prepared_causal.iter();
        prepared.filter(|(_, prepared)| prepared.timestamp <= snapshot).map(|(id, _)| *id).next()
    }

    fn refuse_waiter(&mut self, waiter: Waiter, refusal: Refusal) {
        match waiter.request {
            Message::Read(read) => {
                let (request, handout) = (read.request, self.handout());
                let reply = ReadReply { request, result: Err(refusal), handout };
                self.send(waiter.from, Message::ReadReply(reply));
            }
            Message::CommitOne(commit) => {
                self.refuse_commit_one(waiter.from, commit.id, commit.begun_us, refusal);
            }
            Message::Prepare(prepare) => {
                self.refuse_prepare(waiter.from, prepare.id, prepare.begun_us, refusal);
            }
            _ => {}
        }
    }
}
