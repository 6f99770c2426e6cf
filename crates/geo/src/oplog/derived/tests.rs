//! Random runs of three data centers that hear of each other late: at each snapshot, an index has the entries of
//! the values that the registers show there.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_model::random::Random;
use mingle_model::{Origin, TransactionId, Value};

use super::*;
use crate::timestamp::{DcId, Timestamp};
use crate::tx::Transaction;
use crate::types::{Kind, Update};
use crate::vector::Vector;

/// A mistake that the runs must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Only the newest value of each register counts.
    NewestOnly,
    /// The base of a register with operations does not count.
    BaseForgotten,
    /// Only values that were written together count: those at one place of their registers' lists.
    Together,
}

/// Returns the values that an index with this mistake sees.
pub fn spoil(mistake: Option<Mistake>, mut values: Vec<Vec<&Value>>) -> Vec<Vec<&Value>> {
    for of in &mut values {
        match mistake {
            Some(Mistake::NewestOnly) => drop(of.drain(..of.len().saturating_sub(1))),
            Some(Mistake::BaseForgotten) if of.len() > 1 => drop(of.remove(0)),
            Some(Mistake::Together) => of.truncate(1),
            _ => {}
        }
    }
    values
}

const OWNERS: [&str; 4] = ["", "a", "ab", "b"];

/// Items `x:OWNER` and `y:OWNER`, by both.
#[derive(Debug)]
struct ByBoth;

impl Derive for ByBoth {
    fn name(&self) -> &[u8] {
        b"by both"
    }

    fn owner<'k>(&self, key: &'k Key) -> Option<&'k [u8]> {
        key.name.strip_prefix(b"x:").or(key.name.strip_prefix(b"y:"))
    }

    fn items(&self, owner: &[u8]) -> Vec<Key> {
        [b"x:", b"y:"].map(|field| Key::new(Kind::Register, [field, owner].concat())).to_vec()
    }

    fn entry(&self, owner: &[u8], values: &[&Value]) -> Option<Vec<u8>> {
        let mut entry = Vec::new();
        for value in values {
            let Value::Int(value) = value else { return None };
            entry.push(u8::try_from(*value).expect("a small number"));
        }
        entry.extend(owner);
        Some(entry)
    }
}

fn all(is_reversed: bool, most: usize) -> Span {
    Span { index: b"by both".to_vec(), lower: Vec::new(), upper: None, is_reversed, most }
}

struct Run {
    random: Random,
    log: OpLog,
    /// The transactions that each data center knows.
    known: [Vector; 3],
    transactions: Vec<Arc<Transaction>>,
    /// Indexes of the transactions that have not arrived.
    travelling: Vec<usize>,
    folded: Vector,
    at: u64,
}

impl Run {
    fn new(seed: u64, mistake: Option<Mistake>) -> Self {
        let mut log = OpLog::default();
        let by: Arc<dyn Derive> = Arc::new(ByBoth);
        log.derive(&by);
        log.derived.0[0].planted = mistake;
        Self {
            random: Random::new(seed),
            log,
            known: [Vector::ZERO; 3],
            transactions: Vec::new(),
            travelling: Vec::new(),
            folded: Vector::ZERO,
            at: 0,
        }
    }

    fn write(&mut self) {
        let dc = self.random.below(3);
        let own = DcId(dc as u8);
        self.at += 1;
        let snapshot = self.known[dc];
        let commit_vec = snapshot.with(own, Timestamp(self.at));
        let count = 1 + self.random.below(2);
        let updates = (0..count).map(|_| {
            let owner = OWNERS[self.random.below(OWNERS.len())];
            let field = ["x:", "y:"][self.random.below(2)];
            let op = match self.random.below(5) {
                0 => Op::Erase,
                value => Op::Write(Value::Int(value as i64)),
            };
            Update { key: Key::new(Kind::Register, format!("{field}{owner}")), op, id: None }
        });
        let updates = updates.collect();
        let transaction = Transaction {
            id: TransactionId { origin: Origin(dc as u128), sequence: self.at },
            begun_us: 0,
            origin: own,
            commit_vec,
            snapshot_own: snapshot[own],
            updates,
        };
        self.known[dc] = commit_vec;
        self.travelling.push(self.transactions.len());
        self.transactions.push(Arc::new(transaction));
    }

    /// Lets one data center hear all that another one knows.
    fn hear(&mut self) {
        let from = self.known[self.random.below(3)];
        let to = self.random.below(3);
        self.known[to].join(&from);
    }

    fn arrive(&mut self, to: &Vector) {
        let (here, rest): (Vec<usize>, _) = std::mem::take(&mut self.travelling)
            .into_iter()
            .partition(|at| to.covers(&self.transactions[*at].commit_vec));
        self.travelling = rest;
        for at in here {
            self.log.append(&self.transactions[at]);
        }
    }

    fn fold(&mut self, to: &Vector) {
        self.arrive(to);
        self.folded.join(to);
        let folded = self.folded;
        self.arrive(&folded);
        self.log.fold_some(&folded, |_, _| false);
    }

    /// Returns the entries that hold at a snapshot, each with its owner.
    fn shown(&self, snapshot: &Vector) -> BTreeSet<(Vec<u8>, &'static str)> {
        let entries = OWNERS.into_iter().filter_map(|owner| {
            let states = ByBoth.items(owner.as_bytes());
            let states = states.iter().map(|key| self.log.peek(key, snapshot).expect("readable"));
            let states: Vec<_> = states.collect();
            let values = states.iter().map(|state| state.as_register().expect("one").value());
            let values: Vec<&Value> = values.collect::<Option<_>>()?;
            Some((ByBoth.entry(owner.as_bytes(), &values)?, owner))
        });
        entries.collect()
    }

    /// Checks a snapshot.
    fn check(&mut self, mut snapshot: Vector) -> Result<(), String> {
        snapshot.join(&self.folded);
        self.arrive(&snapshot);
        let found = self.log.entries(&all(false, usize::MAX)).expect("it has the index");
        for (entry, owner) in self.shown(&snapshot) {
            let is_loose = found.loose.iter().any(|loose| **loose == *owner.as_bytes());
            if !is_loose && !found.found.iter().any(|it| **it == *entry) {
                return Err(format!("{owner:?} lacks {entry:?} among {found:?}"));
            }
        }
        let mut reversed = self.log.entries(&all(true, 3)).expect("it has the index").found;
        reversed.reverse();
        let last = &found.found[found.found.len().saturating_sub(3)..];
        if reversed != last || !found.found.is_sorted() {
            return Err(format!("{reversed:?} are not the last of {found:?}"));
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let of = self.known[self.random.below(3)];
        match self.random.below(12) {
            0..=4 => self.write(),
            5 | 6 => self.hear(),
            // Some arrive before their causes.
            7 if !self.travelling.is_empty() => {
                let at = self.travelling.swap_remove(self.random.below(self.travelling.len()));
                self.log.append(&self.transactions[at]);
            }
            8 => self.fold(&of),
            _ => self.check(of)?,
        }
        Ok(())
    }
}

fn run(seed: u64, mistake: Option<Mistake>) -> Result<(), String> {
    let mut run = Run::new(seed, mistake);
    for step in 0..120 {
        run.step().map_err(|why| format!("seed {seed}, step {step}: {why}"))?;
    }
    let mut end = run.known[0];
    run.known.iter().for_each(|known| end.join(known));
    run.check(end).map_err(|why| format!("seed {seed}, at the end: {why}"))?;
    for _ in 0..3 {
        run.fold(&end);
    }
    let Entries { found, loose } = run.log.entries(&all(false, 100)).expect("it has the index");
    let found: Vec<Vec<u8>> = found.iter().map(|entry| entry.to_vec()).collect();
    let shown: Vec<Vec<u8>> = run.shown(&end).into_iter().map(|(entry, _)| entry).collect();
    if found != shown || !loose.is_empty() {
        return Err(format!("seed {seed}: {found:?} and {loose:?} are left of {shown:?}"));
    }
    // An index that is added later has the same entries.
    let derived = std::mem::take(&mut run.log.derived);
    let by: Arc<dyn Derive> = Arc::new(ByBoth);
    run.log.derive(&by);
    if run.log.derived.0[0].entries != derived.0[0].entries {
        return Err(format!("seed {seed}: an index that is added later differs"));
    }
    Ok(())
}

#[test]
fn an_index_has_what_the_registers_show_at_each_snapshot() {
    for seed in 0..500 {
        run(seed, None).unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn mistakes_are_found() {
    for mistake in [Mistake::NewestOnly, Mistake::BaseForgotten, Mistake::Together] {
        let found = (0..500).find_map(|seed| run(seed, Some(mistake)).err());
        assert!(found.is_some(), "no run finds {mistake:?}");
    }
}

#[test]
fn an_owner_of_many_values_is_loose_until_it_is_folded() {
    let mut run = Run::new(1, None);
    for at in 1..=20 {
        let updates = ["x:a", "y:a"].map(|key| Update {
            key: Key::new(Kind::Register, key),
            op: Op::Write(Value::Int(at)),
            id: None,
        });
        let transaction = Transaction {
            id: TransactionId { origin: Origin(0), sequence: at as u64 },
            begun_us: 0,
            origin: DcId(0),
            commit_vec: Vector::ZERO.with(DcId(0), Timestamp(at as u64)),
            snapshot_own: Timestamp(at as u64 - 1),
            updates: updates.to_vec(),
        };
        run.log.append(&Arc::new(transaction));
        let Entries { found, loose } = run.log.entries(&all(false, 1_000)).expect("it is there");
        let count = (at * at) as usize;
        let is_loose = count > COMBINATIONS_MAX;
        assert_eq!((found.len(), loose.len()), if is_loose { (0, 1) } else { (count, 0) });
    }
    run.log.fold_some(&Vector::ZERO.with(DcId(0), Timestamp(20)), |_, _| false);
    let Entries { found, loose } = run.log.entries(&all(false, 1_000)).expect("it is there");
    assert_eq!((found.len(), loose.len()), (1, 0));
    assert_eq!(*found[0], [20, 20, b'a']);
}

#[test]
fn an_owner_of_large_entries_is_loose() {
    let mut run = Run::new(1, None);
    let owner = "o".repeat(600_000);
    for (at, field, expected) in [(1, "x:", (0, 0)), (2, "y:", (1, 0)), (3, "x:", (0, 1))] {
        let key = Key::new(Kind::Register, format!("{field}{owner}"));
        let transaction = Transaction {
            id: TransactionId { origin: Origin(0), sequence: at },
            begun_us: 0,
            origin: DcId(0),
            commit_vec: Vector::ZERO.with(DcId(0), Timestamp(at)),
            snapshot_own: Timestamp(at - 1),
            updates: vec![Update { key, op: Op::Write(Value::Int(at as i64)), id: None }],
        };
        run.log.append(&Arc::new(transaction));
        let Entries { found, loose } = run.log.entries(&all(false, 1_000)).expect("it is there");
        assert_eq!((found.len(), loose.len()), expected, "after {at} writes");
    }
    run.log.fold_some(&Vector::ZERO.with(DcId(0), Timestamp(3)), |_, _| false);
    let Entries { found, loose } = run.log.entries(&all(false, 1_000)).expect("it is there");
    assert_eq!((found.len(), loose.len()), (1, 0));
}

#[test]
fn a_state_that_is_installed_and_a_cut_are_derived_anew() {
    let mut run = Run::new(2, None);
    for _ in 0..30 {
        run.write();
        run.hear();
    }
    let mut end = run.known[0];
    run.known.iter().for_each(|known| end.join(known));
    run.arrive(&end);
    let keys: Vec<Key> = run.log.keys(None).cloned().collect();
    let states: Vec<_> =
        keys.into_iter().map(|key| (key.clone(), run.log.peek(&key, &end))).collect();
    let states = states.into_iter().map(|(key, state)| (key, state.expect("readable")));
    run.log.install(end, states.collect::<Vec<_>>());
    let shown: Vec<Vec<u8>> = run.shown(&end).into_iter().map(|(entry, _)| entry).collect();
    let entries = |run: &Run| -> Vec<Vec<u8>> {
        let found = run.log.entries(&all(false, 100)).expect("it has the index").found;
        found.iter().map(|entry| entry.to_vec()).collect()
    };
    assert!(!shown.is_empty());
    assert_eq!(entries(&run), shown);
    let cut = Timestamp(run.at);
    run.known = [end; 3];
    while entries(&run) == shown {
        run.write();
        let all = run.known.iter().fold(end, |mut all, known| {
            all.join(known);
            all
        });
        run.arrive(&all);
    }
    for dc in 0..3 {
        run.log.cut_off(DcId(dc), cut.max(end[DcId(dc)]));
    }
    assert_eq!(entries(&run), shown);
}
