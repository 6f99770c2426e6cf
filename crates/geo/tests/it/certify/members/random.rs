//! Random runs with all events together.

use mingle_geo::certify::Group;
use mingle_geo::flaw::Planted;

use super::{Happening, Met, World};

impl World {
    /// Returns the number of replicas that do not run, know nothing yet, or will be lost.
    fn missing(&self) -> usize {
        let is_there = |dc: &u8| {
            let group = self.nodes[usize::from(*dc)].group.as_ref();
            self.is_due(*dc) && group.is_some_and(Group::is_member)
        };
        (0..self.dcs()).filter(|dc| !is_there(dc)).count()
    }

    /// Loses a data center, sometimes again before it has come back, or long after the group was
    /// told to continue without it. Its successor starts before or after the group hears of it.
    fn strike_disk(&mut self, dc: u8) {
        let incarnation = self.nodes[usize::from(dc)].incarnation + 1;
        if self.random.one_in(3) {
            // It is considered lost, but still runs for a while.
            self.replace(dc, incarnation);
            let delay_us = self.random.below(2_500_000) as u64;
            self.after(delay_us, Happening::Lose(dc));
            self.after(delay_us + 100_000, Happening::Start(dc));
        } else {
            self.lose(dc);
            self.replace(dc, incarnation);
            let delay_us = self.random.below(1_500_000) as u64;
            self.after(delay_us, Happening::Start(dc));
        }
        self.met.replaced += 1;
        if self.random.one_in(3)
            && let Some(leader) = self.leader()
        {
            // The leader is lost during the change.
            let delay_us = self.random.below(500_000) as u64;
            self.run(delay_us);
            self.crash(leader);
            self.met.leaders_lost += 1;
            let pause_us = 10_000 + self.random.below(2_000_000) as u64;
            self.after(pause_us, Happening::Start(leader));
        }
    }

    fn strike(&mut self) {
        let dc = self.random.below(self.nodes.len()) as u8;
        let other = self.random.below(self.nodes.len()) as u8;
        let may_lose = self.missing() < (self.nodes.len() - 1) / 2;
        match self.random.below(8) {
            0 | 1 if may_lose && self.is_due(dc) => self.strike_disk(dc),
            2 | 3 => {
                self.crash(dc);
                // Sometimes it sleeps for a long time.
                let most = *self.random.pick(&[500_000, 2_000_000, 9_000_000]);
                let pause_us = 10_000 + self.random.below(most) as u64;
                self.after(pause_us, Happening::Start(dc));
            }
            4 | 5 if other != dc && self.cut.len() < 2 => {
                self.cut(dc, other);
                let pause_us = 100_000 + self.random.below(3_000_000) as u64;
                self.after(pause_us, Happening::Heal(dc, other));
            }
            _ if other != dc && !self.is_cut(dc, other) => self.reset(dc, other),
            _ => {}
        }
    }

    /// True if no other incarnation of the data center is on its way.
    fn is_due(&self, dc: u8) -> bool {
        let wanted = self.wanted.get(&mingle_geo::DcId(dc)).copied().unwrap_or_default();
        wanted == self.nodes[usize::from(dc)].incarnation
    }

    fn play(mut self) -> Met {
        let mut strike_us = 2_000_000;
        while self.now_us < 22_000_000 {
            self.step();
            if self.now_us > strike_us {
                strike_us = self.now_us + self.random.below(900_000) as u64;
                self.strike();
            }
        }
        self.cut.clone().into_iter().for_each(|(one, other)| self.heal(one, other));
        self.settle();
        self.met
    }
}

#[test]
fn whoever_is_lost_and_replaced_there_is_one_log() {
    let mut all = Met::default();
    for seed in 0..30 {
        let dcs = [3, 5, 3, 5, 7][seed as usize % 5];
        let run = || World::new(seed, dcs, Planted::default()).play();
        let met = std::panic::catch_unwind(run).unwrap_or_else(|_| panic!("seed {seed}"));
        all.votes += met.votes;
        all.restarts += met.restarts;
        all.lost += met.lost;
        all.replaced += met.replaced;
        all.moved += met.moved;
        all.skipped += met.skipped;
        all.leaders_lost += met.leaders_lost;
    }
    // A run without any of these cases would test nothing.
    let Met { votes, restarts, lost, replaced, moved, skipped, leaders_lost } = all;
    let counts = [votes, restarts, lost, replaced, moved, skipped, leaders_lost];
    assert!(counts.iter().all(|count| *count > 3), "{all:?}");
}
