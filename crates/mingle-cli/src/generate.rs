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
  mingle gen rust shop.mingle > src/shop.rs
  mingle gen typescript shop.mingle > src/shop.ts
  mingle gen python shop.mingle > shop.py")]
pub struct Args {
    #[command(subcommand)]
    language: Language,
}

#[derive(Subcommand)]
enum Language {
    Rust(RustArgs),
    #[command(name = "typescript")]
    TypeScript(TypeScriptArgs),
    Python(PythonArgs),
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

/// A client in TypeScript for the program behind `mingle serve`: one file, no dependencies.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle gen typescript shop.mingle > src/shop.ts
  mingle gen typescript - < shop.mingle      `-` is standard input

It is an ES module, for browsers and Node 20 or newer.")]
struct TypeScriptArgs {
    /// The program; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: String,
}

/// A client in Python for the program behind `mingle serve`: one file, no dependencies.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle gen python shop.mingle > shop.py
  mingle gen python - < shop.mingle          `-` is standard input

It is for Python 3.10 and newer.")]
struct PythonArgs {
    /// The program; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: String,
}

/// Writes a checked program, whose file has this name, in a language; none if it has errors.
type Generator = fn(&Checked, &str) -> Option<String>;

/// Runs it.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    let (file, generator): (&str, Generator) = match &args.language {
        Language::Rust(args) => (&args.file, rust),
        Language::TypeScript(args) => (&args.file, mingle_gen::typescript::text),
        Language::Python(args) => (&args.file, mingle_gen::python::text),
    };
    let checked = mingle_lang::check(files::read(file)?);
    let shown = files::shown(file);
    eprint!("{}", human(&checked, shown, color.on_stderr()));
    let name = Path::new(shown).file_name().unwrap_or_default().to_string_lossy();
    Ok(match generator(&checked, &name) {
        Some(text) => {
            print(&text);
            Exit::Success
        }
        None => Exit::Program,
    })
}

fn rust(checked: &Checked, name: &str) -> Option<String> {
    let items = mingle_gen::rust::items(checked, &format!("`{name}`"))?;
    let text = mingle_gen::rust::text(items);
    Some(format!("// Generated from {name} by `mingle gen rust`.\n\n{text}"))
}
