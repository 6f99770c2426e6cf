//! The load: clients that call one transaction after another, and what they measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use mingle::{Database, Session};
use mingle_lang::generate::Random;
use mingle_model::Value;
use mingle_store::{Commit, Write};

use crate::groups::{self, MIX, Size};

/// A load to be run.
pub struct Load {
    pub title: &'static str,
    pub clients: usize,
    pub time: Duration,
    pub seed: u64,
    pub size: Size,
}

/// What a load measured.
pub struct Measured {
    /// Latencies by transaction, in µs.
    latencies: Vec<Histogram<u64>>,
    pub failed: u64,
    took: Duration,
}

impl Measured {
    /// Transactions a second.
    pub fn throughput(&self) -> f64 {
        self.latencies.iter().map(Histogram::len).sum::<u64>() as f64 / self.took.as_secs_f64()
    }

    /// Calls by transaction.
    pub fn counts(&self) -> Vec<u64> {
        self.latencies.iter().map(Histogram::len).collect()
    }

    /// Mean latency over all calls, in ms.
    pub fn mean_ms(&self) -> f64 {
        let sum: f64 =
            self.latencies.iter().map(|latency| latency.mean() * latency.len() as f64).sum();
        sum / 1e3 / self.counts().iter().sum::<u64>().max(1) as f64
    }

    /// A quantile of one transaction's latency, in ms.
    pub fn quantile_ms(&self, transaction: usize, quantile: f64) -> f64 {
        self.latencies[transaction].value_at_quantile(quantile) as f64 / 1e3
    }
}

impl Load {
    /// Fills the database past its distances, then runs the clients.
    pub async fn run(&self, database: Arc<Database>) -> Result<Measured, String> {
        let progress = ProgressBar::new(self.time.as_secs());
        let style = ProgressStyle::with_template("{prefix:<18} {wide_bar} {msg}")
            .map_err(|error| error.to_string())?;
        progress.set_style(style);
        progress.set_prefix(self.title);
        progress.set_message("filling");
        self.fill(&database).await?;
        let done = Arc::new(AtomicU64::new(0));
        let begin = Instant::now();
        let until = begin + self.time;
        let mut clients = Vec::new();
        for client in 0..self.clients {
            let (database, done, size) = (database.clone(), done.clone(), self.size);
            let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(client as u64);
            clients.push(tokio::spawn(async move {
                run_client(&database, seed, client, size, until, &done).await
            }));
        }
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let elapsed = begin.elapsed();
            progress.set_position(elapsed.as_secs().min(self.time.as_secs()));
            let count = done.load(Ordering::Relaxed);
            progress.set_message(format!(
                "{count} transactions, {:.0}/s",
                count as f64 / elapsed.as_secs_f64()
            ));
        }
        let mut measured = Measured { latencies: histograms()?, failed: 0, took: Duration::ZERO };
        for client in clients {
            let (latencies, failed) = client.await.map_err(|error| error.to_string())??;
            for (all, one) in measured.latencies.iter_mut().zip(latencies) {
                all.add(one).map_err(|error| error.to_string())?;
            }
            measured.failed += failed;
        }
        // The last calls end a little after the time is up, and count.
        measured.took = begin.elapsed();
        progress.finish();
        Ok(measured)
    }

    /// Writes users and groups in large commits, so that filling costs a few round trips.
    async fn fill(&self, database: &Database) -> Result<(), String> {
        let program = database.program().checked.clone();
        let size = self.size;
        for (index, object) in program.objects.iter().enumerate() {
            let mut writes = Vec::new();
            let is_user = &*object.declared.name == "User";
            if is_user {
                writes.extend((0..size.users).map(|number| Write::Create(groups::user(number))));
            } else {
                let members =
                    object.declared.field_index("members").ok_or("the program has no members")?
                        as u16;
                for number in 0..size.groups {
                    for member in 0..size.members {
                        let address =
                            mingle_store::Address { object: groups::group(number), field: members };
                        let member = groups::user((number * size.members + member) % size.users);
                        writes.push(Write::Insert(address, Value::Ref(member)));
                    }
                }
            }
            let store = program.objects[index].store;
            let failed = |error: mingle_store::StoreError| error.to_string();
            let transaction = database
                .runtime()
                .store(store)
                .begin(&mingle_store::Session::default())
                .await
                .map_err(failed)?;
            transaction.commit(Commit { writes, ..Commit::default() }).await.map_err(failed)?;
        }
        Ok(())
    }
}

fn histograms() -> Result<Vec<Histogram<u64>>, String> {
    // From 1 µs to 10 minutes with three digits.
    MIX.iter()
        .map(|_| Histogram::new_with_bounds(1, 600_000_000, 3).map_err(|error| error.to_string()))
        .collect()
}

type ClientResult = Result<(Vec<Histogram<u64>>, u64), String>;

async fn run_client(
    database: &Database,
    seed: u64,
    client: usize,
    size: Size,
    until: Instant,
    done: &AtomicU64,
) -> ClientResult {
    let mut random = Random::new(seed);
    let mut fresh = (client + 1) * 1_000_000_000;
    let (mut latencies, mut failed) = (histograms()?, 0);
    while Instant::now() < until {
        let (index, arguments) = groups::draw(&mut random, size, &mut fresh);
        let begin = Instant::now();
        match database.call(MIX[index].0, arguments, Session::default()).await {
            Ok(_) => latencies[index].saturating_record(begin.elapsed().as_micros() as u64),
            Err(_) => failed += 1,
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok((latencies, failed))
}
