//! Links: connections that have delays, break, and may lose, repeat and reorder messages.

use mingle_model::random::Random;

use super::fault::Shape;
use super::setup::{Network, Range, within};

/// The extra delay of a held message after the hold ends, in microseconds.
const HELD_MORE_US: u64 = 1_000;

/// The arrival times of the copies of a message.
pub(super) struct Ways {
    pub count: usize,
    pub at_us: [u64; 2],
}

/// The route of a message.
pub(super) struct Trip {
    pub from: usize,
    pub to: usize,
    /// True if the message goes to another data center.
    pub is_far: bool,
    /// The delay with which the receiver handles every input, in microseconds.
    pub slow_us: u64,
    /// True if the message needs a connection that loses nothing while it stands.
    pub is_ordered: bool,
}

/// All links between replicas, and those of the clients.
pub(super) struct Links {
    ends: usize,
    nodes: usize,
    near_us: Range,
    far_us: Range,
    is_fifo: bool,
    lossy_one_in: usize,
    /// The loss rates added by faults; each entry affects one message in that many.
    pub noise: Vec<usize>,
    all: Vec<Link>,
}

#[derive(Clone, Copy, Default)]
struct Link {
    /// The number of the current connection; messages sent on an earlier one never arrive.
    epoch: u32,
    /// The number of faults that cut the link.
    cuts: u16,
    /// The time until which messages sent on the link are held.
    held_until_us: u64,
    delay_us: u64,
    /// The arrival time of the last message.
    last_us: u64,
}

impl Links {
    pub fn new(nodes: usize, clients: usize, network: &Network) -> Self {
        let ends = nodes + clients;
        Self {
            ends,
            nodes,
            near_us: network.near_us,
            far_us: network.far_us,
            is_fifo: network.is_fifo,
            lossy_one_in: network.lossy_one_in,
            noise: Vec::new(),
            all: vec![Link::default(); ends * ends],
        }
    }

    fn link(&mut self, from: usize, to: usize) -> &mut Link {
        &mut self.all[from * self.ends + to]
    }

    pub fn epoch(&self, from: usize, to: usize) -> u32 {
        self.all[from * self.ends + to].epoch
    }

    /// Returns the arrival times of a message that is sent now.
    pub fn ways(&mut self, random: &mut Random, now_us: u64, trip: &Trip) -> Ways {
        let Trip { from, to, is_far, slow_us, is_ordered } = *trip;
        let range = if is_far { self.far_us } else { self.near_us };
        let (is_fifo, nodes) = (self.is_fifo || is_ordered, self.nodes);
        let most =
            self.noise.iter().copied().chain([self.lossy_one_in]).filter(|one| *one > 0).min();
        let link = self.link(from, to);
        let mut ways = Ways { count: 1, at_us: [0; 2] };
        if link.cuts > 0 {
            ways.count = 0;
            return ways;
        }
        let is_between_replicas = from < nodes && to < nodes;
        if let Some(one_in) = most.filter(|_| !is_ordered)
            && (is_between_replicas || random.one_in(4))
        {
            match random.below(2 * one_in) {
                0 => ways.count = 0,
                1 => ways.count = 2,
                _ => {}
            }
        }
        for at_us in &mut ways.at_us[..ways.count] {
            let takes_us = within(random, range) + link.delay_us + slow_us;
            *at_us = now_us.max(link.held_until_us) + takes_us;
            if is_fifo {
                *at_us = (*at_us).max(link.last_us);
                link.last_us = *at_us;
            }
        }
        ways
    }

    /// Breaks the connections between two ends, in both directions.
    pub fn reconnect(&mut self, a: usize, b: usize) {
        for (from, to) in [(a, b), (b, a)] {
            let link = self.link(from, to);
            link.epoch += 1;
            link.last_us = 0;
        }
    }

    /// Cuts or mends the links among these replicas that `shape` selects.
    pub fn cut(&mut self, places: &[(u8, u16)], shape: Shape, is_begin: bool) {
        self.for_each(places, shape, |link| {
            if is_begin {
                link.cuts += 1;
                link.epoch += 1;
                link.last_us = 0;
            } else {
                link.cuts = link.cuts.saturating_sub(1);
            }
        });
    }

    /// Holds the messages sent on these links until `until_us`; they arrive afterwards.
    pub fn hold(&mut self, places: &[(u8, u16)], shape: Shape, until_us: u64) {
        self.for_each(places, shape, |link| {
            link.held_until_us = link.held_until_us.max(until_us + HELD_MORE_US);
        });
    }

    /// Adds to the delay of these links; a negative `by_us` removes it again.
    pub fn delay(&mut self, places: &[(u8, u16)], shape: Shape, by_us: i64) {
        self.for_each(places, shape, |link| {
            link.delay_us = link.delay_us.saturating_add_signed(by_us);
        });
    }

    fn for_each(&mut self, places: &[(u8, u16)], shape: Shape, mut change: impl FnMut(&mut Link)) {
        for (from, from_place) in places.iter().enumerate() {
            for (to, to_place) in places.iter().enumerate() {
                if from != to && shape.cuts(*from_place, *to_place) {
                    change(self.link(from, to));
                }
            }
        }
    }

    /// Ends all faults of the links for the rest of the run.
    pub fn heal(&mut self) {
        self.lossy_one_in = 0;
        self.noise.clear();
        self.is_fifo = true;
        for link in &mut self.all {
            (link.cuts, link.held_until_us, link.delay_us) = (0, 0, 0);
        }
    }
}
