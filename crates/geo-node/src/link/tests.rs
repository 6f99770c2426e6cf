//! Two ends of a connection, whose bytes the test moves.

mod refused;

use mingle_geo::wire::{Hello, VERSIONS, Versions};
use mingle_geo::{DcId, Now};
use mingle_model::random::{Random, mix};

use super::frame::{Frame, Kind};
use super::*;

const WALL_US: u64 = 1_795_132_800_000_000;

fn now(ms: u64) -> Now {
    Now { wall_us: WALL_US + ms * 1_000, mono_us: ms * 1_000 }
}

fn hello(dc: u8, boot: u32) -> Hello {
    Hello {
        versions: VERSIONS,
        cluster: 7,
        dc: DcId(dc),
        node: 0,
        incarnation: 0,
        boot,
        process: mix(u64::from(dc) << 32 | u64::from(boot)),
        wall_us: 0,
        settings: 0,
    }
}

/// A dialer of data center 1 and an acceptor of data center 0.
struct Pair {
    ends: [Connection; 2],
    events: [Vec<Event>; 2],
    /// All bytes that each end has sent.
    sent: [Vec<u8>; 2],
}

impl Pair {
    fn new(settings: Settings, own: [Hello; 2], draw: u64) -> Self {
        let [dialer, acceptor] = own;
        let dialer = Connection::new(settings, dialer, mix(draw), Some(DcId(0)), now(0));
        let acceptor = Connection::new(settings, acceptor, mix(!draw), None, now(0));
        Self { ends: [dialer, acceptor], events: Default::default(), sent: Default::default() }
    }

    fn open(settings: Settings, draw: u64) -> Self {
        let mut pair = Self::new(settings, [hello(1, 1), hello(0, 1)], draw);
        pair.settle(&mut Random::new(1));
        assert!(pair.ends.iter().all(Connection::is_open));
        pair.events = Default::default();
        pair
    }

    /// Moves all bytes, in pieces of any length, and accepts every HELLO.
    fn settle(&mut self, random: &mut Random) {
        loop {
            let mut is_quiet = true;
            for from in 0..2 {
                let bytes = self.ends[from].take(1 + random.below(2 << 20));
                is_quiet &= bytes.is_empty();
                self.sent[from].extend(&bytes);
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let (piece, more) = rest.split_at(1 + random.below(rest.len()));
                    self.arrive(1 - from, piece);
                    rest = more;
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn arrive(&mut self, at: usize, bytes: &[u8]) {
        let (end, events) = (&mut self.ends[at], &mut self.events[at]);
        end.receive(now(0), bytes, events);
        if let Some(Event::Hello(_)) = events.last() {
            end.accept(now(0), events);
        }
    }

    fn messages(&self, at: usize) -> Vec<&[u8]> {
        let messages = self.events[at].iter().filter_map(|event| match event {
            Event::Message(message) => Some(&message[..]),
            Event::Hello(_) => None,
        });
        messages.collect()
    }
}

#[test]
fn messages_of_any_length_arrive_in_order_and_no_frame_is_longer_than_a_mebibyte() {
    for seed in 0..20 {
        let random = &mut Random::new(mix(seed));
        let mut pair = Pair::open(Settings::default(), seed);
        let mut sent = [Vec::new(), Vec::new()];
        for number in 0..30u8 {
            let length = [0, 1, 1_000, (1 << 20) - 25, 1 << 20, 3_000_000][random.below(6)];
            let (from, message) = (random.below(2), vec![number; length]);
            pair.ends[from].send(now(0), &message).expect("it is not too long");
            sent[1 - from].push(message);
            if random.one_in(3) {
                pair.settle(random);
            }
        }
        pair.settle(random);
        for (at, expected) in sent.iter().enumerate() {
            assert_eq!(pair.messages(at), *expected, "seed {seed}");
            let (mut rest, mut longest) = (&pair.sent[at][..], 0);
            while let Some((_, length)) = Frame::take(rest).expect("frames") {
                (longest, rest) = (longest.max(length), &rest[length..]);
            }
            assert!(rest.is_empty() && longest <= FRAME_BYTES_MAX, "seed {seed}: {longest}");
        }
    }
}

#[test]
fn a_message_over_the_bound_is_not_sent_and_not_taken() {
    let settings = Settings { message_bytes_max: 3 << 20, ..Settings::default() };
    let mut pair = Pair::open(settings, 1);
    assert_eq!(pair.ends[0].send(now(0), &vec![0; (3 << 20) + 1]), Err((3 << 20) + 1));
    assert!(pair.ends[0].is_open());
    // The other end has a lower bound.
    let mut pair = Pair::open(settings, 1);
    pair.ends[0].send(now(0), &vec![0; 3 << 20]).expect("it is within the bound");
    let lower = Settings { message_bytes_max: 2 << 20, ..settings };
    let mut strict = Connection::new(lower, hello(0, 1), mix(!1), None, now(0));
    let mut events = Vec::new();
    strict.receive(now(0), &pair.sent[0], &mut events);
    strict.accept(now(0), &mut events);
    strict.receive(now(0), &pair.ends[0].take(usize::MAX), &mut events);
    let closed = strict.closed().map(ToString::to_string).unwrap_or_default();
    assert!(closed.contains("more than 2097152 bytes"), "{closed}");
    assert_eq!(events.len(), 1, "HELLO alone");
}

#[test]
fn a_full_queue_closes_the_connection_with_both_figures() {
    let settings = Settings { queue_bytes_max: 5_000, ..Settings::default() };
    let mut pair = Pair::open(settings, 1);
    let mut count = 0;
    while pair.ends[0].is_open() {
        pair.ends[0].send(now(0), &[0; 900]).expect("it is short");
        count += 1;
    }
    assert_eq!(count, 6);
    let closed = pair.ends[0].closed().map(ToString::to_string).unwrap_or_default();
    assert!(closed.contains("at most 5000"), "{closed}");
    assert!(pair.ends[0].take(usize::MAX).is_empty());
}

#[test]
fn a_frame_of_another_connection_or_that_was_taken_is_dropped_and_counted() {
    let random = &mut Random::new(3);
    let mut earlier = Pair::open(Settings::default(), 1);
    earlier.ends[0].send(now(0), b"old").expect("it is short");
    earlier.settle(random);
    let mut pair = Pair::open(Settings::default(), 2);
    pair.ends[0].send(now(0), b"new").expect("it is short");
    pair.settle(random);
    // Everything of the earlier connection, and then of this one, HELLO included, comes again.
    for replayed in [earlier.sent[0].clone(), pair.sent[0].clone()] {
        let before = pair.ends[1].replayed;
        pair.arrive(1, &replayed);
        assert_eq!(pair.ends[1].replayed, before + 2);
    }
    pair.ends[0].send(now(0), b"newer").expect("it is short");
    pair.settle(random);
    assert_eq!(pair.messages(1), [&b"new"[..], b"newer"]);
    assert!(pair.ends.iter().all(Connection::is_open));
}

#[test]
fn a_missing_frame_closes_the_connection() {
    let mut pair = Pair::open(Settings::default(), 1);
    for message in [b"one", b"two"] {
        pair.ends[0].send(now(0), message).expect("it is short");
    }
    let _lost = pair.ends[0].take(1);
    let next = pair.ends[0].take(1);
    pair.arrive(1, &next);
    assert_eq!(pair.ends[1].closed(), Some(&Closed::Gap { found: 1, expected: 0 }));
}

#[test]
fn silence_closes_a_connection_and_pings_keep_it() {
    let settings = Settings::default();
    let mut pair = Pair::open(settings, 1);
    for ms in (0..20_000).step_by(100) {
        for from in 0..2 {
            pair.ends[from].tick(now(ms));
            let bytes = pair.ends[from].take(usize::MAX);
            if !bytes.is_empty() {
                let (to, events) = (&mut pair.ends[1 - from], &mut Vec::new());
                to.receive(now(ms), &bytes, events);
            }
        }
    }
    assert!(pair.ends.iter().all(Connection::is_open));
    assert!(pair.messages(0).is_empty() && pair.messages(1).is_empty());
    // The other end falls silent; a connection without HELLO is closed, too.
    let mut stranger = Connection::new(settings, hello(0, 1), 5, None, now(20_000));
    for ms in (20_000..24_000).step_by(100) {
        pair.ends[0].tick(now(ms));
        stranger.tick(now(ms));
    }
    for end in [&pair.ends[0], &stranger] {
        assert!(matches!(end.closed(), Some(Closed::Silent { .. })), "{:?}", end.closed());
    }
}

#[test]
fn foreign_bytes_close_the_connection() {
    let mut random = Random::new(5);
    for number in 0..500 {
        let mut end = Connection::new(Settings::default(), hello(0, 1), 5, None, now(0));
        let mut events = Vec::new();
        let mut bytes: Vec<u8> = (0..200).map(|_| random.below(256) as u8).collect();
        // A length that is not possible.
        bytes[3] = 1;
        if number == 0 {
            bytes = b"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n".to_vec();
        }
        if number % 2 == 1 {
            // A length that is possible.
            bytes[..4].copy_from_slice(&100u32.to_le_bytes());
        }
        end.receive(now(0), &bytes, &mut events);
        assert!(matches!(end.closed(), Some(Closed::Malformed(_))), "{:?}", end.closed());
        assert!(events.is_empty());
    }
}

#[test]
fn a_message_before_hello_closes_the_connection() {
    let mut end = Connection::new(Settings::default(), hello(0, 1), 5, None, now(0));
    let frame = Frame { kind: Kind::Message, connection: 1, sequence: 0, content: b"early" };
    end.receive(now(0), &frame.to_bytes(), &mut Vec::new());
    let closed = end.closed().map(ToString::to_string).unwrap_or_default();
    assert!(closed.contains("begins with HELLO"), "{closed}");
}
