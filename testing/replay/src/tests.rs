//! The visible state of a replica is a function of the set of updates that it has received.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_model::random::Random;
use mingle_model::{Origin, Ref, TransactionId, Value};
use mingle_store::{Address, Data, OperationId, Read, RecordKey, RecordKind, Write, record};

use crate::reading::answer;
use crate::replica::Replica;
use crate::state::State;
use crate::update::Update;

const REPLICAS: usize = 3;
const ORIGIN: Origin = Origin(7);

fn thing(key: usize) -> Ref {
    Ref::new("Thing", Value::Int(key as i64))
}

fn at(key: usize, field: u16) -> Address {
    Address { object: thing(key), field }
}

fn random_write(random: &mut Random) -> Write {
    let key = random.below(2);
    let (element, value) = (Value::Int(random.below(3) as i64), random.below(100) as i64);
    match random.below(12) {
        0 => Write::Create(thing(key)),
        1 => Write::Delete(thing(key)),
        2 | 3 => Write::Assign(at(key, 0), Value::Int(value)),
        4 => Write::Add(at(key, 1), value.into()),
        5 | 6 => Write::Insert(at(key, 2), element),
        7 => Write::Remove(at(key, 2), element),
        8 => Write::Put(at(key, 3), element, Value::Int(value)),
        9 => Write::Erase(at(key, 3), element),
        10 => Write::Append(at(key, 4), Value::Int(value)),
        _ => Write::Clear(at(key, 2 + random.below(3) as u16)),
    }
}

fn operation(number: usize) -> OperationId {
    let sequence = number as u64 + 1;
    OperationId { id: TransactionId { origin: ORIGIN, sequence }, phase: 0 }
}

/// The key of the object that operations change in addition to random writes: a bit of a counter,
/// and a line.
const ONCE: usize = 9;

fn once_writes(number: usize, seed: u64) -> Vec<Write> {
    let mut random = Random::new(seed ^ (number as u64 + 1) << 32);
    let mut writes = vec![
        Write::Add(at(ONCE, 1), 1 << number),
        Write::Append(at(ONCE, 4), Value::Int(number as i64)),
    ];
    writes.extend((0..random.below(3)).map(|_| random_write(&mut random)));
    writes
}

fn floor_write(sequence: u64) -> Write {
    let key = RecordKey::of_origin(RecordKind::Floor, ORIGIN);
    Write::Record(key, record::floor(sequence))
}

/// Returns everything that a state shows.
fn shown(state: &State) -> Vec<Data> {
    let mut reads = vec![Read::Record(RecordKey::of_origin(RecordKind::Floor, ORIGIN))];
    for key in [0, 1, ONCE] {
        reads.extend([
            Read::Exists(thing(key)),
            Read::Register(at(key, 0)),
            Read::Counter(at(key, 1)),
            Read::Elements(at(key, 2)),
            Read::Entries(at(key, 3)),
            Read::LogLast(at(key, 4), u64::MAX),
        ]);
    }
    reads.iter().map(|read| answer(state, read).data).collect()
}

/// Replicas, and all updates committed at any of them.
struct History {
    seed: u64,
    random: Random,
    replicas: Vec<Replica>,
    updates: Vec<Arc<Update>>,
    /// For each replica, the operations of which it has a copy.
    operations: Vec<BTreeSet<usize>>,
}

impl History {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            random: Random::new(seed),
            replicas: (0..REPLICAS).map(|index| Replica::new(index, REPLICAS)).collect(),
            updates: Vec::new(),
            operations: vec![BTreeSet::new(); REPLICAS],
        }
    }

    fn commit(&mut self, at: usize, operation: Option<OperationId>, writes: &[Write]) {
        let update = Arc::new(self.replicas[at].update(operation, writes));
        self.receive(at, &update);
        self.updates.push(update);
    }

    fn receive(&mut self, at: usize, update: &Arc<Update>) {
        self.replicas[at].receive(Arc::clone(update));
        if let Some(operation) = update.operation {
            self.operations[at].insert(operation.id.sequence as usize - 1);
        }
    }

    /// Returns updates that a replica lacks and may receive.
    fn missing(&self, at: usize, is_causal: bool) -> Vec<Arc<Update>> {
        let context = &self.replicas[at].context;
        let missing = self.updates.iter().filter(|update| {
            !context.contains(update.order.origin, update.order.number)
                && (!is_causal || context.covers(&update.context))
        });
        missing.cloned().collect()
    }

    fn deliver_one(&mut self, at: usize, is_causal: bool) -> bool {
        let missing = self.missing(at, is_causal);
        if missing.is_empty() {
            return false;
        }
        let update = Arc::clone(self.random.pick(&missing));
        self.receive(at, &update);
        true
    }

    /// Performs one step: a commit, an operation, a floor or a delivery.
    fn step(&mut self, operations: usize, is_causal: bool) {
        let at = self.random.below(REPLICAS);
        match self.random.below(10) {
            0..3 => {
                let writes: Vec<Write> =
                    (0..=self.random.below(3)).map(|_| random_write(&mut self.random)).collect();
                self.commit(at, None, &writes);
            }
            3 | 4 => {
                // Helpers run operations that their replica has not seen, unless its floor is above
                // them.
                let number = self.random.below(operations);
                let floor = self.floor(at);
                if !self.operations[at].contains(&number) && number as u64 >= floor {
                    let writes = once_writes(number, self.seed);
                    self.commit(at, Some(operation(number)), &writes);
                }
            }
            5 if self.random.one_in(2) => {
                let mut known = self.operations[at].iter().enumerate();
                let whole = known.by_ref().take_while(|(index, number)| index == *number).count();
                if whole as u64 > self.floor(at) {
                    self.commit(at, None, &[floor_write(whole as u64)]);
                }
            }
            _ => {
                self.deliver_one(at, is_causal);
            }
        }
    }

    fn floor(&self, at: usize) -> u64 {
        let read = Read::Record(RecordKey::of_origin(RecordKind::Floor, ORIGIN));
        match answer(&self.replicas[at].state, &read).data {
            Data::Record(Some(value)) => record::read_floor(&value),
            _ => 0,
        }
    }

    fn deliver_all(&mut self, is_causal: bool) {
        for at in 0..REPLICAS {
            while self.deliver_one(at, is_causal) {}
        }
    }

    /// Returns a replica that commits nothing itself, and receives everything in a random order.
    fn bystander(&mut self, is_causal: bool) -> Replica {
        self.replicas.push(Replica::new(REPLICAS, REPLICAS + 1));
        self.operations.push(BTreeSet::new());
        while self.deliver_one(REPLICAS, is_causal) {}
        self.operations.pop();
        self.replicas.pop().expect("it was just pushed")
    }

    fn check_alike(&mut self, is_causal: bool) {
        let expected = shown(&self.replicas[0].state);
        let what = format!("seed {}, causal {is_causal}", self.seed);
        for replica in &self.replicas[1..] {
            assert_eq!(shown(&replica.state), expected, "{what}");
        }
        for _ in 0..3 {
            assert_eq!(shown(&self.bystander(is_causal).state), expected, "{what}, a bystander");
        }
    }

    /// Checks that every operation that ran anywhere shows exactly once everywhere.
    fn check_once(&self, is_causal: bool) {
        let ran: BTreeSet<usize> = self.operations.iter().flatten().copied().collect();
        let sum = ran.iter().map(|number| 1i128 << number).sum();
        for replica in &self.replicas {
            let what = format!("seed {}, causal {is_causal}", self.seed);
            let found = answer(&replica.state, &Read::Counter(at(ONCE, 1))).data;
            assert_eq!(found, Data::Counter(sum), "{what}");
            let found = answer(&replica.state, &Read::LogLast(at(ONCE, 4), u64::MAX)).data;
            let Data::Values(mut lines) = found else { panic!("{what}: {found:?}") };
            lines.sort();
            let expected: Vec<Value> = ran.iter().map(|n| Value::Int(*n as i64)).collect();
            assert_eq!(lines, expected, "{what}");
        }
    }
}

#[test]
fn replicas_that_received_the_same_show_the_same() {
    for is_causal in [true, false] {
        for seed in 0..150 {
            let mut history = History::new(seed);
            for _ in 0..60 {
                history.step(8, is_causal);
            }
            history.deliver_all(is_causal);
            history.check_alike(is_causal);
            history.check_once(is_causal);
        }
    }
}

#[test]
fn a_state_kept_up_to_date_is_the_state_folded_anew() {
    for seed in 0..50 {
        let mut history = History::new(seed);
        for step in 0..60 {
            history.step(8, true);
            for replica in &history.replicas {
                let folded = replica.fold();
                assert_eq!(shown(&replica.state), shown(&folded), "seed {seed}, after step {step}");
            }
        }
    }
}

/// Both sides of a partition run a phase; a replica that received one copy and its removal has the
/// other copy removed too.
#[test]
fn a_removal_that_saw_one_copy_removes_the_other() {
    let tag = || Value::Int(1);
    let mut history = History::new(1);
    let writes = [
        Write::Insert(at(0, 2), tag()),
        Write::Append(at(0, 4), tag()),
        Write::Add(at(0, 1), 5),
        Write::Assign(at(0, 0), tag()),
    ];
    history.commit(0, None, &[Write::Create(thing(1))]);
    history.commit(0, Some(operation(0)), &writes);
    // The second copy is the lower one, so it replaces the first everywhere.
    history.commit(1, Some(operation(0)), &writes);
    history.commit(0, None, &[Write::Delete(thing(0))]);
    history.deliver_all(true);
    history.check_alike(true);
    for replica in &history.replicas {
        let exists = answer(&replica.state, &Read::Exists(thing(0))).data;
        assert_eq!(exists, Data::Bool(false));
        let sum = answer(&replica.state, &Read::Counter(at(0, 1))).data;
        assert_eq!(sum, Data::Counter(0));
        let lines = answer(&replica.state, &Read::LogSize(at(0, 4))).data;
        assert_eq!(lines, Data::Count(0));
    }
}

#[test]
fn what_a_copy_removed_comes_back_if_another_counts_that_did_not_see_it() {
    let mut history = History::new(1);
    let clear = [Write::Clear(at(0, 2)), Write::Insert(at(0, 2), Value::Int(2))];
    history.commit(0, None, &[Write::Insert(at(0, 2), Value::Int(1))]);
    history.commit(0, Some(operation(0)), &clear);
    history.commit(1, Some(operation(0)), &clear);
    let elements = |history: &History, replica: usize| {
        let found = answer(&history.replicas[replica].state, &Read::Elements(at(0, 2)));
        (found.data, found.version)
    };
    let (before, seen) = elements(&history, 0);
    assert_eq!(before, Data::Values(vec![Value::Int(2)]));
    history.deliver_all(true);
    history.check_alike(true);
    let (after, version) = elements(&history, 0);
    assert_eq!(after, Data::Values(vec![Value::Int(1), Value::Int(2)]));
    assert!(version > seen, "what shows is new, so its version is: {version:?} after {seen:?}");
}

#[test]
fn a_copy_that_comes_after_the_floor_is_ignored() {
    for is_late_one_lower in [true, false] {
        let mut history = History::new(1);
        let writes = once_writes(0, 1);
        if is_late_one_lower {
            history.commit(0, None, &[Write::Create(thing(1))]);
        } else {
            history.commit(1, None, &[Write::Create(thing(1))]);
        }
        history.commit(0, Some(operation(0)), &writes);
        history.commit(1, Some(operation(0)), &writes);
        let early = Arc::clone(&history.updates[1]);
        let floor = [floor_write(1)];
        history.commit(0, None, &floor);
        // A second floor, raised at a replica with the late copy, does not reopen the operation.
        history.deliver_all(true);
        history.commit(0, None, &[floor_write(2)]);
        history.deliver_all(true);
        history.check_alike(true);
        history.check_once(true);
        for replica in &history.replicas {
            let counted = replica.counted(operation(0));
            assert_eq!(counted, Some(early.order), "late one lower: {is_late_one_lower}");
        }
    }
}
