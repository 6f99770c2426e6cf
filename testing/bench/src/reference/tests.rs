//! Small runs of every system: calls are answered, and the data centers agree in the end. They do not
//! check that anything is fast.

use std::sync::Arc;
use std::time::Duration;

use mingle_cops::config::Protocol;

use super::hub::Span;
use super::job::{Answered, Kind, Workload};
use super::site::{Plan, Reading, Site, System};
use super::workloads::{Facebook, Groups, Rows, Single};

/// Runs a system for a moment, and until both data centers have the same contents.
fn check(system: System, servers: u16, workload: Arc<dyn Workload>) -> Reading {
    let plan = Plan { system, servers, clients: 1, actors: 8, delay_us: 3_000, seed: 5 };
    let site = Site::start(&plan, &workload).expect("it starts");
    let reading = site.count(Duration::from_millis(50), Duration::from_millis(250));
    let reading = reading.unwrap_or_else(|why| panic!("{}: {why}", system.name()));
    site.settle().unwrap_or_else(|why| panic!("{}: {why}", system.name()));
    site.end();
    assert!(reading.bytes[Span::Client as usize] > 0, "{reading:?}");
    assert!(reading.bytes[Span::Far as usize] > 0, "nothing was replicated: {reading:?}");
    reading
}

#[test]
fn the_cops_family_agrees_in_the_end() {
    let groups = Groups { groups: 8, keys: 16, ..Groups::default() };
    for protocol in [Protocol::Eventual, Protocol::Cops, Protocol::CopsRt, Protocol::CopsCd] {
        let reading = check(System::Reference(protocol), 2, Arc::new(groups));
        assert!(reading.tally.of(Answered::Read).len() > 0);
        assert!(reading.tally.of(Answered::Write).len() > 0);
        let is_tracked = protocol.is_tracked();
        assert_eq!(reading.deps > 0, is_tracked, "{protocol:?}: {} dependencies", reading.deps);
    }
    check(System::Reference(Protocol::Log), 1, Arc::new(groups));
}

#[test]
fn eiger_agrees_in_the_end_and_so_does_its_baseline() {
    let rows = Rows { keys: 40, writes_per_mille: 500, ..Rows::default() };
    for protocol in [Protocol::EventualColumns, Protocol::Eiger] {
        let reading = check(System::Reference(protocol), 3, Arc::new(rows));
        assert!(reading.tally.of(Answered::Atomic).len() > 0);
        assert_eq!(reading.deps > 0, protocol.is_tracked());
        let second = reading.tally.of(Answered::TwoRounds).len();
        assert!(protocol == Protocol::Eiger || second == 0, "{second} second rounds");
        // Calls have 5 keys of 5 columns of 128 bytes, in one direction.
        assert!(reading.bytes_per_call(Span::Client) > 3_200.0);
    }
}

#[test]
fn our_core_runs_the_same_jobs() {
    let rows = Rows { keys: 40, writes_per_mille: 500, ..Rows::default() };
    let reading = check(System::Core, 3, Arc::new(rows));
    assert!(reading.tally.of(Answered::Atomic).len() > 0);
    assert!(reading.bytes_per_call(Span::Client) > 3_200.0);
    check(System::Core, 2, Arc::new(Facebook { keys: 200, is_atomic: true }));
}

/// An actor that writes 130 keys has 129 other dependencies, and one that writes one key has itself.
#[test]
fn writes_of_cops_rt_have_as_many_dependencies_as_the_actor_has_keys() {
    for (accessed, most) in [(1, 1.01), (130, 130.01)] {
        let single = Single { keys: 4_096, kind: Kind::Write, accessed };
        let reading = check(System::Reference(Protocol::CopsRt), 1, Arc::new(single));
        let deps = reading.deps();
        assert!(deps <= most && deps > most * 0.5 - 0.5, "{accessed} keys: {deps} dependencies");
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
