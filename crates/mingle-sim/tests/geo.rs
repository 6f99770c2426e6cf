//! Seeds of the geo-replicated store's core, and the mistakes that they find.

use mingle_sim::geo::{Flaw, Plan, judged, trace};

/// How long the runs of these tests are, in percent of the usual.
const PERCENT: usize = 25;

/// A planted mistake by its name, and a seed that finds it, on each line.
const PLANTED: &str = include_str!("geo_planted.txt");

fn plan(seed: u64) -> Plan {
    Plan::scaled(seed, PERCENT)
}

fn replay(seed: u64) -> String {
    format!("cargo xtask sim geo --seed {seed} --seeds 1 --percent {PERCENT}")
}

fn recorded() -> Vec<(Flaw, u64)> {
    let lines = PLANTED.lines().filter(|line| !line.starts_with('#'));
    let found = lines.map(|line| {
        let (name, seed) = line.split_once(' ').expect("a name and a seed");
        let flaw = Flaw::named(name).unwrap_or_else(|| panic!("no mistake is called {name}"));
        (flaw, seed.parse().expect("a seed"))
    });
    found.collect()
}

#[test]
fn every_planted_mistake_is_found_and_is_why_its_seed_fails() {
    let recorded = recorded();
    for flaw in Flaw::ALL {
        let seeds = recorded.iter().filter(|(of, _)| *of == flaw);
        assert_eq!(seeds.count(), 1, "{} has one recorded seed", flaw.name());
    }
    for (flaw, seed) in recorded {
        let name = flaw.name();
        let found = judged(&plan(seed).with(Some(flaw)));
        assert!(found.is_err(), "{name} is not found: {} --planted {name}", replay(seed));
        if let Err(broken) = judged(&plan(seed)) {
            let (promise, how) = (broken.promise, broken.how);
            panic!("seed {seed} fails without {name}: {promise}: {how}\n{}", replay(seed));
        }
    }
}

#[test]
fn seeds_hold() {
    for seed in 1..=12 {
        if let Err(broken) = judged(&plan(seed)) {
            panic!("seed {seed}: {}: {}\n{}", broken.promise, broken.how, replay(seed));
        }
    }
}

#[test]
fn one_seed_always_runs_the_same() {
    let runs = [0, 1].map(|_| trace(&plan(3)));
    assert!(runs[0].len() > 1_000, "hardly anything happened");
    assert!(runs[0] == runs[1], "two runs of one seed differ");
}

#[test]
fn what_is_left_of_a_schedule_is_a_plan_too() {
    let whole = plan(5);
    let schedule = whole.schedule.iter().step_by(3).copied().collect();
    let part = Plan { schedule, ..whole };
    if let Err(broken) = judged(&part) {
        panic!("{}: {}", broken.promise, broken.how);
    }
}
