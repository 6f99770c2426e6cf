//! Three real processes, one of which is killed again and again.

use mingle_model::random::{Random, mix};

use super::served::{Served, serve};
use super::*;
use crate::child::part;

/// Returns the seed; `MINGLE_SEED` overrides it.
fn seed() -> u64 {
    let Ok(text) = std::env::var("MINGLE_SEED") else { return 1 };
    text.parse().unwrap_or_else(|_| panic!("MINGLE_SEED: expected a number, found {text:?}"))
}

/// The number of things in stock.
const STOCK: u64 = 90;

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
    served: Served,
    added: [Counts; 3],
    taken: [Counts; 3],
}

impl World {
    /// One transaction at each data center at the same time. `killed` is killed while its one runs.
    fn round(&mut self, is_strong: bool, killed: Option<usize>, random: &mut Random) {
        for (dc, child) in self.served.children.iter_mut().enumerate() {
            let line =
                if is_strong { "take strong-stock".into() } else { format!("add own-{dc} all") };
            if let Some(child) = child {
                child.tell(&line);
            }
        }
        let mut last_words = None;
        if let Some(killed) = killed {
            sleep(Duration::from_millis(random.below(8) as u64));
            last_words = self.served.children[killed].take().expect("it runs").kill().pop();
        }
        for (dc, child) in self.served.children.iter_mut().enumerate() {
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
            found = self.served.value(dc, &name);
        }
    }
}

#[test]
fn what_was_acknowledged_survives_kills_and_all_data_centers_converge() {
    if let Some(part) = part() {
        return serve(&part);
    }
    let seed = seed();
    println!("MINGLE_SEED={seed}");
    let mut random = Random::new(mix(seed));
    let mut world = World {
        served: Served::new(),
        added: [Counts::default(); 3],
        taken: [Counts::default(); 3],
    };
    assert_eq!(world.served.ask(0, &format!("fill strong-stock {STOCK}")), "filled");
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
        world.served.start(killed);
        world.check_own(killed);
    }
    let unknown = world.taken.iter().map(|counts| counts.unknown).sum::<u64>();
    assert!(unknown <= 20, "most transactions have an answer: {:?}", world.taken);
    converge(&mut world);
}

/// Waits until all data centers have the same, and compares with the acknowledged transactions.
fn converge(world: &mut World) {
    let names = ["own-0", "own-1", "own-2", "all", "strong-stock"];
    let [own @ .., _, stock] = world.served.converge(names, |[own @ .., all, _]| {
        // A transaction without an answer may be decided late.
        own.iter().sum::<u64>() == all
    });
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
