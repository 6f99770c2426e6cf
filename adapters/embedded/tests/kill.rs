//! A process that is killed at any moment loses nothing that it acknowledged.
//!
//! The test starts itself again as a child, which commits and reports each commit on its standard
//! output, and kills the child meanwhile.

#[path = "it/support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::Level;
use mingle_store::random::next_random;
use mingle_store::{DataStore, Session, TestWorld, World};
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig, OpenError};
use support::{count_series, nth, session, usual, write};
use tempfile::TempDir;

const FOLDER: &str = "MINGLE_TEST_FOLDER";
const LEVEL: &str = "MINGLE_TEST_LEVEL";
/// The variable with the number of data centers in place of replicas; unset, there are none.
const DATACENTERS: &str = "MINGLE_TEST_DATACENTERS";
/// The variable with the number of seconds since the first process began.
const LATER: &str = "MINGLE_TEST_LATER";
const DELAY: Duration = Duration::from_millis(5);
const KILLS: u64 = 100;

/// Held by each test that starts children. A starting child holds for a moment all files that the
/// parent has open, including another test's lock file.
static STARTING: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A store over three data centers, which are next to each other.
fn open_geo(world: &Arc<TestWorld>, folder: &Path) -> Result<Arc<dyn DataStore>, OpenError> {
    let config = EmbeddedConfig::in_folder(folder).with_geo(GeoConfig::new(["r1", "r2", "r3"]));
    let world: Arc<dyn World> = world.clone();
    Embedded::open(config, usual(Level::Causal), world)
}

fn open(
    world: &Arc<TestWorld>,
    level: Level,
    folder: &Path,
) -> Result<Arc<dyn DataStore>, OpenError> {
    let replicas = if level == Level::Causal { 2 } else { 1 };
    let config =
        EmbeddedConfig::in_folder(folder).with_replicas(replicas).with_delay(DELAY, Duration::ZERO);
    let world: Arc<dyn World> = world.clone();
    Embedded::open(config, usual(level), world)
}

/// Runs the child: it commits for ever, and acknowledges each commit with its number. Run as a
/// test without the variable, it does nothing.
#[test]
fn child() {
    let (Ok(folder), Ok(level)) = (std::env::var(FOLDER), std::env::var(LEVEL)) else {
        return;
    };
    let level = Level::ALL.into_iter().find(|l| l.name() == level);
    let level = level.expect("the parent names a level");
    let world = TestWorld::new(1);
    let later = std::env::var(LATER).ok().and_then(|later| later.parse().ok()).unwrap_or(0);
    world.advance(Duration::from_secs(later));
    let store = match std::env::var(DATACENTERS) {
        Ok(_) => open_geo(&world, Path::new(&folder)),
        Err(_) => open(&world, level, Path::new(&folder)),
    };
    let store = store.expect("the store opens");
    let mut n = count_series(&world, &store, &Session::default());
    let mut out = std::io::stdout().lock();
    loop {
        n += 1;
        let committed = world.block_on(write(&store, &Session::default(), nth(n)));
        committed.expect("the commit succeeds");
        world.advance(DELAY / 2);
        if writeln!(out, "\nacknowledged {n}").and_then(|()| out.flush()).is_err() {
            // The parent is gone.
            return;
        }
    }
}

fn start(folder: &Path, level: Level) -> Child {
    start_with(folder, level, &[])
}

fn start_with(folder: &Path, level: Level, more: &[(&str, &str)]) -> Child {
    let this = std::env::current_exe().expect("the test's own path");
    Command::new(this)
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(LEVEL, level.name())
        .envs(more.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the child starts")
}

/// Kills the child once it has acknowledged `commits` commits, and returns the last one's number.
fn kill(mut child: Child, commits: u64, spin: u64) -> u64 {
    let out = child.stdout.take().expect("the output is piped");
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    let number = |line: String| line.strip_prefix("acknowledged ")?.parse::<u64>().ok();
    let mut last = 0;
    for n in lines.by_ref().filter_map(number).take(commits as usize) {
        last = n;
    }
    // Kills at a different place of a commit each time.
    for _ in 0..spin {
        std::hint::spin_loop();
    }
    child.kill().expect("the child is ours to kill");
    child.wait().expect("the child ends");
    // The acknowledgements from before the kill that were not read yet.
    for n in lines.filter_map(number) {
        last = n;
    }
    last
}

fn kill_often(level: Level) {
    let _alone = alone();
    let folder = TempDir::new().expect("a temporary folder");
    let mut random = 17;
    let mut before = 0;
    for round in 0..KILLS / 2 {
        let commits = next_random(&mut random) % 4;
        let spin = next_random(&mut random) % 300_000;
        let last = kill(start(folder.path(), level), commits, spin).max(before);
        let world = TestWorld::new(round);
        let store = open(&world, level, folder.path()).expect("the store opens after a kill");
        let found = count_series(&world, &store, &Session::default());
        assert!(
            found == last || found == last + 1,
            "round {round} of seed 17: {last} were acknowledged, found {found}"
        );
        if level == Level::Causal {
            world.advance(DELAY * 2);
            let there = count_series(&world, &store, &session("r2"));
            assert_eq!(there, found, "at the other replica, round {round} of seed 17");
        }
        before = found;
    }
    assert!(before > KILLS / 2, "hardly anything was committed");
}

#[test]
fn a_killed_process_loses_nothing_at_a_serializable_store() {
    kill_often(Level::Linearizable);
}

#[test]
fn a_killed_process_loses_nothing_at_a_replicated_store() {
    kill_often(Level::Causal);
}

#[test]
fn a_killed_process_loses_nothing_of_its_data_centers() {
    let _alone = alone();
    let folder = TempDir::new().expect("a temporary folder");
    let mut random = 23;
    let mut before = 0;
    for round in 0..KILLS / 4 {
        let commits = next_random(&mut random) % 4;
        let spin = next_random(&mut random) % 300_000;
        // Each process finds the machine's clock where time has brought it.
        let later = (20 * round).to_string();
        let more = [(DATACENTERS, "3"), (LATER, later.as_str())];
        let child = start_with(folder.path(), Level::Causal, &more);
        let last = kill(child, commits, spin).max(before);
        let world = TestWorld::new(round);
        world.advance(Duration::from_secs(20 * round + 10));
        let store = open_geo(&world, folder.path()).expect("the store opens after a kill");
        let found = count_series(&world, &store, &Session::default());
        assert!(
            found == last || found == last + 1,
            "round {round} of seed 23: {last} were acknowledged, found {found}"
        );
        world.block_on(world.sleep(Duration::from_secs(1)));
        for place in ["r2", "r3"] {
            let there = count_series(&world, &store, &session(place));
            assert_eq!(there, found, "at {place}, round {round} of seed 23");
        }
        before = found;
    }
    assert!(before > KILLS / 4, "hardly anything was committed");
}

#[test]
fn a_second_process_is_told_that_the_folder_is_in_use() {
    let _alone = alone();
    let folder = TempDir::new().expect("a temporary folder");
    let mut child = start(folder.path(), Level::Linearizable);
    let out = child.stdout.take().expect("the output is piped");
    let lines = BufReader::new(out).lines().map_while(Result::ok);
    let acknowledged = lines.take_while(|line| !line.starts_with("acknowledged"));
    acknowledged.for_each(drop);
    let error = match open(&TestWorld::new(1), Level::Linearizable, folder.path()) {
        Ok(_) => panic!("two processes have one folder"),
        Err(error) => error.to_string(),
    };
    child.kill().expect("the child is ours to kill");
    child.wait().expect("the child ends");
    let shown = folder.path().display().to_string();
    assert!(error.contains(&shown) && error.contains("in use"), "{error}");
    open(&TestWorld::new(1), Level::Linearizable, folder.path()).expect("the lock is gone");
}
