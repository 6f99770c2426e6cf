//! Data centers that are given up.
//!
//! Some seeds have one. A separate random source draws it, so the rest of the seed is unchanged.
//! The data center is lost, or cut off and alive, or one of its replicas has lost its disk, or it
//! has no fault at all. The messages that it had sent arrive late.

use mingle_geo::members::{Cut, Standing};
use mingle_geo::message::{Fence, Message};
use mingle_geo::{DcId, Timestamp};
use mingle_model::random::{Random, mix};

use super::fault::{Event, Fault, Kept, Shape};
use super::reach::Seen;
use super::setup::{Focus, Setup, within};
use super::world::{Happening, KEEPER, World};

/// The interval between repeated requests, in microseconds.
const AGAIN_US: u64 = 40_000;

/// True if a seed gives up the same data center twice, where two may be lost: its second
/// incarnation ends after the others have learned of it.
pub(super) fn gives_up_twice(seed: u64, setup: &Setup) -> bool {
    seed % 10 == 4 && setup.config.f >= 2
}

/// True if a seed gives up a data center of whose newest transactions one holder was lost and admitted
/// again, and another one does not answer.
pub(super) fn gives_up_after_return(seed: u64, setup: &Setup) -> bool {
    seed % 10 == 7 && setup.config.f >= 2 && setup.config.partition_count >= 2
}

/// Adds a data center that is given up to the schedule of one seed in four, and of those that give
/// up more in a certain way, if other data centers can agree on that and no other is lost.
pub(super) fn draw(seed: u64, setup: &Setup, schedule: &mut Vec<Event>) {
    let mut random = Random::new(mix(seed ^ 0x00fe_11ce));
    let is_loss = |event: &Event| matches!(event, Event::Fault { fault: Fault::Lose { .. }, .. });
    let is_fit = setup.strong.is_some() && setup.config.f > 0 && setup.focus != Focus::FarClocks;
    let is_certain = gives_up_twice(seed, setup) || gives_up_after_return(seed, setup);
    let is_drawn = |random: &mut Random| random.one_in(4) || is_certain;
    if !is_fit || schedule.iter().any(is_loss) || !is_drawn(&mut random) {
        return;
    }
    let dc = random.below(usize::from(setup.config.dc_count)) as u8;
    // All of this ends before the healing, because healing drops all messages under way.
    let lasts_us = setup.lasts_us;
    let begin_us = within(&mut random, (lasts_us / 4, lasts_us / 2));
    let alone_us = within(&mut random, (lasts_us / 20, lasts_us / 6));
    let mut add = |at_us: u64, lasts_us: u64, fault: Fault| {
        let is_later = |event: &Event| match event {
            Event::Fault { at_us: other_us, .. } => *other_us > at_us,
            Event::Act { .. } => true,
        };
        let place = schedule.iter().position(is_later).unwrap_or(schedule.len());
        schedule.insert(place, Event::Fault { at_us, lasts_us, fault });
    };
    let at_us = begin_us + within(&mut random, (0, alone_us));
    match random.below(7) {
        0 => {}
        6 => {
            let partition = random.below(usize::from(setup.config.partition_count)) as u16;
            return add(at_us, 0, Fault::LoseDisk { dc, partition });
        }
        1 | 2 => {
            let cut = Fault::Cut { shape: Shape::Off(dc), is_held: false };
            add(begin_us, alone_us, cut);
            add(at_us, 0, Fault::Lose { dc });
        }
        // The messages that it has sent arrive when it is given up.
        _ => add(
            begin_us,
            alone_us + within(&mut random, (lasts_us / 8, lasts_us / 4)),
            Fault::Cut { shape: Shape::Off(dc), is_held: true },
        ),
    }
    add(at_us, 0, Fault::Fence { dc });
}

impl World<'_> {
    /// True if a data center can be given up: the total stays within the permitted losses, and this
    /// data center is not already given up or still coming up.
    fn may_give_up(&self, dc: u8) -> bool {
        let incarnation = self.incarnation_at(dc);
        let is_over = self.fencing >> dc & 1 == 1 || self.recorder.columns.is_cut(incarnation);
        let counted = self.recorder.run.losses.len() + self.others_fencing(dc);
        let may_lose = counted < usize::from(self.setup.config.f) || self.is_lost(dc);
        self.setup.strong.is_some() && may_lose && !is_over && !self.is_coming(dc)
    }

    /// Returns the number of other data centers that are being given up and are not lost.
    pub(super) fn others_fencing(&self, dc: u8) -> usize {
        (self.fencing & !self.lost & !(1 << dc)).count_ones() as usize
    }

    pub(super) fn begin_fence(&mut self, dc: u8) {
        if !self.may_give_up(dc) {
            return;
        }
        self.fencing |= 1 << dc;
        self.note_given_up(dc);
        self.ask_for_fence(dc);
    }

    /// Gives up the data centers that are lost; returns false if all of these are given up already.
    pub(super) fn give_up_lost(&mut self) -> bool {
        let before = self.fencing;
        for dc in (0..self.setup.config.dc_count).filter(|dc| self.is_gone(*dc)).collect::<Vec<_>>()
        {
            if before >> dc & 1 == 0 {
                self.begin_fence(dc);
            }
        }
        self.fencing != before
    }

    /// Deletes the data of a replica and restarts it as if nothing had happened.
    pub(super) fn lose_disk(&mut self, dc: u8, partition: u16) {
        if !self.may_give_up(dc) {
            return;
        }
        let index = self.index_of(dc, partition);
        self.stop(index, Kept::Nothing);
        let node = &mut self.nodes[index];
        node.disk.clear();
        node.has_lost_disk = true;
        node.down += 1;
        self.reach.saw(Seen::DiskLost);
        self.begin_fence(dc);
        self.restart(index);
    }

    /// Asks all other data centers repeatedly until they have agreed.
    pub(super) fn ask_for_fence(&mut self, dc: u8) {
        let incarnation = self.incarnation_at(dc).1;
        let mut replicas = self.nodes.iter().filter_map(|node| node.replica());
        let cut = replicas.find_map(|replica| {
            let mut cuts = replica.replica().members().cuts_after(0);
            cuts.find(|cut| (cut.dc, cut.incarnation) == (DcId(dc), incarnation)).copied()
        });
        if let Some(cut) = cut {
            return self.fenced(dc, cut);
        }
        self.see_settling(dc);
        for other in (0..self.setup.config.dc_count).filter(|other| *other != dc) {
            let fence = Fence { request: 1, dc: DcId(dc), incarnation };
            let to = self.index_of(other, 0);
            self.send(self.nodes.len(), to, KEEPER, &Message::Fence(fence));
        }
        self.queue.push(self.now_us + AGAIN_US, Happening::Fence { dc });
    }

    /// Records that a cut is settling because few replicas have reached it.
    fn see_settling(&mut self, dc: u8) {
        let replicas = self.nodes.iter().filter_map(|node| node.replica());
        let members = replicas.map(|replica| replica.replica().members());
        let newest = members.max_by_key(|members| members.epoch());
        let standing = newest.map(|members| members.of(DcId(dc)).standing);
        if standing == Some(Standing::Settling) && self.settling >> dc & 1 == 0 {
            self.reach.saw(Seen::CutSettles);
            self.settling |= 1 << dc;
        }
    }

    /// Records that the data center is given up: from now on no client depends on it, dead or
    /// alive.
    fn fenced(&mut self, dc: u8, cut: Cut) {
        self.fencing &= !(1 << dc);
        self.settling &= !(1 << dc);
        self.reach.saw(Seen::Fenced);
        self.tell(|| format!("d{dc} is cut off at {}", cut.at));
        self.recorder.cut(cut);
        if self.incarnation_at(dc).1 > 0 && !self.is_coming(dc) {
            self.reach.saw(Seen::FencedLater);
        }
        if !self.is_lost(dc) {
            self.reach.saw(Seen::FencedAlive);
            self.lost |= 1 << dc;
            self.recorder.lose(self.incarnation_at(dc), self.now_us);
            self.see_second_loss();
        }
        self.blame_healing();
    }

    pub(super) fn see_second_loss(&mut self) {
        let run = &self.recorder.run;
        if !run.cuts.is_empty() && run.losses.len() > 1 {
            self.reach.saw(Seen::SecondLoss);
        }
    }

    /// Records the effects of a late message from a data center that was given up.
    pub(super) fn see_late(&mut self, to: usize, message: &Message) {
        let Some(replica) = self.nodes[to].replica() else { return };
        let replica = replica.replica();
        match message {
            Message::Replicate(late) if replica.members().epoch() > 0 => {
                let cut = replica.members().cut_of(late.origin, 0);
                let is_from_it = late.sender == late.origin && late.epoch == 0;
                let has_late = |cut: Timestamp| {
                    late.transactions.iter().any(|transaction| transaction.timestamp() > cut)
                };
                if is_from_it && cut.is_some_and(has_late) {
                    self.reach.saw(Seen::FencedLate);
                }
            }
            Message::Members(members) => {
                let own = replica.config().dc;
                if !replica.is_over() && members.is_over(own, 0) {
                    self.reach.saw(Seen::FencedStopped);
                }
            }
            _ => {}
        }
    }
}
