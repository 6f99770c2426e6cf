//! Generated programs with endorsements, several runs at once: each run must compute the program's
//! results on the data that its phases met.
//!
//! All stores are serializable here, so a phase is a point in the history of its store, and it
//! meets the state there at that point. An endorsed value is computed from the states that the
//! early phases met, all other values from the states of the other phases. So the plain interpreter
//! runs twice over these states: once for the endorsed values, once for the rest.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_lang::flow::Rules;
use mingle_lang::generate::{self, Random};
use mingle_lang::hir::StoreId;
use mingle_lang::plain::{self, Abort, Endorsed, EndorsedValues, Outside, State};
use mingle_lang::split::Mutation;
use mingle_lang::syntax::Span;
use mingle_lang::{Plan, Program, check_with};
use mingle_model::{Level, Time, TransactionId, Value};
use mingle_runtime::planted::Planted;
use mingle_runtime::{Call, Error, Runtime, Settings};
use mingle_store::test_world::join_all;
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Read, Session,
    StoreError, TestWorld, Transaction, World, Write,
};

use crate::embedded::{load, open_with};
use crate::harness::{arguments, operate, random_state};
use crate::model_store::apply;

/// The number of runs at once.
const RUNS: usize = 3;

/// An event at a store; the log keeps them in order.
#[derive(Clone, Debug)]
pub struct Entry {
    run: usize,
    store: StoreId,
    /// The writes of a commit; none for the begin of a phase.
    written: Option<Vec<Write>>,
}

pub type Log = Arc<Mutex<Vec<Entry>>>;

/// A store that lets other runs in between, and logs its events.
struct Watched {
    inner: Arc<dyn DataStore>,
    run: usize,
    store: StoreId,
    world: Arc<TestWorld>,
    log: Log,
}

impl Watched {
    fn note(&self, written: Option<Vec<Write>>) {
        let entry = Entry { run: self.run, store: self.store, written };
        self.log.lock().expect("no test panics with this lock").push(entry);
    }

    fn wait(&self) -> BoxFuture<'static, ()> {
        self.world.sleep(Duration::from_millis(self.world.random() % 5))
    }
}

/// The view of the store that a runtime has.
struct WatchedStore(Arc<Watched>);

impl DataStore for WatchedStore {
    fn capabilities(&self) -> &Capabilities {
        self.0.inner.capabilities()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        // Clean-up names no transaction.
        let is_phase = session.transaction.is_some();
        Box::pin(async move {
            self.0.wait().await;
            let inner = self.0.inner.begin(session).await?;
            if is_phase {
                self.0.note(None);
            }
            let transaction =
                WatchedTransaction { inner, store: self.0.clone(), flushed: Vec::new(), is_phase };
            Ok(Box::new(transaction) as Box<dyn Transaction>)
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        self.0.inner.outcome(id)
    }
}

struct WatchedTransaction {
    inner: Box<dyn Transaction>,
    store: Arc<Watched>,
    flushed: Vec<Write>,
    is_phase: bool,
}

impl Transaction for WatchedTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        self.inner.read(reads)
    }

    fn read_last<'a>(
        &'a mut self,
        reads: &'a [Read],
    ) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        self.inner.read_last(reads)
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.flushed.extend(writes.iter().cloned());
        self.inner.flush(writes)
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let Self { inner, store, mut flushed, is_phase } = *self;
        Box::pin(async move {
            store.wait().await;
            flushed.extend(commit.writes.iter().cloned());
            flushed.retain(is_data);
            let committed = inner.commit(commit).await?;
            if is_phase && !flushed.is_empty() {
                store.note(Some(flushed));
            }
            Ok(committed)
        })
    }
}

fn is_data(write: &Write) -> bool {
    !matches!(write, Write::Witness(_) | Write::Forget(_) | Write::Record(..) | Write::Discard(_))
}

/// A world in which each run always draws the same number.
struct OneNumber {
    world: Arc<TestWorld>,
    number: u64,
}

impl World for OneNumber {
    fn now(&self) -> Time {
        Time::from_millis(1_000)
    }

    fn elapsed(&self) -> Duration {
        self.world.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.world.sleep(duration)
    }

    fn random(&self) -> u64 {
        self.number
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.world.spawn(task);
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        self.world.run_blocking(work)
    }
}

/// The findings of a seed's runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The compiler accepts the program.
    pub compiled: bool,
    /// An endorsement in it has an effect.
    pub endorses: bool,
    /// Runs that took effect and were judged.
    pub judged: u64,
    /// Judged runs whose endorsed values differed from the data that their other phases met.
    pub aged: u64,
}

/// Judges as [`judge`], where a panic is a difference too.
///
/// # Errors
///
/// The difference between a run and its program.
pub fn judge_or_panic(seed: u64, rules: Rules, mutation: Mutation) -> Result<Shown, String> {
    let judged = std::panic::catch_unwind(|| judge(seed, rules, mutation));
    judged.unwrap_or_else(|_| Err("panicked".into()))
}

/// Runs the program of a seed several times at once.
///
/// # Errors
///
/// The difference between a run and its program.
pub fn judge(seed: u64, rules: Rules, mutation: Mutation) -> Result<Shown, String> {
    let checked = check_with(generate::program(seed), rules, mutation);
    let warnings = checked.diagnostics.iter().filter(|found| found.code.text() == "W0403");
    let needless: Vec<Span> = warnings.map(|found| found.span).collect();
    let Some(program) = checked.program.map(Arc::new) else { return Ok(Shown::default()) };
    let plan = program.plan("t").expect("every generated program has it");
    if !plan.holds.is_empty() {
        // A take that runs ahead changes its counter before the transaction has committed, so a run that fails has
        // written, and given back: `takes` and the simulation judge those.
        return Ok(Shown { compiled: true, ..Shown::default() });
    }
    if program.operations(StoreId(0)).any(|operation| operation.draws().is_some()) {
        // A run draws before it takes effect, so its number need not be the next one then: the conformance suite judges
        // draws.
        return Ok(Shown { compiled: true, ..Shown::default() });
    }
    let mut random = Random::new(seed ^ 0x7E7E_7E7E);
    let state = random_state(&program, &mut random);
    let calls: Vec<Vec<Value>> = (0..RUNS).map(|_| arguments(&mut random)).collect();
    let world = TestWorld::new(seed);
    let stores = open_with(&program, world.clone(), |_| Level::Linearizable);
    load(&program, &stores, &state);
    let log = Log::default();
    let runs = calls.iter().enumerate().map(|(run, arguments)| {
        let runtime = runtime(&program, &stores, &world, &log, (run, mutation));
        let call = Call::new("t", arguments.clone());
        let run: BoxFuture<'_, Result<Option<Value>, Error>> =
            Box::pin(async move { runtime.call(call).await.map(|report| report.result) });
        run
    });
    let results = world.block_on(join_all(runs.collect()));
    let log = log.lock().expect("no test panics with this lock").clone();
    let mut shown = Shown { compiled: true, endorses: plan.endorses(), ..Shown::default() };
    let history =
        History { program: &program, plan, state: &state, log: &log, needless: &needless };
    for (run, result) in results.iter().enumerate() {
        let arguments = &calls[run];
        match result {
            Ok(result) => history.check(run, arguments, result.as_ref(), &mut shown)?,
            Err(Error::Incomplete { .. }) => return Err(format!("run {run}: {result:?}")),
            // It took no effect, so none of its writes may be there.
            Err(error) if log.iter().any(|entry| entry.run == run && entry.written.is_some()) => {
                return Err(format!("run {run} failed and wrote: {error:?}"));
            }
            Err(_) => {}
        }
    }
    Ok(shown)
}

/// Creates a runtime over stores that let other runs in between.
pub fn runtime(
    program: &Arc<Program>,
    stores: &[Arc<dyn DataStore>],
    world: &Arc<TestWorld>,
    log: &Log,
    (run, mutation): (usize, Mutation),
) -> Arc<Runtime> {
    let watched = stores.iter().enumerate().map(|(store, inner)| {
        let watched = Watched {
            inner: inner.clone(),
            run,
            store: StoreId(store as u32),
            world: world.clone(),
            log: log.clone(),
        };
        Arc::new(WatchedStore(Arc::new(watched))) as Arc<dyn DataStore>
    });
    let world = Arc::new(OneNumber { world: world.clone(), number: number_of(run) });
    let settings = Settings {
        steps_max: 100_000,
        help_after: Duration::from_hours(1),
        deadline: Duration::from_mins(1),
        ..Settings::default()
    };
    let runtime = Runtime::new(program.clone(), watched.collect(), world, settings);
    // All answers are of the stores' own levels, as in the plain runs.
    let levels = program.checked.clone();
    let runtime = runtime.with_answers(Arc::new(move |store, _, _, data| {
        Some((levels.levels.name(levels.level_of(store)).clone(), data))
    }));
    if mutation == Mutation::AgreementIgnored {
        // If the store of a condition is visited again, all data that was read there early is
        // compared too.
        return runtime.with_mutation(mutation).with_planted(Planted::EndorsementUnchecked);
    }
    runtime.with_mutation(mutation)
}

fn number_of(run: usize) -> u64 {
    0x1234_5678_9ABC_0000 + run as u64
}

fn seed_of(run: usize) -> u128 {
    u128::from(number_of(run)) << 64 | u128::from(number_of(run))
}

/// The events of the runs, and the data to judge them by.
struct History<'a> {
    program: &'a Arc<Program>,
    plan: &'a Plan,
    state: &'a State,
    log: &'a [Entry],
    needless: &'a [Span],
}

/// The point in the log at which a phase took place, and whether it wrote.
struct Place {
    store: StoreId,
    is_early: bool,
    at: usize,
    wrote: bool,
}

impl History<'_> {
    /// Returns the objects of a store after the first `at` entries.
    fn store_at(&self, store: StoreId, at: usize) -> State {
        let mut state = self.state.only(|kind| self.is_in(store, kind));
        for entry in self.log[..at].iter().filter(|entry| entry.store == store) {
            for write in entry.written.iter().flatten() {
                apply(&self.program.checked, store, &mut state, write.clone());
            }
        }
        state
    }

    fn is_in(&self, store: StoreId, kind: &str) -> bool {
        let objects = &self.program.checked.objects;
        objects.iter().any(|object| object.store == store && *object.declared.name == *kind)
    }

    /// Returns the points of the phases of a run, in its last attempt.
    fn places(&self, run: usize) -> Vec<Place> {
        let mut places = Vec::new();
        let mut end = self.log.len();
        for phase in self.plan.phases.iter().rev() {
            let Some(store) = phase.store else { continue };
            let is_mine = |entry: &Entry| entry.run == run && entry.store == store;
            let begins = |entry: &Entry| is_mine(entry) && entry.written.is_none();
            // A phase whose code visits nothing did not begin.
            let Some(begun) = self.log[..end].iter().rposition(begins) else { continue };
            let wrote = |entry: &Entry| is_mine(entry) && entry.written.is_some();
            let written = self.log[begun..end].iter().position(wrote);
            let at = written.map_or(begun, |after| begun + after);
            let is_early = phase.before_endorsement;
            places.push(Place { store, is_early, at, wrote: written.is_some() });
            end = begun;
        }
        places
    }

    fn check(
        &self,
        run: usize,
        arguments: &[Value],
        result: Option<&Value>,
        shown: &mut Shown,
    ) -> Result<(), String> {
        let places = self.places(run);
        let (mut early, mut late) = (State::default(), State::default());
        for store in (0..self.program.checked.stores.len() as u32).map(StoreId) {
            let met = |is_early: bool| {
                let found =
                    places.iter().find(|place| place.store == store && place.is_early == is_early);
                found.map(|place| self.store_at(store, place.at))
            };
            let nowhere = || self.store_at(store, 0);
            let (before, after) = (met(true), met(false));
            early.join(before.clone().or_else(|| after.clone()).unwrap_or_else(nowhere));
            late.join(after.or(before).unwrap_or_else(nowhere));
        }
        let has_aged = early.normal() != late.normal();
        let values = match self.endorsed(run, arguments, early) {
            Ok(values) => values,
            // The steps needed to go on after a `return` are not part of the program's meaning.
            Err(Abort::Limit) => return Ok(()),
            Err(abort) => return Err(format!("run {run}, early: {abort:?}")),
        };
        let given = Endorsed::Given { values: &values, needless: self.needless };
        let plain = self.plain(run, arguments, &mut late, given);
        if plain.as_ref().map(Option::as_ref) != Ok(result) {
            return Err(format!("run {run} gave {result:?}, its program {plain:?}"));
        }
        for place in places.iter().filter(|place| !place.is_early) {
            let after = self.store_at(place.store, place.at + usize::from(place.wrote));
            let expected = late.only(|kind| self.is_in(place.store, kind));
            if after.normal() != expected.normal() {
                let store = &self.program.checked.stores[place.store.index()].name;
                return Err(format!(
                    "run {run} left at {store}\n{:?}\nand its program leaves\n{:?}",
                    after.normal(),
                    expected.normal()
                ));
            }
        }
        shown.judged += 1;
        shown.aged += u64::from(has_aged && !values.is_empty());
        Ok(())
    }

    fn endorsed(
        &self,
        run: usize,
        arguments: &[Value],
        mut early: State,
    ) -> Result<EndorsedValues, Abort> {
        let mut values = EndorsedValues::new();
        self.plain(run, arguments, &mut early, Endorsed::Early(&mut values))?;
        Ok(values)
    }

    fn plain(
        &self,
        run: usize,
        arguments: &[Value],
        state: &mut State,
        endorsed: Endorsed<'_>,
    ) -> Result<Option<Value>, Abort> {
        let transaction =
            self.program.checked.transaction("t").expect("every generated program has it");
        let bounds = (Time::from_millis(1_000), seed_of(run), 1_000_000);
        let outside = Outside { operations: Some(&operate), endorsed, answered: None };
        plain::run_with(&self.program.checked, transaction, arguments, state, bounds, outside)
    }
}
