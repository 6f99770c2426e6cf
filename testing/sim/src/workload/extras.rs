//! Extra events of one seed in seven: repeated keyed calls, another program after a restart,
//! eventual stores in the middle of the order, and transactions that the mixes do not have.
//!
//! A separate generator draws them for these seeds only, so all other seeds stay unchanged,
//! including those that found planted faults.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_model::random::Random;

use super::calls::{ClientCall, Kind, Store};
use super::setup::{Plan, Setup};
use crate::process::{Cut, Event};

/// The divisor, and the remainder that selects a seed.
const EVERY: (u64, u64) = (7, 5);

/// The time within which the additional calls happen.
const BUSY: Duration = Duration::from_secs(18);

/// The transactions that only extras have, and some that conflict with them.
const MIX: &[Kind] = &[
    Kind::Announce,
    Kind::Announce,
    Kind::Vouch,
    Kind::Vouch,
    Kind::Transfer,
    Kind::Order,
    Kind::Post,
    Kind::Look,
];

/// The extras of a setup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// True if processes run two texts of the program side by side and restart with the other one.
    pub changes_program: bool,
    /// True if the wall is eventual too when the feed is; the wall is in the middle of the order.
    pub has_eventual_wall: bool,
}

/// True if a seed has extras.
pub fn has(seed: u64) -> bool {
    seed % EVERY.0 == EVERY.1
}

/// Adds the extras of a seed.
pub fn add(seed: u64, setup: &mut Setup, events: &mut Vec<Event<ClientCall>>) {
    let mut random = Random::new(seed ^ 0x6578_7472_6173);
    setup.extras = Extras {
        changes_program: random.one_in(2),
        has_eventual_wall: setup.is_eventual && !random.one_in(3),
    };
    let tags = events.iter().filter_map(|event| match event {
        Event::Call { call, .. } => Some(call.tag),
        _ => None,
    });
    let mut tag = tags.max().unwrap_or(0);
    let objects = 1 + random.below(3) as u8;
    for client in 0..setup.clients {
        for _ in 0..2 + random.below(8) {
            let at = Duration::from_millis(random.below(BUSY.as_millis() as usize) as u64);
            tag += 1;
            let call = ClientCall::draw(&mut random, MIX, objects, tag);
            events.push(Event::Call { at, client, call });
        }
    }
    for event in events {
        if let Event::Call { call, .. } = event {
            call.is_keyed = random.one_in(2);
            call.again = (call.is_keyed && random.one_in(2)).then(|| random.below(3) as u8);
        }
    }
}

/// Counts the combinations of faults and features in a plan, for any seed.
pub fn counts(plan: &Plan) -> BTreeMap<String, u64> {
    let cuts = plan.schedule.cuts();
    let is_one_way = |cut: &&Cut| {
        let is_back = |other: &Cut| {
            (&other.from, &other.to) == (&cut.to, &cut.from)
                && other.since < cut.until
                && cut.since < other.until
        };
        !cuts.iter().any(is_back)
    };
    let one_way = || cuts.iter().filter(is_one_way);
    let is_among_replicas = |cut: &&Cut| cut.from.contains('/');
    let kills = plan.schedule.0.iter().filter(|event| match event {
        Event::Kill { at, .. } => cuts.iter().any(|cut| (cut.since..cut.until).contains(at)),
        _ => false,
    });
    let is_in_middle = plan.setup.eventual().contains(&Store::Wall);
    [
        (
            "one-way cuts between a process and a store",
            one_way().filter(|cut| !is_among_replicas(cut)).count(),
        ),
        ("one-way cuts between replicas", one_way().filter(is_among_replicas).count()),
        ("processes killed while a link was cut", kills.count()),
        ("runs with an eventual store in the middle", usize::from(is_in_middle)),
    ]
    .map(|(name, count)| (name.to_owned(), count as u64))
    .into()
}
