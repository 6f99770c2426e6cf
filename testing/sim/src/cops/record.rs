//! The record of a run: the calls with their answers, and the order in which operations were applied.

use std::collections::BTreeMap;

use mingle_cops::clock::{NodeId, Timestamp};
use mingle_cops::message::{ClientId, Event, Requested};

use super::columns;
use super::trace::Trace;

/// A key that a call read.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub key: u32,
    /// The timestamps of the versions in the answer; none if the key was never written.
    pub versions: Vec<Timestamp>,
    /// The values in the answer.
    pub values: Vec<u64>,
}

/// A key that a call writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub key: u32,
    /// The value; none if the call deletes the key.
    pub value: Option<u64>,
}

/// A counter that a call read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    /// The key of the counter.
    pub counter: u32,
    pub sum: i64,
}

/// A call of an actor.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub dc: u8,
    pub actor: u32,
    pub begin_us: u64,
    /// The time of the answer, if there was one.
    pub end_us: Option<u64>,
    pub reads: Vec<Read>,
    /// The counters that it read, before they are reads of additions.
    pub sums: Vec<Sum>,
    /// The keys that it writes: all in one operation, or those of each row in one.
    pub writes: Vec<Write>,
    /// True if each row has an operation of its own.
    pub is_divided: bool,
    /// The rounds of messages that it took.
    pub rounds: u32,
}

/// An operation that a server accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    /// The index of its call.
    pub call: usize,
    /// The row by which its server was chosen.
    pub row: u32,
    pub ts: Timestamp,
}

/// The order of events at data centers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happened {
    /// A data center accepts a write, whose index is given.
    Accepted(usize),
    /// A data center applies an operation.
    Applied(u8, Timestamp),
    /// The newest version of a key at a server.
    Newest(NodeId, u32, Timestamp),
}

/// The content of a key at a data center in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub values: Vec<u64>,
    pub versions: Vec<Timestamp>,
}

/// A run.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub calls: Vec<Call>,
    pub accepted: Vec<Accepted>,
    pub happened: Vec<Happened>,
    pub covered: BTreeMap<&'static str, u64>,
    /// The contents of the surviving data centers in the end.
    pub contents: BTreeMap<(u8, u32), Content>,
    /// The counters of the surviving data centers in the end.
    pub sums: Vec<(u8, Sum)>,
    /// The messages of reads.
    pub trace: Trace,
    /// The data centers that were lost.
    pub lost: Vec<u8>,
    by_request: BTreeMap<(u8, u64), usize>,
}

impl Record {
    /// Begins a call.
    pub fn begin(&mut self, client: ClientId, request: u64, call: Call) {
        self.by_request.insert((client.dc, request), self.calls.len());
        self.calls.push(call);
    }

    /// Returns the call of a request.
    pub fn call(&mut self, client: ClientId, request: u64) -> Option<&mut Call> {
        let index = self.by_request.get(&(client.dc, request))?;
        self.calls.get_mut(*index)
    }

    /// Returns the keys and values that an operation writes.
    pub fn written(&self, accepted: &Accepted) -> impl Iterator<Item = &Write> {
        let (call, row) = (&self.calls[accepted.call], accepted.row);
        call.writes.iter().filter(move |write| !call.is_divided || columns::row(write.key) == row)
    }

    /// Returns the keys that an operation writes.
    pub fn keys(&self, accepted: &Accepted) -> impl Iterator<Item = u32> {
        self.written(accepted).map(|write| write.key)
    }

    /// Takes an event.
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Accepted { by: Requested { client, request }, dep } => {
                if let Some(call) = self.by_request.get(&(client.dc, request)) {
                    self.happened.push(Happened::Accepted(self.accepted.len()));
                    self.accepted.push(Accepted { call: *call, row: dep.key, ts: dep.ts });
                }
            }
            Event::Applied { node, dep } => {
                self.happened.push(Happened::Applied(node.dc(), dep.ts));
            }
            Event::Newest { node, key, ts } => {
                self.happened.push(Happened::Newest(node, key, ts));
            }
            Event::NewestAt { node, location, ts } => {
                self.happened.push(Happened::Newest(node, columns::key(location), ts));
            }
            Event::Reached(point) => self.reached(point.name()),
        }
    }

    /// Counts a path that was taken.
    pub fn reached(&mut self, name: &'static str) {
        *self.covered.entry(name).or_default() += 1;
    }
}
