//! Each system of UniStore's evaluation keeps its own promises, and breaks those that it does not
//! make.

use mingle_checker::geo::Promise;
use mingle_geo::Baseline;
use mingle_sim::geo::Plan;
use mingle_sim::geo::baseline::promises;

/// The length of the runs in these tests, in percent of the usual.
const PERCENT: usize = 25;

/// Returns the plan of a seed, without losses for a system that survives none.
fn plan(system: Baseline, seed: u64) -> Plan {
    let plan = Plan::of(system, seed, PERCENT);
    if system == Baseline::CureFt { plan.without_loss() } else { plan }
}

#[test]
fn each_keeps_what_it_promises() {
    for system in Baseline::ALL {
        for seed in 1..=8 {
            if let Err(broken) = plan(system, seed).keeps(&promises(system), None) {
                panic!("{}, seed {seed}: {}: {}", system.name(), broken.promise, broken.how);
            }
        }
    }
}

/// A promise that one system does not make is kept by another, and a checker tells the difference.
#[test]
fn causal_transactions_alone_overdraw_an_account() {
    let keeps = |system| Plan::of(system, 8, PERCENT).keeps(&[Promise::Invariants], None);
    let broken = keeps(Baseline::Causal).expect_err("nobody certifies");
    assert_eq!(broken.promise, "invariants", "{}", broken.how);
    for system in [Baseline::UniStore, Baseline::Strong, Baseline::RedBlue] {
        if let Err(broken) = keeps(system) {
            panic!("{}: {}: {}", system.name(), broken.promise, broken.how);
        }
    }
}
