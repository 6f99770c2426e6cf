//! `mingle check`: reports the errors of programs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use mingle_lang::diagnostic::{diagnostics_to_json, endorsements_to_json, render_short};
use mingle_lang::syntax::{Places, TextPlaces};
use mingle_lang::{Checked, Program, check_source};
use serde_json::json;

use crate::exit::Exit;
use crate::files;
use crate::open;
use crate::output::{Color, human, print, summary};
use crate::progress::Progress;
use crate::test;
use crate::watch::{LOOK_EVERY, Watched};

/// Check programs and report what is wrong with them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle check shop.mingle
  mingle check --format short src/*.mingle   one line for each diagnostic
  mingle check --format json - < shop.mingle for other programs; `-` is standard input
  mingle check --endorsements shop.mingle    what somebody vouched for, and why
  mingle check --watch shop.mingle           again after each change
  mingle check --config mingle.toml shop.mingle  whether its stores are bound as they can be

Warnings alone are no failure: the exit code is then 0.")]
pub struct Args {
    /// The programs; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,

    /// Check this binding against the programs too [default: mingle.toml beside each, if it is
    /// there].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// How to report.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    /// List the endorsements too.
    #[arg(long)]
    endorsements: bool,

    /// Check again after each change, until the command is stopped.
    #[arg(long)]
    watch: bool,
}

/// How to report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// With the lines that it is about.
    #[default]
    Human,
    /// One line each.
    Short,
    /// For other programs.
    Json,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Exit {
    if !args.watch {
        return check(args, color);
    }
    if args.files.iter().any(|file| file == files::STDIN) {
        eprintln!("error: standard input cannot be watched; name files");
        return Exit::Usage;
    }
    let sources = |file: &String| {
        let program = file.strip_suffix(test::ENDING).map(|stem| format!("{stem}.mingle"));
        let mut sources = open::sources(file, args.config.as_deref());
        sources.extend(program.iter().map(PathBuf::from));
        sources.extend(program.iter().flat_map(|program| files::imported(program)));
        sources
    };
    let mut watched = Watched::new(args.files.iter().flat_map(sources));
    loop {
        watched.add(args.files.iter().flat_map(sources));
        let exit = check(args, color);
        let state = if exit == Exit::Success { "no errors" } else { "errors" };
        eprintln!("{state}; waiting for changes");
        let changed = loop {
            if let Some(changed) = watched.changed() {
                break changed.display().to_string();
            }
            std::thread::sleep(LOOK_EVERY);
        };
        eprintln!("\n{changed} changed");
    }
}

/// Checks the programs once.
fn check(args: &Args, color: Color) -> Exit {
    let (mut exit, mut checked) = (Exit::Success, Vec::new());
    let parts = parts(&args.files);
    for path in args.files.iter().filter(|path| !parts.contains(*path)) {
        if path.ends_with(test::ENDING) {
            let found = test::check(path, color).unwrap_or_else(|failure| {
                eprintln!("error: {}", failure.message);
                failure.exit
            });
            exit = exit.max(found);
            continue;
        }
        let source = match files::program(path) {
            Ok(source) => source,
            Err(failure) => {
                // The other files are checked nevertheless.
                eprintln!("error: {}", failure.message);
                exit = exit.max(failure.exit);
                continue;
            }
        };
        let _progress = Progress::start(format!("checking {}", files::shown(path)));
        let program = check_source(source);
        match (&program.program, &args.config) {
            _ if program.has_errors() => exit = exit.max(Exit::Program),
            // A program from standard input has no binding beside it.
            (Some(program), config) if path != "-" || config.is_some() => {
                exit = exit.max(check_binding(program, path, config.as_deref()));
            }
            _ => {}
        }
        checked.push((files::shown(path), program));
    }
    match args.format {
        Format::Json => print(&as_json(&checked)),
        Format::Short | Format::Human => print(&as_text(&checked, args, color)),
    }
    let omitted: usize = checked.iter().map(|(_, program)| program.omitted).sum();
    if omitted > 0 {
        eprintln!("{omitted} more diagnostics are not shown");
    }
    let all = checked.iter().flat_map(|(_, program)| &program.diagnostics);
    if let (Format::Human, Some(summary)) = (args.format, summary(all)) {
        eprintln!("{summary}");
    }
    exit
}

/// Returns the files that others of these import: they are checked within those programs.
fn parts(named: &[String]) -> BTreeSet<String> {
    if named.len() < 2 {
        return BTreeSet::new();
    }
    let whole = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_program = |path: &&String| *path != files::STDIN && !path.ends_with(test::ENDING);
    let imports = |path: &String| -> Vec<PathBuf> {
        files::imported(path).iter().map(|file| whole(file)).collect()
    };
    let programs: Vec<_> = named
        .iter()
        .filter(is_program)
        .map(|path| (path, whole(Path::new(path)), imports(path)))
        .collect();
    let is_part = |file: &PathBuf| programs.iter().any(|(_, _, imports)| imports.contains(file));
    // Files in a circle are parts of each other; none of them is left out for that.
    let roots = programs.iter().filter(|(_, file, _)| !is_part(file));
    let covered: BTreeSet<&PathBuf> = roots.flat_map(|(_, _, imports)| imports).collect();
    let covered = programs.iter().filter(|(_, file, _)| covered.contains(file));
    covered.map(|(path, ..)| (*path).clone()).collect()
}

/// Reports the errors of a binding for a correct program.
fn check_binding(program: &Program, path: &str, config: Option<&Path>) -> Exit {
    let checked = open::binding(path, config).and_then(|binding| {
        mingle::check_binding(program, &binding).map_err(|error| open::failure(&error))
    });
    match checked {
        Ok(notes) => {
            for note in notes {
                eprintln!("note: {note}");
            }
            Exit::Success
        }
        Err(failure) => {
            for line in failure.message.lines() {
                eprintln!("error: {line}");
            }
            failure.exit
        }
    }
}

fn as_json(checked: &[(&str, Checked)]) -> String {
    let mut diagnostics = Vec::new();
    let mut endorsements = Vec::new();
    for (file, program) in checked {
        let source = &program.source;
        diagnostics.extend(diagnostics_to_json(source, file, &program.diagnostics));
        endorsements.extend(endorsements_to_json(source, file, &program.endorsements));
    }
    let report = json!({ "diagnostics": diagnostics, "endorsements": endorsements });
    format!("{report}\n")
}

fn as_text(checked: &[(&str, Checked)], args: &Args, color: Color) -> String {
    let mut text = String::new();
    for (file, program) in checked {
        if args.format == Format::Human {
            text.push_str(&human(program, file, color.on_stdout()));
        } else {
            text.push_str(&render_short(&program.source, file, &program.diagnostics));
        }
    }
    if args.endorsements {
        for (file, program) in checked {
            let places = TextPlaces::new(&program.source);
            for endorsement in &program.endorsements {
                let (at, _) = places.place(endorsement.span);
                let (level, reason) = (&endorsement.level, &endorsement.reason);
                let file = places.file(endorsement.span, file);
                let place = format!("{file}:{}:{}", at.line, at.column);
                writeln!(text, "{place}: endorsed as {level}: {reason}")
                    .expect("writing to a string does not fail");
            }
        }
    }
    text
}
