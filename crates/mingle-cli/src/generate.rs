//! `mingle gen`: a program as code in another language.

use std::path::Path;

use clap::Subcommand;
use mingle_lang::Checked;

use crate::exit::{Exit, Failure};
use crate::files;
use crate::output::{Color, human, print};

/// Write code that calls a program's transactions.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle gen rust shop.mingle > src/shop.rs")]
pub struct Args {
    #[command(subcommand)]
    language: Language,
}

#[derive(Subcommand)]
enum Language {
    Rust(RustArgs),
}

/// The same as `mingle::program!` expands to, for those who would rather see it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle gen rust shop.mingle > src/shop.rs
  mingle gen rust - < shop.mingle            `-` is standard input

The crate that it becomes a part of needs `mingle` among its dependencies.")]
struct RustArgs {
    /// The program; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: String,
}

/// Runs it.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    let Language::Rust(args) = &args.language;
    let checked = mingle_lang::check(files::read(&args.file)?);
    let shown = files::shown(&args.file);
    eprint!("{}", human(&checked, shown, color.on_stderr()));
    Ok(match rust(&checked, shown) {
        Some(text) => {
            print(&text);
            Exit::Success
        }
        None => Exit::Program,
    })
}

fn rust(checked: &Checked, path: &str) -> Option<String> {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let items = mingle_gen::rust::items(checked, &format!("`{name}`"))?;
    let text = mingle_gen::rust::text(items);
    Some(format!("// Generated from {name} by `mingle gen rust`.\n\n{text}"))
}
