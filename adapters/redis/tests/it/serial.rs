//! Many concurrent transactions, over several connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::{Value, random::next_random};
use mingle_services::Engine;
use mingle_store::conformance::schema::{COUNT, NUMBER, at};
use mingle_store::{Address, Commit, Data, DataStore, Read, Session, StoreError, Write};
use mingle_store_redis::Redis;

use crate::support::{config, data, open, write};

const TASKS: u64 = 8;
const TRANSFERS: u64 = 30;
const ACCOUNTS: u64 = 5;
const EACH: i64 = 1_000;
const SEED: u64 = 20_261_120;

fn account(number: u64) -> Address {
    at(&format!("account {number}"), NUMBER)
}

fn number(data: &Data) -> i64 {
    match data {
        Data::Register(Some(Value::Int(number))) => *number,
        other => panic!("no number: {other:?}"),
    }
}

/// Moves an amount, with a separate batch to read each account; returns true if the transfer took
/// effect.
async fn transfer(store: &Redis, from: u64, to: u64, amount: i64) -> Result<bool, StoreError> {
    let mut open = store.begin(&Session::default()).await?;
    let mut found = Vec::new();
    for one in [from, to] {
        match open.read(&[Read::Register(account(one))]).await {
            Ok(answers) => found.push(number(&answers[0].data)),
            Err(StoreError::Conflict) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    let writes = vec![
        Write::Assign(account(from), Value::Int(found[0] - amount)),
        Write::Assign(account(to), Value::Int(found[1] + amount)),
        Write::Add(at("done", COUNT), 1),
    ];
    match open.commit(Commit { writes, ..Commit::default() }).await {
        Ok(_) => Ok(true),
        Err(StoreError::Conflict) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the total of all accounts, read in two batches.
async fn total(store: &Redis) -> Result<Option<i64>, StoreError> {
    let mut open = store.begin(&Session::default()).await?;
    let all: Vec<Read> = (0..ACCOUNTS).map(|one| Read::Register(account(one))).collect();
    let mut sum = 0;
    for part in all.chunks(3) {
        match open.read(part).await {
            Ok(answers) => sum += answers.iter().map(|answer| number(&answer.data)).sum::<i64>(),
            Err(StoreError::Conflict) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    open.commit(Commit::default()).await?;
    Ok(Some(sum))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn transfers_keep_the_sum_and_none_is_lost() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    println!("seed {SEED}");
    let config = config(server.url());
    let stores = [open(config.clone()).await, open(config).await];
    let start = (0..ACCOUNTS).map(|one| Write::Assign(account(one), Value::Int(EACH)));
    write(&stores[0], start.collect()).await.expect("it writes");
    let conflicts = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for task in 0..TASKS {
        let store = Arc::clone(&stores[task as usize % 2]);
        let conflicts = Arc::clone(&conflicts);
        tasks.push(tokio::spawn(async move {
            let mut random = SEED + task;
            for round in 0..TRANSFERS {
                let from = next_random(&mut random) % ACCOUNTS;
                let to = (from + 1 + next_random(&mut random) % (ACCOUNTS - 1)) % ACCOUNTS;
                let amount = i64::try_from(next_random(&mut random) % 50).expect("it is small");
                while !transfer(&store, from, to, amount).await.expect("it goes on") {
                    conflicts.fetch_add(1, Ordering::Relaxed);
                }
                if round % 5 == 0
                    && let Some(sum) = total(&store).await.expect("it reads")
                {
                    assert_eq!(sum, EACH * i64::try_from(ACCOUNTS).expect("a few"), "a snapshot");
                }
            }
        }));
    }
    for task in tasks {
        task.await.expect("no task fails");
    }
    let sum = total(&stores[1]).await.expect("it reads").expect("nobody writes");
    assert_eq!(sum, EACH * i64::try_from(ACCOUNTS).expect("a few"));
    let done = data(&stores[0], Read::Counter(at("done", COUNT))).await;
    assert_eq!(done, Data::Counter(i128::from(TASKS * TRANSFERS)));
    assert!(conflicts.load(Ordering::Relaxed) > 0, "they did not meet");
}
