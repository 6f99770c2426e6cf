//! Random runs: many sessions, over links that lose, repeat and reorder messages. Replicas crash and
//! lose unwritten records, data centers are cut off or lost, and clocks are wrong and jump.
//!
//! A failure prints its seed; `MINGLE_GEO_SEED=n` runs that one alone, and `MINGLE_GEO_RUNS=n` so
//! many more than usual.

// The environment names the seed to replay, and the result is printed.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

mod driver;
mod end;

use driver::{Faults, Run};

/// Runs many seeds, or the one that the environment names. `found` are seeds that once found a
/// fault.
///
/// `found` are seeds that once found something.
fn run_seeds(name: &str, first: u64, count: u64, found: &[u64], faults: impl Fn(u64) -> Faults) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("MINGLE_GEO_SEED") {
        Some(seed) => vec![seed],
        None => {
            let many = first..first + number("MINGLE_GEO_RUNS").unwrap_or(count);
            many.chain(found.iter().copied()).collect()
        }
    };
    for seed in seeds {
        let faults = faults(seed);
        let outcome = std::panic::catch_unwind(|| Run::new(seed, faults).play());
        let failure = match outcome {
            Ok(Ok(line)) => {
                eprintln!("{name} {seed}: {line}");
                continue;
            }
            Ok(Err(failure)) => failure,
            Err(_) => "a panic, see above".to_owned(),
        };
        panic!("{failure}\n{name}, replay with MINGLE_GEO_SEED={seed}");
    }
}

#[test]
fn without_faults() {
    run_seeds("without_faults", 0, 4, &[], |_| Faults::default());
}

#[test]
fn over_bad_links() {
    let faults = Faults { has_bad_links: true, ..Faults::default() };
    run_seeds("over_bad_links", 100, 8, &[], |_| faults);
}

#[test]
fn with_crashes() {
    let faults = Faults { has_crashes: true, has_bad_links: true, ..Faults::default() };
    run_seeds("with_crashes", 200, 12, &[], |_| faults);
}

#[test]
fn with_clocks_that_jump() {
    let faults = Faults { has_jumps: true, has_crashes: true, ..Faults::default() };
    run_seeds("with_clocks_that_jump", 300, 8, &[], |_| faults);
}

#[test]
fn with_data_centers_cut_off() {
    let faults =
        Faults { has_cuts: true, has_crashes: true, has_bad_links: true, ..Faults::default() };
    run_seeds("with_data_centers_cut_off", 400, 12, &[407], |_| faults);
}

#[test]
fn with_state_transfers() {
    let faults = Faults { has_cuts: true, has_small_logs: true, ..Faults::default() };
    run_seeds("with_state_transfers", 500, 8, &[527], |_| faults);
}

#[test]
fn with_a_data_center_lost() {
    let faults = |seed| Faults {
        has_loss: true,
        has_bad_links: seed % 2 == 0,
        has_crashes: seed % 3 == 0,
        ..Faults::default()
    };
    run_seeds("with_a_data_center_lost", 600, 12, &[], faults);
}

#[test]
fn one_seed_always_runs_the_same() {
    let faults =
        Faults { has_cuts: true, has_crashes: true, has_bad_links: true, ..Faults::default() };
    let runs = [0, 1].map(|_| Run::new(7, faults).play().expect("a sound run"));
    assert_eq!(runs[0], runs[1]);
}
