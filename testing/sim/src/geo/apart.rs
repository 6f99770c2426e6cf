//! Data centers that are cut off for a long time while the others continue.
//!
//! Some seeds include this; a separate random source draws it. After the seed's other faults have
//! ended, at most `f` data centers are away until the end of the run. Every promise that the
//! remaining data centers make then must hold without them.

use mingle_model::random::{Random, mix};

use super::fault::{Event, Fault, Kept, Place, Shape};
use super::setup::{Focus, Setup, within};

/// One seed in `ONE_IN` is of this kind.
const ONE_IN: u64 = 10;

/// The remainder modulo `ONE_IN` that selects the seed.
const OF: u64 = 9;

/// All other faults begin before this time, in microseconds.
const OTHERS_US: u64 = 2_500_000;

/// The minimum time that the data centers are away, in microseconds.
const APART_US: u64 = 16_000_000;

/// Makes a selected seed long, with data centers that are away for most of the run, unless the seed
/// loses or gives up a data center. Clock steps are removed, because a timestamp too far ahead of
/// the other clocks may have to wait.
pub(super) fn draw(seed: u64, setup: &mut Setup, schedule: &mut Vec<Event>) {
    let is_final = |event: &Event| {
        let Event::Fault { fault, .. } = event else { return false };
        matches!(fault, Fault::Lose { .. } | Fault::LoseDisk { .. } | Fault::Fence { .. })
    };
    let is_fit = setup.strong.is_some()
        && setup.config.f > 0
        && !matches!(setup.focus, Focus::Clocks | Focus::FarClocks)
        && !setup.has_small_limits();
    if seed % ONE_IN != OF || !is_fit || schedule.iter().any(is_final) {
        return;
    }
    let mut random = Random::new(mix(seed ^ 0x00a9_a127));
    schedule.retain(|event| match event {
        Event::Fault { fault: Fault::Step { .. }, .. } => false,
        Event::Fault { at_us, .. } => *at_us < OTHERS_US,
        Event::Act { .. } => true,
    });
    let begin_us = OTHERS_US + within(&mut random, (0, 500_000));
    setup.lasts_us = begin_us + APART_US + within(&mut random, (0, 2_000_000));
    setup.think_us.1 = setup.lasts_us / setup.acts as u64;
    let dc_count = setup.config.dc_count;
    let first = random.below(usize::from(dc_count)) as u8;
    let count = 1 + random.below(usize::from(setup.config.f)) as u8;
    let dcs = (0..count).map(|next| (first + next) % dc_count);
    let lasts_us = setup.lasts_us - begin_us;
    let mut add = |fault: Fault| {
        schedule.push(Event::Fault { at_us: begin_us, lasts_us, fault });
    };
    match random.below(4) {
        0 => dcs.for_each(|dc| add(Fault::Crash { place: Place::Dc(dc), kept: Kept::Torn })),
        1 => dcs.for_each(|dc| add(Fault::Cut { shape: Shape::Off(dc), is_held: false })),
        held => {
            // The data centers that are cut off together still hear each other.
            let set = dcs.fold(0, |set, dc| set | 1 << dc);
            add(Fault::Cut { shape: Shape::Halves(set), is_held: held == 2 });
        }
    }
}
