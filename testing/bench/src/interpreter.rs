//! The interpreter against the same logic written by hand, on the in-memory engine.

use std::time::{Duration, Instant};

use clap::Args;
use mingle_model::random::Random;
use mingle_model::{Ref, Time, Value};
use mingle_runtime::{Call, Runtime};
use mingle_store::Session;

use crate::groups::{self, MIX, Size};
use crate::hand::{Application, Inboxes};

/// The size of the measurements.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Calls in each of the blocks.
    #[arg(long, default_value_t = 20_000)]
    calls: usize,
    /// Rounds of four blocks: interpreter, hand, hand, interpreter.
    #[arg(long, default_value_t = 8)]
    rounds: usize,
    /// Fail if the interpreter takes more than this many times as long.
    #[arg(long)]
    at_most: Option<f64>,
}

const SIZE: Size = Size { users: 2_000, groups: 200, members: 8 };

/// The time of each transaction.
type Times = [Duration; MIX.len()];

pub fn run(options: &Options) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(measure(options))
}

async fn measure(options: &Options) -> Result<(), String> {
    let program = groups::compile(groups::PROGRAM)?;
    // Each side has its own data, so that neither profits from the other's.
    let interpreted = groups::in_memory(program.clone()).await?;
    let by_hand = groups::in_memory(program).await?;
    for database in [&interpreted, &by_hand] {
        groups::fill(database, SIZE).await.map_err(|error| error.to_string())?;
    }
    let stores = &by_hand.program().checked.stores;
    let id = |name: &str| {
        let index = stores.iter().position(|store| *store.name == *name);
        mingle_lang::hir::StoreId(index.expect("the program has this store") as u32)
    };
    let application = Application {
        groups: by_hand.runtime().store(id("groups")).clone(),
        inboxes: Inboxes {
            store: by_hand.runtime().store(id("inboxes")).clone(),
            session: Session::default(),
            user_kind: "User".into(),
        },
        session: Session::default(),
    };
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    let mut counts = [0_u64; MIX.len()];
    let mut ratios = Vec::new();
    for round in 0..options.rounds {
        let before = (total(&ours), total(&theirs));
        for (block, is_ours) in [true, false, false, true].into_iter().enumerate() {
            let seed = (round * 4 + block / 2) as u64;
            if is_ours {
                interpreter_block(
                    interpreted.runtime(),
                    seed,
                    options.calls,
                    &mut ours,
                    &mut counts,
                )
                .await?;
            } else {
                hand_block(&application, seed, options.calls, &mut theirs).await?;
            }
        }
        let (taken, by_hand) = (
            total(&ours).checked_sub(before.0).unwrap(),
            total(&theirs).checked_sub(before.1).unwrap(),
        );
        ratios.push(taken.as_secs_f64() / by_hand.as_secs_f64());
    }
    report(options, &ours, &theirs, &counts, ratios)
}

fn report(
    options: &Options,
    ours: &Times,
    theirs: &Times,
    counts: &[u64],
    mut ratios: Vec<f64>,
) -> Result<(), String> {
    ratios.sort_by(f64::total_cmp);
    println!(
        "Message Groups in memory, {} calls a side, in blocks ABBA",
        options.calls * options.rounds * 2
    );
    println!(
        "{:<14}{:>10}{:>14}{:>14}{:>8}",
        "transaction", "calls", "interpreted", "by hand", "ratio"
    );
    for (index, (name, _)) in MIX.iter().enumerate() {
        let per_call = |time: Duration| time.as_secs_f64() * 1e6 / counts[index].max(1) as f64;
        let ratio = ours[index].as_secs_f64() / theirs[index].as_secs_f64();
        println!(
            "{name:<14}{:>10}{:>11.2} µs{:>11.2} µs{ratio:>8.2}",
            counts[index],
            per_call(ours[index]),
            per_call(theirs[index])
        );
    }
    let ratio = total(ours).as_secs_f64() / total(theirs).as_secs_f64();
    println!(
        "all: {ratio:.2} times by hand (rounds from {:.2} to {:.2})",
        ratios[0],
        ratios[ratios.len() - 1]
    );
    match options.at_most {
        Some(limit) if ratio > limit => Err(format!(
            "the interpreter takes {ratio:.2} times as long, at most {limit} is allowed"
        )),
        _ => Ok(()),
    }
}

fn total(times: &Times) -> Duration {
    times.iter().sum()
}

async fn interpreter_block(
    runtime: &Runtime,
    seed: u64,
    calls: usize,
    times: &mut Times,
    counts: &mut [u64],
) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut fresh = seed as usize * calls;
    for _ in 0..calls {
        let (index, arguments) = groups::draw(&mut random, SIZE, &mut fresh);
        let call = Call::new(MIX[index].0, arguments);
        let begin = Instant::now();
        runtime.call_in_place(&call).await.map_err(|error| error.to_string())?;
        times[index] += begin.elapsed();
        counts[index] += 1;
    }
    Ok(())
}

async fn hand_block(
    application: &Application,
    seed: u64,
    calls: usize,
    times: &mut Times,
) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut fresh = seed as usize * calls;
    let object =
        |value: &Value| -> Ref { value.as_ref_value().expect("the argument is a ref").clone() };
    for _ in 0..calls {
        let (index, arguments) = groups::draw(&mut random, SIZE, &mut fresh);
        let begin = Instant::now();
        let done = match MIX[index].0 {
            "check_inbox" => {
                application.inboxes.check_inbox(&object(&arguments[0])).await.map(|_| ())
            }
            "add_post" => {
                application.add_post(&object(&arguments[0]), &arguments[1]).await.map(|_| ())
            }
            "join_group" => {
                application.join_group(&object(&arguments[0]), &object(&arguments[1])).await
            }
            _ => application
                .inboxes
                .create_user(&arguments[0], Time::from_millis(1_000))
                .await
                .map(|_| ()),
        };
        done.map_err(|error| error.to_string())?;
        times[index] += begin.elapsed();
    }
    Ok(())
}
