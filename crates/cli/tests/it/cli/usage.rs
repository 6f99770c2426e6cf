//! Wrong calls and files, help, and completions.

use std::fs;

use super::{GOOD, folder, mingle};

#[test]
fn wrong_calls_end_with_2() {
    let folder = folder(&[("good.mingle", GOOD)]);
    for args in [
        &[][..],
        &["chekc", "good.mingle"],
        &["check"],
        &["check", "--format", "xml", "good.mingle"],
        &["explain"],
        &["fmt"],
        &["gen"],
        &["gen", "rust"],
        &["run", "good.mingle"],
        &["show", "good.mingle"],
        &["repl"],
        &["migrate"],
        &["init"],
        &["completions", "tcl"],
    ] {
        let run = mingle(folder.path(), args);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}");
        let teaches = run.stderr.contains("Usage: mingle") || run.stderr.contains("--help");
        assert!(teaches, "{args:?}: {}", run.stderr);
    }
}

#[test]
fn wrong_files_end_with_2_and_others_are_still_checked() {
    let folder = folder(&[("good.mingle", GOOD), ("odd.mingle", "x")]);
    let bytes = b"store a: causal;\n// \xff\n";
    fs::write(folder.path().join("latin.mingle"), bytes).expect("the file is written");
    let args = ["check", "--format", "short", "none.mingle", ".", "latin.mingle", "odd.mingle"];
    let run = mingle(folder.path(), &args);
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.stderr,
        "error: cannot read none.mingle: there is no such file\n\
         error: cannot read .: it is a folder\n\
         error: latin.mingle is not UTF-8: see line 2\n"
    );
    assert!(run.stdout.starts_with("odd.mingle:1:1: error[M0001]"), "{}", run.stdout);
    let run = mingle(folder.path(), &["fmt", "none.mingle"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("none.mingle"), "{}", run.stderr);
}

#[test]
fn help_teaches() {
    let folder = folder(&[]);
    let run = mingle(folder.path(), &["--help"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.contains("Exit codes:"), "{}", run.stdout);
    for command in [
        "check",
        "explain",
        "fmt",
        "gen",
        "run",
        "show",
        "repl",
        "recover",
        "status",
        "doctor",
        "datacenters",
        "migrate",
        "init",
        "serve",
        "lsp",
        "check-history",
        "completions",
    ] {
        assert!(run.stdout.contains(&format!("\n  {command} ")), "{command}");
        let run = mingle(folder.path(), &[command, "--help"]);
        assert_eq!(run.code, Some(0));
        assert!(run.stdout.contains("Examples:"), "{command}: {}", run.stdout);
    }
}

#[test]
fn completions_for_each_shell() {
    let folder = folder(&[]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = mingle(folder.path(), &["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{shell}");
        assert!(run.stdout.contains("check") && run.stdout.contains("mingle"), "{shell}");
    }
}

#[test]
fn the_book_has_every_command_and_option() {
    let page = include_str!("../../../../../docs/command-line.md");
    let folder = folder(&[]);
    let words = |text: &str| -> Vec<String> {
        let words = text.split_whitespace().map(|word| word.trim_end_matches([',', ']']));
        words.map(str::to_owned).collect()
    };
    let help = mingle(folder.path(), &["--help"]).stdout;
    let (_, commands) = help.split_once("Commands:\n").expect("a list of commands");
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let mut seen = 0;
    for command in commands.filter_map(|line| line.split_whitespace().next()) {
        if command == "help" {
            continue;
        }
        seen += 1;
        assert!(page.contains(&format!("`mingle {command} ")), "{command}");
        let help = mingle(folder.path(), &[command, "--help"]).stdout;
        for option in words(&help).iter().filter(|word| word.starts_with("--") && word.len() > 2) {
            if !matches!(option.as_str(), "--help" | "--version") {
                assert!(page.contains(&format!("`{option}")), "{command} {option}");
            }
        }
    }
    assert_eq!(seen, 20);
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let folder = folder(&[]);
    let run = mingle(folder.path(), &["man"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.contains(".TH mingle 1"), "{}", run.stdout);
    let run = mingle(folder.path(), &["man", "--into", "pages"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    for name in ["mingle", "mingle-check", "mingle-gen", "mingle-gen-rust", "mingle-completions"] {
        let page = fs::read_to_string(folder.path().join(format!("pages/{name}.1")));
        let page = page.expect("the page was written");
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        assert!(page.contains(".SH EXAMPLES\n.nf\n"), "{page}");
    }
}
