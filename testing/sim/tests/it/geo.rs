//! Seeds of the geo-replicated store's core, and the planted mistakes that they find.

use mingle_sim::geo::{Flaw, Plan, judged, trace};

/// The length of the runs in these tests, in percent of the usual.
const PERCENT: usize = 25;

/// One planted mistake per line: its name, a seed that finds it, and the promise that it breaks.
const PLANTED: &str = include_str!("geo_planted.txt");

fn plan(seed: u64) -> Plan {
    Plan::scaled(seed, PERCENT)
}

fn replay(seed: u64) -> String {
    format!("cargo xtask sim geo --seed {seed} --seeds 1 --percent {PERCENT}")
}

fn recorded() -> Vec<(Flaw, u64, &'static str)> {
    let lines = PLANTED.lines().filter(|line| !line.starts_with('#'));
    let found = lines.map(|line| {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().unwrap_or_else(|| panic!("a part is missing of {line:?}"));
        let (name, seed, promise) = (part(), part(), part());
        let flaw = Flaw::named(name).unwrap_or_else(|| panic!("no mistake is called {name}"));
        (flaw, seed.parse().expect("a seed"), promise)
    });
    found.collect()
}

#[test]
fn every_planted_mistake_is_found_and_is_why_its_seed_fails() {
    let recorded = recorded();
    for flaw in Flaw::ALL {
        let seeds = recorded.iter().filter(|(of, ..)| *of == flaw);
        assert_eq!(seeds.count(), 1, "{} has one recorded seed", flaw.name());
    }
    let mut others = Vec::new();
    for (flaw, seed, promise) in recorded {
        let name = flaw.name();
        let found = judged(&plan(seed).with(Some(flaw)));
        let Err(found) = found else {
            panic!("{name} is not found: {} --planted {name}", replay(seed));
        };
        if found.promise != promise {
            others.push(format!("{name} {seed} {}", found.promise));
        }
        if let Err(broken) = judged(&plan(seed)) {
            let (promise, how) = (broken.promise, broken.how);
            panic!("seed {seed} fails without {name}: {promise}: {how}\n{}", replay(seed));
        }
    }
    assert!(others.is_empty(), "other promises are broken:\n{}", others.join("\n"));
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

/// Coverage points that a usual run of the seeds reaches seldom or never, and a seed that does.
const RARE: &[(&str, u64)] = &[
    ("link between two replicas cut in one direction", 4),
    ("later incarnation of a data center fenced after it had come up", 44),
];

#[test]
fn what_is_rare_is_reached() {
    for (name, seed) in RARE {
        let verdict = judged(&Plan::draw(*seed)).unwrap_or_else(|broken| {
            panic!("seed {seed}: {}: {}", broken.promise, broken.how);
        });
        let count = verdict.covered.get(*name).copied();
        assert!(count > Some(0), "seed {seed} does not reach it: {name}: {count:?}");
    }
}
