//! A minute without one replica or one store, under a steady load: the effects on the other stores
//! during the outage, and on all stores afterwards.
//!
//! There are two processes, clients that call at a steady pace, and the outage as the only fault.
//! Every second the run records the finished calls, their latencies and the rows at the stores.
//! This shows if calls that do not need the missing part are delayed, if rows multiply, and how
//! long the recovery takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_model::random::Random;
use mingle_model::{Name, Origin, TransactionId};
use mingle_store::{
    Address, Bytes, Data, DataStore, Once, Read, RecordKind, Session as StoreSession, World,
};

use super::calls::{ClientCall, Kind, Object, Store};
use super::extras::Extras;
use super::gather::sessions;
use super::history::Operation;
use super::run::{end, end_faults, start};
use super::setup::{Engine, Plan, Setup};
use super::stage::{Stage, lock, stage};
use crate::flaw::Flaw;
use crate::process::{Cut, Event, Schedule};
use crate::world::SimulatedWorld;

/// The setting of an outage run.
#[derive(Clone, Debug)]
pub struct Outage {
    /// The seed of the world's random source.
    pub seed: u64,
    /// The unreachable part: a replica such as `feed/r3`, or a store such as `feed`.
    pub away: Name,
    /// True if the feed is eventual instead of causal.
    pub is_eventual: bool,
    /// The duration of the load before the outage, and again after it.
    pub around: Duration,
    /// The duration of the outage.
    pub lasts: Duration,
    /// The number of clients; each makes a call every quarter of a second.
    pub clients: usize,
    /// The number of objects of each kind.
    pub objects: u8,
}

impl Default for Outage {
    fn default() -> Self {
        Self {
            seed: 1,
            away: "feed/r3".into(),
            is_eventual: true,
            around: Duration::from_secs(15),
            lasts: Duration::from_mins(1),
            clients: 12,
            objects: 100,
        }
    }
}

/// The interval between the calls of a client.
const PACE: Duration = Duration::from_millis(250);

/// The longest wait after the load until nothing is left.
const REST_MAX: Duration = Duration::from_mins(2);

/// One second of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Calls that succeeded and do not visit the missing part.
    pub others: u64,
    /// The 99th percentile of their latencies.
    pub others_p99: Duration,
    /// Calls that succeeded and visit the missing part.
    pub concerned: u64,
    /// Calls that failed and do not visit the missing part.
    pub failed_others: u64,
    /// Calls that failed and visit the missing part.
    pub failed: u64,
    /// Transactions of all processes that are not cleaned up.
    pub open: u64,
    /// Witness rows at all stores, at one replica of each.
    pub rows: u64,
    /// The maximum number of witness rows on one object.
    pub rows_on_one: u64,
    /// Commit witnesses that are not removed at the stores without a missing part, at one replica of each. The
    /// bank is left out: it holds all intents, and keeps its records while those of one transaction are needed.
    pub witnesses_elsewhere: u64,
}

/// The report of a finished run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The figures of each second.
    pub seconds: Vec<Second>,
    /// The seconds of the outage.
    pub away: std::ops::Range<usize>,
    /// The time after the load until nothing was left; `None` if something was left to the end.
    pub rest: Option<Duration>,
    /// Acknowledged calls whose writes are missing or occur more than once.
    pub wrong: Vec<String>,
}

impl Outage {
    fn load(&self) -> Duration {
        self.around * 2 + self.lasts
    }

    fn plan(&self) -> Plan {
        let mut random = Random::new(self.seed);
        let setup = Setup {
            seed: random.bits() ^ self.seed,
            processes: 2,
            clients: self.clients,
            replicas: 3,
            lived_in: 2,
            delay: Duration::from_millis(20),
            strong: mingle_store::wrap::distance::Distance {
                mean: Duration::from_millis(1),
                jitter: Duration::from_micros(300),
            },
            weak: mingle_store::wrap::distance::Distance {
                mean: Duration::from_millis(1),
                jitter: Duration::from_micros(300),
            },
            wall: Engine::Embedded(Once::Serial),
            feed: if self.is_eventual {
                Engine::Replay(Once::ById)
            } else {
                Engine::Embedded(Once::Serial)
            },
            late: 0,
            late_most: Duration::ZERO,
            clock_jumps: Duration::ZERO,
            lease: Duration::from_secs(10),
            is_eventual: self.is_eventual,
            extras: Extras::default(),
        };
        let mut events = Vec::new();
        let (since, until) = (self.around, self.around + self.lasts);
        let (all, away) = (Name::from("*"), self.away.clone());
        events.push(Event::Cut(Cut { from: all.clone(), to: away.clone(), since, until }));
        events.push(Event::Cut(Cut { from: away, to: all, since, until }));
        let mut tag = 0;
        for client in 0..self.clients {
            let mut at = PACE * client as u32 / self.clients as u32;
            while at < self.load() {
                tag += 1;
                let mut call = ClientCall::draw(&mut random, MIX, self.objects, tag);
                (call.patience_ms, call.until, call.is_twin) = (None, None, false);
                (call.moves_to, call.process) = (None, None);
                events.push(Event::Call { at, client, call });
                at += PACE;
            }
        }
        Plan { setup, schedule: Schedule(events) }
    }

    /// Runs the outage and returns the report.
    pub fn run(&self, flaw: Flaw) -> Report {
        let plan = self.plan();
        let world = SimulatedWorld::new(plan.setup.seed);
        let stage = Arc::new(stage(&plan, flaw, &world));
        let seconds = Arc::new(Mutex::new(Vec::new()));
        let clients = start(&stage, &plan);
        world.spawn(Box::pin(sample(stage.clone(), self.store().into(), seconds.clone())));
        world.run(async {
            let until = self.load() + Duration::from_mins(1);
            while world.elapsed() < until && !clients.iter().all(|is_done| *lock(is_done)) {
                world.sleep(Duration::from_millis(250)).await;
            }
        });
        end_faults(&stage);
        let rest = world.run(rest(&stage));
        let wrong = world.run(wrong(&stage, self.objects));
        end(&stage);
        let operations = lock(&stage.operations).clone();
        let mut seconds = std::mem::take(&mut *lock(&seconds));
        self.count(&operations, &mut seconds);
        seconds.truncate((self.load().as_secs() + 1) as usize);
        world.stop();
        let from = self.around.as_secs() as usize;
        Report { seconds, away: from..from + self.lasts.as_secs() as usize, rest, wrong }
    }

    /// Returns the store of the missing part.
    fn store(&self) -> &str {
        self.away.split('/').next().unwrap_or_default()
    }

    /// True if a call has to visit the missing part.
    fn concerns(&self, call: &ClientCall) -> bool {
        call.visits().iter().any(|visit| visit.store.name() == self.store())
    }

    fn count(&self, operations: &[Operation], seconds: &mut [Second]) {
        let mut times: BTreeMap<usize, Vec<Duration>> = BTreeMap::new();
        for operation in operations {
            let at = operation.ended.as_secs() as usize;
            let Some(second) = seconds.get_mut(at) else { continue };
            match (operation.end.is_done(), self.concerns(&operation.call)) {
                (true, true) => second.concerned += 1,
                (true, false) => {
                    second.others += 1;
                    times
                        .entry(at)
                        .or_default()
                        .push(operation.ended.saturating_sub(operation.began));
                }
                (false, true) => second.failed += 1,
                (false, false) => second.failed_others += 1,
            }
        }
        for (at, mut times) in times {
            times.sort_unstable();
            seconds[at].others_p99 = times[(times.len() * 99).div_ceil(100) - 1];
        }
    }
}

/// The calls of the clients; half of them do not visit the feed.
const MIX: &[Kind] = &[
    Kind::Deposit,
    Kind::Credit,
    Kind::ReadAccount,
    Kind::Pin,
    Kind::ReadBoard,
    Kind::Both,
    Kind::Transfer,
    Kind::Transfer,
    Kind::Send,
    Kind::Order,
    Kind::Post,
    Kind::Note,
];

async fn sample(stage: Arc<Stage>, away: Name, seconds: Arc<Mutex<Vec<Second>>>) {
    loop {
        stage.world.sleep(Duration::from_secs(1)).await;
        if *lock(&stage.is_over) {
            return;
        }
        let living: Vec<_> = lock(&stage.processes).iter().flatten().cloned().collect();
        let open = living.iter().map(|(_, runtime)| runtime.open() as u64).sum();
        let (mut rows, mut rows_on_one, mut witnesses_elsewhere) = (0, 0, 0);
        for store in &stage.stores {
            let on_objects = rows_of(&**store).await;
            rows += on_objects.values().sum::<u64>();
            rows_on_one = rows_on_one.max(on_objects.values().copied().max().unwrap_or(0));
            let name = &store.capabilities().store;
            if *name != away && **name != *Store::Bank.name() {
                witnesses_elsewhere += witnesses_of(&**store).await;
            }
        }
        let second = Second { open, rows, rows_on_one, witnesses_elsewhere, ..Second::default() };
        lock(&seconds).push(second);
    }
}

/// Counts the witness rows on each object at the first replica.
async fn rows_of(store: &dyn DataStore) -> BTreeMap<Option<mingle_model::Ref>, u64> {
    let mut on_objects = BTreeMap::new();
    let mut from = TransactionId { origin: Origin(0), sequence: 0 };
    let session = sessions(store).swap_remove(0);
    loop {
        let read = [Read::Witnesses { from, limit: 1_000 }];
        let Some(Data::Witnesses(rows)) = read_one(store, &session, &read).await else {
            return on_objects;
        };
        let Some(last) = rows.last().map(|row| row.id) else { return on_objects };
        for row in rows {
            *on_objects.entry(row.object).or_default() += 1;
        }
        from = TransactionId { origin: last.origin, sequence: last.sequence + 1 };
    }
}

/// Counts the commit witnesses at the first replica.
async fn witnesses_of(store: &dyn DataStore) -> u64 {
    let (mut count, mut from) = (0, Bytes::from([].as_slice()));
    let session = sessions(store).swap_remove(0);
    loop {
        let read = [Read::Records { kind: RecordKind::Witness, from: from.clone(), limit: 1_000 }];
        let Some(Data::Records(records)) = read_one(store, &session, &read).await else {
            return count;
        };
        let Some((last, _)) = records.last() else { return count };
        from = [&**last, &[0]].concat().into();
        count += records.len() as u64;
    }
}

async fn read_one(store: &dyn DataStore, session: &StoreSession, reads: &[Read]) -> Option<Data> {
    let mut transaction = store.begin(session).await.ok()?;
    transaction.read(reads).await.ok()?.into_iter().next().map(|answer| answer.data)
}

/// Returns the time until only floors are left.
async fn rest(stage: &Stage) -> Option<Duration> {
    let begin = stage.world.elapsed();
    while stage.world.elapsed() < begin + REST_MAX {
        let living: Vec<_> = lock(&stage.processes).iter().flatten().cloned().collect();
        if living.iter().all(|(_, runtime)| runtime.is_clean()) {
            return Some(stage.world.elapsed().saturating_sub(begin));
        }
        stage.world.sleep(Duration::from_millis(250)).await;
    }
    None
}

/// Returns the acknowledged calls that are not exactly once in the log of each object they write.
async fn wrong(stage: &Stage, objects: u8) -> Vec<String> {
    stage.world.sleep(Duration::from_secs(10)).await;
    let mut logs: BTreeMap<(Object, usize), Vec<String>> = BTreeMap::new();
    let kinds = [Object::Account, Object::Shelf, Object::Board, Object::Inbox];
    let all = kinds.into_iter().flat_map(|kind| (0..objects).map(kind));
    for object in all {
        let store = &stage.stores[object.store() as usize];
        for (replica, session) in sessions(&**store).iter().enumerate() {
            let entries = entries(stage, &**store, session, object).await;
            logs.insert((object, replica), entries);
        }
    }
    let mut wrong = BTreeSet::new();
    for operation in lock(&stage.operations).iter() {
        let tag = operation.call.tag_text();
        for object in operation.call.writes() {
            for ((_, replica), log) in logs.range((object, 0)..=(object, usize::MAX)) {
                let found = log.iter().filter(|entry| **entry == tag).count();
                let is_right = found == 1 || found == 0 && !operation.end.is_done();
                if !is_right {
                    wrong.insert(format!("{tag} is {found} times in {object:?} at {replica}"));
                }
            }
        }
    }
    wrong.into_iter().collect()
}

async fn entries(
    stage: &Stage,
    store: &dyn DataStore,
    session: &StoreSession,
    object: Object,
) -> Vec<String> {
    let declared = &stage.program.schema().objects[object.kind()];
    let field = declared.field_index("entries").expect("the simulated program has it") as u16;
    let log = Read::LogLast(Address { object: object.to_ref(), field }, 1_000_000);
    match read_one(store, session, &[log]).await {
        Some(Data::Values(values)) => {
            values.iter().map(|value| value.as_str().unwrap_or_default().to_owned()).collect()
        }
        other => panic!("expected the lines of a log, found {other:?}"),
    }
}

impl Report {
    /// Returns the highest ratio of witness rows to open transactions among the seconds with at
    /// least 20 open ones. The five seconds after the outage are excluded, because rows of finished
    /// transactions are being removed then.
    pub fn rows_per_open(&self) -> f64 {
        let removed = self.away.end..self.away.end + 5;
        let steady = self.seconds.iter().enumerate().filter(|(at, _)| !removed.contains(at));
        let many = steady.map(|(_, second)| second).filter(|second| second.open >= 20);
        many.map(|second| second.rows as f64 / second.open as f64).fold(0.0, f64::max)
    }

    /// Returns the calls per second that do not visit the missing part, in these seconds.
    pub fn others(&self, seconds: std::ops::Range<usize>) -> f64 {
        let within = &self.seconds[seconds];
        within.iter().map(|second| second.others).sum::<u64>() as f64 / within.len().max(1) as f64
    }

    /// Returns all successful calls per second, in these seconds.
    pub fn all(&self, seconds: std::ops::Range<usize>) -> f64 {
        let within = &self.seconds[seconds];
        let sum: u64 = within.iter().map(|second| second.others + second.concerned).sum();
        sum as f64 / within.len().max(1) as f64
    }

    /// Returns the median of the per-second `others_p99` in these seconds.
    pub fn others_p99(&self, seconds: std::ops::Range<usize>) -> Duration {
        let mut times: Vec<Duration> =
            self.seconds[seconds].iter().map(|second| second.others_p99).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "second  others  p99 ms  failed  concerned  failed  open    rows  on one  witnesses elsewhere"
        )?;
        for (at, second) in self.seconds.iter().enumerate() {
            writeln!(
                f,
                "{at:>4} {}  {:>6}  {:>6}  {:>6}  {:>9}  {:>6}  {:>4}  {:>6}  {:>6}  {:>19}",
                if self.away.contains(&at) { '*' } else { ' ' },
                second.others,
                second.others_p99.as_millis(),
                second.failed_others,
                second.concerned,
                second.failed,
                second.open,
                second.rows,
                second.rows_on_one,
                second.witnesses_elsewhere,
            )?;
        }
        match self.rest {
            Some(rest) => writeln!(f, "nothing was left {:.1} s later", rest.as_secs_f64())?,
            None => writeln!(f, "something was left {} s later", REST_MAX.as_secs())?,
        }
        for wrong in self.wrong.iter().take(10) {
            writeln!(f, "wrong: {wrong}")?;
        }
        Ok(())
    }
}
