//! The commands `mingle` and `mingled`: built in the profile `shipped`, which optimizes at link time and strips.

use std::path::Path;

use super::{Dist, VERSION, expect, files, source, target};
use crate::run::{Outcome, cargo, output, wait};

/// The largest size of a command, in bytes.
const SIZE_MAX: usize = 40_000_000;

/// Builds `mingle`.
pub fn make(dist: &Dist) -> Outcome {
    build("mingle-cli", "mingle", &dist.binary())
}

/// Builds `mingled`.
pub fn make_server(dist: &Dist) -> Outcome {
    build("mingled", "mingled", &dist.server())
}

fn build(package: &str, name: &str, into: &Path) -> Outcome {
    wait(&mut cargo(&["build", "--profile", "shipped", "--package", package, "--bin", name]))?;
    let built = target()?.join("shipped").join(name);
    files::copy(&built.with_extension(std::env::consts::EXE_EXTENSION), into)?;
    files::set_executable(into)?;
    let size = files::read(into)?.len();
    eprintln!("    {size} bytes, of {SIZE_MAX} at most");
    (size <= SIZE_MAX).then_some(()).ok_or_else(|| format!("{size} bytes, of {SIZE_MAX} at most"))
}

/// Asks the command for its version and checks a correct program and a wrong one.
pub fn test(dist: &Dist) -> Outcome {
    expect(&output(dist.command().arg("--version"))?, &format!("mingle {VERSION}"))?;
    let mut check = dist.command();
    output(check.args(["check"]).arg(source("examples/bank.mingle")))?;
    let mut check = dist.command();
    let wrong = check.args(["check"]).arg(source("examples/contest_rejected.mingle")).output();
    let wrong = wrong.map_err(|error| format!("mingle check: {error}"))?;
    expect(&String::from_utf8_lossy(&wrong.stdout), "error[M0302]")
}
