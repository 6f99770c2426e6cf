//! Completions for shells, and the manual pages. The command itself prints both.

use std::process::Command;

use super::{Dist, expect, files};
use crate::run::{Outcome, output};

/// The shells, with the file that each looks for.
pub const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "mingle"), ("zsh", "_mingle"), ("fish", "mingle.fish")];

/// Asks the command for the completions and the manual pages.
pub fn make(dist: &Dist) -> Outcome {
    for (shell, file) in COMPLETIONS {
        let text = output(dist.command().args(["completions", shell]))?;
        files::write(&dist.folder.join("completions").join(shell).join(file), text)?;
    }
    output(dist.command().args(["man", "--into"]).arg(dist.folder.join("man"))).map(drop)
}

/// Loads the completions, and completes `mingle che`.
pub fn test_bash(dist: &Dist) -> Outcome {
    let script = "set -eu; source completions/bash/mingle; complete -p mingle
        COMP_WORDS=(mingle che) COMP_CWORD=1 COMPREPLY=()
        \"$(complete -p mingle | sed 's/.*-F \\([^ ]*\\).*/\\1/')\" mingle che mingle
        echo \"${COMPREPLY[@]}\"";
    expect(&shell(dist, "bash", script)?, "check check-history")
}

/// Loads the completions.
pub fn test_zsh(dist: &Dist) -> Outcome {
    let script = "fpath=($PWD/completions/zsh $fpath); autoload -Uz compinit; compinit -u -D
        autoload +X _mingle; print ${_comps[mingle]}; functions _mingle_commands >/dev/null || _mingle 2>/dev/null
        zsh -n completions/zsh/_mingle && print well-formed";
    let found = shell(dist, "zsh", script)?;
    expect(&found, "_mingle")?;
    expect(&found, "well-formed")
}

/// Loads the completions, and completes `mingle che`.
pub fn test_fish(dist: &Dist) -> Outcome {
    let script = "source completions/fish/mingle.fish; complete --do-complete 'mingle che'";
    expect(&shell(dist, "fish", script)?, "check-history")
}

fn shell(dist: &Dist, name: &str, script: &str) -> Result<String, String> {
    let mut command = Command::new(name);
    command.args(["-c", script]).current_dir(&dist.folder).env("HOME", &dist.work);
    output(&mut command)
}

/// Formats every page. The formatter must give no warning.
pub fn test_manual(dist: &Dist) -> Outcome {
    let mut count = 0;
    for page in files::below(&dist.folder.join("man"))? {
        let mut command = Command::new("man");
        command.args(["--warnings", "--local-file"]).arg(&page).env("MANWIDTH", "100");
        let shown =
            command.env("LC_ALL", "C.UTF-8").output().map_err(|error| format!("man: {error}"))?;
        let (text, complaints) = (shown.stdout, shown.stderr);
        if !shown.status.success() || !complaints.is_empty() {
            let complaints = String::from_utf8_lossy(&complaints).into_owned();
            return Err(format!("{}: {complaints}", page.display()));
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        ["NAME", "SYNOPSIS", "mingle"].iter().try_for_each(|word| expect(&text, word))?;
        count += 1;
    }
    eprintln!("    {count} pages");
    (count > 15).then_some(()).ok_or_else(|| format!("{count} pages are too few"))
}
