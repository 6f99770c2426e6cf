//! Running cargo.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Instant;

/// The result of a task; an error says why it failed.
pub type Outcome = Result<(), String>;

/// Returns the root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns a cargo command at the root.
pub fn cargo(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    // Removes the variables that cargo sets for this program. Build scripts that read them would
    // run again, and everything that depends on those would be built again, whenever cargo is run
    // without this program.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&*name);
        }
    }
    command
}

/// Runs a step under a name, and prints its duration.
pub fn step(name: &str, run: impl FnOnce() -> Outcome) -> Outcome {
    eprintln!("==> {name}");
    let start = Instant::now();
    run().map_err(|why| format!("{name}: {why}"))?;
    eprintln!("    {name} passed in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a command to its end.
pub fn wait(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|error| format!("{}: {error}", shown(command)))?;
    has_ended(command, status)
}

fn has_ended(command: &Command, status: ExitStatus) -> Outcome {
    let failed = || format!("{} ended with {status}", shown(command));
    status.success().then_some(()).ok_or_else(failed)
}

/// Returns a command as a user would type it.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name();
    let program = program.unwrap_or(command.get_program());
    let words = [program].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Runs a command to its end and returns its standard output. Its standard error becomes a part of
/// the error, if there is one.
pub fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", shown(command)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{} ended with {}\n{}", shown(command), output.status, errors.trim_end()))
}

/// As [`output`], but shows the command's standard error at once.
pub fn output_and_progress(command: &mut Command) -> Result<String, String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{}: {error}", shown(command)))?;
    has_ended(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Builds only the demonstration, and runs it; with `--mingled` that of the server.
pub fn demo(args: &[&str]) -> Outcome {
    if let ["--mingled", rest @ ..] = args {
        return trial(&["demo"], false, rest);
    }
    let fixed = ["run", "--package", "mingle-bench", "--no-default-features", "--", "demo"];
    wait(cargo(&fixed).args(args))
}

/// Builds the command line without drivers, runs it in the user's folder, and ends with its exit
/// code.
pub fn mingle(args: &[&str]) -> Result<ExitCode, String> {
    let fixed = ["build", "--quiet", "--package", "mingle-cli", "--no-default-features"];
    wait(cargo(&fixed).args(["--features", "server"]))?;
    let here = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut command = Command::new(here.with_file_name("mingle"));
    let status = command.args(args).status();
    let status = status.map_err(|error| format!("{}: {error}", shown(&command)))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1).into())
}

/// Builds the benchmarks for release and runs one of them.
pub fn bench(name: &str, args: &[&str]) -> Outcome {
    if name == "mingled" {
        let redis = root().join("target/services/redis").display().to_string();
        return trial(&["bench", "--redis", &redis], true, args);
    }
    if name == "pool" {
        return trial(&["pool"], true, args);
    }
    let fixed = ["run", "--release", "--package", "mingle-bench", "--bin", "mingle-bench", "--"];
    wait(cargo(&fixed).arg(name).args(args))
}

/// Builds the server and its trials, and runs one of them.
fn trial(fixed: &[&str], is_release: bool, args: &[&str]) -> Outcome {
    let profile: &[&str] = if is_release { &["--release"] } else { &[] };
    let packages = ["build", "--package", "mingled", "--package", "mingle-trial"];
    wait(cargo(&packages).args(profile))?;
    let here = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let target = here.parent().and_then(Path::parent);
    let target = target.ok_or_else(|| format!("{} has no folder", here.display()))?;
    let folder = target.join(if is_release { "release" } else { "debug" });
    let program = |name: &str| folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    let mut command = Command::new(program("mingle-trial"));
    wait(command.args(fixed).arg("--mingled").arg(program("mingled")).args(args))
}

/// Builds the binary of a package for release, and returns its path.
pub fn release(package: &str) -> Result<PathBuf, String> {
    wait(&mut cargo(&["build", "--release", "--package", package]))?;
    // This program is in the folder of another profile, beside the release folder.
    let here = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let target = here.parent().and_then(Path::parent);
    let target = target.ok_or_else(|| format!("{} has no folder", here.display()))?;
    let program = target.join("release").join(package);
    Ok(program.with_extension(std::env::consts::EXE_EXTENSION))
}

/// Builds the program that manages test servers and runs it.
pub fn services(args: &[&str]) -> Outcome {
    let fixed = ["run", "--quiet", "--package", "mingle-services", "--"];
    wait(cargo(&fixed).args(args))
}

/// Builds the simulation for release and runs it.
pub fn simulate(args: &[&str]) -> Outcome {
    let fixed = ["run", "--release", "--package", "mingle-sim", "--"];
    wait(cargo(&fixed).args(args))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = cargo(&["run", "--quiet"]);
        command.arg("1").env("MINGLE", "1");
        assert_eq!(shown(&command), "cargo run --quiet 1");
    }
}
