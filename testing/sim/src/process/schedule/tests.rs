use std::sync::Arc;

use mingle_model::Level;
use mingle_model::random::Random;
use mingle_store::conformance::schema::{COUNT, at, store_schema};
use mingle_store::wrap::fault::{FaultPlan, FaultyStore};
use mingle_store::{Commit, Data, DataStore, Read, Session, StoreError, World, Write};
use mingle_store_embedded::{Embedded, EmbeddedConfig};

use super::*;
use crate::SimulatedWorld;
use crate::process::{
    ClockRates, DeathPlan, MortalStore, PartitionedStore, Partitions, Process, shrink,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Draws a schedule of adding calls with all kinds of faults.
fn draw(seed: u64) -> Schedule<i128> {
    let mut random = Random::new(seed);
    let mut events = Vec::new();
    for call in 0..12 {
        events.push(Event::Call { at: ms(call * 50), client: 0, call: i128::from(call + 1) });
    }
    for _ in 0..4 {
        let at = ms(random.below(600) as u64);
        let moment = if random.one_in(2) { Moment::Before } else { Moment::After };
        let call = random.below(30) as u64;
        events.push(Event::Die { process: "p".into(), call, moment });
        events.push(Event::Kill { at, process: "p".into() });
        let until = at + ms(random.below(100) as u64);
        let (from, to) = ("p".into(), "suite".into());
        events.push(Event::Cut(Cut { from, to, since: at, until }));
        events.push(Event::Jump { at, process: "p".into(), by_ms: random.below(2_000) as i64 });
        let index = random.below(10) as u64;
        let fault = *random.pick(&[Fault::Conflict, Fault::Unavailable, Fault::LostBefore]);
        events.push(Event::Fault { store: "suite".into(), call: Call::Commit, index, fault });
    }
    Schedule(events)
}

/// Adds at least once: a restarted process repeats each addition that it does not know to be done.
async fn add(store: Arc<dyn DataStore>, world: Process, amount: i128) {
    loop {
        let transaction = store.begin(&Session::default()).await;
        let writes = vec![Write::Add(at("x", COUNT), amount)];
        let done = match transaction {
            Ok(begun) => begun.commit(Commit { writes, ..Commit::default() }).await.map(drop),
            Err(error) => Err(error),
        };
        match done {
            Ok(()) => return,
            Err(StoreError::Refused { .. }) => panic!("an add is never refused"),
            Err(_) => world.sleep(ms(1)).await,
        }
    }
}

/// Runs a schedule; returns the requested sum and the counter's value.
fn run(schedule: &Schedule<i128>) -> (i128, i128) {
    let world = SimulatedWorld::new(1);
    let config = EmbeddedConfig::in_memory();
    let store = Embedded::open(config, store_schema(Level::Linearizable), world.clone());
    let store = store.expect("it opens");
    let faulty = FaultyStore::new(store.clone(), FaultPlan::scripted(schedule.faults("suite")));
    let partitions = Partitions::new(world.clone(), schedule.cuts());
    let far = PartitionedStore::new(faulty, "p", partitions, ms(20), world.clone());
    let plan = DeathPlan::scripted(schedule.deaths("p"));
    let mut process = Process::start(world.clone(), "p", 1, ClockRates::default());
    let (mut jumps, mut kills) = (schedule.jumps("p"), schedule.kills("p"));
    let mut asked = 0;
    for (due, amount) in schedule.calls(0) {
        let wait = due.saturating_sub(world.elapsed());
        world.run(world.sleep(wait));
        jumps.retain(|(at, by_ms)| {
            let is_due = *at <= due;
            is_due.then(|| process.jump(*by_ms));
            !is_due
        });
        kills.retain(|at| {
            let is_due = *at <= due;
            is_due.then(|| process.kill());
            !is_due
        });
        asked += *amount;
        loop {
            if !process.is_alive() {
                process = process.restart();
            }
            let mortal = MortalStore::new(far.clone(), process.clone(), plan.clone());
            let call = process.run(add(mortal, process.clone(), *amount));
            if world.run(call).is_some() {
                break;
            }
        }
    }
    let found = world.run(async {
        let mut reader = store.begin(&Session::default()).await.expect("it begins");
        reader.read(&[Read::Counter(at("x", COUNT))]).await.expect("it reads").remove(0).data
    });
    let Data::Counter(found) = found else { panic!("a counter is {found:?}") };
    (asked, found)
}

fn fails(events: &[Event<i128>]) -> Option<String> {
    let (asked, found) = run(&Schedule(events.to_vec()));
    (found > asked).then(|| format!("{asked} were asked for, {found} were added"))
}

#[test]
fn a_schedule_that_fails_shrinks_to_a_death_after_a_commit() {
    let mut failed = 0;
    for seed in 0..20 {
        let schedule = draw(seed);
        assert_eq!(run(&schedule), run(&schedule), "seed {seed}");
        let Some(shrunk) = shrink(schedule.0, 500, fails) else { continue };
        failed += 1;
        assert!(shrunk.is_minimal, "seed {seed}: {shrunk:?}");
        for left_out in 0..shrunk.events.len() {
            let mut fewer = shrunk.events.clone();
            let event = fewer.remove(left_out);
            assert_eq!(fails(&fewer), None, "seed {seed}: without {event:?}");
        }
        // The number of the call at which the process dies depends on earlier faults.
        let is_death = |event: &Event<_>| matches!(event, Event::Die { .. });
        let is_call = |event: &Event<_>| matches!(event, Event::Call { .. });
        let others = shrunk.events.iter().filter(|event| !is_call(event));
        assert!(others.clone().any(is_death), "seed {seed}: {shrunk:?}");
        assert!(others.count() <= 3, "seed {seed}: {shrunk:?}");
    }
    assert!(failed > 5, "{failed} of 20 seeds fail");
}

#[test]
fn events_go_to_whom_they_concern() {
    let schedule = Schedule(vec![
        Event::Kill { at: ms(9), process: "p".into() },
        Event::Kill { at: ms(3), process: "p".into() },
        Event::Kill { at: ms(1), process: "q".into() },
        Event::Call { at: ms(8), client: 1, call: "late" },
        Event::Call { at: ms(2), client: 1, call: "early" },
        Event::Call { at: ms(1), client: 0, call: "other" },
        Event::Die { process: "p".into(), call: 4, moment: Moment::Before },
        Event::Jump { at: ms(1), process: "q".into(), by_ms: -7 },
        Event::Fault { store: "s".into(), call: Call::Read, index: 2, fault: Fault::Unavailable },
    ]);
    assert_eq!(schedule.kills("p"), [ms(3), ms(9)]);
    assert_eq!(schedule.calls(1), [(ms(2), &"early"), (ms(8), &"late")]);
    assert_eq!(schedule.deaths("p"), [(4, Moment::Before)]);
    assert_eq!(schedule.deaths("q"), []);
    assert_eq!(schedule.jumps("q"), [(ms(1), -7)]);
    assert_eq!(schedule.faults("s"), [(Call::Read, 2, Fault::Unavailable)]);
    assert_eq!(schedule.cuts(), []);
}
