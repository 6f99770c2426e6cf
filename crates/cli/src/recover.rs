//! `mingle recover`: unfinished transactions.

use std::str::FromStr;

use mingle::{Abandoned, Error, Found, StoreError, Swept, Unfinished, Unreachable};
use mingle_model::{TransactionId, Value};
use serde_json::{Value as Json, json};

use crate::exit::{Exit, Failure};
use crate::open::{Opened, Place, block_on, open_idle, open_reachable};
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
  mingle recover shop.mingle --retry 4be7c0f21f0b9d1f2cc59e4f5e1a7a33-1
  mingle recover shop.mingle --abandon 4be7c0f21f0b9d1f2cc59e4f5e1a7a33-1 --because \"refunded by hand\"

A transaction is unfinished when it has committed at some stores and not yet at others, because a
process died or a store refused. Any start goes on with it; one that a store refuses for good is
parked, and only tried again here. One that is abandoned keeps the parts that have committed; the
others never come. Ends with 4 if something is left, or with --list if a store does not answer.")]
pub struct Args {
    /// The program.
    file: String,

    /// List them, and change nothing.
    #[arg(long)]
    list: bool,

    /// Try only this transaction once more; without ID, all that are parked, as without --retry.
    #[arg(
        long,
        value_name = "ID",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with = "list"
    )]
    retry: Option<Retry>,

    /// End this parked transaction: what has committed stays, the rest never comes.
    #[arg(long, value_name = "ID", requires = "because", conflicts_with_all = ["list", "retry"])]
    abandon: Option<TransactionId>,

    /// Why it is abandoned; kept with it, and listed.
    #[arg(long, value_name = "TEXT", requires = "abandon")]
    because: Option<String>,

    /// How to say what was found and done.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    #[command(flatten)]
    place: Place,
}

/// The parked transactions that are tried once more.
#[derive(Clone, Copy)]
enum Retry {
    All,
    One(TransactionId),
}

impl FromStr for Retry {
    type Err = <TransactionId as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    block_on(async {
        let _progress = Progress::start("recovering");
        if args.list {
            return list(args, color).await;
        }
        let opened = open_idle(&args.file, &args.place, color).await?;
        let before = opened.database.unfinished().await.map_err(failure)?;
        let mut swept = Swept::default();
        if let (Some(id), Some(because)) = (args.abandon, &args.because) {
            opened.database.abandon(id, because).await.map_err(failure)?;
        } else if let Some(Retry::One(id)) = args.retry {
            match opened.database.retry(id).await {
                Ok(()) => {}
                Err(error @ Error::Misuse(_)) => return Err(failure(error)),
                Err(error) => swept.left.push((id, error.to_string())),
            }
        } else {
            // Even if no transaction is unfinished, there may be something to clean up.
            swept = opened.database.recover().await.map_err(failure)?;
        }
        tell(&opened, &before, &swept, args.format).await
    })
}

/// Lists the unfinished transactions at all stores that answer; the exit code says if all answered.
async fn list(args: &Args, color: Color) -> Result<Exit, Failure> {
    let opened = open_reachable(&args.file, &args.place, color).await?;
    let found = opened.database.left_behind().await.map_err(failure)?;
    print(&listed(&found, args.format));
    Ok(if found.unreachable.is_empty() { Exit::Success } else { Exit::Store })
}

async fn tell(
    opened: &Opened,
    before: &[Unfinished],
    swept: &Swept,
    format: Format,
) -> Result<Exit, Failure> {
    let database = &opened.database;
    let after = database.unfinished().await.map_err(failure)?;
    let abandoned = database.abandoned().await.map_err(failure)?;
    database.settle(A_MOMENT).await;
    print(&done(before, &after, &abandoned, swept, format));
    Ok(if after.is_empty() { Exit::Success } else { Exit::Store })
}

fn listed(found: &Found, format: Format) -> String {
    let Found { unfinished, abandoned, unreachable } = found;
    if format == Format::Json {
        let abandoned = abandoned.iter().map(abandoned_as_json);
        let unreachable =
            unreachable.iter().map(|place| json!({ "unreachable": unreachable_as_json(place) }));
        let all: Vec<Json> =
            unfinished.iter().map(as_json).chain(abandoned).chain(unreachable).collect();
        return format!("{}\n", Json::Array(all));
    }
    let mut lines = Vec::new();
    if unfinished.is_empty() {
        let where_known = if unreachable.is_empty() { "" } else { " where stores answer" };
        lines.push(format!("nothing is unfinished{where_known}"));
    }
    for left in unfinished {
        lines.push(format!("{} {}", left.id, left.transaction));
        lines.push(format!("  began at: {}, {}", left.intent, Value::Time(left.since)));
        if !left.missing.is_empty() {
            lines.push(format!("  missing at: {}", left.missing.join(", ")));
        }
        if !left.unanswered.is_empty() {
            lines.push(format!("  not known at: {}", left.unanswered.join(", ")));
        }
        lines.extend(left.parked.as_ref().map(|why| format!("  parked: {why}")));
    }
    for ended in abandoned {
        lines.push(format!("{} {}", ended.id, ended.transaction));
        lines.push(format!("  began at: {}", ended.intent));
        lines.push(format!("  never came to: {}", ended.missing.join(", ")));
        lines.push(format!("  was parked: {}", ended.parked));
        lines.push(format!("  abandoned: {}, because {}", Value::Time(ended.at), ended.because));
    }
    lines.extend(unreachable.iter().map(not_listed));
    lines.join("\n") + "\n"
}

/// Returns a line for a store that does not answer, so that its transactions are not listed.
fn not_listed(place: &Unreachable) -> String {
    let replica = place.replica.as_ref().map_or(String::new(), |name| format!(" (replica {name})"));
    let why = reason(&place.error);
    format!(
        "store {}{replica} does not answer, and what began there is not listed: {why}",
        place.store
    )
}

fn unreachable_as_json(place: &Unreachable) -> Json {
    json!({
        "store": &*place.store,
        "replica": place.replica.as_deref(),
        "reason": reason(&place.error),
    })
}

/// The reason why a store does not answer, without the store's name.
pub fn reason(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

fn abandoned_as_json(ended: &Abandoned) -> Json {
    json!({
        "id": ended.id.to_string(),
        "transaction": &*ended.transaction,
        "began_at": &*ended.intent,
        "missing_at": ended.missing.iter().map(|store| &**store).collect::<Vec<_>>(),
        "parked": ended.parked,
        "abandoned": { "at": Value::Time(ended.at).to_string(), "because": ended.because },
    })
}

fn as_json(left: &Unfinished) -> Json {
    json!({
        "id": left.id.to_string(),
        "transaction": &*left.transaction,
        "principal": left.principal.as_ref().map(mingle::Principal::as_str),
        "began_at": &*left.intent,
        "since": Value::Time(left.since).to_string(),
        "not_known_at": left.unanswered.iter().map(|store| &**store).collect::<Vec<_>>(),
        "missing_at": left.missing.iter().map(|store| &**store).collect::<Vec<_>>(),
        "parked": left.parked,
    })
}

/// Reports the result for each transaction.
fn done(
    before: &[Unfinished],
    after: &[Unfinished],
    abandoned: &[Abandoned],
    swept: &Swept,
    format: Format,
) -> String {
    let is_left = |found: &&Unfinished| {
        after.iter().any(|left| left.id == found.id)
            || abandoned.iter().any(|ended| ended.id == found.id)
    };
    let finished: Vec<&Unfinished> = before.iter().filter(|found| !is_left(found)).collect();
    if format == Format::Json {
        let all = |found: &[&Unfinished]| found.iter().map(|one| as_json(one)).collect::<Json>();
        let left: Vec<&Unfinished> = after.iter().collect();
        let ended: Json = abandoned.iter().map(abandoned_as_json).collect();
        let told = json!({ "finished": all(&finished), "left": all(&left), "abandoned": ended });
        return format!("{told}\n");
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
    if lines.is_empty() && before.is_empty() {
        lines.push("nothing was unfinished".to_owned());
    }
    for ended in abandoned {
        let stores = ended.missing.join(", ");
        let (id, name, because) = (ended.id, &ended.transaction, &ended.because);
        lines.push(format!("abandoned {id} {name}, which never came to {stores}: {because}"));
    }
    lines.join("\n") + "\n"
}
