//! The long run: thousands of seeds, generated programs for minutes, servers that are killed, and benchmarks
//! with their real bars. It is for releases and for a weekly job.
//!
//! Here programs are built for release: what is measured is what users get.

use std::process::Command;

use crate::artifacts::Artifacts;
use crate::check::{Generated, add_generated_programs};
use crate::dist::dist;
use crate::run::{Outcome, cargo, output_and_progress, release, root, step, wait};
use crate::seeds::{self, Kind};
use crate::test::Jobs;

/// Runs it, after the short run. A step that fails does not keep the others from running.
///
/// # Errors
///
/// When a step failed.
pub fn long() -> Outcome {
    let mut failed = Vec::new();
    let mut run = |name: &str, outcome: &mut dyn FnMut() -> Outcome| {
        if let Err(why) = step(name, outcome) {
            eprintln!("    {why}");
            failed.push(name.to_owned());
        }
    };
    run("each engine by itself", &mut features);
    run("a new project", &mut crate::newcomer::new_project);
    run("a release", &mut || dist(&["--test"]));
    run("mistakes in programs within Rust", &mut macros);
    run("generated programs for minutes", &mut generated_programs);
    run("servers are killed", &mut kills);
    run("half an hour of kills and stops under load", &mut soak);
    run("thousands of seeds", &mut || simulate(Kind::Stores, &["--seeds", "10000"]));
    run("thousands of seeds of geo", &mut || simulate(Kind::Geo, &["--seeds", "5000"]));
    run("mistakes that tests notice", &mut || crate::mutants::mutants(&[]));
    run("planted faults", &mut || planted(Kind::Stores));
    run("planted faults of geo", &mut || planted(Kind::Geo));
    for (name, arguments) in BENCHMARKS {
        run(&format!("bench {name}"), &mut || bench(name, arguments));
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// The benchmarks that have bars, with their arguments.
const BENCHMARKS: [(&str, &[&str]); 11] = [
    ("compiler", &["--at-most", "2.5"]),
    ("interpreter", &[]),
    ("lsp", &["--at-most", "10"]),
    ("witnesses", &[]),
    ("geo", &[]),
    ("worker", &[]),
    ("index", &[]),
    ("pool", &[]),
    // They are compared with figures of other systems; their bars are for a run by hand.
    ("cops", &["--quick"]),
    ("eiger", &["--quick"]),
    // Its real bars take servers and a quarter of an hour: they are for a run by hand.
    ("stores", &["--quick"]),
];

/// Builds `mingle` with each of its engines alone, and with none, and tests the export of telemetry.
fn features() -> Outcome {
    for feature in ["", "embedded", "postgres", "redis", "cassandra", "mingled", "worker", "sqlx"] {
        let mut command =
            cargo(&["check", "--package", "mingle", "--lib", "--no-default-features"]);
        wait(command.args(["--features", feature]).env("RUSTFLAGS", "--deny warnings"))?;
    }
    let args = ["check", "--package", "mingle-cli", "--no-default-features"];
    wait(cargo(&args).env("RUSTFLAGS", "--deny warnings"))?;
    // Telemetry brings dependencies of its own, so no build of the short run has it.
    let args = ["check", "--package", "mingle-cli", "--features", "otlp"];
    wait(cargo(&args).env("RUSTFLAGS", "--deny warnings"))?;
    let args = ["test", "--package", "mingle-server", "--features", "otlp", "--lib", "otlp"];
    wait(cargo(&args).env("RUSTFLAGS", "--deny warnings"))
}

/// Compiles programs with mistakes in projects of their own, and compares what the compiler says.
fn macros() -> Outcome {
    let mut command = cargo(&["test", "--package", "mingle-macros", "--test", "ui"]);
    wait(command.env("MINGLE_LONG", "1"))
}

/// How much longer than the short run.
const GENERATED: [Generated; 5] = [
    ("crates/lang", "lib", "random_programs", ("PROPTEST_CASES", "100000")),
    ("crates/lang", "it", "random_programs", ("PROPTEST_CASES", "100000")),
    ("crates/runtime", "it", "split_runs_end_as_plain_runs", ("MINGLE_SPLIT_SECONDS", "600")),
    ("crates/runtime", "it", "weaker_data_never_shows", ("MINGLE_SPLIT_SECONDS", "300")),
    ("crates/runtime", "it", "runs_at_once", ("MINGLE_SPLIT_SECONDS", "600")),
];

fn generated_programs() -> Outcome {
    let artifacts = Artifacts::build()?;
    let mut jobs = Jobs::new(&artifacts)?;
    add_generated_programs(&artifacts, &mut jobs, &GENERATED)?;
    jobs.run()
}

/// Kills servers fifty times amid transactions.
fn kills() -> Outcome {
    let artifacts = Artifacts::build()?;
    let mut jobs = Jobs::new(&artifacts)?;
    let suite = artifacts.suite("testing/sim", "it")?;
    jobs.add_suite(suite, "servers are killed", &["live::"], &[("MINGLE_KILLS", "50")]);
    jobs.run()
}

/// The soak for half an hour; missed bars are an error.
fn soak() -> Outcome {
    let bench = release("mingle-bench")?;
    let mingle = release("mingle-cli")?.with_file_name("mingle");
    let mut command = Command::new(bench);
    command.args(["soak", "--minutes", "30", "--strict", "--mingle"]).arg(mingle);
    if std::env::var_os("MINGLE_SERVICES").is_none() {
        command.env("MINGLE_SERVICES", root().join("target/services"));
    }
    wait(command.current_dir(root()))
}

/// Runs seeds of a simulation. One that fails is recorded, and every short run runs it again.
fn simulate(kind: Kind, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(release("mingle-sim")?);
    command.args(kind.arguments()).args(arguments).args(["--jobs", "2"]).current_dir(root());
    let output = command.output().map_err(|error| format!("the simulation: {error}"))?;
    let told = String::from_utf8_lossy(&output.stdout);
    print!("{told}");
    if output.status.success() {
        return Ok(());
    }
    Err(match seeds::record(kind, &told)? {
        Some(seed) => format!("seed {seed} failed, and is recorded"),
        None => format!("it ended with {}", output.status),
    })
}

/// Plants each fault, and demands that a seed notices.
fn planted(kind: Kind) -> Outcome {
    let mut command = Command::new(release("mingle-sim")?);
    command.args(kind.arguments()).args(["--planted", "all", "--seconds", "120", "--jobs", "2"]);
    print!("{}", output_and_progress(command.current_dir(root()))?);
    Ok(())
}

fn bench(name: &str, arguments: &[&str]) -> Outcome {
    wait(Command::new(release("mingle-bench")?).arg(name).args(arguments).current_dir(root()))
}
