//! Many partitions, each with a log, and coordinators that vanish at any time. Even if other
//! processes finish their transactions, all commits are ordered as conflicts demand, and delivered
//! once.

use std::collections::{BTreeMap, BTreeSet};

use mingle_geo::certify::{
    Access, Certifier, CertifierConfig, Conflicts, Decision, Entry, Proposal, Touch, Vote, decide,
};
use mingle_geo::replica::Delivery;
use mingle_geo::{DcId, PartitionId, Timestamp, Vector};
use mingle_model::TransactionId;
use mingle_model::random::Random;

use crate::certify::{id, prepare, proposal, touch};

/// The log of a partition, and its followers.
struct Partition {
    log: Vec<Entry>,
    certifier: Certifier,
    delivered: Vec<Delivery>,
}

impl Partition {
    fn deliver(&mut self) {
        self.delivered.extend(self.certifier.deliver(self.up_to()).expect("it is kept"));
    }

    fn up_to(&self) -> Timestamp {
        self.delivered.last().map_or(Timestamp::ZERO, |delivery| delivery.to)
    }
}

/// A transaction, as its coordinator has it.
struct Running {
    parts: BTreeMap<u16, Proposal>,
    /// The partitions at which it was not proposed yet.
    left: Vec<u16>,
}

struct Run {
    random: Random,
    conflicts: Conflicts,
    partitions: Vec<Partition>,
    running: BTreeMap<TransactionId, Running>,
    all: BTreeMap<TransactionId, BTreeMap<u16, Proposal>>,
    next: u64,
}

/// Counts of the cases that a run reached.
#[derive(Debug, Default)]
struct Met {
    commits: usize,
    aborts: usize,
    conflicts: usize,
    refusals: usize,
    /// The number of conflicting pairs that both committed.
    ordered: usize,
    readers: usize,
}

const ITEMS: usize = 6;

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = 1 + random.below(4) as u16;
        let conflicts = match random.below(3) {
            0 => Conflicts::default(),
            1 => Conflicts::new([("a", "a"), ("a", "b")]),
            _ => Conflicts::all(),
        };
        let partitions = (0..count).map(|partition| {
            let mut config = CertifierConfig::new(PartitionId(partition), conflicts.clone());
            config.index_max = 5 + random.below(60);
            let certifier = Certifier::new(config);
            Partition { log: Vec::new(), certifier, delivered: Vec::new() }
        });
        let partitions = partitions.collect();
        let (running, all) = (BTreeMap::new(), BTreeMap::new());
        Self { random, conflicts, partitions, running, all, next: 1 }
    }

    fn append(&mut self, partition: u16, entry: Entry) {
        let partition = &mut self.partitions[usize::from(partition)];
        partition.certifier.apply(&entry);
        partition.log.push(entry);
        if self.random.one_in(2) {
            partition.deliver();
        }
    }

    /// Returns a snapshot with the strong timestamp that all partitions have delivered, sometimes a
    /// lower one, and random entries of two data centers.
    fn snapshot(&mut self) -> Vector {
        let delivered = self.partitions.iter().map(Partition::up_to);
        let stable = delivered.min().unwrap_or_default();
        let strong = if self.random.one_in(4) { Timestamp(stable.0 / 2) } else { stable };
        let causal = |random: &mut Random| Timestamp::new(random.below(3) as u64, PartitionId(0));
        Vector::ZERO
            .with(DcId::STRONG, strong)
            .with(DcId(0), causal(&mut self.random))
            .with(DcId(1), causal(&mut self.random))
    }

    fn begin(&mut self) {
        let (sequence, snap_vec) = (self.next, self.snapshot());
        self.next += 1;
        let mut touches: BTreeMap<u16, Vec<Touch>> = BTreeMap::new();
        let mut items = BTreeSet::new();
        let is_reader = self.random.one_in(4);
        for _ in 0..=self.random.below(3) {
            let item = self.random.below(ITEMS);
            if !items.insert(item) {
                continue;
            }
            let is_read = is_reader || self.random.one_in(2);
            let access = if is_read { Access::Read } else { Access::Write };
            let label = *self.random.pick(&["", "a", "b"]);
            let partition = (item % self.partitions.len()) as u16;
            let touched = touch(&format!("k{item}"), access, label);
            touches.entry(partition).or_default().push(touched);
        }
        let participants: Vec<u16> = touches.keys().copied().collect();
        let up_to = self.partitions.iter().map(Partition::up_to);
        let stable = up_to.min().unwrap_or_default();
        let clock = Timestamp::new(sequence * 1_000 / 2, PartitionId(0));
        let parts = touches.into_iter().map(|(partition, touches)| {
            let proposal = proposal(sequence, &participants, touches);
            let (everywhere, uniform) = (stable, stable);
            (partition, Proposal { snap_vec, clock, stable, everywhere, uniform, ..proposal })
        });
        let parts: BTreeMap<u16, Proposal> = parts.collect();
        self.all.insert(id(sequence), parts.clone());
        self.running.insert(id(sequence), Running { parts, left: participants });
    }

    fn vote(&self, partition: u16, id: &TransactionId, begun_us: u64) -> Option<Vote> {
        self.partitions[usize::from(partition)].certifier.vote(id, begun_us)
    }

    /// Finishes a transaction at one of its participants, if all votes are there.
    fn decide(&mut self, id: TransactionId) {
        let parts = &self.all[&id];
        let begun_us = id.sequence * 1_000;
        let participants: Vec<u16> = parts.keys().copied().collect();
        let votes = participants.iter().map(|partition| self.vote(*partition, &id, begun_us));
        if let Some(decision) = decide(votes) {
            let partition = *self.random.pick(&participants);
            self.append(partition, Entry::Decide { id, begun_us, decision });
        }
    }

    /// Finishes a transaction whose coordinator seems to be silent.
    fn refuse(&mut self, id: TransactionId) {
        let begun_us = id.sequence * 1_000;
        let parts: Vec<u16> = self.all[&id].keys().copied().collect();
        for partition in parts {
            if self.vote(partition, &id, begun_us).is_none() {
                self.append(partition, Entry::Refuse { id, begun_us });
            }
        }
    }

    fn step(&mut self) {
        let ids: Vec<TransactionId> = self.running.keys().copied().collect();
        match self.random.below(10) {
            0..=2 => self.begin(),
            3..=6 if !ids.is_empty() => {
                let id = *self.random.pick(&ids);
                let running = self.running.get_mut(&id).expect("it runs");
                let index = self.random.below(running.left.len());
                let partition = running.left.swap_remove(index);
                let proposal = running.parts[&partition].clone();
                if running.left.is_empty() || self.random.one_in(15) {
                    // Everything is proposed, or the coordinator is gone.
                    self.running.remove(&id);
                }
                self.append(partition, prepare(proposal));
            }
            7 => {
                let partition = self.random.below(self.partitions.len()) as u16;
                let highest = self.partitions.iter().map(|one| one.certifier.last()).max();
                self.append(partition, Entry::Advance { to: highest.unwrap_or_default() });
            }
            _ if self.next > 1 => {
                let id = id(1 + self.random.below(self.next as usize - 1) as u64);
                if self.random.one_in(12) {
                    self.refuse(id);
                }
                self.decide(id);
            }
            _ => {}
        }
    }

    /// Finishes everything.
    fn settle(&mut self) {
        self.running.clear();
        for _ in 0..2 {
            for sequence in 1..self.next {
                self.refuse(id(sequence));
                let begun_us = sequence * 1_000;
                let parts: Vec<u16> = self.all[&id(sequence)].keys().copied().collect();
                let votes =
                    parts.iter().map(|partition| self.vote(*partition, &id(sequence), begun_us));
                let decision = decide(votes).expect("everybody has voted");
                for partition in parts {
                    self.append(partition, Entry::Decide { id: id(sequence), begun_us, decision });
                }
            }
        }
        let highest = self.partitions.iter().map(|one| one.certifier.last()).max();
        for partition in 0..self.partitions.len() as u16 {
            self.append(partition, Entry::Advance { to: highest.unwrap_or_default() });
            let partition = &mut self.partitions[usize::from(partition)];
            partition.deliver();
        }
    }

    fn check(&self) -> Met {
        let mut met = Met::default();
        let mut committed: Vec<(TransactionId, Timestamp)> = Vec::new();
        for (id, parts) in &self.all {
            let outcomes: BTreeSet<_> = parts
                .keys()
                .map(|partition| self.partitions[usize::from(*partition)].certifier.outcome(id))
                .map(|outcome| match outcome.expect("it has ended") {
                    Decision::Commit(timestamp) => Some(timestamp),
                    Decision::Abort => None,
                })
                .collect();
            assert_eq!(outcomes.len(), 1, "{id} ended in two ways: {outcomes:?}");
            match outcomes.first().copied().flatten() {
                Some(timestamp) => committed.push((*id, timestamp)),
                None => met.aborts += 1,
            }
            for partition in parts.keys() {
                match self.vote(*partition, id, id.sequence * 1_000) {
                    Some(Vote::Conflict(_)) => met.conflicts += 1,
                    Some(Vote::No) => met.refusals += 1,
                    _ => {}
                }
            }
        }
        met.commits = committed.len();
        committed.sort_by_key(|(_, timestamp)| *timestamp);
        for (index, (later, at)) in committed.iter().enumerate() {
            for (earlier, before) in &committed[..index] {
                assert!(before < at, "{earlier} and {later} have one timestamp");
                if self.conflict(earlier, later) {
                    met.ordered += 1;
                    let commit_vec = self.snap_vec(earlier).with(DcId::STRONG, *before);
                    let has_seen = self.snap_vec(later).covers(&commit_vec);
                    assert!(has_seen, "{later} conflicts with {earlier} and has not seen it");
                }
            }
            let parts = &self.all[later];
            let reads = |proposal: &Proposal| proposal.updates.is_empty();
            met.readers += usize::from(parts.values().all(reads));
        }
        self.check_deliveries(&committed);
        met
    }

    fn snap_vec(&self, id: &TransactionId) -> Vector {
        self.all[id].values().next().expect("it touches something").snap_vec
    }

    fn conflict(&self, a: &TransactionId, b: &TransactionId) -> bool {
        let touches = |id| self.all[id].values().flat_map(|proposal| &proposal.touches);
        touches(a).any(|a| touches(b).any(|b| self.conflicts.between(a, b)))
    }

    /// Checks that each partition has delivered its transactions once and in order, and none below
    /// the bound that it had declared complete.
    fn check_deliveries(&self, committed: &[(TransactionId, Timestamp)]) {
        for (index, partition) in self.partitions.iter().enumerate() {
            let updates = |id: &TransactionId| {
                self.all[id].get(&(index as u16)).is_some_and(|part| !part.updates.is_empty())
            };
            let expected = committed.iter().filter(|(id, _)| updates(id)).map(|(id, _)| *id);
            let deliveries = partition.delivered.iter();
            let found = deliveries.flat_map(|delivery| &delivery.transactions).map(|one| one.id);
            assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            let mut complete = Timestamp::ZERO;
            for delivery in &partition.delivered {
                assert!(delivery.to > complete);
                for transaction in &delivery.transactions {
                    assert!(transaction.timestamp() > complete);
                    assert!(transaction.timestamp() <= delivery.to);
                }
                complete = delivery.to;
            }
            // Another replica that follows the log from a saved state has the same state.
            let config = partition.certifier.config().clone();
            let mut other = Certifier::new(config);
            for (place, entry) in partition.log.iter().enumerate() {
                if place % 37 == 0 {
                    let kept = postcard::to_stdvec(&other).expect("it has a form");
                    other = postcard::from_bytes(&kept).expect("that form");
                }
                other.apply(entry);
            }
            assert_eq!(other, partition.certifier);
        }
    }
}

#[test]
fn whatever_vanishes_conflicts_are_ordered_and_deliveries_complete() {
    let mut all = Met::default();
    for seed in 0..150 {
        let outcome = std::panic::catch_unwind(|| {
            let mut run = Run::new(seed);
            for _ in 0..600 {
                run.step();
            }
            run.settle();
            run.check()
        });
        let met = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        all.commits += met.commits;
        all.aborts += met.aborts;
        all.conflicts += met.conflicts;
        all.refusals += met.refusals;
        all.ordered += met.ordered;
        all.readers += met.readers;
    }
    // A run without any of these cases would test nothing.
    let Met { commits, aborts, conflicts, refusals, ordered, readers } = all;
    let counts = [commits, aborts, conflicts, refusals, ordered, readers];
    assert!(counts.iter().all(|count| *count > 1_000), "{all:?}");
}
