//! Reads of a transaction (1:9-17), in one round for keys of any partitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Call, CallError, Event, Session, SessionOutput, Timer};
use crate::certify::Access;
use crate::error::Refusal;
use crate::flaw::Flaw;
use crate::key::Key;
use crate::message::{Envelope, Message, Read, ReadReply, Snapshot};
use crate::timestamp::{DcId, Now, PartitionId, Timestamp, Version};
use crate::types::{Cause, Op, State, Update};
use crate::vector::Vector;

/// A read under way.
#[derive(Clone, Debug)]
pub struct Reading {
    request: u64,
    keys: Vec<Key>,
    /// `None` while the first partition chooses it.
    snapshot: Option<Vector>,
    /// True if the transaction has read before, so its snapshot is fixed.
    is_bound: bool,
    is_strong: bool,
    /// True if the read was already restarted once without delay, with a newer snapshot.
    is_again: bool,
    found: BTreeMap<Key, Arc<State>>,
    /// Partitions that have not answered, with their keys.
    open: BTreeMap<PartitionId, Vec<Key>>,
    pub(super) timer: Timer,
}

impl Reading {
    /// True if this is the awaited request.
    pub fn awaits(&self, request: u64) -> bool {
        self.request == request
    }
}

impl Session {
    /// Reads keys of any partitions at the running transaction's snapshot, or begins a transaction.
    /// The result is [`Event::Read`] or [`Event::Failed`].
    ///
    /// # Errors
    ///
    /// The reason why the call cannot begin.
    pub fn read(
        &mut self,
        now: Now,
        keys: Vec<Key>,
        out: &mut Vec<SessionOutput>,
    ) -> Result<(), CallError> {
        self.check_idle()?;
        let mut open: BTreeMap<PartitionId, Vec<Key>> = BTreeMap::new();
        for key in &keys {
            let of = open.entry(key.partition(self.config.partition_count)).or_default();
            if !of.contains(key) {
                of.push(key.clone());
            }
        }
        if open.is_empty() {
            out.push(SessionOutput::Event(Event::Read(Vec::new())));
            return Ok(());
        }
        let running = self.run(now);
        if let Some(touched) = &mut running.strong {
            for key in &keys {
                touched.entry(key.clone()).or_insert((Access::Read, None));
            }
        }
        let (bound, is_strong) = (running.snapshot, running.strong.is_some());
        // A single partition chooses the newest snapshot; for several, the snapshot must be known
        // first.
        let several = open.len() > 1;
        let snapshot = bound.or_else(|| self.fresh_snapshot(now, is_strong).filter(|_| several));
        let request = self.next_request();
        let timer = self.timer(now);
        self.call = Call::Reading(Reading {
            request,
            keys,
            snapshot,
            is_bound: bound.is_some(),
            is_strong,
            is_again: false,
            found: BTreeMap::new(),
            open,
            timer,
        });
        self.send_reads(out);
        Ok(())
    }

    /// Returns the time of the running transaction's snapshot, at which it sees items
    /// ([`Item::at`](crate::types::item::Item::at)), in microseconds since 1970; `None` if it has not
    /// read.
    pub fn read_at_us(&self) -> Option<u64> {
        let snapshot = self.running.as_ref()?.snapshot?;
        Some(snapshot[self.config.dc].micros())
    }

    pub(super) fn send_reads(&self, out: &mut Vec<SessionOutput>) {
        let Call::Reading(reading) = &self.call else { return };
        let (snapshot, count) = match reading.snapshot {
            Some(snapshot) => (Snapshot::At(snapshot), reading.open.len()),
            None if reading.is_strong => {
                let mut least = self.past_vec;
                least.join(&self.conflict_vec);
                (Snapshot::UniformAtLeast(least), 1)
            }
            None => (Snapshot::AtLeast(self.past_vec), 1),
        };
        let incarnation = self.config.incarnation;
        for (partition, keys) in reading.open.iter().take(count) {
            let (request, keys) = (reading.request, keys.clone());
            let read = Read { incarnation, request, snapshot, keys };
            let to = self.replica(*partition);
            out.push(SessionOutput::Send(Envelope { to, message: Message::Read(read) }));
        }
    }

    pub(super) fn on_read_reply(
        &mut self,
        partition: PartitionId,
        reply: ReadReply,
        out: &mut Vec<SessionOutput>,
    ) {
        let Call::Reading(reading) = &mut self.call else { return };
        if reading.request != reply.request {
            return;
        }
        let (snapshot, states) = match reply.result {
            Ok(read) => read,
            Err(refusal) => return self.on_read_refused(refusal, out),
        };
        let is_choice = reading.snapshot.is_none();
        if reading.snapshot.is_some_and(|chosen| chosen != snapshot) {
            // This answers a request at the abandoned older snapshot.
            return;
        }
        let Some(keys) = reading.open.remove(&partition) else { return };
        if keys.len() != states.len() {
            return self.give_up(Refusal::TimedOut { on: None }, out);
        }
        reading.snapshot = Some(snapshot);
        reading.found.extend(keys.into_iter().zip(states));
        if !reading.open.is_empty() {
            if is_choice {
                self.send_reads(out);
            }
            return;
        }
        self.finish_read(snapshot, out);
    }

    fn on_read_refused(&mut self, refusal: Refusal, out: &mut Vec<SessionOutput>) {
        let Call::Reading(reading) = &mut self.call else { return };
        if refusal.is_retryable() {
            // The request is repeated until the deadline, since the missing data may be on its way.
            reading.timer.refusal = refusal;
            return;
        }
        let is_too_old = matches!(refusal, Refusal::SnapshotTooOld { .. });
        if !is_too_old || reading.is_bound {
            return self.give_up(refusal, out);
        }
        // Nothing was read yet, so the read restarts with the newest snapshot; without delay only
        // once.
        let request = self.next_request();
        let count = self.config.partition_count;
        let Call::Reading(reading) = &mut self.call else { return };
        reading.request = request;
        reading.snapshot = None;
        reading.found.clear();
        reading.open.clear();
        for key in &reading.keys {
            let of = reading.open.entry(key.partition(count)).or_default();
            if !of.contains(key) {
                of.push(key.clone());
            }
        }
        if std::mem::replace(&mut reading.is_again, true) {
            return;
        }
        self.send_reads(out);
    }

    fn finish_read(&mut self, snapshot: Vector, out: &mut Vec<SessionOutput>) {
        let Call::Reading(reading) = std::mem::replace(&mut self.call, Call::Idle) else { return };
        if !self.config.planted.is(Flaw::ReadNotJoined) {
            self.past_vec.join(&snapshot);
        }
        let dc = self.config.dc;
        let Some(running) = &mut self.running else { return };
        running.snapshot = Some(snapshot);
        let states = reading.keys.iter().filter_map(|key| {
            let state = reading.found.get(key)?;
            Some(overlay(state, key, &running.updates, &snapshot, dc))
        });
        let states = states.collect();
        out.push(SessionOutput::Event(Event::Read(states)));
    }
}

/// Returns a state with the transaction's own writes applied (1:13).
fn overlay(
    state: &Arc<State>,
    key: &Key,
    updates: &[Update],
    snapshot: &Vector,
    dc: DcId,
) -> Arc<State> {
    let mut own: Vec<(usize, Op)> = Vec::new();
    for (index, update) in updates.iter().enumerate().filter(|(_, update)| update.key == *key) {
        for (_, earlier) in &mut own {
            if update.op.takes_back(earlier) {
                *earlier = Op::Nothing;
            }
        }
        own.push((index, update.op.clone()));
    }
    if own.is_empty() {
        return state.clone();
    }
    let mut changed = (**state).clone();
    for (index, op) in own {
        let timestamp = Timestamp(u64::MAX);
        let version = Version { timestamp, origin: dc, index: index as u32 };
        let cause = Cause { version, seen: *snapshot };
        // A write that is taken back does not count as a run of its operation.
        let id = updates[index].id.as_ref().filter(|_| op != Op::Nothing);
        changed.apply_own(&cause, &op, id);
    }
    Arc::new(changed)
}
