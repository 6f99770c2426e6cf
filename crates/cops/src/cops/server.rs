//! The servers of the COPS family.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::versions::{Version, Versions};
use crate::clock::{NodeId, Timestamp};
use crate::config::Protocol;
use crate::dep_check::DepChecks;
use crate::deps::Dep;
use crate::flaw::Flaw;
use crate::message::{Address, Event, Message, Point, RequestId, Requested};
use crate::net::Net;

/// A write of another data center that waits for its dependencies.
#[derive(Debug)]
struct Replicated {
    dep: Dep,
    value: u64,
    deps: Vec<Dep>,
    previous: Vec<Timestamp>,
}

/// The state of a server.
#[derive(Debug, Default)]
pub(crate) struct State {
    keys: BTreeMap<u32, Versions>,
    checks: DepChecks,
    waiting: BTreeMap<Timestamp, Replicated>,
    /// COPS-RT: the times at which writes have been applied here for `trans_time`.
    settled: VecDeque<(u64, Dep)>,
    /// COPS-RT: the data centers that have applied a write accepted here.
    committed: BTreeMap<Timestamp, BTreeSet<u8>>,
    /// The end of each data center's log, as far as it is applied here.
    logs: BTreeMap<NodeId, Dep>,
}

impl State {
    /// Takes a message.
    pub fn on_message(&mut self, net: &mut Net, from: Address, message: Message) {
        match message {
            Message::ReadByTime { request, key, ts } => self.on_read(net, from, (request, key, ts)),
            Message::WriteAfter { request, key, value, deps, nearest } => {
                let dep = self.on_write(net, (from, request), (key, value), (deps, nearest));
                net.plain(from, Message::Written { request, dep });
            }
            Message::ReplicatedWrite { dep, value, deps, mut nearest, previous } => {
                nearest.extend(previous.iter().map(|ts| Dep { key: dep.key, ts: *ts }));
                let write = Replicated { dep, value, deps, previous };
                self.waiting.insert(dep.ts, write);
                if self.checks.arrive(net, dep.ts, &nearest) {
                    self.apply(net, dep.ts);
                }
            }
            Message::DepCheck { id, dep } => {
                if let Address::Server(from) = from {
                    self.checks.on_check(net, from, id, dep);
                }
            }
            Message::DepChecked { id, dep } => {
                if let Some(ts) = self.checks.on_checked(id, dep) {
                    self.apply(net, ts);
                }
            }
            Message::Committed { dep } => self.on_committed(net, from.dc(), dep),
            Message::CollectDeps { dep } => self.collect(net, dep),
            // The other messages are Eiger's, or for clients.
            _ => {}
        }
    }

    fn on_read(
        &mut self,
        net: &mut Net,
        from: Address,
        (request, key, ts): (RequestId, u32, Option<Timestamp>),
    ) {
        let versions = self.keys.entry(key).or_default();
        let asked = ts.and_then(|ts| versions.at(ts).map(|version| (ts, version)));
        let found = asked.or_else(|| versions.latest());
        let mut value = found.map(|(_, version)| version.value).into_iter().collect();
        let mut timestamps = found.map(|(ts, _)| ts).into_iter().collect();
        let deps = found.map(|(_, version)| version.deps.clone()).unwrap_or_default();
        let never_depend = found.is_some_and(|(_, version)| version.never_depend);
        if net.config.protocol == Protocol::CopsCd {
            value = versions.merged(&net.config);
            timestamps = versions.timestamps();
        }
        let versions = timestamps;
        let result = Message::ReadResult { request, key, value, versions, deps, never_depend };
        net.plain(from, result);
    }

    /// Accepts a write of a client, and sends it to the other data centers.
    fn on_write(
        &mut self,
        net: &mut Net,
        (from, request): (Address, RequestId),
        (key, value): (u32, u64),
        (deps, nearest): (Vec<Dep>, Vec<Dep>),
    ) -> Dep {
        let dep = Dep { key, ts: net.stamp() };
        if let Address::Client(client) = from {
            net.event(Event::Accepted { by: Requested { client, request }, dep });
        }
        let deps = if net.config.protocol == Protocol::CopsRt { deps } else { Vec::new() };
        let nearest = match net.config.protocol {
            Protocol::Eventual => Vec::new(),
            Protocol::Log => self.logs.values().copied().collect(),
            _ => nearest,
        };
        let previous = match net.config.protocol {
            Protocol::CopsCd => self.keys.entry(key).or_default().timestamps(),
            _ => Vec::new(),
        };
        for dc in net.others() {
            let (deps, nearest, previous) = (deps.clone(), nearest.clone(), previous.clone());
            let to = net.config.locator.server(dc, key);
            net.link(to, Message::ReplicatedWrite { dep, value, deps, nearest, previous });
        }
        self.store(net, Replicated { dep, value, deps, previous });
        dep
    }

    /// Applies a write whose dependencies are applied, and those that waited for it.
    fn apply(&mut self, net: &mut Net, ts: Timestamp) {
        let mut ready = vec![ts];
        while let Some(ts) = ready.pop() {
            if let Some(write) = self.waiting.remove(&ts) {
                ready.extend(self.store(net, write));
            }
        }
    }

    fn store(&mut self, net: &mut Net, write: Replicated) -> Vec<Timestamp> {
        let Replicated { dep, value, deps, previous } = write;
        // The write becomes visible at this event, later than its dependencies.
        net.clock.tick();
        let versions = self.keys.entry(dep.key).or_default();
        versions.add(&net.config, net.now_us, (dep.ts, Version::new(value, deps)), &previous);
        if versions.timestamps().len() > 1 && net.config.protocol == Protocol::CopsCd {
            net.reached(Point::Merged);
        }
        let (node, key, ts) = (net.id, dep.key, versions.newest());
        net.event(Event::Newest { node, key, ts });
        self.logs.insert(dep.ts.node(), dep);
        if net.config.protocol == Protocol::CopsRt {
            self.settled.push_back((net.now_us + net.config.trans_time_us, dep));
        }
        self.checks.applied(net, dep)
    }

    /// Sends checks again that are due, and reports writes that have been applied for `trans_time`.
    pub fn tick(&mut self, net: &mut Net) {
        self.checks.tick(net);
        while self.settled.front().is_some_and(|(due_us, _)| *due_us <= net.now_us) {
            let Some((_, dep)) = self.settled.pop_front() else { break };
            let is_newest =
                self.keys.get(&dep.key).is_some_and(|versions| versions.newest() == dep.ts);
            if !is_newest {
                continue;
            }
            let origin = dep.ts.node();
            if origin == net.id {
                self.on_committed(net, net.id.dc(), dep);
            } else {
                net.link(origin, Message::Committed { dep });
            }
        }
    }

    /// Counts a data center that has applied a write; if all have, collects its dependencies.
    fn on_committed(&mut self, net: &mut Net, dc: u8, dep: Dep) {
        let committed = self.committed.entry(dep.ts).or_default();
        committed.insert(dc);
        let is_premature = net.config.has(Flaw::PrematureCollection);
        if committed.len() < net.config.locator.dcs().count() && !is_premature {
            return;
        }
        self.committed.remove(&dep.ts);
        for dc in net.others() {
            net.link(net.config.locator.server(dc, dep.key), Message::CollectDeps { dep });
        }
        self.collect(net, dep);
    }

    fn collect(&mut self, net: &mut Net, dep: Dep) {
        let versions = self.keys.entry(dep.key).or_default();
        if let Some(version) = versions.at_mut(dep.ts) {
            version.deps.clear();
            version.never_depend = true;
            net.reached(Point::DepsCollected);
        }
    }

    /// Returns the value of each key and the timestamps of its versions.
    pub fn contents(&self, net: &Net) -> Vec<(u32, Vec<u64>, Vec<Timestamp>)> {
        let is_cd = net.config.protocol == Protocol::CopsCd;
        let content = |(key, versions): (&u32, &Versions)| {
            if is_cd {
                return (*key, versions.merged(&net.config), versions.timestamps());
            }
            let latest = versions.latest();
            let value = latest.map(|(_, version)| version.value);
            let ts = latest.map(|(ts, _)| ts);
            (*key, value.into_iter().collect(), ts.into_iter().collect())
        };
        self.keys.iter().map(content).collect()
    }
}
