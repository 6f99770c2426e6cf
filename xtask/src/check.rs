//! Everything that must hold before a commit.
//!
//! One build makes all programs; then tests, lints, documentation, generated programs and simulations run
//! side by side. Programs whose speed is judged run alone, at the end.

use std::process::Command;

use crate::artifacts::Artifacts;
use crate::lanes::Lane;
use crate::licences::licences;
use crate::run::{Outcome, cargo, root, step, wait};
use crate::seeds;
use crate::test::Jobs;
use crate::tidy::tidy;

/// Runs everything, cheap steps first. The tests can be left out where they have just run.
///
/// # Errors
///
/// When something does not hold.
pub fn check(skip_tests: bool) -> Outcome {
    step("tidy", || tidy(false))?;
    step("format", || wait(&mut cargo(&["fmt", "--all", "--check"])))?;
    step("licences", licences)?;
    let mut built = None;
    step("build", || Artifacts::build().map(|artifacts| built = Some(artifacts)))?;
    let artifacts = built.ok_or("nothing was built")?;
    step("nothing is compiled twice", || artifacts.are_compiled_once())?;
    step("tests, lints, documentation and simulations", || {
        let mut jobs = Jobs::new(&artifacts)?;
        jobs.add("lints", lints(), Lane::Waits, 100);
        jobs.add("documentation", documentation(), Lane::Waits, 99);
        if !skip_tests {
            jobs.add_tests(&artifacts, &[])?;
        }
        add_generated_programs(&artifacts, &mut jobs, &GENERATED)?;
        add_simulations(&artifacts, &mut jobs)?;
        jobs.run()
    })?;
    step("servers are killed and stopped under load", || soak(&artifacts, &["--skip-missing"]))?;
    judged_by_speed(&artifacts)
}

/// Runs a soak over real servers, which it starts by itself.
///
/// # Errors
///
/// When data was lost, halved or doubled, or a server does not start.
pub fn soak(artifacts: &Artifacts, arguments: &[&str]) -> Outcome {
    let mingle = artifacts.binary("mingle")?;
    let mut command = Command::new(artifacts.binary("mingle-bench")?);
    command.arg("soak").args(arguments).arg("--mingle").arg(mingle).current_dir(root());
    if std::env::var_os("MINGLE_SERVICES").is_none() {
        command.env("MINGLE_SERVICES", root().join("target/services"));
    }
    wait(&mut command)
}

fn lints() -> Command {
    cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])
}

fn documentation() -> Command {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--lib"]);
    // The map of a crate names its private modules too.
    let flags = "--deny warnings --allow rustdoc::private_intra_doc_links";
    command.env("RUSTDOCFLAGS", flags);
    command
}

/// A property of generated programs: the suite, part of the tests' names, and how much of it.
pub type Generated = (&'static str, &'static str, &'static str, (&'static str, &'static str));

/// More generated programs than the tests take of the same properties.
const GENERATED: [Generated; 5] = [
    ("crates/lang", "lib", "random_programs", ("PROPTEST_CASES", "3000")),
    ("crates/lang", "it", "random_programs", ("PROPTEST_CASES", "3000")),
    ("crates/runtime", "it", "split_runs_end_as_plain_runs", ("MINGLE_SPLIT_SECONDS", "20")),
    ("crates/runtime", "it", "weaker_data_never_shows", ("MINGLE_SPLIT_SECONDS", "20")),
    ("crates/runtime", "it", "runs_at_once", ("MINGLE_SPLIT_SECONDS", "20")),
];

/// Adds properties of generated programs.
///
/// # Errors
///
/// When their suites were not built.
pub fn add_generated_programs(
    artifacts: &Artifacts,
    jobs: &mut Jobs,
    generated: &[Generated],
) -> Outcome {
    for (package, target, filter, variable) in generated {
        let suite = artifacts.suite(package, target)?;
        let name = format!("generated programs, {target} {filter}");
        jobs.add_suite(suite, &name, &[filter], &[*variable]);
    }
    Ok(())
}

/// Adds the simulations, and the seeds that failed in long runs once.
fn add_simulations(artifacts: &Artifacts, jobs: &mut Jobs) -> Outcome {
    let simulate = |arguments: &[&str]| {
        let mut command = Command::new(artifacts.binary("mingle-sim")?);
        command.args(arguments).current_dir(root());
        Ok::<_, String>(command)
    };
    let short = simulate(&["--seeds", "350", "--jobs", "2"])?;
    jobs.add("simulation", short, Lane::Computes, 30);
    let short = simulate(&["geo", "--seeds", "600", "--jobs", "2"])?;
    jobs.add("simulation of geo", short, Lane::Computes, 40);
    let short = simulate(&["cops", "--seeds", "200", "--jobs", "2"])?;
    jobs.add("simulation of the reference protocols", short, Lane::Computes, 10);
    for (kind, seed) in seeds::recorded()? {
        let seed = seed.to_string();
        let arguments = kind.arguments();
        let once = simulate(&[arguments, &["--seed", &seed, "--seeds", "1"]].concat())?;
        jobs.add(&format!("recorded seed {seed} of {}", kind.name()), once, Lane::Computes, 0);
    }
    Ok(())
}

/// Programs whose speed is judged, with bars that only a collapse misses.
fn judged_by_speed(artifacts: &Artifacts) -> Outcome {
    let bench = artifacts.binary("mingle-bench")?;
    let run = |arguments: &[&str]| wait(Command::new(bench).args(arguments).current_dir(root()));
    // Absolute times say more of the machine than of the compiler; how they grow does not.
    step("the compiler scales", || run(&["compiler", "--at-most", "2.5"]))?;
    // The benchmark itself has the real bars.
    step("tracking is cheap", || run(&["witnesses", "--quick"]))?;
    step("the geo core is fast", || run(&["geo", "--quick"]))?;
    step("the demonstration loses no half of a sale", || {
        run(&["demo", "--kills", "4", "--seconds", "1", "--page", "target/demo-check.html"])
    })?;
    step("a data center is lost and comes back", || {
        run(&["demo", "--kill", "oslo", "--at", "2s", "--back", "4s", "--seconds", "8"])
    })
}
