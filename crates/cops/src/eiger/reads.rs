//! Slices, now or at an effective time (thesis §5.3 and §5.4.4).

use std::collections::BTreeSet;

use super::server::State;
use crate::clock::Timestamp;
use crate::column::{Cell, Column, Content, Location, Predicate, Slice};
use crate::config::Protocol;
use crate::flaw::Flaw;
use crate::message::{Address, Message, Point, RequestId, Requested};
use crate::net::Net;

/// A slice at an effective time that waits for coordinators.
#[derive(Debug)]
pub(super) struct Reading {
    from: Address,
    request: (RequestId, usize),
    slice: Slice,
    at: u64,
    /// The transactions whose coordinators have not answered.
    open: BTreeSet<Requested>,
    /// The time at which the coordinators were asked, in microseconds.
    sent_us: u64,
}

impl State {
    /// Answers a slice, or asks the coordinators of pending transactions first.
    pub(super) fn on_slice(
        &mut self,
        net: &mut Net,
        from: Address,
        request: (RequestId, usize),
        slice: Slice,
        at: Option<u64>,
    ) {
        let Some(at) = at else {
            let now = net.clock.now();
            let is_pending = !self.pending(net, &slice, u64::MAX).is_empty();
            let (cells, evt) = self.cells(net, &slice, now);
            let mut cells = if is_pending { Vec::new() } else { cells };
            if net.config.protocol == Protocol::EventualColumns {
                // There is no second round, which needs an interval, and no context.
                for cell in &mut cells {
                    cell.deps.clear();
                }
                answer(net, from, request, (cells, 0, 0, false));
                return;
            }
            answer(net, from, request, (cells, evt, now, is_pending));
            return;
        };
        // A later write has a later time.
        net.clock.witness(at);
        let mut open = self.pending(net, &slice, at);
        // The set is empty unless the fault is planted.
        open.retain(|id| !self.not_yet.contains(id));
        for id in &open {
            net.reached(Point::Indirection);
            self.check_commit(net, *id, at);
        }
        let sent_us = net.now_us;
        self.readings.push(Reading { from, request, slice, at, open, sent_us });
        self.finish(net);
    }

    /// Asks the coordinator of a transaction. Outside of the link: the answer need not wait for a commit
    /// that a broken connection lost.
    fn check_commit(&self, net: &mut Net, id: Requested, at: u64) {
        if net.config.has(Flaw::ReadWaits) {
            return;
        }
        if let Some(transaction) = self.transactions.get(&id) {
            let to = Address::Server(net.local(transaction.coordinator_key()));
            net.plain(to, Message::CommitCheck { transaction: id, at });
        }
    }

    /// Asks coordinators again that have not answered after `retry_us`.
    pub(super) fn check_again(&mut self, net: &mut Net) {
        let due_us = net.now_us.saturating_sub(net.config.retry_us);
        let mut again = Vec::new();
        for reading in self.readings.iter_mut().filter(|reading| reading.sent_us <= due_us) {
            reading.sent_us = net.now_us;
            // The commit may have arrived in the meantime.
            reading.open.retain(|id| self.transactions.contains_key(id));
            again.extend(reading.open.iter().map(|id| (*id, reading.at)));
        }
        for (id, at) in again {
            self.check_commit(net, id, at);
        }
        self.finish(net);
    }

    /// Returns the transactions of other coordinators that may be committed by `at` in a slice.
    fn pending(&self, net: &Net, slice: &Slice, at: u64) -> BTreeSet<Requested> {
        if net.config.has(Flaw::PendingIgnored) {
            return BTreeSet::new();
        }
        let all = self.transactions.iter().filter(|(_, one)| {
            net.local(one.coordinator_key()) != net.id
                && one.prepared.is_some_and(|prepared| prepared <= at)
                && one.pending().any(|mutation| slice.has(mutation.location))
        });
        all.map(|(id, _)| *id).collect()
    }

    /// Takes a coordinator's answer. A committed transaction is applied here at once.
    pub(super) fn on_checked(
        &mut self,
        net: &mut Net,
        id: Requested,
        at: u64,
        committed: Option<(Timestamp, u64)>,
    ) {
        match committed {
            Some(outcome) => self.on_commit(net, id, outcome),
            None if net.config.has(Flaw::NotYetReused) => {
                self.not_yet.insert(id);
            }
            None => {}
        }
        for reading in self.readings.iter_mut().filter(|reading| reading.at == at) {
            reading.open.remove(&id);
        }
        self.finish(net);
    }

    /// Answers the slices that wait for no coordinator.
    fn finish(&mut self, net: &mut Net) {
        let is_due = |reading: &mut Reading| reading.open.is_empty();
        let due: Vec<Reading> = self.readings.extract_if(.., is_due).collect();
        for Reading { from, request, slice, at, .. } in due {
            let (cells, evt) = self.cells(net, &slice, at);
            answer(net, from, request, (cells, evt, at, false));
        }
    }

    /// Returns the columns of a slice at a logical time, deleted ones too, and the time from which on
    /// the slice has been so: absent columns have been absent since 0.
    fn cells(&self, net: &mut Net, slice: &Slice, at: u64) -> (Vec<Cell>, u64) {
        let cell = |location: &Location| self.chains.get(location)?.at(location.column, at);
        let locations = match &slice.predicate {
            Predicate::Names(names) => names.iter().map(|name| slice.at(*name)).collect(),
            Predicate::Range { start, stop, .. } => self.between(slice, (*start, *stop)),
        };
        let mut left = match slice.predicate {
            Predicate::Names(_) => usize::MAX,
            Predicate::Range { count, .. } => count,
        };
        let mut found: Vec<(Cell, u64)> = Vec::new();
        for location in &locations {
            if left == 0 {
                break;
            }
            match cell(location) {
                Some(cell) => {
                    left -= usize::from(cell.0.content != Content::Deleted);
                    found.push(cell);
                }
                None => net.reached(Point::ColumnAbsent),
            }
        }
        if locations.is_empty() {
            net.reached(Point::ColumnAbsent);
        }
        let evt = found.iter().map(|(_, evt)| *evt).max().unwrap_or_default();
        (found.into_iter().map(|(cell, _)| cell).collect(), evt)
    }

    /// Returns the locations of a slice's range that were ever written here.
    fn between(&self, slice: &Slice, (start, stop): (Column, Column)) -> Vec<Location> {
        // An empty range is no slice of the map, which would panic.
        if start > stop {
            return Vec::new();
        }
        let written = self.chains.range(slice.at(start)..=slice.at(stop));
        written.map(|(location, _)| *location).collect()
    }
}

fn answer(
    net: &mut Net,
    to: Address,
    (request, part): (RequestId, usize),
    (cells, evt, lvt, is_pending): (Vec<Cell>, u64, u64, bool),
) {
    net.plain(to, Message::SliceResult { request, part, cells, evt, lvt, is_pending });
}
