//! Sessions that count, deposit and withdraw.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_geo::certify::Access;
use mingle_geo::{DcId, Event, Key, Kind, Op, Refusal, Session, State, Update, Vector};
use mingle_model::Value;

use crate::strong::world::World;

const COUNTS: usize = 3;
const ACCOUNTS: usize = 3;

/// The current step of a client.
#[derive(Clone, Debug, PartialEq)]
enum Task {
    /// Reads numbers and writes the next ones, as a strong transaction.
    Count { keys: Vec<Key>, wrote: Vec<i64>, line: i64 },
    /// Withdraws money if the balance allows it.
    Withdraw { key: Key, amount: Option<i64> },
    /// Deposits money causally, and appends a line that the next strong transaction depends on.
    Deposit { key: Key, amount: i64, line: i64 },
}

pub struct Client {
    pub session: Session,
    task: Option<Task>,
    /// The last line that it wrote causally.
    line: i64,
    waits: u32,
}

/// The acknowledged operations, and those that may have happened.
#[derive(Default)]
pub struct Books {
    /// By item: the written numbers, each with the line that its transaction depended on; 0 for
    /// none.
    counted: BTreeMap<Key, BTreeMap<i64, i64>>,
    uncertain: usize,
    /// By account: the known sum of deposits and withdrawals, and the uncertain sum.
    balances: BTreeMap<Key, (i64, i64)>,
    next_line: i64,
}

impl Client {
    pub fn new(session: Session) -> Self {
        Self { session, task: None, line: 0, waits: 0 }
    }
}

fn lines() -> Key {
    Key::new(Kind::Log, "lines")
}

fn number(state: &State) -> i64 {
    match state.as_register().and_then(|register| register.value()) {
        Some(Value::Int(number)) => *number,
        _ => 0,
    }
}

fn balance(state: &State) -> i64 {
    state.as_counter().map_or(0, |counter| i64::try_from(counter.value()).expect("small"))
}

impl World {
    pub fn act(&mut self, number: u64) {
        let client = &mut self.clients[number as usize];
        let dc = client.session.dc();
        if !client.session.is_idle() {
            return;
        }
        if self.lost == Some(dc.0) {
            // It continues at another data center, without the lost part.
            let to = DcId((dc.0 + 1) % self.dcs);
            client.task = None;
            client.session.leave_unanswered();
            client.session.rollback();
            return self
                .call(number, |session, now, out| session.attach(now, to, out).expect("idle"));
        }
        if client.task.is_some() && client.session.unanswered().is_some() {
            client.waits += 1;
            if client.waits < 8 {
                return self
                    .call(number, |session, now, out| session.ask(now, out).expect("a commit"));
            }
            client.session.leave_unanswered();
            let task = client.task.take();
            return self.uncertain(task);
        }
        if client.task.is_none() && !self.is_over {
            self.begin(number);
        }
    }

    fn begin(&mut self, number: u64) {
        let line = self.books.next_line + 1;
        let choice = self.random.below(3);
        let account = Key::new(Kind::Counter, format!("a{}", self.random.below(ACCOUNTS)));
        let counts: BTreeSet<usize> =
            (0..=self.random.below(2)).map(|_| self.random.below(COUNTS)).collect();
        let counts = counts.into_iter().map(|index| Key::new(Kind::Register, format!("n{index}")));
        let keys: Vec<Key> = counts.collect();
        let amount = 1 + self.random.below(20) as i64;
        let client = &mut self.clients[number as usize];
        client.waits = 0;
        match choice {
            0 => {
                let line = client.line;
                client.task = Some(Task::Count { keys: keys.clone(), wrote: Vec::new(), line });
                self.call(number, |session, now, out| {
                    session.begin_strong(now).expect("idle");
                    session.read(now, keys, out).expect("idle");
                });
            }
            1 => {
                client.task = Some(Task::Withdraw { key: account.clone(), amount: None });
                self.call(number, |session, now, out| {
                    session.begin_strong(now).expect("idle");
                    let label = "withdraw".into();
                    session.label(account.clone(), Access::Write, label).expect("strong");
                    session.read(now, vec![account], out).expect("idle");
                });
            }
            _ => {
                self.books.next_line = line;
                client.task = Some(Task::Deposit { key: account.clone(), amount, line });
                self.call(number, |session, now, out| {
                    let add = Update { key: account, op: Op::Add(amount), id: None };
                    session.write(now, add).expect("idle");
                    let op = Op::Append(Value::Int(line));
                    session.write(now, Update { key: lines(), op, id: None }).expect("idle");
                    session.commit(now, out).expect("idle");
                });
            }
        }
    }

    pub fn on_event(&mut self, number: u64, event: Event) {
        match event {
            Event::Read(states) => self.on_read(number, &states),
            Event::Committed { commit_vec, .. } => self.on_committed(number, commit_vec),
            Event::Aborted { refusal, .. } => {
                self.clients[number as usize].task = None;
                if matches!(refusal, Refusal::Conflict { .. }) {
                    self.met.conflicts += 1;
                }
            }
            Event::Unknown { .. } => self.met.unknown += 1,
            Event::Failed(_) => self.clients[number as usize].task = None,
            Event::Waiting(_) => {
                self.call(number, |session, now, out| {
                    session.accept_loss(now, out).expect("waits");
                });
            }
            Event::Resumed(_) | Event::ResumedWithLoss { .. } => {
                // Its writes may be lost, and no strong transaction depends on them.
                self.clients[number as usize].line = 0;
            }
            Event::Uniform => {}
        }
    }

    fn on_read(&mut self, client: u64, states: &[Arc<State>]) {
        let Some(task) = &mut self.clients[client as usize].task else { return };
        let updates = match task {
            Task::Count { keys, wrote, .. } => {
                *wrote = states.iter().map(|state| number(state) + 1).collect();
                let writes = keys.iter().zip(wrote).map(|(key, next)| Update {
                    key: key.clone(),
                    op: Op::Write(Value::Int(*next)),
                    id: None,
                });
                writes.collect()
            }
            Task::Withdraw { key, amount } => {
                let there = balance(&states[0]);
                assert!(there >= 0, "{key:?} is overdrawn: {there}");
                if there < 5 {
                    self.met.refused_withdrawals += 1;
                    let client = &mut self.clients[client as usize];
                    client.task = None;
                    return client.session.rollback();
                }
                let take = there / 2 + 1;
                *amount = Some(take);
                vec![Update { key: key.clone(), op: Op::Add(-take), id: None }]
            }
            Task::Deposit { .. } => return,
        };
        self.call(client, |session, now, out| {
            for update in updates {
                session.write(now, update).expect("idle");
            }
            session.commit(now, out).expect("idle");
        });
    }

    fn on_committed(&mut self, number: u64, _commit_vec: Vector) {
        let client = &mut self.clients[number as usize];
        match client.task.take() {
            Some(Task::Count { keys, wrote, line }) => {
                self.met.strong += 1;
                for (key, wrote) in keys.into_iter().zip(wrote) {
                    let counted = self.books.counted.entry(key.clone()).or_default();
                    assert_eq!(counted.insert(wrote, line), None, "{key:?}: twice {wrote}");
                }
            }
            Some(Task::Withdraw { key, amount: Some(amount) }) => {
                self.met.strong += 1;
                self.books.balances.entry(key).or_default().0 -= amount;
            }
            Some(Task::Deposit { key, amount, line }) => {
                self.met.causal += 1;
                client.line = line;
                self.books.balances.entry(key).or_default().0 += amount;
            }
            _ => {}
        }
    }

    fn uncertain(&mut self, task: Option<Task>) {
        match task {
            Some(Task::Count { .. }) => self.books.uncertain += 1,
            Some(Task::Withdraw { key, amount: Some(amount) }) => {
                self.books.balances.entry(key).or_default().1 += amount;
            }
            Some(Task::Deposit { key, amount, .. }) => {
                self.books.balances.entry(key).or_default().1 += amount;
            }
            _ => {}
        }
    }

    pub fn check(&self) {
        let living = (0..self.dcs).filter(|dc| Some(*dc) != self.lost);
        for dc in living {
            let state = |key: &Key| {
                let partition = key.partition(self.partitions).0;
                let node = self.nodes[&(dc, partition)].replica.as_ref().expect("it runs");
                let all = node.replica().stable_vec();
                node.replica().inspect(key, &all).expect("the newest")
            };
            let seen = state(&lines());
            let seen: Vec<&Value> = seen.as_log().expect("a log").iter().collect();
            for (key, counted) in &self.books.counted {
                let (last, most) = (number(&state(key)), counted.len() as i64);
                let highest = counted.keys().next_back().copied().unwrap_or(0);
                assert!(
                    last >= highest,
                    "d{dc} {key:?}: {highest} was acknowledged, {last} is there"
                );
                assert!(last >= most, "d{dc} {key:?}: an increment is lost");
                for line in counted.values().filter(|line| **line > 0) {
                    let is_there = seen.contains(&&Value::Int(*line));
                    assert!(is_there, "d{dc}: a strong transaction rested on line {line}");
                }
            }
            for index in 0..ACCOUNTS {
                let key = Key::new(Kind::Counter, format!("a{index}"));
                let there = balance(&state(&key));
                assert!(there >= 0, "d{dc}: {key:?} is overdrawn: {there}");
                let (known, uncertain) = self.books.balances.get(&key).copied().unwrap_or_default();
                let is_near = (there - known).abs() <= uncertain;
                assert!(is_near || self.lost.is_some(), "d{dc} {key:?}: {there}, not {known}");
            }
        }
    }
}
