//! The acts of clients: a function of the seed, the client and the act's index alone, so the
//! remaining acts do not change when other events are removed from a schedule.

use mingle_geo::types::item::Side;
use mingle_geo::{Key, Kind, Op, OpId, Update};
use mingle_model::random::{Random, mix};
use mingle_model::{Origin, TransactionId, Value};

use super::items;
use super::setup::{Focus, Setup, weighted};
use super::strong::{ATTEMPTS_MAX, DEPOSIT, WITHDRAW};

/// The origin of the transactions to which operation ids belong; no session has it.
pub const HELPED: Origin = Origin(u128::MAX);

/// One act of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Reads and writes.
    Transaction {
        /// The reads and writes, in order.
        steps: Vec<Step>,
        /// The end of the transaction.
        end: Close,
        /// True if the transaction is strong.
        is_strong: bool,
    },
    /// Waits until the client's whole past is uniform.
    Barrier,
    /// Continues at another data center.
    Attach(u8),
    /// Continues at another data center, in another process with this client's token.
    Move(u8),
    /// Adds the token of another client.
    Join(usize),
    /// Starts anew without a past.
    Leave,
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Reads these keys at once.
    Read(Vec<Key>),
    /// Writes.
    Write(Update),
    /// Labels the access to an item; only in strong transactions.
    Label(Key, &'static str),
    /// Lets an item expire this many microseconds later.
    Expire {
        /// The item.
        key: Key,
        /// The time until the deadline; negative for a time that has passed.
        in_us: i64,
    },
    /// Removes elements of the list that the last read of the item showed.
    Pop {
        /// The item.
        key: Key,
        /// The end of the list.
        side: Side,
        /// The number of elements.
        count: usize,
    },
    /// Takes this amount from an account if the last read showed that it is there.
    Take(Key, i64),
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// It commits.
    Commit,
    /// The client rolls it back.
    Rollback,
    /// The client vanishes once this many messages of the commit have been sent.
    Vanish(u32),
}

/// Returns the act of a client with this index, for the first or a later attempt.
pub fn act(setup: &Setup, seed: u64, client: usize, index: usize, attempt: u32) -> Act {
    let mut random = Random::new(mix(seed ^ mix((client as u64) << 32 | index as u64)));
    let is_coordinators = setup.focus == Focus::Coordinators;
    let is_helpers = setup.focus == Focus::Helpers;
    let (many, some) = (60, 4);
    let choices = [
        (24, Choice::OneShot),
        (many, Choice::Transaction),
        (if is_helpers { many } else { some * 2 }, Choice::Help),
        (some, Choice::Barrier),
        (some, Choice::Attach),
        (some / 2, Choice::Move),
        (some / 2, Choice::Join),
        (1, Choice::Leave),
        (if is_coordinators { 10 } else { 1 }, Choice::Vanish),
    ];
    let other_dc = |random: &mut Random| random.below(usize::from(setup.config.dc_count)) as u8;
    let mut writer =
        Writer { setup, random: Random::new(random.bits()), client, index, attempt, count: 0 };
    let act = match weighted(&mut random, &choices) {
        Choice::OneShot => {
            let steps = vec![Step::Read(writer.some_keys(6))];
            Act::Transaction { steps, end: Close::Commit, is_strong: false }
        }
        Choice::Transaction => writer.transaction(),
        Choice::Help => writer.help(seed),
        Choice::Barrier => Act::Barrier,
        Choice::Attach => Act::Attach(other_dc(&mut random)),
        Choice::Move => Act::Move(other_dc(&mut random)),
        Choice::Join => Act::Join(random.below(setup.clients)),
        Choice::Leave => Act::Leave,
        Choice::Vanish => match writer.transaction() {
            Act::Transaction { steps, is_strong, .. } => {
                let end = Close::Vanish(1 + random.below(6) as u32);
                Act::Transaction { steps, end, is_strong }
            }
            act => act,
        },
    };
    setup.act_of(act)
}

#[derive(Clone, Copy)]
enum Choice {
    OneShot,
    Transaction,
    Help,
    Barrier,
    Attach,
    Move,
    Join,
    Leave,
    Vanish,
}

struct Writer<'a> {
    setup: &'a Setup,
    random: Random,
    client: usize,
    index: usize,
    attempt: u32,
    count: i64,
}

impl Writer<'_> {
    /// Returns a number that no other operation writes.
    fn number(&mut self) -> i64 {
        self.count += 1;
        let act = (self.client as i64 + 1) * 100_000 + self.index as i64;
        (act * i64::from(ATTEMPTS_MAX + 1) + i64::from(self.attempt)) * 100 + self.count
    }

    fn plain(&self) -> &[Key] {
        &self.setup.keys[..self.setup.plain_keys]
    }

    fn some_keys(&mut self, most: usize) -> Vec<Key> {
        let count = 1 + self.random.below(most);
        let all = &self.setup.keys;
        (0..count).map(|_| self.random.pick(all).clone()).collect()
    }

    fn transaction(&mut self) -> Act {
        let strong = &self.setup.strong;
        let is_strong = strong.is_some() && self.random.below(100) < strong.percent;
        if strong.is_some() && self.random.one_in(4) {
            return self.of_account(is_strong);
        }
        let mut steps = Vec::new();
        let is_blind = self.random.one_in(4);
        let rounds = if self.random.one_in(5) { 2 + self.random.below(3) } else { 1 };
        for _ in 0..rounds {
            if !is_blind {
                steps.push(Step::Read(self.some_keys(4)));
            }
            for _ in 0..self.random.below(4) {
                let key = self.random.below(self.setup.plain_keys);
                let key = self.plain()[key].clone();
                steps.extend(self.change(key));
            }
            if self.random.one_in(6) {
                // The transaction's own writes are visible to it.
                let written = steps.iter().filter_map(|step| match step {
                    Step::Write(update) => Some(update.key.clone()),
                    Step::Expire { key, .. } | Step::Pop { key, .. } => Some(key.clone()),
                    _ => None,
                });
                let written: Vec<Key> = written.collect();
                if !written.is_empty() {
                    steps.push(Step::Read(written));
                }
            }
        }
        if steps.is_empty() {
            steps.push(Step::Read(self.some_keys(2)));
        }
        let end = if self.random.one_in(25) { Close::Rollback } else { Close::Commit };
        Act::Transaction { steps, end, is_strong }
    }

    /// Draws the steps that change an item without operation ids.
    fn change(&mut self, key: Key) -> Vec<Step> {
        if key.kind == Kind::Item {
            let number = self.number();
            return items::draw(&mut self.random, key, number);
        }
        let op = self.op(key.kind);
        vec![Step::Write(Update { key, op, id: None })]
    }

    fn op(&mut self, kind: Kind) -> Op {
        let small = Value::Int(self.random.below(4) as i64);
        let amount = 1 + self.random.below(9) as i64;
        match (kind, self.random.below(12)) {
            (Kind::Register, 0) => Op::Erase,
            (Kind::Register, _) => Op::Write(Value::Int(self.number())),
            (Kind::Counter, 0 | 1) => Op::Reset,
            (Kind::Counter, 2 | 3) => Op::Add(-amount),
            (Kind::Counter, _) => Op::Add(amount),
            (Kind::Set, 0) => Op::Clear,
            (Kind::Set, 1..=3) => Op::Remove(small),
            (Kind::Set, _) => Op::Insert(small),
            (Kind::Map, 0) => Op::Empty,
            (Kind::Map, 1 | 2) => Op::Delete(small),
            (Kind::Map, 3..=7) => Op::Put(small, Value::Int(self.number())),
            (Kind::Map, _) => Op::Increment(small, amount),
            (Kind::Log, 0) if self.random.one_in(3) => Op::Clear,
            (Kind::Log, _) => Op::Append(Value::Int(self.number())),
            (Kind::Item, _) => unreachable!("see change"),
        }
    }

    /// Draws an act on an account: a withdrawal, a deposit or a read. Only strong transactions
    /// withdraw.
    fn of_account(&mut self, is_strong: bool) -> Act {
        let key = self.random.pick(self.setup.accounts()).clone();
        let amount = 1 + self.random.below(9) as i64;
        let add = Step::Write(Update { key: key.clone(), op: Op::Add(amount), id: None });
        let read = Step::Read(vec![key.clone()]);
        let steps = match (is_strong, self.random.below(8)) {
            (true, 0..=4) => {
                vec![Step::Label(key.clone(), WITHDRAW), read, Step::Take(key, amount)]
            }
            (true, 5) => vec![Step::Label(key, DEPOSIT), add],
            (_, 6) => vec![read],
            _ => vec![add],
        };
        // The act has other steps too.
        let mut steps = steps;
        if self.random.one_in(3) {
            let key = self.random.below(self.setup.plain_keys);
            let key = self.plain()[key].clone();
            steps.extend(self.change(key));
        }
        Act::Transaction { steps, end: Close::Commit, is_strong }
    }

    /// Runs operations that other clients run too, at about the same time.
    fn help(&mut self, seed: u64) -> Act {
        let helped = &self.setup.keys[self.setup.plain_keys..];
        if helped.is_empty() {
            return self.transaction();
        }
        let mut steps = Vec::new();
        if self.random.one_in(3) {
            let key = self.random.pick(helped).clone();
            steps.push(Step::Read(vec![key]));
        }
        let back = self.random.below(3) as u64;
        let task = ((self.index as u64) / 3).saturating_sub(back) + 1;
        let mut drawn = Random::new(mix(seed ^ 0x0add_1e55 ^ task));
        for position in 0..=drawn.below(3) as u32 {
            let key = drawn.pick(helped).clone();
            let op = match key.kind {
                Kind::Item => Op::Item(items::helped(self.setup, task, position, &mut drawn)),
                kind => helped_op(kind, task, position, &mut drawn),
            };
            let transaction = TransactionId { origin: HELPED, sequence: task };
            let id = Some(OpId { transaction, phase: 1, position });
            steps.push(Step::Write(Update { key, op, id }));
        }
        if self.random.one_in(4) {
            steps.push(Step::Read(helped.to_vec()));
        }
        let end = if self.random.one_in(12) { Close::Vanish(1) } else { Close::Commit };
        Act::Transaction { steps, end, is_strong: false }
    }
}

/// Returns the operation of an id; every client that runs it gets the same one. Sums are never
/// reset under ids: two resets that saw different runs of one addition both subtract it, as the
/// core's docs say.
fn helped_op(kind: Kind, task: u64, position: u32, drawn: &mut Random) -> Op {
    let number = Value::Int(task as i64 * 100 + i64::from(position));
    let small = Value::Int(drawn.below(4) as i64);
    let amount = 1 + drawn.below(9) as i64;
    match (kind, drawn.below(6)) {
        (Kind::Register, _) => Op::Write(number),
        (Kind::Counter, _) => Op::Add(amount),
        (Kind::Set, 0) => Op::Remove(small),
        (Kind::Set, _) => Op::Insert(small),
        (Kind::Map, 0..=2) => Op::Put(small, number),
        (Kind::Map, _) => Op::Increment(small, amount),
        (Kind::Log, _) => Op::Append(number),
        (Kind::Item, _) => unreachable!("see items::helped"),
    }
}
