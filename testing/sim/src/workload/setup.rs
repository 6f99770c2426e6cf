//! The setup and events of one seed, as data.

use std::collections::BTreeSet;
use std::time::Duration;

use mingle_model::Name;
use mingle_model::random::Random;
use mingle_store::Once;
use mingle_store::wrap::distance::Distance;
use mingle_store::wrap::fault::{Call, Fault};

use super::calls::{ClientCall, Kind, OBJECTS, Store};
use super::cut_off;
use super::extras::{self, Extras};
use super::takes;
use crate::process::{Cut, Event, Moment, Schedule};

/// The mixes of transactions; a seed uses one of them.
const MIXES: [&[Kind]; 6] = [
    &[
        Kind::Deposit,
        Kind::Credit,
        Kind::Note,
        Kind::Pin,
        Kind::Transfer,
        Kind::Send,
        Kind::Order,
        Kind::Post,
        Kind::Swap,
        Kind::Look,
        Kind::Look,
        Kind::ReadAccount,
        Kind::ReadBoard,
        Kind::ReadInbox,
        Kind::Both,
        Kind::BankToShop,
        Kind::ShopToBank,
        Kind::Claim,
    ],
    &[Kind::Transfer, Kind::Credit, Kind::ReadAccount, Kind::ReadInbox, Kind::Look],
    &[Kind::Order, Kind::Post, Kind::Post, Kind::Swap, Kind::Look, Kind::Send],
    &[
        Kind::Note,
        Kind::Pin,
        Kind::ReadInbox,
        Kind::ReadBoard,
        Kind::Deposit,
        Kind::ReadAccount,
        Kind::Swap,
    ],
    &[Kind::Both, Kind::BankToShop, Kind::ShopToBank],
    &[Kind::Claim, Kind::Send, Kind::Credit, Kind::Look, Kind::Claim],
];

/// The engine of a causal store in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The embedded store.
    Embedded(Once),
    /// The reference store, whose replicas do not know each other.
    Replay(Once),
}

/// The part of a plan that stays the same when a schedule shrinks.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The seed of the world's random source.
    pub seed: u64,
    /// The number of processes.
    pub processes: usize,
    /// The number of clients, each at one process and replica.
    pub clients: usize,
    /// The number of replicas of the causal stores.
    pub replicas: usize,
    /// The number of replicas, the first ones, at which clients stay.
    pub lived_in: usize,
    /// The delay of updates to the other replicas.
    pub delay: Duration,
    /// The distance of the strong stores.
    pub strong: Distance,
    /// The distance of the causal stores.
    pub weak: Distance,
    /// The engine of the wall.
    pub wall: Engine,
    /// The engine of the feed.
    pub feed: Engine,
    /// The rate, in 1/1000, at which commits under way arrive although their process has died.
    pub late: u16,
    /// The maximum delay of such commits.
    pub late_most: Duration,
    /// The maximum jump of the clocks, at one look in some.
    pub clock_jumps: Duration,
    /// The time without a sign of life after which an origin counts as dead.
    pub lease: Duration,
    /// True if the feed is eventual instead of causal.
    pub is_eventual: bool,
    /// The features of some seeds only.
    pub extras: Extras,
}

impl Setup {
    /// Returns the stores that count one of several copies of a phase.
    pub fn by_id(&self) -> BTreeSet<Store> {
        let engines = [(Store::Wall, self.wall), (Store::Feed, self.feed)];
        let by_id = engines.into_iter().filter(|(_, engine)| *engine == Engine::Replay(Once::ById));
        by_id.map(|(store, _)| store).collect()
    }

    /// Returns the stores that are eventual.
    pub fn eventual(&self) -> BTreeSet<Store> {
        let wall = self.extras.has_eventual_wall.then_some(Store::Wall);
        self.is_eventual.then_some(Store::Feed).into_iter().chain(wall).collect()
    }
}

/// A run: its setup and its events.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The fixed part.
    pub setup: Setup,
    /// The events.
    pub schedule: Schedule<ClientCall>,
}

/// The time within which events happen.
const BUSY: Duration = Duration::from_secs(20);

impl Plan {
    /// Returns the plan of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut setup = draw_setup(seed, &mut random);
        let mut events = Vec::new();
        draw_calls(&setup, &mut random, &mut events);
        draw_deaths(&setup, &mut random, &mut events);
        draw_pauses(&setup, &mut random, &mut events);
        draw_cuts(&setup, &mut random, &mut events);
        draw_restarts(&mut random, &mut events);
        draw_faults(&mut random, &mut events);
        extras::add(seed, &mut setup, &mut events);
        takes::add(seed, &mut setup, &mut events);
        cut_off::add(seed, &mut setup, &mut events);
        Self { setup, schedule: Schedule(events) }
    }
}

impl Plan {
    /// Returns a plan for real servers: two replicas, three processes that die now and then, and no
    /// other faults of its own. Each client makes `calls` calls, with a pause of at most `pause`
    /// between them.
    pub fn live(seed: u64, calls: usize, pause: Duration) -> Self {
        let mut random = Random::new(seed);
        let setup = Setup {
            seed: random.bits() ^ seed,
            processes: 3,
            clients: 6,
            replicas: 2,
            lived_in: 2,
            delay: Duration::from_millis(20),
            strong: Distance::default(),
            weak: Distance::default(),
            wall: Engine::Embedded(Once::Serial),
            feed: Engine::Embedded(Once::Serial),
            late: 0,
            late_most: Duration::ZERO,
            lease: Duration::from_secs(2),
            is_eventual: false,
            extras: Extras::default(),
            clock_jumps: Duration::ZERO,
        };
        let mut events = Vec::new();
        let calls = Calls { mix: MIXES[0], objects: OBJECTS, count: calls, pause };
        draw_client_calls(&setup, &calls, &mut random, &mut events);
        draw_deaths(&setup, &mut random, &mut events);
        Self { setup, schedule: Schedule(events) }
    }
}

impl Plan {
    /// Does the same as [`Plan::live`], with an eventual feed that counts one of several copies of
    /// a phase.
    pub fn live_eventual(seed: u64, calls: usize, pause: Duration) -> Self {
        let mut plan = Self::live(seed, calls, pause);
        plan.setup.is_eventual = true;
        plan.setup.feed = Engine::Replay(Once::ById);
        plan
    }
}

fn ms(random: &mut Random, most: usize) -> Duration {
    Duration::from_millis(random.below(most + 1) as u64)
}

fn draw_setup(seed: u64, random: &mut Random) -> Setup {
    let distance = |mean: Duration| Distance { mean, jitter: mean / 3 };
    let replicas = if random.one_in(5) { 1 } else { 2 + random.below(2) };
    let engine = |random: &mut Random| match random.below(6) {
        0 | 1 => Engine::Embedded(Once::Serial),
        2 => Engine::Embedded(Once::Home),
        3 => Engine::Replay(Once::Home),
        _ => Engine::Replay(Once::ById),
    };
    Setup {
        seed: random.bits() ^ seed,
        processes: 1 + random.below(3),
        clients: 1 + random.below(6),
        replicas,
        lived_in: replicas,
        delay: if random.one_in(4) { Duration::ZERO } else { ms(random, 800) },
        strong: distance(ms(random, 60)),
        weak: distance(ms(random, 5)),
        wall: engine(random),
        feed: engine(random),
        late: if random.one_in(2) { 500 } else { 0 },
        late_most: Duration::from_secs(if random.one_in(2) { 3 } else { 12 }),
        lease: Duration::from_millis([600, 2_000, 6_000][random.below(3)]),
        is_eventual: random.one_in(4),
        extras: Extras::default(),
        clock_jumps: if random.one_in(3) { Duration::from_mins(1) } else { Duration::ZERO },
    }
}

fn draw_calls(setup: &Setup, random: &mut Random, events: &mut Vec<Event<ClientCall>>) {
    let mix = MIXES[if random.one_in(2) { 0 } else { random.below(MIXES.len()) }];
    let objects = 1 + random.below(3) as u8;
    let calls = 5 + random.below(25);
    let pause = Duration::from_millis(1 + random.below(900) as u64);
    draw_client_calls(setup, &Calls { mix, objects, count: calls, pause }, random, events);
}

/// The number and pace of the clients' calls.
struct Calls {
    mix: &'static [Kind],
    /// The number of objects of each kind in use.
    objects: u8,
    /// The number of calls of each client.
    count: usize,
    /// The maximum pause between two calls of a client.
    pause: Duration,
}

fn draw_client_calls(
    setup: &Setup,
    of: &Calls,
    random: &mut Random,
    events: &mut Vec<Event<ClientCall>>,
) {
    let mut tag = 0;
    for client in 0..setup.clients {
        let mut at = Duration::ZERO;
        for _ in 0..of.count {
            at += ms(random, of.pause.as_millis() as usize);
            tag += 1;
            let call = ClientCall::draw(random, of.mix, of.objects, tag);
            events.push(Event::Call { at, client, call });
        }
    }
}

/// Returns the name of a process.
pub fn process_name(index: usize) -> Name {
    format!("p{index}").into()
}

fn draw_deaths(setup: &Setup, random: &mut Random, events: &mut Vec<Event<ClientCall>>) {
    if random.one_in(4) {
        return;
    }
    for process in 0..setup.processes {
        let mut call = 0;
        for _ in 0..random.below(8) {
            call += 1 + random.below(60) as u64;
            let moment = if random.one_in(2) { Moment::Before } else { Moment::After };
            events.push(Event::Die { process: process_name(process), call, moment });
        }
        if random.one_in(3) {
            let at = ms(random, BUSY.as_millis() as usize);
            events.push(Event::Kill { at, process: process_name(process) });
        }
        if random.one_in(3) {
            let at = ms(random, BUSY.as_millis() as usize);
            let by_ms = random.below(240_000) as i64 - 120_000;
            events.push(Event::Jump { at, process: process_name(process), by_ms });
        }
    }
}

fn draw_pauses(setup: &Setup, random: &mut Random, events: &mut Vec<Event<ClientCall>>) {
    if random.one_in(2) {
        return;
    }
    for process in 0..setup.processes {
        for _ in 0..random.below(5) {
            let at = ms(random, BUSY.as_millis() as usize);
            let longest = if random.one_in(2) { 2_000 } else { 15_000 };
            let lasts = ms(random, longest);
            events.push(Event::Pause { at, process: process_name(process), lasts });
        }
    }
}

fn draw_cuts(setup: &Setup, random: &mut Random, events: &mut Vec<Event<ClientCall>>) {
    if random.one_in(3) {
        return;
    }
    for _ in 0..random.below(5) {
        let since = ms(random, BUSY.as_millis() as usize);
        let longest = if random.one_in(4) { 20_000 } else { 6_000 };
        let until = since + ms(random, longest);
        let store = Store::ALL[random.below(4)];
        let (from, to): (Name, Name) =
            if store.is_causal() && setup.replicas > 1 && random.one_in(2) {
                let replica = |random: &mut Random| 1 + random.below(setup.replicas);
                let (one, other) = (replica(random), replica(random));
                let name = store.name();
                (format!("{name}/r{one}").into(), format!("{name}/r{other}").into())
            } else {
                (process_name(random.below(setup.processes)), store.name().into())
            };
        if from == to {
            continue;
        }
        events.push(Event::Cut(Cut { from: from.clone(), to: to.clone(), since, until }));
        if !random.one_in(3) {
            events.push(Event::Cut(Cut { from: to, to: from, since, until }));
        }
    }
}

fn draw_restarts(random: &mut Random, events: &mut Vec<Event<ClientCall>>) {
    for store in Store::ALL {
        if !random.one_in(4) {
            continue;
        }
        for _ in 0..=random.below(3) {
            let at = ms(random, BUSY.as_millis() as usize);
            let down = ms(random, 1_500);
            events.push(Event::Restart { at, store: store.name().into(), down });
        }
    }
}

fn draw_faults(random: &mut Random, events: &mut Vec<Event<ClientCall>>) {
    for store in Store::ALL {
        if random.one_in(3) {
            continue;
        }
        for _ in 0..random.below(20) {
            let call = match random.below(6) {
                0 => Call::Begin,
                1 => Call::Read,
                2 => Call::Outcome,
                _ => Call::Commit,
            };
            let fault = match (call, random.below(4)) {
                (Call::Commit, _) if random.one_in(40) => Fault::Refused,
                (Call::Commit | Call::Read, 0) => Fault::Conflict,
                (Call::Commit, 1) => Fault::LostBefore,
                (Call::Commit, 2) => Fault::LostAfter,
                _ => Fault::Unavailable,
            };
            let index = random.below(200) as u64;
            events.push(Event::Fault { store: store.name().into(), call, index, fault });
        }
    }
}
