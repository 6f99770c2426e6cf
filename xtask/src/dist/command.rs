//! The `mingle` command: built in the profile `shipped`, which optimizes at link time and strips.

use super::{Dist, VERSION, expect, files, source, target};
use crate::run::{Outcome, cargo, output, wait};

/// The largest size of the command, in bytes.
const SIZE_MAX: usize = 40_000_000;

/// Builds the command.
pub fn make(dist: &Dist) -> Outcome {
    wait(&mut cargo(&["build", "--profile", "shipped", "--package", "mingle-cli"]))?;
    let built = target()?.join("shipped/mingle").with_extension(std::env::consts::EXE_EXTENSION);
    files::copy(&built, &dist.binary())?;
    files::set_executable(&dist.binary())?;
    let size = files::read(&dist.binary())?.len();
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
