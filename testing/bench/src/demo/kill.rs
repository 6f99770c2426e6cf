//! The demonstration of availability: Message Groups over three data centers, of which one stops
//! during the run.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mingle::binding::Engine;
use mingle::{Binding, Database, Error, GeoStore, Session};
use mingle_model::random::Random;
use mingle_store::StoreError;
use mingle_store_embedded::GeoConfig;

use super::load::fill;
use super::reasons::Reasons;
use super::{Options, SIZE, back, kill_page, write_page};
use crate::groups::{self, MIX};

/// The store whose data centers can stop.
const INBOXES: &str = "inboxes";

/// The number of users that are compared between all data centers in the end.
const LOOKED_AT: usize = 500;

/// The longest wait of a moving client until its past has reached the new data center; then it
/// continues without.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The number of last writes that a client remembers, to report the lost ones.
const WRITES_MAX: usize = 1_000;

/// The result for one client of the stopped data center.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The data center where it continues.
    pub to: String,
    /// The manner in which it continues.
    pub how: How,
    /// The time from the first failed call to the first successful call there.
    pub took: Duration,
    /// The number of failed calls in between.
    pub failed: u64,
}

/// The manner in which a session continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Its whole past was there at once.
    Resumed,
    /// It had to wait for a part of its past.
    Waited,
    /// A part did not arrive: this many acknowledged writes.
    WithLoss(usize),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resumed => f.write_str("resumed at once"),
            Self::Waited => f.write_str("resumed after waiting"),
            Self::WithLoss(0) => f.write_str("went on without what it had read"),
            Self::WithLoss(1) => f.write_str("went on with the loss of 1 write"),
            Self::WithLoss(count) => write!(f, "went on with the loss of {count} writes"),
        }
    }
}

/// The calls of one data center's clients in one second.
#[derive(Default)]
pub struct Cell {
    done: AtomicU64,
    failed: AtomicU64,
}

impl Cell {
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// The state of the run so far.
pub struct Run {
    /// The binding, as the page shows it.
    pub binding: String,
    /// The names of the data centers.
    pub names: Vec<String>,
    /// The data center that stops.
    pub killed: String,
    /// The time of the stop.
    pub at: Duration,
    /// The time at which it is given up and comes back.
    pub back: Option<Duration>,
    /// The time at which it had caught up with the others.
    pub came_up: OnceLock<Duration>,
    /// The duration of the run in seconds.
    pub seconds: u64,
    /// The cells by second, then by data center.
    pub cells: Vec<Vec<Cell>>,
    /// The reasons of failed calls.
    pub reasons: Reasons,
}

impl Run {
    /// True if a data center runs in the end.
    fn runs_at_last(&self, name: &str) -> bool {
        self.back.is_some() || *name != self.killed
    }
}

fn binding(options: &Options) -> String {
    format!(
        "[stores.groups]\nengine = \"embedded\"\ndistance = \"{}\"\n\n\
         [stores.inboxes]\nengine = \"embedded\"\ndatacenters = [\"oslo\", \"rome\", \"lima\"]\n\
         distance = \"{}\"\n\
         between = {{ oslo-rome = \"30ms\", oslo-lima = \"190ms\", rome-lima = \"200ms\" }}\n",
        options.linearizable, options.causal
    )
}

pub fn run(killed: &str, options: &Options) -> Result<(), String> {
    let text = binding(options);
    let binding = Binding::parse(&text).map_err(|error| error.to_string())?;
    let geo = match binding.stores.get(INBOXES).map(|bound| &bound.engine) {
        Some(Engine::Embedded(bound)) => bound.geo.clone(),
        _ => None,
    };
    let geo = geo.ok_or("the binding gives the inboxes no data centers")?;
    let names: Vec<String> = geo.datacenters.iter().map(ToString::to_string).collect();
    if !names.iter().any(|name| name == killed) {
        return Err(format!(
            "--kill {killed}: the binding names the data centers {}",
            names.join(", ")
        ));
    }
    let at = options.at.unwrap_or(Duration::from_secs(20));
    let last = options.back.map_or(at, |back| back.max(at).mul_f64(0.75));
    let seconds = options.seconds.unwrap_or((last.as_secs_f64() * 2.0).ceil() as u64);
    if at.is_zero() || at >= Duration::from_secs(seconds) {
        return Err(format!(
            "--at {at:?}: expected a time within the run, which takes {seconds} s; --seconds makes it longer"
        ));
    }
    back::check(at, options.back, seconds)?;
    let row = || names.iter().map(|_| Cell::default()).collect();
    let cells = (0..=seconds).map(|_| row()).collect();
    let killed = killed.to_owned();
    let back = options.back;
    let came_up = OnceLock::new();
    let reasons = Reasons::default();
    let run = Run { binding: text, names, killed, at, back, came_up, seconds, cells, reasons };
    let run = Arc::new(run);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let (moved, differing) = runtime.block_on(drive(&run, &binding, &geo, options))?;
    report(&run, &moved, differing)?;
    write_page(&kill_page::render(&run, &moved, options), options)?;
    println!("\nplot and table: {}", options.page.display());
    Ok(())
}

/// Runs the clients; returns the results for those of the stopped data center, and the number of
/// users at which the others differ in the end.
async fn drive(
    run: &Arc<Run>,
    binding: &Binding,
    geo: &GeoConfig,
    options: &Options,
) -> Result<(Vec<Moved>, usize), String> {
    let program = groups::compile(groups::PROGRAM)?;
    let database = Database::open(program, binding, None).await;
    let database = Arc::new(database.map_err(|error| error.to_string())?);
    let store = database.geo(INBOXES).ok_or("the inboxes have no data centers")?.clone();
    println!("Message Groups, {} clients over {}\n", options.clients, run.names.join(", "));
    fill(&database, SIZE).await?;
    settle(&store, run).await?;
    let begin = Instant::now();
    let clients = (0..options.clients).map(|number| {
        let home = number % run.names.len();
        let elsewhere = nearest(geo, &run.names, home);
        let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
        let fresh = (number + 1) * 1_000_000_000;
        let client = Client {
            database: database.clone(),
            store: store.clone(),
            run: run.clone(),
            begin,
            session: Session::at(run.names[home].as_str()),
            home,
            elsewhere,
            random: Random::new(seed),
            fresh,
            writes: VecDeque::new(),
        };
        tokio::spawn(client.run())
    });
    let clients: Vec<_> = clients.collect();
    watch(run, &store, begin).await?;
    let mut moved = Vec::new();
    for client in clients {
        moved.extend(client.await.map_err(|error| error.to_string())??);
    }
    settle(&store, run).await?;
    Ok((moved, differing(&database, run).await?))
}

/// Returns the other data centers, the nearest first.
fn nearest(geo: &GeoConfig, names: &[String], home: usize) -> Vec<usize> {
    let mut others: Vec<usize> = (0..names.len()).filter(|other| *other != home).collect();
    others.sort_by_key(|other| geo.between(&names[home], &names[*other]).mean);
    others
}

/// Waits until the running data centers show the same contents.
async fn settle(store: &GeoStore, run: &Run) -> Result<(), String> {
    let failed = |error: StoreError| error.to_string();
    let mut wanted = mingle_model::Stamp::default();
    for name in &run.names {
        if store.is_up(name).map_err(failed)? {
            wanted.join(&store.visible(name).map_err(failed)?);
        }
    }
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let mut is_there = true;
        for name in &run.names {
            is_there &= !store.is_up(name).map_err(failed)?
                || store.visible(name).map_err(failed)?.covers(&wanted);
        }
        if is_there {
            return Ok(());
        }
        if Instant::now() > until {
            return Err("the data centers did not come to show the same within 10 s".into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Prints a line for each second, and stops the data center at the planned time.
async fn watch(run: &Arc<Run>, store: &Arc<GeoStore>, begin: Instant) -> Result<(), String> {
    print!("{:>6}", "second");
    for name in &run.names {
        print!("{name:>14}");
    }
    println!("   calls done, and failed");
    let mut is_killed = false;
    let back = back::start(run, store, begin);
    for second in 0..run.seconds {
        let end = Duration::from_secs(second + 1);
        if !is_killed && run.at <= end {
            tokio::time::sleep_until((begin + run.at).into()).await;
            store.kill(&run.killed).map_err(|error| error.to_string())?;
            println!("{:>6} {} stops", format!("{:.1}", run.at.as_secs_f64()), run.killed);
            is_killed = true;
        }
        tokio::time::sleep_until((begin + end).into()).await;
        print!("{:>6}", second + 1);
        for cell in &run.cells[second as usize] {
            let failed = cell.failed();
            let failed = if failed > 0 { format!(" -{failed}") } else { String::new() };
            print!("{:>14}", format!("{}{failed}", cell.done()));
        }
        println!();
    }
    match back {
        Some(back) => back.await.map_err(|error| error.to_string())?,
        None => Ok(()),
    }
}

struct Client {
    database: Arc<Database>,
    store: Arc<GeoStore>,
    run: Arc<Run>,
    begin: Instant,
    session: Session,
    /// The client's home data center.
    home: usize,
    /// The other data centers, the nearest first.
    elsewhere: Vec<usize>,
    random: Random,
    fresh: usize,
    /// The home data center's entry of the session's past after each of its last writes.
    writes: VecDeque<u64>,
}

impl Client {
    async fn run(mut self) -> Result<Option<Moved>, String> {
        let mut moved: Option<Moved> = None;
        // The time from the first failure until a call succeeds.
        let mut leaving: Option<(Instant, Moved)> = None;
        let end = self.begin + Duration::from_secs(self.run.seconds);
        while Instant::now() < end {
            let (index, arguments) = groups::draw(&mut self.random, SIZE, &mut self.fresh);
            let called = Instant::now();
            let called_as = MIX[index].0;
            let result = self.database.call(called_as, arguments, self.session.clone()).await;
            let second = self.begin.elapsed().as_secs().min(self.run.seconds) as usize;
            let cell = &self.run.cells[second][self.home];
            match result {
                Ok(_) => {
                    cell.done.fetch_add(1, Ordering::Relaxed);
                    self.note_write();
                    if let Some((since, mut there)) = leaving.take() {
                        there.took = since.elapsed();
                        moved = Some(there);
                    }
                }
                Err(error) => {
                    cell.failed.fetch_add(1, Ordering::Relaxed);
                    self.run.reasons.note(&error);
                    let is_up = self.store.is_up(&self.run.names[self.home]);
                    if is_up.map_err(|error| error.to_string())? {
                        if let Some((_, there)) = &mut leaving {
                            there.failed += 1;
                        } else if !may_fail(&error) {
                            return Err(format!("{called_as}: {error}"));
                        }
                        continue;
                    }
                    let (to, how) = self.leave().await?;
                    let there = Moved { to, how, took: Duration::ZERO, failed: 1 };
                    leaving = Some((called, there));
                }
            }
        }
        Ok(moved)
    }

    fn note_write(&mut self) {
        let seen = self.session.worklist().seen_at(INBOXES);
        if self.writes.len() == WRITES_MAX {
            self.writes.pop_front();
        }
        self.writes.push_back(seen.of(&self.run.names[self.home]));
    }

    /// Continues at the nearest running data center.
    async fn leave(&mut self) -> Result<(String, How), String> {
        let failed = |error: StoreError| error.to_string();
        let from = self.run.names[self.home].clone();
        self.home = self.elsewhere[0];
        let to = self.run.names[self.home].clone();
        self.session.move_to(to.as_str());
        let seen = self.session.worklist().seen_at(INBOXES);
        let since = Instant::now();
        let mut how = How::Resumed;
        while !self.store.visible(&to).map_err(failed)?.covers(&seen) {
            how = How::Waited;
            if since.elapsed() > WAIT_MAX {
                let visible = self.store.visible(&to).map_err(failed)?;
                self.session.accept_loss(INBOXES, &visible);
                let kept = visible.of(&from);
                how = How::WithLoss(self.writes.iter().filter(|at| **at > kept).count());
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.writes.clear();
        Ok((to, how))
    }
}

/// True if a call may fail although its data center runs: it may wait for data under way in the
/// stopped one, and the remains of transactions are cleaned up only when that is back.
fn may_fail(error: &Error) -> bool {
    error.is_retryable()
        || matches!(error, Error::Store(_) | Error::Incomplete { .. } | Error::Limit(_))
}

/// Returns the number of compared users at which the running data centers differ.
async fn differing(database: &Database, run: &Run) -> Result<usize, String> {
    let mut count = 0;
    for number in (0..SIZE.users).step_by(SIZE.users / LOOKED_AT) {
        let mut shown = Vec::new();
        for name in run.names.iter().filter(|name| run.runs_at_last(name)) {
            let session = Session::at(name.as_str());
            let found = database.show(&groups::user(number), &session, 1_000_000).await;
            shown.push(found.map_err(|error| error.to_string())?);
        }
        count += usize::from(shown.windows(2).any(|pair| pair[0] != pair[1]));
    }
    Ok(count)
}

/// Returns the average number per second in the seconds that lie wholly in one part of the run.
pub fn per_second(run: &Run, dc: usize, is_after: bool) -> f64 {
    let at = run.at.as_secs_f64();
    let seconds = (0..run.seconds).filter(|second| {
        let second = *second as f64;
        if is_after { second >= at } else { second + 1.0 <= at }
    });
    let counts: Vec<f64> =
        seconds.map(|second| run.cells[second as usize][dc].done() as f64).collect();
    counts.iter().sum::<f64>() / (counts.len().max(1)) as f64
}

/// Returns the kinds of ends, each with its number of sessions and its longest time.
pub fn fates(moved: &[Moved]) -> Vec<(String, usize, Duration)> {
    let mut fates: Vec<(String, usize, Duration)> = Vec::new();
    for one in moved {
        let what = format!("moved to {}, {}", one.to, one.how);
        match fates.iter_mut().find(|(known, ..)| *known == what) {
            Some((_, count, longest)) => {
                *count += 1;
                *longest = one.took.max(*longest);
            }
            None => fates.push((what, 1, one.took)),
        }
    }
    fates.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    fates
}

fn report(run: &Run, moved: &[Moved], differing: usize) -> Result<(), String> {
    println!("\n{:<10}{:>16}{:>16}", "", "before", "after");
    for (dc, name) in run.names.iter().enumerate() {
        let [before, after] = [false, true].map(|is_after| per_second(run, dc, is_after));
        println!("{name:<10}{:>16}{:>16}", format!("{before:.0}/s"), format!("{after:.0}/s"));
    }
    let mut others = (0..run.names.len()).filter(|dc| run.names[*dc] != run.killed);
    if let Some(idle) = others.find(|dc| per_second(run, *dc, true) == 0.0) {
        return Err(format!(
            "{} did nothing any more once {} had stopped",
            run.names[idle], run.killed
        ));
    }
    println!("\nsessions of {}:", run.killed);
    for (what, count, longest) in fates(moved) {
        println!("{count:>6} {what}, in {:.0} ms at most", longest.as_secs_f64() * 1e3);
    }
    let failed: u64 = moved.iter().map(|one| one.failed).sum();
    println!("{failed:>6} of their calls failed on the way");
    let reasons = run.reasons.most();
    if !reasons.is_empty() {
        println!("\nwhy calls failed:");
    }
    for (reason, count) in reasons {
        println!("{count:>6} {reason}");
    }
    let others: Vec<&str> =
        run.names.iter().filter(|name| run.runs_at_last(name)).map(|name| &**name).collect();
    let others = others.join(" and ");
    if differing > 0 {
        return Err(format!("{others} show {differing} users differently in the end"));
    }
    println!("\n{others} show the same of {LOOKED_AT} of {} users in the end", SIZE.users);
    Ok(())
}
