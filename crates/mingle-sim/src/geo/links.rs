//! Links: connections that take time, break, and may lose, repeat and reorder.

use mingle_model::random::Random;

use super::fault::Shape;
use super::setup::{Network, Range, within};

/// Until when a message waits that is held.
const HELD_MORE_US: u64 = 1_000;

/// When the copies of a message come.
pub(super) struct Ways {
    pub count: usize,
    pub at_us: [u64; 2],
}

/// A message's way.
pub(super) struct Trip {
    pub from: usize,
    pub to: usize,
    /// Whether it goes to another data center.
    pub is_far: bool,
    /// The receiver handles everything so much later.
    pub slow_us: u64,
    /// Whether it goes over a connection that loses nothing as long as it stands.
    pub is_ordered: bool,
}

/// All links, between replicas and, beyond them, clients.
pub(super) struct Links {
    ends: usize,
    nodes: usize,
    near_us: Range,
    far_us: Range,
    is_fifo: bool,
    lossy_one_in: usize,
    /// What faults add: one in so many.
    pub noise: Vec<usize>,
    all: Vec<Link>,
}

#[derive(Clone, Copy, Default)]
struct Link {
    /// Counts its connections: what was sent on an earlier one never comes.
    epoch: u32,
    /// How many faults cut it.
    cuts: u16,
    /// Until when what is sent is held.
    held_until_us: u64,
    delay_us: u64,
    /// When the last message comes.
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

    /// When a message comes that is sent now.
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

    /// The connections between two ends break, in both directions.
    pub fn reconnect(&mut self, a: usize, b: usize) {
        for (from, to) in [(a, b), (b, a)] {
            let link = self.link(from, to);
            link.epoch += 1;
            link.last_us = 0;
        }
    }

    /// Cuts, or mends, the links that `shape` concerns among these replicas.
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

    /// What is sent over these links until then comes after it.
    pub fn hold(&mut self, places: &[(u8, u16)], shape: Shape, until_us: u64) {
        self.for_each(places, shape, |link| {
            link.held_until_us = link.held_until_us.max(until_us + HELD_MORE_US);
        });
    }

    /// Adds to the delay of these links, or takes it away again.
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

    /// All is as it should be, and stays so.
    pub fn heal(&mut self) {
        self.lossy_one_in = 0;
        self.noise.clear();
        self.is_fifo = true;
        for link in &mut self.all {
            (link.cuts, link.held_until_us, link.delay_us) = (0, 0, 0);
        }
    }
}
