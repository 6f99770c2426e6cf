//! `mingle status`: the state of stores, their unfinished work, and the live processes.

use std::fmt::Write as _;

use mingle::{Place as StorePlace, Process, Survey};
use serde_json::{Value as Json, json};

use crate::exit::{Exit, Failure};
use crate::open::{Place, block_on, open_reachable};
use crate::output::{Color, Format, print};
use crate::progress::Progress;
use crate::recover::reason;

/// Show whether each store answers, what is left to finish and to clean up there, and which processes are alive.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle status shop.mingle                  for people
  mingle status shop.mingle --format json    for other programs

Changes nothing. A process shows that it is alive by a counter that it raises at every store while it has something
open; the counters are looked at twice, a few seconds apart. Ends with 4 if a store does not answer.")]
pub struct Args {
    /// The program.
    file: String,

    /// How to say what was found.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    block_on(async {
        let _progress = Progress::start("asking the stores");
        let opened = open_reachable(&args.file, &args.place, color).await?;
        let survey = opened.database.survey().await;
        print(&match args.format {
            Format::Human => told(&survey),
            Format::Json => format!("{}\n", as_json(&survey)),
        });
        let answer = survey.places.iter().all(|place| place.holds.is_ok());
        Ok(if answer { Exit::Success } else { Exit::Store })
    })
}

fn told(survey: &Survey) -> String {
    let mut text = String::new();
    for place in &survey.places {
        let _ = writeln!(text, "{}", place_told(place));
    }
    if survey.processes.is_empty() {
        let all_answer = survey.places.iter().all(|place| place.holds.is_ok());
        let known = if all_answer { "" } else { " where stores answer" };
        let _ = writeln!(text, "no process has left anything{known}");
    }
    for process in &survey.processes {
        let _ = writeln!(text, "{}", process_told(process));
    }
    text
}

fn place_told(place: &StorePlace) -> String {
    let replica = place.replica.as_ref().map_or(String::new(), |name| format!(" replica {name}"));
    let (store, level) = (&place.store, place.level);
    match &place.holds {
        Ok(holds) => {
            let mut line = format!(
                "store {store}{replica} ({level}) answers in {} ms: {} open, {}, {}",
                place.took.as_millis(),
                counted(holds.intents, "transaction"),
                counted(holds.witnesses, "commit witness"),
                counted(holds.rows, "witness row"),
            );
            if holds.parked > 0 {
                let _ = write!(line, ", {} parked", holds.parked);
            }
            line
        }
        Err(error) => {
            format!("store {store}{replica} ({level}) does not answer: {}", reason(error))
        }
    }
}

fn process_told(process: &Process) -> String {
    let state = match process {
        Process { is_fenced: true, .. } => {
            "was taken for dead; others finish what it began".to_owned()
        }
        Process { is_alive: true, .. } => format!("is alive at {}", process.leases.join(", ")),
        Process { leases, .. } if leases.is_empty() => "gives no sign of life".to_owned(),
        Process { leases, .. } => {
            format!("gives no sign of life any more (the last ones are at {})", leases.join(", "))
        }
    };
    let mut line = format!(
        "process {} {state}: {} open",
        process_id(process),
        counted(process.transactions, "transaction")
    );
    if process.parked > 0 {
        let _ = write!(line, ", {} parked", process.parked);
    }
    line
}

/// Returns a process in the form with which the ids of its transactions begin.
fn process_id(process: &Process) -> String {
    format!("{:032x}", process.origin.0)
}

/// Returns a number with its noun, in the plural if needed.
fn counted(number: usize, what: &str) -> String {
    let ending = match (number, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {what}{ending}")
}

fn as_json(survey: &Survey) -> Json {
    let stores = survey.places.iter().map(|place| {
        let mut told = json!({
            "store": &*place.store,
            "replica": place.replica.as_deref(),
            "level": place.level.to_string(),
            "answers": place.holds.is_ok(),
            "milliseconds": place.took.as_millis() as u64,
        });
        match &place.holds {
            Ok(holds) => {
                told["transactions"] = holds.intents.into();
                told["commit_witnesses"] = holds.witnesses.into();
                told["witness_rows"] = holds.rows.into();
                told["parked"] = holds.parked.into();
            }
            Err(error) => told["reason"] = reason(error).into(),
        }
        told
    });
    let processes = survey.processes.iter().map(|process| {
        json!({
            "process": process_id(process),
            "alive": process.is_alive,
            "taken_for_dead": process.is_fenced,
            "signs_of_life_at": process.leases.iter().map(|name| &**name).collect::<Vec<_>>(),
            "transactions": process.transactions,
            "parked": process.parked,
        })
    });
    json!({ "stores": stores.collect::<Json>(), "processes": processes.collect::<Json>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!(counted(1, "witness row"), "1 witness row");
        assert_eq!(counted(0, "commit witness"), "0 commit witnesses");
        assert_eq!(counted(2, "transaction"), "2 transactions");
    }
}
