//! Extra events of some seeds.
//!
//! One seed in seven has repeated keyed calls, another program after a restart, eventual stores in
//! the middle of the order, and transactions that the mixes do not have. Another one in seven has
//! commands, queries and deletes, replicas that lag, and processes that die while their links are
//! slow or cut. A third one in seven has reads with policies, while replicas lag. A fourth one in seven has many
//! `isolated` transactions, some of them at one store alone, while links to the second strong store are slow.
//!
//! A separate generator draws them for these seeds only, so all other seeds stay unchanged,
//! including those that found planted faults.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_model::Name;
use mingle_model::random::Random;

use super::calls::{ClientCall, Kind, Store};
use super::setup::{Plan, Setup, process_name};
use crate::process::{Cut, Event, Slow};

/// The divisor, and the remainder that selects a seed.
const EVERY: (u64, u64) = (7, 5);

/// The same for seeds with operations, deletes and troubled links.
const OPERATIONS_EVERY: (u64, u64) = (7, 3);

/// The same for seeds with reads that have policies.
const ANSWERS_EVERY: (u64, u64) = (7, 6);

/// The same for seeds with many `isolated` transactions.
const ISOLATED_EVERY: (u64, u64) = (7, 1);

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

/// The transactions with operations and deletes, and some that meet them.
const OPERATIONS_MIX: &[Kind] = &[
    Kind::Record,
    Kind::Audit,
    Kind::Audit,
    Kind::Enroll,
    Kind::Tally,
    Kind::Browse,
    Kind::Browse,
    Kind::Jot,
    Kind::Jot,
    Kind::Scrap,
    Kind::ReadPad,
    Kind::Scribble,
    Kind::Scribble,
    Kind::Wipe,
    Kind::ReadSheet,
    Kind::Transfer,
    Kind::Look,
];

/// The transactions whose reads have policies, and some that meet them.
const ANSWERS_MIX: &[Kind] = &[
    Kind::Glance,
    Kind::Glance,
    Kind::Peek,
    Kind::Skim,
    Kind::Rush,
    Kind::Rush,
    Kind::Hurry,
    Kind::Hurry,
    Kind::Order,
    Kind::Send,
    Kind::Look,
    Kind::ReadInbox,
];

/// The `isolated` transactions over both strong stores, and those at one.
const ISOLATED_MIX: &[Kind] = &[
    Kind::Both,
    Kind::BankToShop,
    Kind::BankToShop,
    Kind::ShopToBank,
    Kind::Even,
    Kind::Even,
    Kind::Even,
    Kind::Check,
];

/// The extras of a setup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// True if processes run two texts of the program side by side and restart with the other one.
    pub changes_program: bool,
    /// True if the wall is eventual too when the feed is; the wall is in the middle of the order.
    pub has_eventual_wall: bool,
    /// True if the program has operations and deletes.
    pub has_operations: bool,
    /// True if the program has reads with policies.
    pub has_answers: bool,
    /// True if shelves have a stock.
    pub has_takes: bool,
    /// The first of the clients that keep only the token of their last call; those before it join it with the
    /// tokens of earlier calls, so they go on naming what a session has dropped.
    pub last_token_from: Option<usize>,
}

/// Adds the extras of a seed, if it has any.
pub fn add(seed: u64, setup: &mut Setup, events: &mut Vec<Event<ClientCall>>) {
    let is_one = |(divisor, remainder)| seed % divisor == remainder;
    if is_one(EVERY) {
        add_keyed(seed, setup, events);
    }
    if is_one(OPERATIONS_EVERY) {
        let mut random = Random::new(seed ^ 0x0064_656c_6574_6573);
        setup.extras.has_operations = true;
        let calls = 8 + random.below(24);
        add_calls(&mut random, OPERATIONS_MIX, calls, setup, events);
        add_deaths(&mut random, setup, events);
        add_laggard(&mut random, setup, events);
    }
    if is_one(ISOLATED_EVERY) {
        let mut random = Random::new(seed ^ 0x6973_6f6c_6174_6564);
        let calls = 8 + random.below(24);
        add_calls(&mut random, ISOLATED_MIX, calls, setup, events);
        add_slow_shop(&mut random, setup, events);
        add_deaths(&mut random, setup, events);
    }
    if is_one(ANSWERS_EVERY) {
        let mut random = Random::new(seed ^ 0x0061_6e73_7765_7273);
        setup.extras.has_answers = true;
        let calls = 8 + random.below(24);
        add_calls(&mut random, ANSWERS_MIX, calls, setup, events);
        add_laggard(&mut random, setup, events);
    }
}

/// Adds calls of each client, at most this many.
pub(super) fn add_calls(
    random: &mut Random,
    mix: &[Kind],
    most: usize,
    setup: &Setup,
    events: &mut Vec<Event<ClientCall>>,
) {
    let tags = events.iter().filter_map(|event| match event {
        Event::Call { call, .. } => Some(call.tag),
        _ => None,
    });
    let mut tag = tags.max().unwrap_or(0);
    let objects = 1 + random.below(3) as u8;
    for client in 0..setup.clients {
        for _ in 0..2 + random.below(most) {
            let at = during(random, BUSY);
            tag += 1;
            let call = ClientCall::draw(random, mix, objects, tag);
            events.push(Event::Call { at, client, call });
        }
    }
}

fn during(random: &mut Random, most: Duration) -> Duration {
    Duration::from_millis(random.below(most.as_millis() as usize) as u64)
}

/// Adds processes that die while a link of theirs to a store is slow or cut.
pub(super) fn add_deaths(random: &mut Random, setup: &Setup, events: &mut Vec<Event<ClientCall>>) {
    for _ in 0..random.below(5) {
        let process = process_name(random.below(setup.processes));
        let store: Name = Store::ALL[random.below(4)].name().into();
        let since = during(random, BUSY);
        let lasts = Duration::from_millis(500) + during(random, Duration::from_secs(5));
        let until = since + lasts;
        if random.one_in(2) {
            let by = Duration::from_millis(50) + during(random, Duration::from_secs(1));
            let (process, store) = (process.clone(), store.clone());
            events.push(Event::Slow(Slow { process, store, since, until, by }));
        } else {
            let (from, to) =
                if random.one_in(2) { (process.clone(), store) } else { (store, process.clone()) };
            if random.one_in(2) {
                events.push(Event::Cut(Cut { from: to.clone(), to: from.clone(), since, until }));
            }
            events.push(Event::Cut(Cut { from, to, since, until }));
        }
        events.push(Event::Kill { at: since + during(random, lasts), process });
    }
}

/// Adds times in which the second strong store is slow for a process: transactions stay on their way to it.
fn add_slow_shop(random: &mut Random, setup: &Setup, events: &mut Vec<Event<ClientCall>>) {
    for _ in 0..2 + random.below(8) {
        let process = process_name(random.below(setup.processes));
        let since = during(random, BUSY);
        let until = since + Duration::from_millis(300) + during(random, Duration::from_secs(2));
        let by = Duration::from_millis(20) + during(random, Duration::from_millis(300));
        events.push(Event::Slow(Slow {
            process,
            store: Store::Shop.name().into(),
            since,
            until,
            by,
        }));
    }
}

/// Adds long times, with short gaps, in which no update of the causal stores reaches one of their
/// replicas.
fn add_laggard(random: &mut Random, setup: &Setup, events: &mut Vec<Event<ClientCall>>) {
    if setup.replicas == 1 || random.one_in(4) {
        return;
    }
    let laggard = 1 + random.below(setup.replicas);
    for store in [Store::Wall, Store::Feed] {
        let node = |replica: usize| -> Name { format!("{}/r{replica}", store.name()).into() };
        let mut since = during(random, Duration::from_secs(2));
        while since < BUSY {
            let until = since + Duration::from_secs(3) + during(random, Duration::from_secs(7));
            for other in (1..=setup.replicas).filter(|other| *other != laggard) {
                let (from, to) = (node(other), node(laggard));
                events.push(Event::Cut(Cut { from, to, since, until }));
            }
            since = until + Duration::from_millis(200) + during(random, Duration::from_secs(2));
        }
    }
}

/// Adds keyed calls, and what comes with them.
fn add_keyed(seed: u64, setup: &mut Setup, events: &mut Vec<Event<ClientCall>>) {
    let mut random = Random::new(seed ^ 0x6578_7472_6173);
    setup.extras = Extras {
        changes_program: random.one_in(2),
        has_eventual_wall: setup.is_eventual && !random.one_in(3),
        ..Extras::default()
    };
    add_calls(&mut random, MIX, 8, setup, events);
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
