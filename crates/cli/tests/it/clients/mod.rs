//! The clients that `mingle gen` writes. The tools of their languages check them, and they call a
//! server: a stub that follows a script, or `mingle serve`.

mod answers;
mod book;
mod comments;
pub mod language;
mod served;
mod stub;

use std::path::{Path, PathBuf};
use std::process::Command;

use language::Language;
use mingle_server::problem::Code;

/// Returns the command itself.
fn mingle() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mingle"))
}

/// Returns the root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn clients_of_all_programs_have_sound_types() {
    for language in Language::ALL {
        // Each client, and each script that uses one, was checked when the workshop was made.
        let Some(workshop) = language.workshop() else { continue };
        assert!(workshop.clients >= 7, "{} clients", workshop.clients);
    }
}

#[test]
fn every_error_of_the_server_has_a_class() {
    for language in Language::ALL {
        let program = root().join("examples/bank.mingle");
        let output = mingle().args(["gen", language.name()]).arg(program).output();
        let text = String::from_utf8(output.expect("it runs").stdout).expect("UTF-8");
        for code in Code::ALL {
            if matches!(code, Code::UnknownProgram | Code::UnknownAttempt) {
                // A code for workers only, which these clients never call.
                continue;
            }
            let name = code.name();
            let is_there = text.contains(&format!("\"{name}\": "))
                || (!name.contains('-') && text.contains(&format!("\n  {name}: ")));
            assert!(is_there, "{name} in {}", language.name());
        }
    }
}
