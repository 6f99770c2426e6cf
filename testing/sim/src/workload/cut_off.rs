//! Clients around a replica of the feed that is cut off, in some seeds.
//!
//! Random events seldom lead to the states that two rules of the runtime are about, so these seeds lead there:
//!
//! - **A move** (one seed in fifty): no update reaches a replica of an eventual feed. A client of another replica
//!   writes until its session has more transactions to wait for than it keeps, so it *leans* on its replica. After
//!   each write the client moves to the replica that is cut off, reads there with little patience, and moves back.
//!   Between the write at which the session begins to lean and the next one, the session names no transaction, so
//!   only the rule of leaning keeps the read from the replica that lacks all of them.
//! - **A death** (one seed in fifty): no update leaves a replica of a causal feed. A process writes the bank and
//!   that replica, has time to clean up what it can, and dies. A sweep may raise the floors of its transactions only
//!   once they are at every replica, and only their intents at the bank tell it of them. A client of another replica
//!   reads both stores meanwhile.
//!
//! A separate generator draws these events, so all other seeds stay unchanged.

use std::time::Duration;

use mingle_model::Name;
use mingle_model::random::Random;
use mingle_store::Once;
use mingle_store::wrap::distance::Distance;

use super::calls::{ClientCall, Kind, Store};
use super::setup::{Engine, Setup, process_name};
use crate::process::{Cut, Event};

/// The divisor, and the remainder that selects a seed with a move.
const MOVE_EVERY: (u64, u64) = (50, 26);

/// The same for seeds with a death.
const DEATH_EVERY: (u64, u64) = (50, 44);

/// The number of writes of the client that moves: more than a session keeps.
const WRITES: u64 = 44;

/// The number of clients with one write each at the replica that is not heard.
const WRITERS: u64 = 3;

/// The patience of a reader at a replica that may lack what it waits for, in milliseconds.
const PATIENCE_MS: u32 = 150;

/// The time for which a replica is cut off.
const LASTS: Duration = Duration::from_secs(16);

/// Adds the events of a seed, if it has any.
pub(super) fn add(seed: u64, setup: &mut Setup, events: &mut Vec<Event<ClientCall>>) {
    let mut random = Random::new(seed ^ 0x0063_7574_206f_6666);
    let is_one = |(divisor, remainder)| seed % divisor == remainder;
    if is_one(MOVE_EVERY) {
        add_move(&mut random, setup, events);
    }
    if is_one(DEATH_EVERY) {
        add_death(&mut random, setup, events);
    }
}

fn add_move(random: &mut Random, setup: &mut Setup, events: &mut Vec<Event<ClientCall>>) {
    setup.is_eventual = true;
    near(setup);
    set_replicas(setup, 2 + random.below(2));
    let since = start(random);
    let away = setup.replicas - 1;
    for other in 0..away {
        events.push(cut(other, away, since));
    }
    let client = add_client(setup, 0);
    let mut calls = Calls::after(random, events, client);
    for written in 0..WRITES {
        let at = since + Duration::from_millis(200 * written);
        calls.push(at, Kind::Transfer, |call| call.moves_to = Some(0));
        calls.push(at, Kind::ReadInbox, |call| {
            call.moves_to = Some(away as u8);
            call.patience_ms = Some(PATIENCE_MS);
        });
    }
}

fn add_death(random: &mut Random, setup: &mut Setup, events: &mut Vec<Event<ClientCall>>) {
    // The sweep needs every store: another fault would hold it up until the cut is over.
    events.retain(|event| matches!(event, Event::Call { .. }));
    setup.delay = setup.delay.min(Duration::from_millis(200));
    (setup.is_eventual, setup.extras.has_eventual_wall) = (false, false);
    setup.feed = Engine::Replay(Once::Home);
    setup.lease = Duration::from_millis(600);
    near(setup);
    set_replicas(setup, 3);
    let since = start(random);
    let (unheard, reader) = (1, 2);
    for other in [0, reader] {
        events.push(cut(unheard, other, since));
    }
    let process = add_process(setup, events);
    for written in 0..WRITERS {
        // A second write of a session would leave a stamp with its rows, and the sweep would wait for that.
        let client = add_client(setup, unheard);
        let at = since + Duration::from_millis(100 * (1 + written));
        let mut calls = Calls::after(random, events, client);
        calls.push(at, Kind::Transfer, |call| call.process = Some(process as u8));
    }
    let at = since + Duration::from_millis(1_500 + random.below(1_000) as u64);
    events.push(Event::Kill { at, process: process_name(process) });
    let client = add_client(setup, reader);
    let mut calls = Calls::after(random, events, client);
    for read in 0..20 {
        let at = at + Duration::from_millis(500 * read);
        for kind in [Kind::ReadAccount, Kind::ReadInbox] {
            calls.push(at, kind, |call| {
                call.process = Some(0);
                call.patience_ms = Some(PATIENCE_MS);
            });
        }
    }
}

/// Adds a process that gets no calls of the clients so far; returns its index.
fn add_process(setup: &mut Setup, events: &mut [Event<ClientCall>]) -> usize {
    let process = setup.processes;
    for event in events {
        if let Event::Call { client, call, .. } = event {
            let usual = call.process.map_or(*client, usize::from);
            call.process = Some((usual % process) as u8);
        }
    }
    setup.processes += 1;
    process
}

/// Moves the strong stores near, so that the calls of a seed fit into the time of its cut.
fn near(setup: &mut Setup) {
    let mean = Duration::from_millis(5);
    setup.strong = Distance { mean, jitter: mean / 3 };
}

fn set_replicas(setup: &mut Setup, replicas: usize) {
    (setup.replicas, setup.lived_in) = (replicas, replicas);
}

fn start(random: &mut Random) -> Duration {
    Duration::from_millis(300 + random.below(1_000) as u64)
}

/// Returns a cut between two replicas of the feed, which count from 0.
fn cut(from: usize, to: usize, since: Duration) -> Event<ClientCall> {
    let node =
        |replica: usize| -> Name { format!("{}/r{}", Store::Feed.name(), 1 + replica).into() };
    Event::Cut(Cut { from: node(from), to: node(to), since, until: since + LASTS })
}

/// Adds a client at a replica, which counts from 0; returns its index.
fn add_client(setup: &mut Setup, replica: usize) -> usize {
    // A client's index tells its replica.
    let next = setup.clients % setup.lived_in;
    let client = setup.clients + (replica + setup.lived_in - next) % setup.lived_in;
    setup.extras.last_token_from.get_or_insert(client);
    setup.clients = client + 1;
    client
}

/// The calls of one client.
struct Calls<'a> {
    random: &'a mut Random,
    events: &'a mut Vec<Event<ClientCall>>,
    client: usize,
    tag: u32,
}

impl<'a> Calls<'a> {
    /// Creates the calls of a client with tags above those of all other calls.
    fn after(
        random: &'a mut Random,
        events: &'a mut Vec<Event<ClientCall>>,
        client: usize,
    ) -> Self {
        let tags = events.iter().filter_map(|event| match event {
            Event::Call { call, .. } => Some(call.tag),
            _ => None,
        });
        let tag = tags.max().unwrap_or(0);
        Self { random, events, client, tag }
    }

    /// Adds a plain call, with this change.
    fn push(&mut self, at: Duration, kind: Kind, change: impl FnOnce(&mut ClientCall)) {
        self.tag += 1;
        let mut call = ClientCall::draw(self.random, &[kind], 1, self.tag);
        (call.is_twin, call.until, call.patience_ms) = (false, None, None);
        (call.moves_to, call.process) = (None, None);
        change(&mut call);
        self.events.push(Event::Call { at, client: self.client, call });
    }
}
