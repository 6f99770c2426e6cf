//! Write-only transactions: two-phase commit with positive cohorts and indirection (thesis §5.4).

use std::collections::{BTreeMap, BTreeSet};

use super::chain::Chain;
use super::server::{State, Waiting};
use crate::clock::{NodeId, Timestamp};
use crate::column::{Mutation, Update};
use crate::deps::Dep;
use crate::flaw::Flaw;
use crate::message::{Address, Event, Message, Point, Requested, SubRequest};
use crate::net::Net;

/// A transaction at one of its participants.
#[derive(Debug)]
pub(super) struct Transaction {
    coordinator_key: u32,
    total: usize,
    /// The mutations of this participant.
    mutations: Vec<Mutation>,
    deps: Vec<Dep>,
    /// The dependencies of its additions on earlier ones of the data center.
    extra: Vec<Dep>,
    /// The timestamp, if another data center has committed it.
    replicated: Option<Timestamp>,
    /// The time at which this participant prepared.
    pub prepared: Option<u64>,
    /// The locations that need no pending mark, since a newer value is there.
    older: BTreeSet<usize>,
    pub committed: Option<(Timestamp, u64)>,
    /// True if the part with the coordinator key is here.
    has_own_part: bool,
    pub are_deps_applied: bool,
    /// The mutations that have arrived at participants, and that are prepared.
    notified: usize,
    votes: usize,
    cohorts: BTreeSet<NodeId>,
    acks: usize,
}

impl Transaction {
    fn new(coordinator_key: u32, total: usize) -> Self {
        Self {
            coordinator_key,
            total,
            mutations: Vec::new(),
            deps: Vec::new(),
            extra: Vec::new(),
            replicated: None,
            prepared: None,
            older: BTreeSet::new(),
            committed: None,
            has_own_part: false,
            are_deps_applied: false,
            notified: 0,
            votes: 0,
            cohorts: BTreeSet::new(),
            acks: 0,
        }
    }

    /// Returns the mutations whose outcome is open here.
    pub fn pending(&self) -> impl Iterator<Item = &Mutation> {
        let is_open = self.prepared.is_some() && self.committed.is_none();
        let all = self.mutations.iter().enumerate();
        all.filter(move |(place, _)| is_open && !self.older.contains(place)).map(|(_, one)| one)
    }

    /// Returns the key whose server coordinates.
    pub fn coordinator_key(&self) -> u32 {
        self.coordinator_key
    }
}

impl State {
    /// Returns a transaction of which a part is here.
    fn transaction(&mut self, part: &SubRequest) -> &mut Transaction {
        let (key, total) = (part.coordinator_key, part.total);
        let transaction = self.open(part.transaction);
        (transaction.coordinator_key, transaction.total) = (key, total);
        transaction
    }

    /// Returns a transaction of which the own part may still be to come.
    fn open(&mut self, id: Requested) -> &mut Transaction {
        self.transactions.entry(id).or_insert_with(|| Transaction::new(0, usize::MAX))
    }

    /// Prepares the part of a client's transaction.
    pub(super) fn on_part(&mut self, net: &mut Net, part: SubRequest) {
        let (id, key, count) = (part.transaction, part.coordinator_key, part.mutations.len());
        let extra = self.extra(&part.mutations);
        let now = net.clock.tick();
        let transaction = self.transaction(&part);
        transaction.mutations = part.mutations;
        transaction.deps = part.deps;
        // Votes that came before have brought theirs.
        transaction.extra.extend(extra.iter().copied());
        transaction.prepared = Some(now);
        let coordinator = net.local(key);
        if coordinator == net.id {
            transaction.has_own_part = true;
            transaction.votes += count;
            self.try_commit(net, id);
        } else {
            net.link(coordinator, Message::YesVote { transaction: id, count, extra });
        }
    }

    /// Takes the part of a transaction that another data center has committed.
    pub(super) fn on_replicated(&mut self, net: &mut Net, part: SubRequest, ts: Timestamp) {
        let (id, key, count) = (part.transaction, part.coordinator_key, part.mutations.len());
        let is_own = part.mutations.iter().any(|mutation| mutation.location.key == key);
        let transaction = self.transaction(&part);
        transaction.replicated = Some(ts);
        transaction.mutations.extend(part.mutations);
        let fresh = part.deps.iter().filter(|dep| !transaction.deps.contains(dep));
        let fresh: Vec<Dep> = fresh.copied().collect();
        transaction.deps.extend(fresh);
        let coordinator = net.local(key);
        if coordinator != net.id {
            net.link(coordinator, Message::Notify { transaction: id, count });
            return;
        }
        transaction.notified += count;
        // This part has all dependencies, and these parts arrive in the order of timestamps.
        if is_own {
            transaction.has_own_part = true;
            if self.checks.arrive(net, ts, &part.deps) {
                self.open(id).are_deps_applied = true;
            } else {
                self.waiting.insert(ts, Waiting::Transaction(id));
            }
            self.checks.hold(ts);
        }
        self.try_prepare(net, id);
    }

    /// Takes a message of the commit protocol.
    pub(super) fn on_phase(&mut self, net: &mut Net, from: NodeId, message: Message) {
        match message {
            Message::YesVote { transaction: id, count, extra } => {
                let transaction = self.open(id);
                transaction.votes += count;
                transaction.extra.extend(extra);
                transaction.cohorts.insert(from);
                self.try_commit(net, id);
            }
            Message::Commit { transaction, ts, evt } => self.on_commit(net, transaction, (ts, evt)),
            Message::Ack { transaction: id } => {
                if let Some(transaction) = self.transactions.get_mut(&id) {
                    transaction.acks += 1;
                    if transaction.acks == transaction.cohorts.len() {
                        self.transactions.remove(&id);
                    }
                }
            }
            Message::Notify { transaction: id, count } => {
                let transaction = self.open(id);
                transaction.notified += count;
                transaction.cohorts.insert(from);
                self.try_prepare(net, id);
            }
            Message::Prepare { transaction: id } => {
                self.prepare(net, id);
                let count = self.transactions.get(&id).map_or(0, |one| one.mutations.len());
                let extra = Vec::new();
                net.link(from, Message::YesVote { transaction: id, count, extra });
            }
            Message::CommitCheck { transaction: id, at } => {
                // A later commit has a later time.
                net.clock.witness(at);
                let committed = self.transactions.get(&id).and_then(|one| one.committed);
                let checked = Message::CommitChecked { transaction: id, at, committed };
                net.plain(Address::Server(from), checked);
            }
            // The other messages are COPS's, or for clients.
            _ => {}
        }
    }

    /// Marks the locations of a replicated transaction as pending, except where a newer value is.
    fn prepare(&mut self, net: &mut Net, id: Requested) {
        let now = net.clock.tick();
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        transaction.prepared = Some(now);
        let Some(ts) = transaction.replicated else { return };
        for (place, Mutation { location, update }) in transaction.mutations.iter().enumerate() {
            let newest = self.chains.get(location).map(Chain::newest).unwrap_or_default();
            if newest > ts && !matches!(update, Update::Add(_)) {
                transaction.older.insert(place);
                net.reached(Point::OlderTransaction);
            }
        }
    }

    /// Coordinator of a replicated transaction: prepares once all parts and dependencies are there.
    pub(super) fn try_prepare(&mut self, net: &mut Net, id: Requested) {
        let Some(transaction) = self.transactions.get(&id) else { return };
        let is_due = transaction.has_own_part
            && transaction.notified == transaction.total
            && transaction.are_deps_applied
            && transaction.prepared.is_none();
        if !is_due {
            return;
        }
        let cohorts = transaction.cohorts.clone();
        self.prepare(net, id);
        for cohort in cohorts {
            net.link(cohort, Message::Prepare { transaction: id });
        }
        if let Some(transaction) = self.transactions.get_mut(&id) {
            transaction.votes += transaction.mutations.len();
        }
        self.try_commit(net, id);
    }

    /// Coordinator: commits once all mutations are prepared.
    fn try_commit(&mut self, net: &mut Net, id: Requested) {
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        let is_due = transaction.has_own_part
            && transaction.votes == transaction.total
            && transaction.committed.is_none();
        if !is_due {
            return;
        }
        let replicated = transaction.replicated;
        let (key, cohorts) = (transaction.coordinator_key, transaction.cohorts.clone());
        let (ts, evt) = match replicated {
            Some(ts) => (ts, net.clock.tick()),
            None => (net.stamp(), net.clock.now()),
        };
        let dep = Dep { key, ts };
        if replicated.is_none() {
            net.event(Event::Accepted { by: id, dep });
            let client = Address::Client(id.client);
            net.plain(client, Message::Mutated { request: id.request, dep });
        }
        for cohort in &cohorts {
            net.link(*cohort, Message::Commit { transaction: id, ts, evt });
        }
        if !cohorts.is_empty() {
            net.reached(Point::SeveralServers);
        }
        let is_older = self.transactions.get(&id).is_some_and(|one| !one.older.is_empty());
        self.committed(net, id, (ts, evt));
        if cohorts.is_empty() {
            self.transactions.remove(&id);
        }
        if !(is_older && net.config.has(Flaw::OlderNotApplied)) {
            let ready = self.checks.applied(net, dep);
            self.ready(net, ready);
        }
    }

    /// Cohort: applies a commit, unless a check has told of it before.
    pub(super) fn on_commit(&mut self, net: &mut Net, id: Requested, outcome: (Timestamp, u64)) {
        let Some(transaction) = self.transactions.get(&id) else { return };
        let coordinator = net.local(transaction.coordinator_key);
        self.committed(net, id, outcome);
        self.transactions.remove(&id);
        net.link(coordinator, Message::Ack { transaction: id });
    }

    /// Applies the mutations of a committed transaction, and replicates those of a client.
    fn committed(&mut self, net: &mut Net, id: Requested, (ts, evt): (Timestamp, u64)) {
        let Some(transaction) = self.transactions.get_mut(&id) else { return };
        transaction.committed = Some((ts, evt));
        let dep = Dep { key: transaction.coordinator_key, ts };
        let (total, extra) = (transaction.total, transaction.extra.clone());
        let is_replicated = transaction.replicated.is_some();
        let (mutations, mut deps) = (transaction.mutations.clone(), transaction.deps.clone());
        deps.extend(extra.iter().filter(|dep| !deps.contains(dep)).copied().collect::<Vec<_>>());
        let is_kept = |mutation: &&Mutation| !self.is_dropped(net, mutation, ts);
        let kept: Vec<Mutation> = mutations.iter().filter(is_kept).copied().collect();
        self.apply(net, (dep, evt), &kept, &deps);
        if is_replicated {
            return;
        }
        self.follow(&mutations, &extra, dep);
        for dc in net.others() {
            let mut parts: BTreeMap<NodeId, Vec<Mutation>> = BTreeMap::new();
            for mutation in &mutations {
                let to = net.config.locator.server(dc, mutation.location.key);
                parts.entry(to).or_default().push(*mutation);
            }
            for (to, mutations) in parts {
                let (coordinator_key, deps) = (dep.key, deps.clone());
                let part = SubRequest { transaction: id, coordinator_key, total, mutations, deps };
                net.link(to, Message::ReplicatedTransaction { part, ts });
            }
        }
    }
}
