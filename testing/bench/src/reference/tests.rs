//! Small runs of every system: calls are answered, and the data centers agree in the end. They do not
//! check that anything is fast.

use std::sync::Arc;
use std::time::Duration;

use mingle_cops::config::Protocol;

use super::hub::Span;
use super::job::{Answered, Kind, Workload};
use super::site::{Plan, Reading, Site, System};
use super::workloads::{Facebook, Groups, Rows, Single};

/// The measurements until a system has done enough; each is short, and a loaded machine needs more.
const TRIES: usize = 400;

/// Runs a system until a measurement has enough in it, and then until both data centers have the same
/// contents.
fn check(
    system: System,
    servers: u16,
    workload: Arc<dyn Workload>,
    is_enough: impl Fn(&Reading) -> bool,
) -> Reading {
    let plan = Plan { system, servers, clients: 1, actors: 8, delay_us: 3_000, seed: 5 };
    let site = Site::start(&plan, &workload).expect("it starts");
    let mut last = String::new();
    let found = (0..TRIES).find_map(|_| {
        match site.count(Duration::ZERO, Duration::from_millis(50)) {
            Ok(reading) if is_enough(&reading) => return Some(reading),
            Ok(reading) => last = format!("{reading:?}"),
            Err(why) if why.contains("no call was answered") => last = why,
            Err(why) => panic!("{}: {why}", system.name()),
        }
        None
    });
    let reading = found.unwrap_or_else(|| panic!("{}: {last}", system.name()));
    site.settle().unwrap_or_else(|why| panic!("{}: {why}", system.name()));
    site.end();
    reading
}

/// True if a measurement has these kinds of calls, and bytes between data centers.
fn has(reading: &Reading, kinds: &[Answered]) -> bool {
    let has_kinds = kinds.iter().all(|kind| !reading.tally.of(*kind).is_empty());
    has_kinds && reading.bytes[Span::Far as usize] > 0
}

#[test]
fn the_cops_family_agrees_in_the_end() {
    let groups = Groups { count: 8, keys: 16, ..Groups::default() };
    let calls = [Answered::Read, Answered::Write];
    for protocol in [Protocol::Cops, Protocol::CopsRt, Protocol::CopsCd] {
        let is_enough = |reading: &Reading| has(reading, &calls) && reading.deps > 0;
        check(System::Reference(protocol), 2, Arc::new(groups), is_enough);
    }
    let is_enough = |reading: &Reading| has(reading, &calls) && reading.replicated > 0;
    check(System::Reference(Protocol::Log), 1, Arc::new(groups), is_enough);
    let reading = check(System::Reference(Protocol::Eventual), 2, Arc::new(groups), is_enough);
    assert_eq!(reading.deps, 0);
}

#[test]
fn eiger_agrees_in_the_end_and_so_does_its_baseline() {
    let rows = Rows { keys: 40, writes_per_mille: 500, ..Rows::default() };
    let calls = [Answered::Read, Answered::Write, Answered::Atomic];
    let is_enough = |reading: &Reading| has(reading, &calls) && reading.deps > 0;
    let eiger = check(System::Reference(Protocol::Eiger), 3, Arc::new(rows), is_enough);
    let is_enough = |reading: &Reading| has(reading, &calls) && reading.replicated > 0;
    let protocol = Protocol::EventualColumns;
    let eventual = check(System::Reference(protocol), 3, Arc::new(rows), is_enough);
    assert_eq!((eventual.deps, eventual.tally.of(Answered::TwoRounds).len()), (0, 0));
    for reading in [eiger, eventual] {
        // Calls have 5 keys of 5 columns of 128 bytes, in one direction; some are half done.
        assert!(reading.bytes_per_call(Span::Client) > 1_600.0, "{reading:?}");
    }
}

#[test]
fn our_core_runs_the_same_jobs() {
    let rows = Rows { keys: 40, writes_per_mille: 500, ..Rows::default() };
    let calls = [Answered::Read, Answered::Write, Answered::Atomic];
    let reading = check(System::Core, 3, Arc::new(rows), |reading| has(reading, &calls));
    assert!(reading.bytes_per_call(Span::Client) > 1_600.0, "{reading:?}");
    let facebook = Arc::new(Facebook { keys: 200, is_atomic: true });
    check(System::Core, 2, facebook, |reading| has(reading, &[Answered::Read]));
}

/// An actor that writes 130 keys has as many dependencies, and one that writes one key has itself.
#[test]
fn writes_of_cops_rt_have_as_many_dependencies_as_the_actor_has_keys() {
    for (accessed, least) in [(1, 0.95), (130, 125.0)] {
        let single = Arc::new(Single { keys: 4_096, kind: Kind::Write, accessed });
        let system = System::Reference(Protocol::CopsRt);
        let reading = check(system, 1, single, |reading| reading.deps() >= least);
        // Its two counters are not read at one moment.
        let most = f64::from(accessed) * 1.05;
        assert!(reading.deps() <= most, "{accessed} keys: {}", reading.deps());
    }
}

#[test]
fn a_system_that_no_client_calls_is_reported() {
    let plan = Plan {
        system: System::Reference(Protocol::Cops),
        servers: 1,
        clients: 0,
        actors: 1,
        delay_us: 0,
        seed: 1,
    };
    let single: Arc<dyn Workload> = Arc::new(Single { keys: 4, kind: Kind::Read, accessed: 4 });
    let site = Site::start(&plan, &single).expect("it starts");
    let reading = site.count(Duration::ZERO, Duration::from_millis(5));
    assert!(reading.is_err_and(|why| why.contains("no call was answered")));
    site.end();
}
