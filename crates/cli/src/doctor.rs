//! `mingle doctor`: a program's binding against its servers, before anything starts.

use std::fmt::Write as _;
use std::sync::Arc;

use mingle::{Examined, Finding, Judgement, StoreFindings, TokioWorld, examine};
use serde_json::{Value as Json, json};

use crate::exit::{Exit, Failure};
use crate::open::{Place, Prepared, block_on, failure, prepare};
use crate::output::{Color, Format, print};
use crate::progress::Progress;

/// Examine the servers of a binding: do they answer, in which version, with which rights, clocks and settings?
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle doctor shop.mingle                               with mingle.toml beside it
  mingle doctor shop.mingle --config production.toml      before it is deployed
  mingle doctor shop.mingle --format json                 for other programs

Changes nothing. A store that does not answer does not keep the others from being examined. Ends with 4 if a store
cannot work; warnings alone are no failure.")]
pub struct Args {
    /// The program.
    file: String,

    /// The form of the output.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    let Prepared { program, binding, data, .. } = prepare(&args.file, &args.place, color)?;
    block_on(async {
        let _progress = Progress::start("examining the stores");
        let world = Arc::new(TokioWorld::new());
        let examined = examine(&program, &binding, Some(&data), world).await;
        let examined = examined.map_err(|error| failure(&error))?;
        print(&match args.format {
            Format::Human => told(&examined, color.on_stdout()),
            Format::Json => format!("{}\n", as_json(&examined)),
        });
        let works = examined.stores.iter().all(|store| store.worst() < Judgement::Wrong);
        Ok(if works { Exit::Success } else { Exit::Store })
    })
}

fn told(examined: &Examined, is_colored: bool) -> String {
    let mut text = String::new();
    for note in &examined.notes {
        let _ = writeln!(text, "note: {note}");
    }
    for StoreFindings { store, engine, findings } in &examined.stores {
        let _ = writeln!(text, "store {store} ({engine})");
        for finding in findings {
            let mark = mark(finding.judgement, is_colored);
            let _ = writeln!(text, "  {mark} {}: {}", finding.subject, finding.text);
        }
    }
    let all = || examined.stores.iter().flat_map(|store| &store.findings);
    let count = |wanted| all().filter(|found: &&Finding| found.judgement == wanted).count();
    let (warnings, wrong) = (count(Judgement::Warning), count(Judgement::Wrong));
    let stores = match examined.stores.len() {
        1 => "1 store".to_owned(),
        many => format!("{many} stores"),
    };
    let _ = writeln!(
        text,
        "{stores} examined: {wrong} wrong, {warnings} {}",
        if warnings == 1 { "warning" } else { "warnings" }
    );
    text
}

/// Returns the mark of a line, of one width for all judgements.
fn mark(judgement: Judgement, is_colored: bool) -> String {
    let (word, color) = match judgement {
        Judgement::Good => ("ok     ", "32"),
        Judgement::Warning => ("warning", "33"),
        Judgement::Wrong => ("wrong  ", "31"),
    };
    if is_colored { format!("\x1b[{color}m{word}\x1b[0m") } else { word.to_owned() }
}

fn as_json(examined: &Examined) -> Json {
    let word = |judgement| match judgement {
        Judgement::Good => "ok",
        Judgement::Warning => "warning",
        Judgement::Wrong => "wrong",
    };
    let stores = examined.stores.iter().map(|store| {
        let findings = store.findings.iter().map(|found| {
            json!({
                "subject": found.subject,
                "judgement": word(found.judgement),
                "text": found.text,
            })
        });
        json!({
            "store": &*store.store,
            "engine": store.engine,
            "judgement": word(store.worst()),
            "findings": findings.collect::<Json>(),
        })
    });
    json!({ "notes": examined.notes, "stores": stores.collect::<Json>() })
}
