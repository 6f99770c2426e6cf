//! Strong and causal transactions of sessions over replicas that crash, links that break and a data
//! center that is lost: no account is overdrawn, no increment is lost, and the transactions that a
//! strong one depends on are where it is.

mod clients;
mod fence;
mod leader_lost;
mod map;
mod one;
mod rejoin;
mod scripts;
mod settle;
mod single;
mod timestamps;
mod votes;
mod world;

use world::{Met, World};

#[test]
fn invariants_hold_whatever_crashes() {
    let mut all = Met::default();
    for seed in 0..16 {
        let outcome = std::panic::catch_unwind(|| World::new(seed).play());
        let met = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        all.strong += met.strong;
        all.causal += met.causal;
        all.conflicts += met.conflicts;
        all.unknown += met.unknown;
        all.crashes += met.crashes;
        all.resets += met.resets;
        all.losses += met.losses;
        all.refused_withdrawals += met.refused_withdrawals;
    }
    let Met { strong, causal, conflicts, unknown, crashes, resets, losses, refused_withdrawals } =
        all;
    let counts = [strong, causal, conflicts, unknown, crashes, resets, losses, refused_withdrawals];
    assert!(counts.iter().all(|count| *count > 3), "{all:?}");
}
