//! Dependency checks: `dep_check` waits at the server of a key until an operation is applied (§4.4).
//!
//! A server must know of each operation whether it is applied, not only of the newest of a key: the
//! newest may be concurrent with the dependency, and have other dependencies. Timestamps of one
//! server arrive in order, so two things suffice for each server that accepts operations: the highest
//! timestamp that has arrived, and those below it that still wait.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::{NodeId, Timestamp};
use crate::deps::Dep;
use crate::flaw::Flaw;
use crate::message::{Address, Event, Message, Point};
use crate::net::Net;

/// The operations of other data centers that have arrived here.
#[derive(Debug, Default)]
struct Arrived {
    highest: BTreeMap<NodeId, Timestamp>,
    waiting: BTreeSet<Timestamp>,
}

/// An operation that waits for the answers to its checks.
#[derive(Debug)]
struct Waiting {
    open: BTreeSet<Dep>,
    sent_us: u64,
}

/// The dependency checks of one server: those that it sends, and those that it answers.
#[derive(Debug, Default)]
pub(crate) struct DepChecks {
    arrived: Arrived,
    /// The operations that wait for answers, by the number of their checks.
    sent: BTreeMap<u64, Waiting>,
    by_id: BTreeMap<u64, Timestamp>,
    next_id: u64,
    /// The checks that wait here for their operation.
    blocked: BTreeMap<Dep, BTreeSet<(NodeId, u64)>>,
    /// The newest operation of each key, for a planted fault.
    newest: BTreeMap<u32, Timestamp>,
}

impl DepChecks {
    /// True if an operation is applied here; operations of this data center always are.
    pub fn is_applied(&self, net: &Net, dep: Dep) -> bool {
        if net.config.has(Flaw::DepCheckByNewer) {
            return self.newest.get(&dep.key).is_some_and(|newest| *newest >= dep.ts);
        }
        let node = dep.ts.node();
        node.dc() == net.id.dc()
            || self.arrived.highest.get(&node).is_some_and(|highest| *highest >= dep.ts)
                && !self.arrived.waiting.contains(&dep.ts)
    }

    /// Begins the checks of an operation that has arrived. True if it can be applied at once;
    /// otherwise [`DepChecks::on_checked`] returns it later.
    pub fn arrive(&mut self, net: &mut Net, ts: Timestamp, deps: &[Dep]) -> bool {
        let highest = self.arrived.highest.entry(ts.node()).or_default();
        *highest = ts.max(*highest);
        let mut open = BTreeSet::new();
        for dep in deps {
            let is_own = net.local(dep.key) == net.id;
            let is_unchecked = net.config.has(Flaw::DepsUnchecked);
            if !(is_unchecked || is_own && self.is_applied(net, *dep)) {
                open.insert(*dep);
            }
        }
        if open.is_empty() {
            return true;
        }
        self.arrived.waiting.insert(ts);
        let id = self.next_id;
        self.next_id += 1;
        for dep in &open {
            self.ask(net, id, *dep);
        }
        self.by_id.insert(id, ts);
        self.sent.insert(id, Waiting { open, sent_us: net.now_us });
        false
    }

    /// Makes the checks of others for an operation wait until [`DepChecks::applied`] names it, although
    /// nothing that it depends on is missing.
    pub fn hold(&mut self, ts: Timestamp) {
        self.arrived.waiting.insert(ts);
    }

    fn ask(&mut self, net: &mut Net, id: u64, dep: Dep) {
        let to = net.local(dep.key);
        if to == net.id {
            self.blocked.entry(dep).or_default().insert((net.id, id));
            net.reached(Point::DepCheckWaited);
        } else {
            net.plain(Address::Server(to), Message::DepCheck { id, dep });
        }
    }

    /// Answers a check, or keeps it until its operation is applied.
    pub fn on_check(&mut self, net: &mut Net, from: NodeId, id: u64, dep: Dep) {
        if self.is_applied(net, dep) {
            net.plain(Address::Server(from), Message::DepChecked { id, dep });
        } else if self.blocked.entry(dep).or_default().insert((from, id)) {
            net.reached(Point::DepCheckWaited);
        }
    }

    /// Takes an answer; returns the operation if that was its last one.
    pub fn on_checked(&mut self, id: u64, dep: Dep) -> Option<Timestamp> {
        let waiting = self.sent.get_mut(&id)?;
        waiting.open.remove(&dep);
        if !waiting.open.is_empty() {
            return None;
        }
        self.sent.remove(&id);
        self.by_id.remove(&id)
    }

    /// Notes that an operation is applied, and answers the checks that waited for it. Returns the
    /// operations of this server that waited for nothing else.
    pub fn applied(&mut self, net: &mut Net, dep: Dep) -> Vec<Timestamp> {
        self.arrived.waiting.remove(&dep.ts);
        if net.config.has(Flaw::DepCheckByNewer) {
            let newest = self.newest.entry(dep.key).or_default();
            *newest = dep.ts.max(*newest);
        }
        net.event(Event::Applied { node: net.id, dep });
        let of_key = Dep { key: dep.key, ts: Timestamp::ABSENT }..=dep;
        let known = self.blocked.range(of_key).map(|(dep, _)| *dep);
        let known: Vec<Dep> = known.filter(|known| self.is_applied(net, *known)).collect();
        let mut ready = Vec::new();
        for known in known {
            for (from, id) in self.blocked.remove(&known).unwrap_or_default() {
                if from == net.id {
                    ready.extend(self.on_checked(id, known));
                } else {
                    net.plain(Address::Server(from), Message::DepChecked { id, dep: known });
                }
            }
        }
        ready
    }

    /// Sends the checks again that have no answer after `retry_us`.
    pub fn tick(&mut self, net: &mut Net) {
        if net.config.has(Flaw::DepCheckWithoutDeadline) {
            return;
        }
        let (now_us, retry_us) = (net.now_us, net.config.retry_us);
        for (id, waiting) in &mut self.sent {
            if now_us < waiting.sent_us + retry_us {
                continue;
            }
            waiting.sent_us = now_us;
            for dep in &waiting.open {
                let to = net.local(dep.key);
                if to != net.id {
                    net.reached(Point::DepCheckAgain);
                    net.plain(Address::Server(to), Message::DepCheck { id: *id, dep: *dep });
                }
            }
        }
    }
}
