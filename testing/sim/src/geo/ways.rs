//! Links between two replicas that are cut in one direction, while all other links work.
//!
//! Some seeds include this; a separate random source draws it.

use mingle_model::random::{Random, mix};

use super::fault::{Event, Fault, Shape};
use super::setup::{Setup, within};

/// One seed in `ONE_IN` is of this kind.
const ONE_IN: u64 = 10;

/// The remainder modulo `ONE_IN` that selects the seed.
const OF: u64 = 4;

/// Adds the cuts of a selected seed: between siblings, and between partitions of a data center.
pub(super) fn draw(seed: u64, setup: &Setup, schedule: &mut Vec<Event>) {
    if seed % ONE_IN != OF {
        return;
    }
    let mut random = Random::new(mix(seed ^ 0x0077_6179));
    let dc_count = usize::from(setup.config.dc_count);
    let partition_count = usize::from(setup.config.partition_count);
    for _ in 0..2 + random.below(4) {
        let (dc, partition) = (random.below(dc_count), random.below(partition_count));
        let to = if partition_count > 1 && random.one_in(4) {
            let others = 1 + random.below(partition_count - 1);
            (dc as u8, ((partition + others) % partition_count) as u16)
        } else {
            let others = 1 + random.below(dc_count - 1);
            (((dc + others) % dc_count) as u8, partition as u16)
        };
        let shape = Shape::Way((dc as u8, partition as u16), to);
        let fault = Fault::Cut { shape, is_held: random.one_in(4) };
        let at_us = within(&mut random, (100_000, setup.lasts_us));
        let lasts_us = within(&mut random, (50_000, 1_500_000));
        schedule.push(Event::Fault { at_us, lasts_us, fault });
    }
}
