//! The load: clients that make consecutive calls, and their measurements.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use mingle::{Database, Session};
use mingle_model::Value;
use mingle_model::random::Random;
use mingle_store::{Commit, Write};

use crate::groups::{self, MIX, Size};
use crate::measured::Measured;

/// A load to run.
pub struct Load {
    pub title: &'static str,
    pub clients: usize,
    pub time: Duration,
    pub seed: u64,
    pub size: Size,
}

impl Load {
    /// Fills the database, then runs the clients.
    pub async fn run(&self, database: Arc<Database>) -> Result<Measured, String> {
        let progress = ProgressBar::new(self.time.as_secs());
        let style = ProgressStyle::with_template("{prefix:<18} {wide_bar} {msg}")
            .map_err(|error| error.to_string())?;
        progress.set_style(style);
        progress.set_prefix(self.title);
        progress.set_message("filling");
        fill(&database, self.size).await?;
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
        let mut measured = Measured::new()?;
        for client in clients {
            measured.add(&client.await.map_err(|error| error.to_string())??)?;
        }
        // The last calls end slightly after the time limit, and count.
        measured.seconds = begin.elapsed().as_secs_f64();
        progress.finish();
        Ok(measured)
    }
}

/// A commit to several data centers carries at most 10,000 operations, of which a write makes two.
const WRITES_AT_ONCE: usize = 4_000;

/// Writes users and groups in large commits, so that filling costs a few round trips.
pub async fn fill(database: &Database, size: Size) -> Result<(), String> {
    let program = database.program().checked.clone();
    for object in &program.objects {
        let mut writes = Vec::new();
        if &*object.declared.name == "User" {
            writes.extend((0..size.users).map(|number| Write::Create(groups::user(number))));
        } else {
            let members = object.declared.field_index("members");
            let field = members.ok_or("the program has no members")? as u16;
            for number in 0..size.groups {
                for member in 0..size.members {
                    let address = mingle_store::Address { object: groups::group(number), field };
                    let member = groups::user((number * size.members + member) % size.users);
                    writes.push(Write::Insert(address, Value::Ref(member)));
                }
            }
        }
        let store = database.runtime().store(object.store);
        let failed = |error: mingle_store::StoreError| error.to_string();
        for writes in writes.chunks(WRITES_AT_ONCE) {
            let session = mingle_store::Session::default();
            let transaction = store.begin(&session).await.map_err(failed)?;
            let commit = Commit { writes: writes.to_vec(), ..Commit::default() };
            transaction.commit(commit).await.map_err(failed)?;
        }
    }
    Ok(())
}

async fn run_client(
    database: &Database,
    seed: u64,
    client: usize,
    size: Size,
    until: Instant,
    done: &AtomicU64,
) -> Result<Measured, String> {
    let mut random = Random::new(seed);
    let mut fresh = (client + 1) * 1_000_000_000;
    let mut measured = Measured::new()?;
    while Instant::now() < until {
        let (index, arguments) = groups::draw(&mut random, size, &mut fresh);
        let begin = Instant::now();
        match database.call(MIX[index].0, arguments, Session::default()).await {
            Ok(_) => measured.record(index, begin.elapsed()),
            Err(_) => measured.failed += 1,
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(measured)
}
