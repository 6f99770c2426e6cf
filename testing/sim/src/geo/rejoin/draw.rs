//! The choice of the data centers that are given up and readmitted, and of the times.

use mingle_model::random::{Random, mix};

use super::COLUMNS_MAX;
use crate::geo::fault::{Event, Fault, Kept, Place, Shape};
use crate::geo::fence::{gives_up_after_return, gives_up_twice};
use crate::geo::setup::{Setup, within};

/// The state while the admissions are drawn.
struct Draw<'a> {
    random: Random,
    /// The random source of draws that were added later.
    apart: Random,
    setup: &'a Setup,
    schedule: &'a mut Vec<Event>,
}

/// Adds admissions to the schedule of most seeds in which a data center is given up.
pub(in crate::geo) fn draw(seed: u64, setup: &Setup, schedule: &mut Vec<Event>) {
    let given_up = schedule.iter().find_map(|event| match event {
        Event::Fault { at_us, fault: Fault::Fence { dc } | Fault::LoseDisk { dc, .. }, .. } => {
            Some((*dc, *at_us))
        }
        _ => None,
    });
    let Some((dc, fenced_us)) = given_up else { return };
    let (random, apart) = (Random::new(mix(seed ^ 0x004e_301d)), Random::new(mix(seed ^ 0xa9a47)));
    let mut draw = Draw { random, apart, setup, schedule };
    let is_twice = gives_up_twice(seed, setup);
    let is_after_return = gives_up_after_return(seed, setup);
    if draw.random.one_in(5) && !is_twice && !is_after_return {
        return;
    }
    let lasts_us = setup.lasts_us;
    if is_after_return {
        draw.after_return((dc, fenced_us));
        return;
    }
    let at_us = fenced_us + within(&mut draw.random, (lasts_us / 40, lasts_us / 4));
    draw.admit(dc, at_us);
    if draw.random.one_in(2) {
        draw.trouble(dc, at_us);
    }
    if is_twice {
        draw.again(dc, at_us);
        return;
    }
    let dc_count = setup.config.dc_count;
    if setup.config.f >= 2 && draw.random.below(3) > 0 {
        let second = (dc + draw.random.below(usize::from(dc_count)) as u8) % dc_count;
        if second == dc {
            draw.again(dc, at_us);
        } else {
            draw.second(second, (dc, fenced_us), at_us);
        }
    }
}

impl Draw<'_> {
    fn add(&mut self, at_us: u64, lasts_us: u64, fault: Fault) {
        let is_later = |event: &Event| match event {
            Event::Fault { at_us: other_us, .. } => *other_us > at_us,
            Event::Act { .. } => true,
        };
        let place = self.schedule.iter().position(is_later).unwrap_or(self.schedule.len());
        self.schedule.insert(place, Event::Fault { at_us, lasts_us, fault });
    }

    fn admit(&mut self, dc: u8, at_us: u64) {
        let asked = if self.random.one_in(3) { 0 } else { self.random.bits() as u8 };
        let is_early = self.random.one_in(3);
        self.add(at_us, 0, Fault::Admit { dc, asked, is_early });
        if self.random.one_in(3) {
            // The clients' connections to it are new.
            let client = self.random.below(self.setup.clients);
            self.add(at_us, 0, Fault::Unplug { client });
        }
    }

    /// Adds other faults near that time.
    fn trouble(&mut self, dc: u8, at_us: u64) {
        let dc_count = self.setup.config.dc_count;
        for _ in 0..=self.random.below(3) {
            let begin_us = at_us + within(&mut self.random, (0, 700_000));
            let lasts_us = within(&mut self.random, (20_000, 600_000));
            let partition =
                self.random.below(usize::from(self.setup.config.partition_count)) as u16;
            let other = (dc + 1 + self.random.below(usize::from(dc_count) - 1) as u8) % dc_count;
            let kept = *self.random.pick(&[Kept::Nothing, Kept::Torn, Kept::All]);
            let place = Place::Replica(dc, partition);
            let is_held = self.random.one_in(2);
            let fault = match self.random.below(8) {
                0 | 1 => Fault::Crash { place, kept },
                2 => Fault::Crash { place: Place::Replica(other, partition), kept },
                3 => Fault::Crash { place: Place::Dc(dc), kept },
                4 => Fault::Cut { shape: Shape::Off(dc), is_held },
                5 => Fault::Cut { shape: Shape::Pair(dc, other), is_held },
                6 => Fault::Cut { shape: Shape::Lone(dc, partition), is_held },
                _ => Fault::Lossy { one_in: 5 },
            };
            self.add(begin_us, lasts_us, fault);
        }
    }

    /// Gives up a second data center where two may be lost.
    fn second(&mut self, dc: u8, (first, fenced_us): (u8, u64), admitted_us: u64) {
        let lasts_us = self.setup.lasts_us;
        let from_us = fenced_us.saturating_sub(lasts_us / 10);
        let at_us = within(&mut self.random, (from_us, admitted_us + lasts_us / 8));
        if self.random.one_in(2) {
            self.add(at_us, 0, Fault::Lose { dc });
        }
        if self.random.below(4) == 0 {
            return;
        }
        let mut at_us = at_us + within(&mut self.random, (0, lasts_us / 20));
        if self.apart.one_in(2) {
            at_us = fenced_us + within(&mut self.apart, (100_000, 900_000));
            self.alone(dc, at_us, (first, fenced_us));
        }
        self.add(at_us, 0, Fault::Fence { dc });
        let at_us = at_us + within(&mut self.random, (lasts_us / 40, lasts_us / 4));
        let columns = usize::from(self.setup.config.dc_count) + 2;
        if self.random.below(3) > 0 && columns <= COLUMNS_MAX {
            self.admit(dc, at_us);
        }
    }

    /// Lets data center `dc` alone hold the newest transactions of the one that is given up, with
    /// one partition that cannot forward them, until `dc` is given up too.
    fn alone(&mut self, dc: u8, until_us: u64, (first, fenced_us): (u8, u64)) {
        let before_us = within(&mut self.apart, (20_000, 300_000));
        let begin_us = fenced_us.saturating_sub(before_us);
        let lasts_us = until_us - begin_us + 200_000;
        let partition = self.apart.below(usize::from(self.setup.config.partition_count)) as u16;
        let is_cut = |event: &mut Event| {
            let Event::Fault { fault: Fault::Cut { shape, .. }, .. } = event else { return false };
            *shape == Shape::Off(first)
        };
        // Data center `dc` has to hear from the first one.
        self.schedule.extract_if(.., is_cut).for_each(drop);
        for other in (0..self.setup.config.dc_count).filter(|other| ![first, dc].contains(other)) {
            let far = Fault::Cut { shape: Shape::OneWay(first, other), is_held: false };
            self.add(begin_us, lasts_us, far);
            let shape = Shape::Siblings(dc, other, partition);
            self.add(begin_us, lasts_us, Fault::Cut { shape, is_held: false });
        }
    }

    /// Gives up a second data center. Besides itself, only two others hold its newest transactions in
    /// one partition: `first`, until it is given up, and a third one, which does not answer when the
    /// second is given up.
    fn after_return(&mut self, (first, fenced_us): (u8, u64)) {
        let dc_count = self.setup.config.dc_count;
        let mut others: Vec<u8> = (0..dc_count).filter(|dc| *dc != first).collect();
        let second = others.swap_remove(self.random.below(others.len()));
        let third = others.swap_remove(self.random.below(others.len()));
        // The group of partition 0 decides on members, so its replicas stay connected.
        let partitions = usize::from(self.setup.config.partition_count);
        let partition = 1 + self.random.below(partitions - 1) as u16;
        let is_cut = |event: &mut Event| {
            let Event::Fault { fault: Fault::Cut { shape, .. }, .. } = event else { return false };
            *shape == Shape::Off(first)
        };
        self.schedule.extract_if(.., is_cut).for_each(drop);
        let begin_us = fenced_us.saturating_sub(within(&mut self.random, (50_000, 500_000)));
        let admitted_us = fenced_us + within(&mut self.random, (100_000, 600_000));
        let again_us = admitted_us + within(&mut self.random, (200_000, 1_500_000));
        let end_us = again_us + within(&mut self.random, (200_000, 900_000));
        for holder in [second, third] {
            for other in others.iter().copied() {
                let shape = Shape::Siblings(holder, other, partition);
                self.add(begin_us, end_us - begin_us, Fault::Cut { shape, is_held: false });
            }
            let shape = Shape::Siblings(holder, first, partition);
            self.add(fenced_us, end_us - fenced_us, Fault::Cut { shape, is_held: false });
        }
        self.admit(first, admitted_us);
        let before_us = within(&mut self.random, (5_000, 100_000));
        let place = Place::Replica(third, partition);
        let crash = Fault::Crash { place, kept: Kept::All };
        self.add(again_us - before_us, end_us - again_us + before_us, crash);
        if self.random.one_in(2) {
            self.add(again_us, 0, Fault::Lose { dc: second });
        }
        self.add(again_us, 0, Fault::Fence { dc: second });
    }

    /// Gives up the same data center once more.
    fn again(&mut self, dc: u8, admitted_us: u64) {
        let lasts_us = self.setup.lasts_us;
        let at_us = admitted_us + within(&mut self.random, (lasts_us / 10, lasts_us / 4));
        if self.random.one_in(2) {
            self.add(at_us, 0, Fault::Lose { dc });
        }
        self.add(at_us, 0, Fault::Fence { dc });
        let at_us = at_us + within(&mut self.random, (lasts_us / 40, lasts_us / 6));
        self.admit(dc, at_us);
    }
}
