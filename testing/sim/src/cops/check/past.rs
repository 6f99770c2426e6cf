//! The causal past of each operation, from the answers to clients.

use std::collections::{BTreeMap, BTreeSet};

use mingle_cops::clock::Timestamp;
use mingle_cops::config::Protocol;

use crate::cops::columns::counter_of;
use crate::cops::record::{Happened, Record};
use crate::workload::promises::Broken;

/// The causal past of operations.
pub(super) struct Past {
    /// The one-hop dependencies of each operation.
    direct: BTreeMap<Timestamp, BTreeSet<Timestamp>>,
    /// The earlier additions of its data center to the same counters, on which a server makes an
    /// addition of Eiger depend.
    chained: BTreeMap<Timestamp, BTreeSet<Timestamp>>,
    /// The one-hop dependencies of an operation that each call would make.
    of_call: Vec<BTreeSet<Timestamp>>,
    /// The operations that write each key.
    writers: BTreeMap<u32, BTreeSet<Timestamp>>,
}

impl Past {
    pub fn new(protocol: Protocol, record: &Record) -> Self {
        let mut past = Self {
            direct: BTreeMap::new(),
            chained: BTreeMap::new(),
            of_call: Vec::new(),
            writers: BTreeMap::new(),
        };
        let mut written: BTreeMap<usize, Vec<Timestamp>> = BTreeMap::new();
        for accepted in &record.accepted {
            written.entry(accepted.call).or_default().push(accepted.ts);
        }
        // The calls of an actor follow each other in the order of the record.
        let mut contexts: BTreeMap<(u8, u32), BTreeSet<Timestamp>> = BTreeMap::new();
        for (index, call) in record.calls.iter().enumerate() {
            let context = contexts.entry((call.dc, call.actor)).or_default();
            past.of_call.push(context.clone());
            context.extend(call.reads.iter().flat_map(|read| &read.versions));
            if let Some(written) = written.get(&index) {
                for ts in written {
                    past.direct.insert(*ts, context.clone());
                }
                *context = written.iter().copied().collect();
            }
        }
        for accepted in &record.accepted {
            for key in record.keys(accepted) {
                past.writers.entry(key).or_default().insert(accepted.ts);
            }
        }
        past.add_chains(record);
        past.add_implicit(protocol, record);
        past
    }

    /// Adds the dependencies that a server adds: on the versions that a write replaces in COPS-CD, and
    /// on all that its data center has applied with logs.
    fn add_implicit(&mut self, protocol: Protocol, record: &Record) {
        let mut applied: BTreeMap<u8, BTreeSet<Timestamp>> = BTreeMap::new();
        for happened in &record.happened {
            match *happened {
                Happened::Accepted(index) => {
                    let accepted = record.accepted[index];
                    let here = applied.entry(record.calls[accepted.call].dc).or_default();
                    let of_keys = record.keys(&accepted).map(|key| &self.writers[&key]);
                    let before: Vec<Timestamp> = match protocol {
                        Protocol::CopsCd => {
                            of_keys.flat_map(|of_key| here.intersection(of_key)).copied().collect()
                        }
                        Protocol::Log => here.iter().copied().collect(),
                        _ => Vec::new(),
                    };
                    self.direct.entry(accepted.ts).or_default().extend(before);
                }
                Happened::Applied(dc, ts) => {
                    applied.entry(dc).or_default().insert(ts);
                }
                Happened::Newest(..) => {}
            }
        }
    }

    /// Adds the chains of a data center's additions to each counter.
    fn add_chains(&mut self, record: &Record) {
        let mut earlier: BTreeMap<(u8, u32), BTreeSet<Timestamp>> = BTreeMap::new();
        for accepted in &record.accepted {
            let dc = record.calls[accepted.call].dc;
            for counter in record.keys(accepted).filter_map(counter_of) {
                let earlier = earlier.entry((dc, counter)).or_default();
                self.chained.entry(accepted.ts).or_default().extend(&*earlier);
                earlier.insert(accepted.ts);
            }
        }
    }

    /// Returns the one-hop dependencies of an operation that a call would make.
    pub fn of_call(&self, index: usize) -> impl Iterator<Item = Timestamp> {
        self.of_call[index].iter().copied()
    }

    /// Returns the one-hop dependencies of an operation.
    pub fn direct(&self, ts: Timestamp) -> impl Iterator<Item = Timestamp> {
        self.direct.get(&ts).into_iter().flatten().copied()
    }

    /// Returns the operations in the past of `from`, which it includes.
    pub fn closure(&self, from: impl IntoIterator<Item = Timestamp>) -> BTreeSet<Timestamp> {
        close(from, |ts| self.direct(ts).collect())
    }

    /// Returns the operations for which a server waits before it applies `from`, as far as the record
    /// tells: the past, and the chains of additions.
    pub fn closure_at_servers(
        &self,
        from: impl IntoIterator<Item = Timestamp>,
    ) -> BTreeSet<Timestamp> {
        let chained = |ts| self.chained.get(&ts).into_iter().flatten().copied();
        close(from, |ts| self.direct(ts).chain(chained(ts)).collect())
    }

    /// Checks that each read returns the last operation of its actor's past, or a newer one.
    pub fn nothing_missing(&self, record: &Record) -> Result<(), Broken> {
        let empty = BTreeSet::new();
        for (index, call) in record.calls.iter().enumerate() {
            let past = self.closure(self.of_call[index].iter().copied());
            for read in &call.reads {
                let writers = self.writers.get(&read.key).unwrap_or(&empty);
                let newest = writers.intersection(&past).max().copied().unwrap_or_default();
                let found = read.versions.iter().max().copied().unwrap_or_default();
                if found < newest {
                    let how = format!(
                        "call {index} of actor {} in data center {} reads {found} of key {}, but \
                         {newest} is in its past",
                        call.actor, call.dc, read.key
                    );
                    return Err(Broken { promise: "reads include the past", how });
                }
            }
        }
        Ok(())
    }
}

fn close(
    from: impl IntoIterator<Item = Timestamp>,
    below: impl Fn(Timestamp) -> Vec<Timestamp>,
) -> BTreeSet<Timestamp> {
    let (mut all, mut open) = (BTreeSet::new(), from.into_iter().collect::<Vec<_>>());
    while let Some(ts) = open.pop() {
        if all.insert(ts) {
            open.extend(below(ts));
        }
    }
    all
}
