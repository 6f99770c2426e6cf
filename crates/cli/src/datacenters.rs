//! `mingle datacenters`: shows the state of data centers, gives one up, and brings it back.

use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use mingle::{
    Admitted, Database, DatacenterState, DatacenterStatus, GeoStore, GivenUp, StoreError,
};
use mingle_model::Time;
use serde_json::{Value as Json, json};

use crate::exit::{Exit, Failure};
use crate::open::{Place, block_on, open_idle};
use crate::output::{Color, Format, print};
use crate::progress::Progress;

/// The maximum time that the command waits, before it acts, for the data centers that are up to
/// show the same transactions.
const FIND_TOGETHER: Duration = Duration::from_secs(5);

/// Show how the data centers of stores stand, give one up for good, or bring it back.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle datacenters shop.mingle                  how does each of them stand?
  mingle datacenters shop.mingle give-up oslo     Oslo is gone for good: agree on what is left of it
  mingle datacenters shop.mingle admit oslo       it comes back, with empty disks

Of a data center that is given up stays what the others agree to have; whatever only it had is lost.
Sessions that have seen some of that are told, and go on without it only if they say so.")]
pub struct Args {
    /// The program.
    file: String,

    #[command(subcommand)]
    what: Option<What>,

    /// Of this store alone [default: of all that have data centers].
    #[arg(long, global = true, value_name = "STORE")]
    store: Option<String>,

    /// How to say what was found and done.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    #[command(flatten)]
    place: Place,
}

/// What to do.
#[derive(Subcommand)]
enum What {
    /// Show how each data center stands
    Status,
    /// Give up a data center for good
    GiveUp {
        /// Its name.
        name: String,

        /// Give it up although it runs: whatever only it has is lost.
        #[arg(long)]
        accept_loss: bool,
    },
    /// Bring back a data center that was given up, with empty disks
    Admit {
        /// Its name.
        name: String,
    },
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    block_on(async {
        let _progress = Progress::start("asking the data centers");
        let opened = open_idle(&args.file, &args.place, color).await?;
        let stores = stores(&opened.database, args.store.as_deref())?;
        match args.what.as_ref().unwrap_or(&What::Status) {
            What::Status => {
                print(&status(&stores, args.format));
                Ok(Exit::Success)
            }
            What::GiveUp { name, accept_loss } => {
                let stores = with(&stores, name)?;
                give_up(&stores, (&args.file, name), *accept_loss, args.format).await
            }
            What::Admit { name } => admit(&with(&stores, name)?, name, args.format).await,
        }
    })
}

type Stores = Vec<(String, Arc<GeoStore>)>;

/// Returns the stores that have data centers; of the stores that share an engine, only the first.
fn stores(database: &Database, only: Option<&str>) -> Result<Stores, Failure> {
    let all = database.geo_stores();
    let known = || all.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if all.is_empty() {
        let message = "no store has data centers: the binding gives them with `datacenters`";
        return Err(Failure::usage(message));
    }
    if let Some(only) = only {
        let Some(store) = all.get(only) else {
            return Err(Failure::usage(format!(
                "no store `{only}` has data centers; those that have are {}",
                known()
            )));
        };
        return Ok(vec![(only.to_owned(), Arc::clone(store))]);
    }
    let mut stores = Stores::new();
    for (name, store) in all {
        if !stores.iter().any(|(_, other)| other.shares_datacenters_with(store)) {
            stores.push((name.to_string(), Arc::clone(store)));
        }
    }
    Ok(stores)
}

/// Returns the stores that have a data center of this name.
fn with(stores: &Stores, name: &str) -> Result<Stores, Failure> {
    let has = |store: &GeoStore| store.datacenters().iter().any(|known| **known == *name);
    let found: Stores = stores.iter().filter(|(_, store)| has(store)).cloned().collect();
    if found.is_empty() {
        let known = stores.iter().flat_map(|(_, store)| store.datacenters());
        let mut known: Vec<&str> = known.map(|name| &**name).collect();
        known.sort_unstable();
        known.dedup();
        let known = known.join(", ");
        return Err(Failure::usage(format!(
            "no data center is called `{name}`; there are {known}"
        )));
    }
    Ok(found)
}

fn state(store: &GeoStore, name: &str) -> DatacenterState {
    let status = store.status().into_iter().find(|status| *status.name == *name);
    status.map_or(DatacenterState::Down, |status| status.state)
}

/// True if this store has reached the state `end` and another store has not: an earlier call may
/// have handled a part of the stores.
fn is_done(stores: &Stores, name: &str, store: &GeoStore, end: &DatacenterState) -> bool {
    state(store, name) == *end && stores.iter().any(|(_, other)| state(other, name) != *end)
}

/// Returns the details of a state beyond its word.
fn more(state: &DatacenterState) -> Option<String> {
    match state {
        DatacenterState::Lost(why) => Some(why.clone()),
        DatacenterState::ComingUp { taken_over, partitions } => {
            Some(format!("{taken_over} of {partitions} partitions"))
        }
        _ => None,
    }
}

fn status(stores: &Stores, format: Format) -> String {
    if format == Format::Json {
        let stores = stores.iter().map(|(name, store)| {
            let all: Vec<Json> = store.status().iter().map(as_json).collect();
            json!({ "store": name, "datacenters": all })
        });
        return format!("{}\n", Json::Array(stores.collect()));
    }
    let mut lines = Vec::new();
    for (name, store) in stores {
        lines.push(format!("{name}\n"));
        for status in store.status() {
            let (word, more) = (status.state.word(), more(&status.state));
            let more = more.map_or_else(String::new, |more| format!(": {more}"));
            let again = match status.incarnation {
                0 => String::new(),
                1 => ", admitted again".to_owned(),
                times => format!(", admitted again {times} times"),
            };
            lines.push(format!("  {:<12} {word}{more}{again}\n", status.name));
        }
    }
    lines.concat()
}

fn as_json(status: &DatacenterStatus) -> Json {
    let mut json = json!({
        "name": &*status.name,
        "state": status.state.word(),
        "incarnation": status.incarnation,
    });
    match &status.state {
        DatacenterState::Lost(why) => json["why"] = json!(why),
        DatacenterState::ComingUp { taken_over, partitions } => {
            json["taken_over"] = json!(taken_over);
            json["partitions"] = json!(partitions);
        }
        _ => {}
    }
    json
}

/// Waits until the data centers that are up show the same transactions, for at most
/// [`FIND_TOGETHER`].
async fn find_together(store: &GeoStore) {
    let found = async {
        loop {
            let states = store.status();
            let mut up = states.iter().filter(|status| status.state == DatacenterState::Up);
            let seen: Vec<_> =
                up.by_ref().filter_map(|one| store.visible(&one.name).ok()).collect();
            if seen.iter().all(|one| seen.iter().all(|other| one.covers(other))) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(FIND_TOGETHER, found).await.ok();
}

async fn give_up(
    stores: &Stores,
    (file, name): (&str, &str),
    accept_loss: bool,
    format: Format,
) -> Result<Exit, Failure> {
    for (store, geo) in stores {
        let runs =
            matches!(state(geo, name), DatacenterState::Up | DatacenterState::ComingUp { .. });
        if runs && !accept_loss {
            return Err(Failure {
                message: format!(
                    "data center {name} of store {store} runs, and what only it has would be lost: say so with --accept-loss"
                ),
                exit: Exit::Store,
            });
        }
    }
    let mut said = Vec::new();
    for (store, geo) in stores {
        if is_done(stores, name, geo, &DatacenterState::GivenUp) {
            continue;
        }
        find_together(geo).await;
        if accept_loss && state(geo, name) != DatacenterState::GivenUp {
            geo.kill(name).map_err(failure)?;
        }
        let given_up = geo.give_up(name).await.map_err(failure)?;
        said.push((store.clone(), given_up));
    }
    print(&given_up(&said, (file, name), format));
    Ok(Exit::Success)
}

fn given_up(said: &[(String, GivenUp)], (file, name): (&str, &str), format: Format) -> String {
    if format == Format::Json {
        let all = said.iter().map(|(store, given_up)| {
            let GivenUp { incarnation, cut_us, lost } = given_up;
            json!({ "store": store, "datacenter": name, "incarnation": incarnation,
                "cut_us": cut_us, "lost": lost })
        });
        return format!("{}\n", Json::Array(all.collect()));
    }
    let mut lines = Vec::new();
    for (store, given_up) in said {
        let lost = match given_up.lost {
            None => "what only it had is lost; as its data are gone, nobody can tell what that was"
                .to_owned(),
            Some(0) => "no transaction is lost".to_owned(),
            Some(1) => "1 transaction that only it had is lost".to_owned(),
            Some(count) => format!("{count} transactions that only it had are lost"),
        };
        lines.push(format!(
            "{store}: {name} is given up; what it committed up to {} stays\n  {lost}\n",
            Time::from_micros(given_up.cut_us.cast_signed()),
        ));
    }
    lines.push(format!(
        "`mingle datacenters {file} admit {name}` brings it back, with empty disks\n"
    ));
    lines.concat()
}

async fn admit(stores: &Stores, name: &str, format: Format) -> Result<Exit, Failure> {
    let mut said: Vec<(String, Admitted)> = Vec::new();
    for (store, geo) in stores {
        if is_done(stores, name, geo, &DatacenterState::Up) {
            continue;
        }
        let mut admitting = std::pin::pin!(geo.admit(name));
        let mut shown = 0;
        let admitted = loop {
            tokio::select! {
                admitted = &mut admitting => break admitted.map_err(failure)?,
                () = tokio::time::sleep(Duration::from_millis(200)) => {
                    if let DatacenterState::ComingUp { taken_over, partitions } = state(geo, name)
                        && taken_over > shown
                    {
                        shown = taken_over;
                        eprintln!("{store}: {name} has taken over {taken_over} of {partitions} partitions");
                    }
                }
            }
        };
        said.push((store.clone(), admitted));
    }
    print(&admitted(&said, name, format));
    Ok(Exit::Success)
}

fn admitted(said: &[(String, Admitted)], name: &str, format: Format) -> String {
    if format == Format::Json {
        let all = said.iter().map(|(store, admitted)| {
            json!({ "store": store, "datacenter": name, "incarnation": admitted.incarnation })
        });
        return format!("{}\n", Json::Array(all.collect()));
    }
    let lines = said
        .iter()
        .map(|(store, _)| format!("{store}: {name} is back, and has what the others have\n"));
    lines.collect()
}

fn failure(error: StoreError) -> Failure {
    Failure { message: error.to_string(), exit: Exit::Store }
}
