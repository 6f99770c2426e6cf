//! `mingle check-history`: checks that a recorded history satisfies a consistency model.

use std::path::Path;

use clap::ValueEnum;
use mingle_checker::{History, Model, Verdict, check, read_jsonl, read_text, write_text};

use crate::exit::{Exit, Failure};
use crate::files;
use crate::output::print;
use crate::progress::Progress;

/// Check a recorded history against a consistency model.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle check-history run.jsonl                          each level, of what is at least as strong
  mingle check-history --model serializability run.jsonl  one model for all
  mingle check-history --format text --model causal - < run.txt
  mingle check-history --export text run.jsonl > run.txt  for other checkers

Exit codes: 0 satisfied, 1 violated (the counterexample is printed), 2 usage or a file, 6 unknown.")]
pub struct Args {
    /// The history; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: String,

    /// What it must satisfy.
    #[arg(long, value_enum, default_value_t, value_name = "MODEL")]
    model: ModelName,

    /// The form of the file. Without it that is `text` if the file's name ends in `.txt`.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// Print the history in another form instead.
    #[arg(long, value_enum, value_name = "FORMAT")]
    export: Option<Export>,
}

/// What a history must satisfy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ModelName {
    /// One order, in real time.
    StrictSerializability,
    /// One order.
    Serializability,
    /// Snapshot isolation.
    Snapshot,
    /// Transactional causal consistency.
    Causal,
    /// The same, with one order of writes that all agree on.
    CausalPlus,
    /// All or nothing of each transaction is seen.
    ReadAtomic,
    /// Reads marked as final agree.
    Convergence,
    /// For each level its model, of the stores of at least that level.
    #[default]
    Mixed,
}

impl ModelName {
    fn model(self) -> Model {
        match self {
            Self::StrictSerializability => Model::StrictSerializability,
            Self::Serializability => Model::Serializability,
            Self::Snapshot => Model::Snapshot,
            Self::Causal => Model::Causal,
            Self::CausalPlus => Model::CausalPlus,
            Self::ReadAtomic => Model::ReadAtomic,
            Self::Convergence => Model::Convergence,
            Self::Mixed => Model::Mixed,
        }
    }
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object a line, one line a transaction.
    Jsonl,
    /// One operation a line, as public checkers read it.
    Text,
}

/// The form to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Export {
    /// One operation a line, as public checkers read it.
    Text,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let history = read(args)?;
    if args.export == Some(Export::Text) {
        print(&write_text(&history));
        return Ok(Exit::Success);
    }
    let verdict = {
        let _progress = Progress::start(format!("checking {}", files::shown(&args.file)));
        check(&history, args.model.model())
    };
    print(&verdict.to_string());
    Ok(match verdict {
        Verdict::Satisfied(_) => Exit::Success,
        Verdict::Violated(_) => Exit::Program,
        Verdict::Unknown(_) => Exit::Unknown,
    })
}

fn read(args: &Args) -> Result<History, Failure> {
    let text = files::read(&args.file)?;
    let is_text = match args.format {
        Some(format) => format == Format::Text,
        None => Path::new(&args.file).extension().is_some_and(|extension| extension == "txt"),
    };
    let history = if is_text { read_text(&text) } else { read_jsonl(&text) };
    let name = files::shown(&args.file);
    history.map_err(|error| Failure::usage(format!("{name}: {error}")))
}
