//! `mingle fmt`: formats programs.

use mingle_lang::diagnostic::render_human;
use mingle_lang::format::format;
use mingle_lang::syntax::{lex, parse};

use crate::exit::{Exit, Failure};
use crate::files;
use crate::output::{Color, print};
use crate::progress::Progress;
use crate::test;

/// Lay out programs in the one way there is, comments kept.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle fmt shop.mingle            rewrite it
  mingle fmt --check src/*.mingle   only say which would change; the exit code is then 1
  mingle fmt - < shop.mingle        print it; `-` is standard input

A program with syntax errors is left as it is.")]
pub struct Args {
    /// The programs; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,

    /// Change nothing, and name the programs that would change.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Exit {
    let mut exit = Exit::Success;
    for path in &args.files {
        match one(path, args.check, color) {
            Ok(next) => exit = exit.max(next),
            Err(failure) => {
                // The other files are formatted nevertheless.
                eprintln!("error: {}", failure.message);
                exit = exit.max(failure.exit);
            }
        }
    }
    exit
}

fn one(path: &str, check: bool, color: Color) -> Result<Exit, Failure> {
    if path.ends_with(test::ENDING) {
        return Err(Failure::usage(format!(
            "{path} is a file of tests, which is laid out by hand"
        )));
    }
    let source = lex(files::read(path)?);
    let _progress = Progress::start(format!("laying out {}", files::shown(path)));
    let (program, diagnostics) = parse(&source);
    if !diagnostics.is_empty() {
        let shown = render_human(&source, files::shown(path), &diagnostics, color.on_stdout());
        print(&shown);
        return Ok(Exit::Program);
    }
    let text = format(&source, &program);
    let changes = text != source.text;
    if check {
        if changes {
            print(&format!("{}\n", files::shown(path)));
            return Ok(Exit::Program);
        }
    } else if path == files::STDIN {
        print(&text);
    } else if changes {
        files::replace(path, &text)?;
    }
    Ok(Exit::Success)
}
