//! The servers of Eiger.

use std::collections::{BTreeMap, BTreeSet};

use super::chain::{Chain, Entry};
use super::reads::Reading;
use super::transactions::Transaction;
use crate::clock::Timestamp;
use crate::column::{Cell, Location, Mutation, Update};
use crate::config::Protocol;
use crate::dep_check::DepChecks;
use crate::deps::Dep;
use crate::flaw::Flaw;
use crate::message::{Address, Event, Message, RequestId, Requested};
use crate::net::Net;

/// An operation of another data center that waits for its dependencies.
#[derive(Debug)]
pub(super) enum Waiting {
    Mutation(Dep, Vec<Mutation>, Vec<Dep>),
    Transaction(Requested),
}

/// The state of a server.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(super) chains: BTreeMap<Location, Chain>,
    pub(super) checks: DepChecks,
    pub(super) waiting: BTreeMap<Timestamp, Waiting>,
    pub(super) transactions: BTreeMap<Requested, Transaction>,
    pub(super) readings: Vec<Reading>,
    /// The answers that a transaction was not committed yet, for a planted fault.
    pub(super) not_yet: BTreeSet<Requested>,
    /// The last additions of this data center to each counter.
    pub(super) heads: BTreeMap<Location, Vec<Dep>>,
}

impl State {
    /// Takes a message.
    pub fn on_message(&mut self, net: &mut Net, from: Address, message: Message) {
        let server = match from {
            Address::Server(node) => Some(node),
            Address::Client(_) => None,
        };
        match message {
            Message::MultigetSlice { request, slice, part, at } => {
                self.on_slice(net, from, (request, part), slice, at);
            }
            Message::BatchMutate { request, mutations, deps } => {
                self.on_mutate(net, (from, request), mutations, deps);
            }
            Message::ReplicatedMutation { dep, mutations, deps } => {
                self.waiting.insert(dep.ts, Waiting::Mutation(dep, mutations, deps.clone()));
                if self.checks.arrive(net, dep.ts, &deps) {
                    self.ready(net, vec![dep.ts]);
                }
            }
            Message::DepCheck { id, dep } => {
                if let Some(from) = server {
                    self.checks.on_check(net, from, id, dep);
                }
            }
            Message::DepChecked { id, dep } => {
                if let Some(ts) = self.checks.on_checked(id, dep) {
                    self.ready(net, vec![ts]);
                }
            }
            Message::AtomicMutate(part) => self.on_part(net, part),
            Message::ReplicatedTransaction { part, ts } => self.on_replicated(net, part, ts),
            Message::CommitChecked { transaction, at, committed } => {
                self.on_checked(net, transaction, at, committed);
            }
            other => {
                if let Some(from) = server {
                    self.on_phase(net, from, other);
                }
            }
        }
    }

    /// Applies mutations of one key that a client sends, and replicates them.
    fn on_mutate(
        &mut self,
        net: &mut Net,
        (from, request): (Address, RequestId),
        mutations: Vec<Mutation>,
        mut deps: Vec<Dep>,
    ) {
        let Some(key) = mutations.first().map(|mutation| mutation.location.key) else { return };
        let dep = Dep { key, ts: net.stamp() };
        if let Address::Client(client) = from {
            net.event(Event::Accepted { by: Requested { client, request }, dep });
        }
        let is_tracked = net.config.protocol.is_tracked();
        let extra = if is_tracked { self.extra(&mutations) } else { Vec::new() };
        deps.extend(extra.iter().filter(|dep| !deps.contains(dep)).copied().collect::<Vec<_>>());
        self.follow(&mutations, &extra, dep);
        for dc in net.others() {
            let (mutations, deps) = (mutations.clone(), deps.clone());
            let to = net.config.locator.server(dc, key);
            net.link(to, Message::ReplicatedMutation { dep, mutations, deps });
        }
        let evt = net.clock.now();
        self.apply(net, (dep, evt), &mutations, &deps);
        let ready = self.checks.applied(net, dep);
        net.plain(from, Message::Mutated { request, dep });
        self.ready(net, ready);
    }

    /// Returns the dependencies of additions on the earlier additions of this data center (§5.2).
    pub(super) fn extra(&self, mutations: &[Mutation]) -> Vec<Dep> {
        let additions = mutations.iter().filter(|one| matches!(one.update, Update::Add(_)));
        let heads = additions.filter_map(|addition| self.heads.get(&addition.location));
        heads.flatten().copied().collect()
    }

    /// Makes later additions depend on this operation, instead of those on which it depends.
    pub(super) fn follow(&mut self, mutations: &[Mutation], extra: &[Dep], dep: Dep) {
        for addition in mutations.iter().filter(|one| matches!(one.update, Update::Add(_))) {
            let heads = self.heads.entry(addition.location).or_default();
            heads.retain(|head| !extra.contains(head) && *head != dep);
            heads.push(dep);
        }
    }

    /// Makes mutations visible from a logical time on.
    pub(super) fn apply(
        &mut self,
        net: &mut Net,
        (dep, evt): (Dep, u64),
        mutations: &[Mutation],
        deps: &[Dep],
    ) {
        for Mutation { location, update } in mutations {
            let chain = self.chains.entry(*location).or_default();
            // Only a sum names the last additions in it.
            let is_addition = matches!(update, Update::Add(_));
            let covers = if is_addition { deps.to_vec() } else { Vec::new() };
            let arrived_us = net.now_us;
            let entry = Entry { evt, dep, update: *update, covers, arrived_us };
            // Only a second round reads old versions.
            let has_rounds = net.config.protocol == Protocol::Eiger;
            let kept_us = if has_rounds { net.config.trans_time_us * 2 } else { 0 };
            chain.insert(entry, kept_us);
            let (node, location, ts) = (net.id, *location, chain.newest());
            net.event(Event::NewestAt { node, location, ts });
        }
    }

    /// Goes on with operations whose dependencies are applied, and those that wait for them.
    pub(super) fn ready(&mut self, net: &mut Net, mut ready: Vec<Timestamp>) {
        while let Some(ts) = ready.pop() {
            match self.waiting.remove(&ts) {
                Some(Waiting::Mutation(dep, mutations, deps)) => {
                    let evt = net.clock.tick();
                    self.apply(net, (dep, evt), &mutations, &deps);
                    ready.extend(self.checks.applied(net, dep));
                }
                Some(Waiting::Transaction(id)) => {
                    if let Some(transaction) = self.transactions.get_mut(&id) {
                        transaction.are_deps_applied = true;
                    }
                    self.try_prepare(net, id);
                }
                None => {}
            }
        }
    }

    /// Sends dependency checks and commit checks again that are due.
    pub fn tick(&mut self, net: &mut Net) {
        self.checks.tick(net);
        self.check_again(net);
    }

    /// Returns the current column of each location.
    pub fn contents(&self, net: &Net) -> Vec<(Location, Cell)> {
        let now = net.clock.now();
        let cell = |(location, chain): (&Location, &Chain)| {
            Some((*location, chain.at(location.column, now)?.0))
        };
        self.chains.iter().filter_map(cell).collect()
    }

    /// True if a mutation is an addition that a planted fault drops.
    pub(super) fn is_dropped(&self, net: &Net, mutation: &Mutation, ts: Timestamp) -> bool {
        let newest = self.chains.get(&mutation.location).map(Chain::newest).unwrap_or_default();
        net.config.has(Flaw::CounterInTransaction)
            && matches!(mutation.update, Update::Add(_))
            && newest > ts
    }
}
