//! `mingle recover`: what was left unfinished.

use mingle::{Swept, Unfinished};
use serde_json::{Value as Json, json};

use crate::exit::{Exit, Failure};
use crate::open::{Opened, Place, block_on, open_idle};
use crate::output::{Color, Format, print};
use crate::progress::Progress;
use crate::rest::{A_MOMENT, sentence};
use crate::run::failure;

/// List the transactions that were left unfinished, or finish them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle recover shop.mingle --list    what is unfinished, and why?
  mingle recover shop.mingle           finish it

A transaction is unfinished when it has committed at some stores and not yet at others, because a
process died or a store refused. Any start goes on with it; one that a store refuses for good is
parked, and only tried again here. Ends with 4 if something is left.")]
pub struct Args {
    /// The program.
    file: String,

    /// List them, and change nothing.
    #[arg(long)]
    list: bool,

    /// How to say what was found and done.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    #[command(flatten)]
    place: Place,
}

/// Runs it.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    block_on(async {
        let _progress = Progress::start("recovering");
        let opened = open_idle(&args.file, &args.place, color).await?;
        let before = opened.database.unfinished().await.map_err(failure)?;
        if args.list {
            print(&listed(&before, args.format));
            return Ok(Exit::Success);
        }
        recover(&opened, &before, args.format).await
    })
}

async fn recover(opened: &Opened, before: &[Unfinished], format: Format) -> Result<Exit, Failure> {
    let database = &opened.database;
    // Even where nothing is unfinished there may be something to clean up.
    let swept = database.recover().await.map_err(failure)?;
    let after = database.unfinished().await.map_err(failure)?;
    database.settle(A_MOMENT).await;
    print(&done(before, &after, &swept, format));
    Ok(if after.is_empty() { Exit::Success } else { Exit::Store })
}

fn listed(unfinished: &[Unfinished], format: Format) -> String {
    if format == Format::Json {
        let all: Vec<Json> = unfinished.iter().map(as_json).collect();
        return format!("{}\n", Json::Array(all));
    }
    if unfinished.is_empty() {
        return "nothing is unfinished\n".to_owned();
    }
    let mut lines = Vec::new();
    for left in unfinished {
        lines.push(format!("{} {}", left.id, left.transaction));
        lines.push(format!("  began at: {}", left.intent));
        lines.push(format!("  missing at: {}", left.missing.join(", ")));
        lines.extend(left.parked.as_ref().map(|why| format!("  parked: {why}")));
    }
    lines.join("\n") + "\n"
}

fn as_json(left: &Unfinished) -> Json {
    json!({
        "id": left.id.to_string(),
        "transaction": &*left.transaction,
        "began_at": &*left.intent,
        "missing_at": left.missing.iter().map(|store| &**store).collect::<Vec<_>>(),
        "parked": left.parked,
    })
}

/// What was done about each.
fn done(before: &[Unfinished], after: &[Unfinished], swept: &Swept, format: Format) -> String {
    let is_left = |found: &&Unfinished| after.iter().any(|left| left.id == found.id);
    let finished: Vec<&Unfinished> = before.iter().filter(|found| !is_left(found)).collect();
    if format == Format::Json {
        let all = |found: &[&Unfinished]| found.iter().map(|one| as_json(one)).collect::<Json>();
        let left: Vec<&Unfinished> = after.iter().collect();
        return format!("{}\n", json!({ "finished": all(&finished), "left": all(&left) }));
    }
    let mut lines = Vec::new();
    for done in &finished {
        let stores = done.missing.join(", ");
        lines.push(format!("finished {} {} at {stores}", done.id, done.transaction));
    }
    for left in after {
        let why = swept.left.iter().find(|(id, _)| *id == left.id);
        let why = why.map_or_else(|| sentence(left), |(_, why)| why.clone());
        lines.push(format!("left {} {}: {why}", left.id, left.transaction));
    }
    if lines.is_empty() {
        lines.push("nothing was unfinished".to_owned());
    }
    lines.join("\n") + "\n"
}
