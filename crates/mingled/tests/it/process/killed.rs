//! Three real processes, one of which is killed again and again.

use std::io::BufRead as _;

use mingle_model::random::{Random, mix};

use super::*;
use crate::child::{Running, part, tell};

const SEED: u64 = 0x6e0;

/// The number of things in stock.
const STOCK: u64 = 90;

/// A data center in a child process: answers each line of its parent.
fn serve(part: &str) {
    let mut words = part.split(' ');
    let mut word = || words.next().expect("the parent tells it");
    let (folder, dc, address) = (word(), word(), word());
    let (dc, is_founding) = (dc.parse().expect("a number"), address.ends_with(":0"));
    let peers = words
        .enumerate()
        .map(|(dc, address)| (DcId(dc as u8), address.parse().expect("an address")));
    let settings = Settings {
        peers: peers.collect(),
        limits: mingle_geo_node::Limits { checkpoint_after: 400 },
        ..settings(folder.as_ref(), dc, 3, is_founding)
    };
    let mut listener = TcpListener::bind(address);
    // Another connection may have the port for a moment.
    until("the port is free", || {
        if listener.is_err() {
            listener = TcpListener::bind(address);
        }
        listener.is_ok()
    });
    let listener = listener.expect("it is bound");
    let address = listener.local_addr().expect("it is bound");
    let process = Process::start(settings, listener).unwrap_or_else(|error| panic!("{error}"));
    let session = process.session();
    tell(&format!("ready {address}"));
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("the parent writes lines");
        let answer = match *line.split(' ').collect::<Vec<_>>() {
            ["add", name, all] => add(&session, &[name, all], 1).map(|()| "added".to_owned()),
            ["fill", name, amount] => fill(&session, name, amount.parse().expect("a number")),
            ["take", name] => take(&session, name).map(|took| format!("took {took}")),
            ["value", name] => {
                value(&session, name).map(|found| found.to_string()).map_err(CommitError::Session)
            }
            _ => panic!("the parent asks `{line}`"),
        };
        tell(&answer.unwrap_or_else(|error| format!("error: {error}")));
    }
}

fn fill(session: &Session, name: &str, amount: i64) -> Result<String, CommitError> {
    session.begin_strong().map_err(CommitError::Session)?;
    session.write(counter(name), Op::Add(amount)).map_err(CommitError::Session)?;
    session.commit().map(|_| "filled".to_owned())
}

/// The commits of one data center that have been acknowledged, and those whose answer is missing.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    done: u64,
    unknown: u64,
}

impl Counts {
    fn note(&mut self, answer: Option<&str>, done: &str) {
        match answer {
            Some(answer) if answer == done => self.done += 1,
            Some("took false") => {}
            _ => self.unknown += 1,
        }
    }

    fn allows(self, found: u64) -> bool {
        (self.done..=self.done + self.unknown).contains(&found)
    }
}

struct World {
    folders: tempfile::TempDir,
    children: [Option<Running>; 3],
    addresses: [String; 3],
    added: [Counts; 3],
    taken: [Counts; 3],
}

impl World {
    fn start(&mut self, dc: usize) {
        let folder = self.folders.path().join(format!("d{dc}"));
        let peers = self.addresses[..dc].join(" ");
        let part = format!("{} {dc} {} {peers}", folder.display(), self.addresses[dc]);
        let mut child = Running::start(part.trim());
        let ready = child.line().unwrap_or_else(|| panic!("d{dc} does not start"));
        let address = ready.strip_prefix("ready ").expect("it is ready");
        address.clone_into(&mut self.addresses[dc]);
        self.children[dc] = Some(child);
    }

    fn ask(&mut self, dc: usize, line: &str) -> String {
        self.children[dc].as_mut().expect("it runs").ask(line)
    }

    fn value(&mut self, dc: usize, name: &str) -> u64 {
        let mut found = String::new();
        until(&format!("d{dc} reads {name}, last: {found}"), || {
            found = self.ask(dc, &format!("value {name}"));
            found.parse::<u64>().is_ok()
        });
        found.parse().expect("it is a number")
    }

    /// One transaction at each data center at the same time. `killed` is killed while its one runs.
    fn round(&mut self, is_strong: bool, killed: Option<usize>, random: &mut Random) {
        for (dc, child) in self.children.iter_mut().enumerate() {
            let line =
                if is_strong { "take strong-stock".into() } else { format!("add own-{dc} all") };
            if let Some(child) = child {
                child.tell(&line);
            }
        }
        let mut last_words = None;
        if let Some(killed) = killed {
            sleep(Duration::from_millis(random.below(8) as u64));
            last_words = self.children[killed].take().expect("it runs").kill().pop();
        }
        for (dc, child) in self.children.iter_mut().enumerate() {
            let answer = match child {
                Some(child) => Some(child.line().expect("it runs")),
                None if killed == Some(dc) => last_words.take(),
                None => continue,
            };
            let answer = answer.as_deref();
            if is_strong {
                self.taken[dc].note(answer, "took true");
            } else {
                self.added[dc].note(answer, "added");
            }
        }
    }

    /// Checks that a data center that was started again has all that it acknowledged. Its new session
    /// sees that once the partitions have told each other.
    fn check_own(&mut self, dc: usize) {
        let (name, counts, mut found) = (format!("own-{dc}"), self.added[dc], 0);
        let deadline = Instant::now() + PATIENCE;
        while !counts.allows(found) {
            assert!(Instant::now() < deadline, "d{dc}: {found} of {counts:?}");
            found = self.value(dc, &name);
        }
    }
}

#[test]
fn what_was_acknowledged_survives_kills_and_all_data_centers_converge() {
    if let Some(part) = part() {
        return serve(&part);
    }
    println!("seed {SEED}");
    let mut random = Random::new(mix(SEED));
    let mut world = World {
        folders: tempfile::tempdir().expect("a folder"),
        children: [const { None }; 3],
        addresses: std::array::from_fn(|_| "127.0.0.1:0".to_owned()),
        added: [Counts::default(); 3],
        taken: [Counts::default(); 3],
    };
    (0..3).for_each(|dc| world.start(dc));
    assert_eq!(world.ask(0, &format!("fill strong-stock {STOCK}")), "filled");
    for turn in 0..6 {
        for _ in 0..12 {
            let is_strong = random.one_in(3);
            world.round(is_strong, None, &mut random);
        }
        // Each data center in turn, the leader among them; both kinds of transactions.
        let killed = turn % 3;
        world.round(turn % 2 == 0, Some(killed), &mut random);
        for number in 0..4 {
            world.round(number % 2 == 0, None, &mut random);
        }
        world.start(killed);
        world.check_own(killed);
    }
    let unknown = world.taken.iter().map(|counts| counts.unknown).sum::<u64>();
    assert!(unknown <= 20, "most transactions have an answer: {:?}", world.taken);
    converge(&mut world);
}

/// Waits until all data centers have the same, and compares with the acknowledged transactions.
fn converge(world: &mut World) {
    let names = ["own-0", "own-1", "own-2", "all", "strong-stock"];
    let mut found = Vec::new();
    until("they converge", || {
        found = (0..3).map(|dc| names.map(|name| world.value(dc, name))).collect();
        // A transaction without an answer may be decided late.
        let [own @ .., all, _] = found[0];
        found.iter().all(|values| *values == found[0]) && own.iter().sum::<u64>() == all
    });
    let [own @ .., _, stock] = found[0];
    for (dc, found) in own.into_iter().enumerate() {
        assert!(world.added[dc].allows(found), "d{dc}: {found} of {:?}", world.added[dc]);
        assert!(world.added[dc].done > 20, "d{dc}: {:?}", world.added[dc]);
    }
    let (mut taken, counts) = (Counts::default(), world.taken);
    for one in counts {
        taken = Counts { done: taken.done + one.done, unknown: taken.unknown + one.unknown };
    }
    assert!(taken.done > 20, "{counts:?}");
    assert!(taken.allows(STOCK - stock), "{stock} are left of {STOCK}: {counts:?}");
}
