//! Checks that the replicas' heap, as counted by the allocator, is below the formula of
//! `mingle_geo::memory` and not far below.

use mingle_geo::memory::{Load, heap_bytes_max};
use mingle_geo::message::{CommitOne, RaiseFloor, Snapshot};
use mingle_geo::{
    Address, Config, DcId, Envelope, Input, Key, Kind, Message, Now, Op, OpId, Output, PartitionId,
    Replica, Update, Vector,
};
use mingle_model::random::Random;
use mingle_model::{Origin, TransactionId, Value};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const DCS: u8 = 3;
const ITEMS: usize = 2_000;
const SESSIONS: usize = 60;
const VALUE_BYTES: usize = 64;
const NAME: &str = "item:";

/// The number of transactions by which the floor of a session's ids lags behind.
const LAG: u64 = 5;

/// The number of commits at each data center in a tick.
const COMMITS: usize = 4;

/// The replicas of one partition. Messages and disk writes take no time.
struct Trio {
    replicas: Vec<Replica>,
    is_away: [bool; 3],
    now: Now,
    random: Random,
    /// The sequence of each session's last transaction.
    sequences: Vec<u64>,
    /// True if operations are additions with ids, false if they are writes.
    has_ids: bool,
    /// Messages with their senders; the capacity is reused.
    messages: Vec<(Address, Envelope)>,
    outputs: Vec<Output>,
}

impl Trio {
    fn new(config: impl Fn(u8) -> Config) -> Self {
        let replicas = (0..DCS).map(|dc| Replica::new(config(dc)).expect("settings"));
        Self {
            replicas: replicas.collect(),
            is_away: [false; 3],
            now: Now { wall_us: 1_700_000_000_000_000, mono_us: 0 },
            random: Random::new(1),
            sequences: vec![0; SESSIONS],
            has_ids: false,
            messages: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn input(&mut self, dc: u8, input: Input) {
        let of = Address::Replica(DcId(dc), PartitionId(0));
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.replicas[usize::from(dc)].handle(self.now, input, &mut self.outputs);
            for output in self.outputs.drain(..) {
                match output {
                    Output::Send(envelope) => self.messages.push((of, envelope)),
                    Output::Persist(persist) => {
                        inputs.push(Input::Persisted { index: persist.index });
                        self.messages.extend(persist.then.into_iter().map(|sent| (of, sent)));
                    }
                    Output::Alarm(_) => {}
                }
            }
        }
        while let Some((from, envelope)) = self.messages.pop() {
            let Address::Replica(to, _) = envelope.to else { continue };
            let Address::Replica(sender, _) = from else { continue };
            if !self.is_away[usize::from(to.0)] && !self.is_away[usize::from(sender.0)] {
                self.input(to.0, Input::Message { from, message: envelope.message });
            }
        }
    }

    fn commit(&mut self, dc: u8) {
        let session = self.random.below(SESSIONS / 3) * 3 + usize::from(dc);
        self.sequences[session] += 1;
        let origin = Origin(session as u128);
        let id = TransactionId { origin, sequence: self.sequences[session] };
        let name = format!("{NAME}{}", self.random.below(ITEMS));
        let update = if self.has_ids {
            let id = Some(OpId { transaction: id, phase: 1, position: 0 });
            Update { key: Key::new(Kind::Counter, name), op: Op::Add(1), id }
        } else {
            let op = Op::Write(Value::Bytes(vec![7; VALUE_BYTES].into()));
            Update { key: Key::new(Kind::Register, name), op, id: None }
        };
        let message = Message::CommitOne(CommitOne {
            incarnation: 0,
            id,
            begun_us: self.now.wall_us,
            answered: id.sequence,
            snapshot: Snapshot::AtLeast(Vector::ZERO),
            updates: vec![update],
        });
        self.input(dc, Input::Message { from: Address::Client(session as u64), message });
    }

    /// Raises the floors of operation ids at all data centers to shortly before the last transactions.
    fn raise_floors(&mut self, lag: u64) {
        for session in 0..SESSIONS {
            let sequence = self.sequences[session].saturating_sub(lag);
            let raise = RaiseFloor { origin: Origin(session as u128), sequence };
            for dc in (0..DCS).filter(|_| sequence > 0) {
                let (from, message) =
                    (Address::Client(session as u64), Message::RaiseFloor(raise.clone()));
                self.input(dc, Input::Message { from, message });
            }
        }
    }

    /// Returns the number of operation ids that a replica remembers.
    fn ids(&self) -> usize {
        let replica = &self.replicas[0];
        let state = |key| replica.inspect(key, &replica.known_vec()).expect("a state");
        replica.keys().map(|key| state(key).remembered_ids()).sum()
    }

    /// Runs ticks without commits.
    fn rest_ms(&mut self, ms: u64) {
        for _ in 0..ms / 5 {
            self.now.wall_us += 5_000;
            self.now.mono_us += 5_000;
            for dc in 0..DCS {
                self.input(dc, Input::Tick);
            }
        }
    }

    /// Runs for `ms` milliseconds; returns the maximum allocation at the end of a tick.
    fn run_ms(&mut self, ms: u64) -> usize {
        let mut most = 0;
        for _ in 0..ms / 5 {
            self.now.wall_us += 5_000;
            self.now.mono_us += 5_000;
            for dc in (0..DCS).filter(|dc| !self.is_away[usize::from(*dc)]).collect::<Vec<_>>() {
                for _ in 0..COMMITS {
                    self.commit(dc);
                }
                self.input(dc, Input::Tick);
            }
            if self.has_ids && self.random.one_in(20) {
                self.raise_floors(LAG);
            }
            most = most.max(HEAP.current_usage());
        }
        most
    }
}

fn config(dc: u8) -> Config {
    Config {
        transaction_ms_max: 500,
        outcome_ms_max: 2_000,
        forward_bytes_max: 200_000,
        ..Config::new(DcId(dc), DCS, PartitionId(0), 1)
    }
}

fn load() -> Load {
    Load {
        items: ITEMS,
        values: ITEMS,
        ids: 0,
        name_bytes: NAME.len() + 4,
        value_bytes: VALUE_BYTES,
        operations_per_second: COMMITS * 200 * usize::from(DCS),
        lag_ms: 10,
        sessions: SESSIONS,
        dcs_away: 0,
    }
}

/// There is only one test, since there is one allocator.
#[test]
fn what_is_allocated_is_bounded_by_the_formula() {
    let before = HEAP.current_usage();
    let mut trio = Trio::new(config);
    trio.run_ms(3_000);
    let settled = trio.run_ms(3_000) - before;
    let bound = heap_bytes_max(&config(0), &load()) * usize::from(DCS);
    assert!(settled <= bound, "{settled} bytes are allocated, {bound} at most");
    assert!(bound <= 3 * settled, "{bound} bytes say little of {settled}");
    // It does not grow with the number of operations.
    let later = trio.run_ms(12_000) - before;
    assert!(later <= settled + settled / 10, "{later} bytes after {settled}");

    // One data center is away; the data kept for it is bounded too.
    trio.is_away[2] = true;
    let kept = trio.run_ms(12_000) - before;
    let away = heap_bytes_max(&config(0), &Load { dcs_away: 1, ..load() }) * usize::from(DCS);
    assert!(kept > settled && kept <= away, "{kept} bytes are allocated, {away} at most");
    assert!(trio.replicas[0].kept_bytes(DcId(0)) <= config(0).forward_bytes_max);
    drop(trio);
    ids_are_bounded_too();
}

/// Checks additions with ids whose floors are raised ten times a second, more often than anything
/// is folded.
fn ids_are_bounded_too() {
    let before = HEAP.current_usage();
    let mut trio = Trio::new(config);
    trio.has_ids = true;
    trio.run_ms(6_000);
    let settled = trio.run_ms(3_000) - before;
    let folded_after_s = 0.6;
    let ids = SESSIONS * LAG as usize
        + (2.0 * folded_after_s * load().operations_per_second as f64) as usize;
    assert!(trio.ids() <= ids, "{} ids are remembered, {ids} at most", trio.ids());
    let load = Load { values: 0, ids, ..load() };
    let bound = heap_bytes_max(&config(0), &load) * usize::from(DCS);
    assert!(settled <= bound, "{settled} bytes are allocated, {bound} at most");
    assert!(bound <= 4 * settled, "{bound} bytes say little of {settled}");
    let later = trio.run_ms(12_000) - before;
    assert!(later <= settled + settled / 10, "{later} bytes after {settled}");
    // Items that no longer change forget their ids too.
    trio.raise_floors(0);
    trio.rest_ms(3_000);
    assert_eq!(trio.ids(), 0);
}
