//! The build of a new user: a project of its own that depends on `mingle`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::run::{Outcome, cargo, output, root, wait};

/// A project with `mingle` and its default features compiles fewer crates than this.
const CRATES_MAX: usize = 120;

const PROGRAM: &str = "\
mod bank {
    mingle::program! {
        store accounts: linearizable;
        object Account in accounts { key owner: string; balance: int; }
        transaction deposit(account: ref Account, amount: int) -> int {
            account.balance += amount;
            return account.balance;
        }
    }
}

#[tokio::main]
async fn main() {
    let db = bank::Database::connect().await.expect(\"memory is there\");
    let balance = db.deposit(&bank::Account::new(\"ana\"), 20).await.expect(\"it is paid in\");
    println!(\"{balance}\");
}
";

/// Makes a project, builds and runs it, and counts its crates.
///
/// # Errors
///
/// When it does not build or run, or needs too many crates.
pub fn new_project() -> Outcome {
    let folder = root().join("target/newcomer");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    write(&folder.join("Cargo.toml"), &manifest())?;
    write(&folder.join("src/main.rs"), PROGRAM)?;
    // The versions that this workspace was tested with.
    let lock = root().join("Cargo.lock");
    fs::copy(&lock, folder.join("Cargo.lock"))
        .map_err(|error| format!("{}: {error}", lock.display()))?;
    let crates = crates(&folder)?;
    println!(
        "a new project compiles {} crates; fewer than {CRATES_MAX} are expected",
        crates.len()
    );
    let begun = Instant::now();
    wait(cargo(&["build", "--quiet"]).current_dir(&folder))?;
    println!("it was built in {:.1} s", begun.elapsed().as_secs_f64());
    let printed = output(cargo(&["run", "--quiet"]).current_dir(&folder))?;
    if printed.trim() != "20" {
        return Err(format!("the new project was to print 20, and printed {printed:?}"));
    }
    if crates.len() >= CRATES_MAX {
        return Err(format!("{} crates are too many: {crates:?}", crates.len()));
    }
    Ok(())
}

fn manifest() -> String {
    // TOML would misread a path with quotes or backslashes.
    let mingle = root().join("crates/mingle").to_string_lossy().replace('\\', "/");
    format!(
        "[package]\nname = \"newcomer\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nmingle = {{ path = '{mingle}' }}\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n"
    )
}

fn write(path: &Path, text: &str) -> Outcome {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the crates that are compiled, including those that run while others are built.
fn crates(folder: &Path) -> Result<BTreeSet<String>, String> {
    let arguments = ["tree", "--prefix", "none", "--edges", "normal,build", "--format", "{p}"];
    let told = output(cargo(&arguments).current_dir(folder))?;
    let crates = told.lines().map(|line| line.split(" (").next().unwrap_or(line).to_owned());
    Ok(crates.filter(|name| !name.is_empty() && !name.starts_with("newcomer ")).collect())
}
