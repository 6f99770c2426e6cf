//! `mingle explain`: explains a program's transactions, or a diagnostic.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mingle_lang::check_source;
use mingle_lang::diagnostic::Code;
use mingle_lang::explain::{explain_all, render, to_json};
use mingle_lang::syntax::lex;

use crate::exit::{Exit, Failure};
use crate::files;
use crate::output::{Color, Format, human, print};
use crate::progress::Progress;

/// Explain how a program's transactions run, or what a diagnostic means.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle explain groups.mingle            the phases of every transaction
  mingle explain groups.mingle add_post   of one of them
  mingle explain M0302                    a diagnostic: what, why, and how to mend it
  mingle explain list                     all diagnostics, one a line")]
pub struct Args {
    /// A program, the code of a diagnostic, or `list`.
    #[arg(value_name = "FILE|CODE")]
    subject: String,

    /// One transaction of the program.
    transaction: Option<String>,

    /// The binding, which says what stores have a worker [default: mingle.toml beside the program, if
    /// it is there].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// How to explain a program.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    let subject = args.subject.as_str();
    let is_file = subject == files::STDIN || Path::new(subject).exists();
    if is_file {
        return program(args, color);
    }
    if subject == "list" {
        let lines = Code::ALL.iter().map(|code| format!("{code}  {}\n", code.summary()));
        print(&lines.collect::<String>());
        return Ok(Exit::Success);
    }
    match Code::find(subject) {
        Some(code) if args.transaction.is_none() => {
            print(code.explanation());
            Ok(Exit::Success)
        }
        Some(_) => {
            Err(Failure::usage(format!("{subject} is a diagnostic: it has no transactions")))
        }
        None => Err(Failure::usage(format!(
            "there is no file `{subject}`, and no diagnostic has that code; \
             `mingle explain list` shows all"
        ))),
    }
}

fn program(args: &Args, color: Color) -> Result<Exit, Failure> {
    let file = files::shown(&args.subject);
    let source = files::program(&args.subject)?;
    let _progress = Progress::start(format!("checking {file}"));
    let checked = check_source(source);
    let Some(program) = &checked.program else {
        eprint!("{}", human(&checked, file, color.on_stderr()));
        let message = format!("{file} has errors");
        return Err(Failure { message, exit: Exit::Program });
    };
    let wanted = args.transaction.as_deref();
    let plans = program.plans.iter().filter(|plan| wanted.is_none_or(|name| name == &*plan.name));
    let workers = workers(&args.subject, args.config.as_deref());
    let explained = explain_all(&lex(&*program.text), program, plans).into_iter();
    let explained: Vec<_> =
        explained.map(|one| one.with_workers(|store| workers.contains(store))).collect();
    if let (Some(name), true) = (wanted, explained.is_empty()) {
        let known: Vec<&str> = program.plans.iter().map(|plan| &*plan.name).collect();
        let known = known.join(", ");
        return Err(Failure::usage(format!("{file} has no transaction `{name}`; it has {known}")));
    }
    match args.format {
        Format::Json => print(&format!("{}\n", to_json(&explained))),
        Format::Human => {
            let texts: Vec<String> = explained.iter().map(render).collect();
            print(&texts.join("\n"));
        }
    }
    Ok(Exit::Success)
}

/// Returns the stores that have a worker. Nothing else is read from the binding, so environment
/// variables and files that it names need not exist.
fn workers(program: &str, config: Option<&Path>) -> BTreeSet<String> {
    let beside = Path::new(program).parent().unwrap_or(Path::new("")).join("mingle.toml");
    let text = std::fs::read_to_string(config.unwrap_or(&beside)).unwrap_or_default();
    let table: toml::Table = text.parse().unwrap_or_default();
    let stores = table.get("stores").and_then(toml::Value::as_table);
    let has_worker = |(name, store): (&String, &toml::Value)| {
        store.get("worker").is_some().then(|| name.clone())
    };
    stores.into_iter().flatten().filter_map(has_worker).collect()
}
