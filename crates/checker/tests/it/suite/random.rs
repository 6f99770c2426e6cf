//! Small random histories: the checker agrees with the brute-force one.

use mingle_checker::{
    Anomaly, Basis, History, Interval, Kind, Model, Operation, Outcome, Transaction, Verdict, Why,
    check, write_jsonl,
};
use mingle_model::Level;

use super::{brute, files};

/// A seeded generator (SplitMix64, Steele and others, OOPSLA 2014).
pub struct Random(pub u64);

impl Random {
    /// Returns the next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns true one time in `count`.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// The parameters of random histories.
struct Shape {
    transactions: usize,
    sessions: usize,
    keys: usize,
    operations: usize,
    /// One in this many outcomes is not committed; 0 for none.
    lost: usize,
    /// True for transactions with begin and end.
    timed: bool,
    /// True for writes with recorded versions.
    versions: bool,
    /// The level of each key.
    levels: [Level; 2],
}

/// Returns a history whose reads return written values, usually recent ones.
fn history(random: &mut Random, shape: &Shape) -> History {
    let mut written: Vec<Vec<i64>> = vec![vec![0]; shape.keys];
    let mut transactions: Vec<Transaction> = Vec::new();
    let mut versions: Vec<Vec<u64>> =
        (0..shape.keys).map(|_| shuffled(random, shape.transactions * shape.operations)).collect();
    for id in 0..shape.transactions {
        let outcome = match shape.lost {
            0 => Outcome::Committed,
            lost if random.one_in(lost) => Outcome::Aborted,
            lost if random.one_in(lost) => Outcome::Unknown,
            _ => Outcome::Committed,
        };
        let begin = id as u64 * 2 + random.below(3) as u64;
        let interval = Interval { begin, end: begin + random.below(6) as u64 };
        let count = 1 + random.below(shape.operations);
        let session = random.below(shape.sessions) as i64;
        let operations = (0..count).map(|_| {
            let key = random.below(shape.keys);
            let kind = if random.one_in(2) { Kind::Read } else { Kind::Write };
            let mut version = None;
            let value = match kind {
                Kind::Write => {
                    let value = written[key].len() as i64;
                    written[key].push(value);
                    if shape.versions {
                        version = versions[key].pop();
                    }
                    value
                }
                // A placeholder, replaced below.
                Kind::Read => -1,
            };
            let level = shape.levels[key];
            let store = level.name().into();
            Operation { kind, key: key as i64, value, store, level, version }
        });
        transactions.push(Transaction {
            id: id as i64,
            session,
            outcome,
            interval: shape.timed.then_some(interval),
            commit: None,
            is_final: false,
            operations: operations.collect(),
        });
    }
    answer(random, &mut transactions, &written);
    History::new(transactions).expect("random histories are well-formed")
}

/// Returns the numbers below a bound in random order.
fn shuffled(random: &mut Random, count: usize) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count as u64).collect();
    for place in (1..count).rev() {
        numbers.swap(place, random.below(place + 1));
    }
    numbers
}

/// Answers all reads: own writes correctly, and other reads with any value, early or late.
fn answer(random: &mut Random, transactions: &mut [Transaction], written: &[Vec<i64>]) {
    for transaction in transactions {
        let mut own: Vec<Option<i64>> = vec![None; written.len()];
        for operation in &mut transaction.operations {
            let key = operation.key as usize;
            match operation.kind {
                Kind::Write => own[key] = Some(operation.value),
                Kind::Read => {
                    let any = written[key][random.below(written[key].len())];
                    let is_own = own[key].is_some() && !random.one_in(20);
                    operation.value = if is_own { own[key].unwrap_or(any) } else { any };
                    own[key] = own[key].or(Some(operation.value));
                }
            }
        }
    }
}

/// Compares the two checkers, and counts satisfied and violated histories of each model.
fn agree(shape: &Shape, models: &[Model], seeds: std::ops::Range<u64>) -> Vec<(usize, usize)> {
    let mut counts = vec![(0, 0); models.len()];
    for seed in seeds {
        let history = history(&mut Random(seed), shape);
        for (model, count) in models.iter().zip(&mut counts) {
            let expected = brute::is_satisfied(&history, *model);
            let verdict = check(&history, *model);
            let found = match &verdict {
                Verdict::Satisfied(_) => true,
                Verdict::Violated(_) => false,
                Verdict::Unknown(reason) => panic!("seed {seed}: {model}: unknown: {reason}"),
            };
            assert_eq!(found, expected, "seed {seed}: {model}\n{}{verdict}", write_jsonl(&history));
            if let Verdict::Satisfied(witness) = &verdict {
                brute::replay(&history, *model, &witness.order, seed);
            }
            if let Verdict::Violated(found) = &verdict {
                audit(&history, &found.anomaly, seed);
            }
            if found { count.0 += 1 } else { count.1 += 1 }
        }
    }
    // Agreement is weak evidence if all verdicts are the same.
    let both = counts.iter().all(|(satisfied, violated)| *satisfied > 50 && *violated > 50);
    assert!(both, "{counts:?}");
    counts
}

/// Checks a counterexample independently: each edge is true, and they close a cycle.
fn audit(history: &History, anomaly: &Anomaly, seed: u64) {
    let Anomaly::Cycle { edges, support } = anomaly else { return };
    let ends = edges.iter().zip(edges.iter().cycle().skip(1));
    for (edge, next) in ends {
        assert_eq!(edge.to, next.from, "seed {seed}: the edges close a cycle: {anomaly}");
    }
    let find = |id: Option<i64>| history.transactions().iter().find(|found| Some(found.id) == id);
    let does = |id: Option<i64>, kind: Kind, key: i64, value: Option<i64>| {
        let operations = find(id).map(|found| found.operations.as_slice()).unwrap_or_default();
        let mut found = operations.iter().filter(|found| (found.kind, found.key) == (kind, key));
        found.any(|found| value.is_none_or(|value| value == found.value))
    };
    let reads_from = |reader: Option<i64>, writer: Option<i64>, key: i64| match find(writer) {
        None => does(reader, Kind::Read, key, Some(0)),
        Some(writer) => writer
            .operations
            .iter()
            .any(|write| write.key == key && does(reader, Kind::Read, key, Some(write.value))),
    };
    for edge in edges.iter().chain(support.iter().flatten()) {
        let (from, to) = (edge.from, edge.to);
        let is_true = match edge.why {
            // All transactions come after the initial values.
            _ if from.is_none() => true,
            Why::So => find(from).map(|found| found.session) == find(to).map(|found| found.session),
            Why::Rt => {
                let end = find(from).and_then(|found| found.interval).map(|found| found.end);
                let begin = find(to).and_then(|found| found.interval).map(|found| found.begin);
                end.zip(begin).is_some_and(|(end, begin)| end < begin)
            }
            Why::Wr(key) => reads_from(to, from, key),
            Why::WwRecorded(key) | Why::WwOverlap(key) => {
                does(from, Kind::Write, key, None) && does(to, Kind::Write, key, None)
            }
            Why::WwForced { key, reader } => {
                does(from, Kind::Write, key, None) && reads_from(reader, to, key)
            }
            Why::Rw { key, writer } => {
                reads_from(from, writer, key) && does(to, Kind::Write, key, None) && from != to
            }
        };
        assert!(is_true, "seed {seed}: {edge}\n{anomaly}");
    }
}

const ORDERED: [Model; 5] =
    [Model::Serializability, Model::Snapshot, Model::CausalPlus, Model::Causal, Model::ReadAtomic];

const PLAIN: Shape = Shape {
    transactions: 5,
    sessions: 3,
    keys: 2,
    operations: 3,
    lost: 0,
    timed: false,
    versions: false,
    levels: [Level::Linearizable; 2],
};

#[test]
fn committed_transactions() {
    agree(&PLAIN, &ORDERED, 0..4_000);
}

#[test]
fn many_writers_of_one_key() {
    agree(&Shape { keys: 1, sessions: 5, ..PLAIN }, &ORDERED, 10_000..12_000);
}

#[test]
fn aborted_and_unknown_transactions() {
    agree(&Shape { lost: 4, sessions: 2, ..PLAIN }, &ORDERED, 20_000..24_000);
}

#[test]
fn recorded_versions() {
    agree(&Shape { versions: true, ..PLAIN }, &ORDERED, 30_000..34_000);
}

#[test]
fn real_time() {
    let shape = Shape { timed: true, lost: 8, ..PLAIN };
    agree(&shape, &[Model::StrictSerializability], 40_000..44_000);
}

#[test]
fn mixed_consistency() {
    let levels = [[Level::Linearizable, Level::Causal], [Level::Snapshot, Level::Causal]];
    for (levels, seed) in levels.into_iter().zip([50_000, 60_000]) {
        let shape = Shape { timed: true, lost: 8, levels, ..PLAIN };
        agree(&shape, &[Model::Mixed], seed..seed + 2_000);
    }
}

#[test]
fn the_search_finds_orders() {
    let shape = Shape { transactions: 6, sessions: 6, ..PLAIN };
    let mut found = 0;
    for seed in 70_000..72_000 {
        let history = history(&mut Random(seed), &shape);
        if let Verdict::Satisfied(witness) = check(&history, Model::Serializability) {
            brute::replay(&history, Model::Serializability, &witness.order, seed);
            found += usize::from(witness.basis == Basis::Search);
        }
    }
    assert!(found > 200, "{found} orders were found by search");
}

/// Two pairs of writers. By single reads, either writer of a pair may come first, but no choice for
/// both pairs works. Random histories are seldom like this, so the test varies one.
#[test]
fn the_search_finds_that_there_is_no_order() {
    let (mut none, mut some) = (0, 0);
    for seed in 80_000..80_200 {
        let mut random = Random(seed);
        let mut transactions = files::named("no_order.txt").transactions().to_vec();
        for place in (1..transactions.len()).rev() {
            transactions.swap(place, random.below(place + 1));
        }
        if random.one_in(2) {
            let reader = random.below(transactions.len());
            let operations = &mut transactions[reader].operations;
            if operations[0].kind == Kind::Read {
                operations.remove(random.below(3));
            }
        }
        let history = History::new(transactions).expect("a history");
        for model in [Model::Serializability, Model::Snapshot] {
            let verdict = check(&history, model);
            let expected = brute::is_satisfied(&history, model);
            assert_eq!(verdict.is_satisfied(), expected, "seed {seed}: {model}: {verdict}");
            match verdict {
                Verdict::Violated(found) => none += usize::from(found.basis == Basis::Search),
                _ => some += 1,
            }
        }
    }
    assert!(none > 50 && some > 50, "{none} times there was no order, {some} times there was one");
}

#[test]
fn one_seed_is_one_history() {
    let text = |seed| write_jsonl(&history(&mut Random(seed), &PLAIN));
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
}
