//! `mingle gen`: a program as code in another language.

use std::path::Path;

use clap::{Subcommand, ValueEnum};
use mingle_gen::{Runtime, go};
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
  mingle gen python shop.mingle > shop.py
  mingle gen go shop.mingle > shop/shop.go")]
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
    Go(GoArgs),
    /// Print what clients in TypeScript import with `--runtime import`: what the package is built from.
    #[command(name = "typescript-runtime", hide = true)]
    TypeScriptRuntime,
    /// Print what clients in Python import with `--runtime import`: what the package is built from.
    #[command(hide = true)]
    PythonRuntime,
    /// Print what clients in Go import with `--runtime import`: what the package is built from.
    #[command(hide = true)]
    GoRuntime,
    /// Print the import path of that package.
    #[command(hide = true)]
    GoModule,
}

/// Where a client has what is the same for all programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum RuntimeArg {
    /// In the client's file, which then has no dependencies.
    #[default]
    Embed,
    /// In the package `mingle-client`, of the same version as this command.
    Import,
}

impl From<RuntimeArg> for Runtime {
    fn from(arg: RuntimeArg) -> Self {
        match arg {
            RuntimeArg::Embed => Self::Embedded,
            RuntimeArg::Import => Self::Imported,
        }
    }
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
    /// Where the client has what is the same for all programs.
    #[arg(long, value_enum, default_value_t, value_name = "WHERE")]
    runtime: RuntimeArg,
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
    /// Where the client has what is the same for all programs.
    #[arg(long, value_enum, default_value_t, value_name = "WHERE")]
    runtime: RuntimeArg,
}

/// A client in Go for the program behind `mingle serve`: one file, no dependencies.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle gen go shop.mingle > shop/shop.go
  mingle gen go --package store - < shop.mingle      `-` is standard input

It is for Go 1.24 and newer, and a package of its own: no other client is in its folder.")]
struct GoArgs {
    /// The program; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: String,
    /// The name of the client's package [default: made from the name of the file].
    #[arg(long, value_name = "NAME", value_parser = package_name)]
    package: Option<String>,
    /// Where the client has what is the same for all programs.
    #[arg(long, value_enum, default_value_t, value_name = "WHERE")]
    runtime: RuntimeArg,
    /// With `--runtime import`: the import path of that package, if it is in a module of yours.
    #[arg(long, value_name = "PATH", value_parser = import_path)]
    module: Option<String>,
}

/// Reads a value of `--package`.
fn package_name(text: &str) -> Result<String, String> {
    let expected = "expected a name of a package, such as shop: lower-case letters and digits";
    if go::is_package_name(text) { Ok(text.to_owned()) } else { Err(expected.into()) }
}

/// Reads a value of `--module`.
fn import_path(text: &str) -> Result<String, String> {
    let expected = "expected an import path, such as shop.example/internal/mingleclient";
    if go::is_import_path(text) { Ok(text.to_owned()) } else { Err(expected.into()) }
}

impl GoArgs {
    fn options(&self) -> go::Options {
        let (package, module) = (self.package.clone(), self.module.clone());
        go::Options { package, runtime: self.runtime.into(), module }
    }
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    let file = match &args.language {
        Language::Rust(args) => &args.file,
        Language::TypeScript(args) => &args.file,
        Language::Python(args) => &args.file,
        Language::Go(args) if args.module.is_some() && args.runtime == RuntimeArg::Embed => {
            return Err(Failure::usage("--module needs --runtime import"));
        }
        Language::Go(args) => &args.file,
        Language::TypeScriptRuntime => return Ok(printed(&mingle_gen::typescript::runtime())),
        Language::PythonRuntime => return Ok(printed(&mingle_gen::python::runtime())),
        Language::GoRuntime => return Ok(printed(&go::runtime())),
        Language::GoModule => return Ok(printed(&format!("{}\n", go::module()))),
    };
    let checked = files::checked(file)?;
    let shown = files::shown(file);
    eprint!("{}", human(&checked, shown, color.on_stderr()));
    let name = Path::new(shown).file_name().unwrap_or_default().to_string_lossy();
    Ok(match text(&args.language, &checked, &name) {
        Some(text) => {
            print(&text);
            Exit::Success
        }
        None => Exit::Program,
    })
}

fn printed(text: &str) -> Exit {
    print(text);
    Exit::Success
}

/// Returns the code in `language` for a checked program from a file of this name; none if the
/// program has errors.
fn text(language: &Language, checked: &Checked, name: &str) -> Option<String> {
    match language {
        Language::TypeScript(args) => {
            mingle_gen::typescript::text_with(checked, name, args.runtime.into())
        }
        Language::Python(args) => mingle_gen::python::text_with(checked, name, args.runtime.into()),
        Language::Go(args) => go::text_with(checked, name, &args.options()),
        Language::Rust(_) => rust(checked, name),
        Language::TypeScriptRuntime
        | Language::PythonRuntime
        | Language::GoRuntime
        | Language::GoModule => None,
    }
}

/// Returns a client in a language by its name: `typescript`, `python`, `go` or `rust`. None if the language is
/// unknown, or the program has errors.
#[cfg(feature = "server")]
pub fn client(language: &str, checked: &Checked, name: &str) -> Option<String> {
    match language {
        "typescript" => mingle_gen::typescript::text_with(checked, name, Runtime::Embedded),
        "python" => mingle_gen::python::text_with(checked, name, Runtime::Embedded),
        "go" => go::text(checked, name),
        "rust" => rust(checked, name),
        _ => None,
    }
}

/// The languages of [`client`].
#[cfg(feature = "server")]
pub const LANGUAGES: [&str; 4] = ["typescript", "python", "go", "rust"];

fn rust(checked: &Checked, name: &str) -> Option<String> {
    let items = mingle_gen::rust::items(checked, &format!("`{name}`"))?;
    let text = mingle_gen::rust::text(items);
    let name = mingle_gen::one_line(name);
    Some(format!("// Generated from {name} by `mingle gen rust`.\n\n{text}"))
}
