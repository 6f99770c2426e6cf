//! The heap that replicas take, as the allocator counts it, is below the formula of
//! `mingle_geo::memory`, and not far below.

use mingle_geo::memory::{Load, heap_bytes_max};
use mingle_geo::message::{CommitOne, Snapshot};
use mingle_geo::{
    Address, Config, DcId, Envelope, Input, Key, Kind, Message, Now, Op, Output, PartitionId,
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

/// Commits at each data center in a tick.
const COMMITS: usize = 4;

/// The replicas of one partition; messages arrive at once, and disks are as fast.
struct Trio {
    replicas: Vec<Replica>,
    is_away: [bool; 3],
    now: Now,
    random: Random,
    /// Of the last transaction of each session.
    sequences: Vec<u64>,
    /// Messages with where they come from, with their capacity used again.
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
        let key = Key::new(Kind::Register, format!("{NAME}{}", self.random.below(ITEMS)));
        let op = Op::Write(Value::Bytes(vec![7; VALUE_BYTES].into()));
        let message = Message::CommitOne(CommitOne {
            incarnation: 0,
            id,
            begun_us: self.now.wall_us,
            answered: id.sequence,
            snapshot: Snapshot::AtLeast(Vector::ZERO),
            updates: vec![Update { key, op, id: None }],
        });
        self.input(dc, Input::Message { from: Address::Client(session as u64), message });
    }

    /// Goes on for so many milliseconds; gives the most that was allocated at the end of a tick.
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
        name_bytes: NAME.len() + 4,
        value_bytes: VALUE_BYTES,
        operations_per_second: COMMITS * 200 * usize::from(DCS),
        lag_ms: 10,
        sessions: SESSIONS,
        dcs_away: 0,
    }
}

/// One test, since there is one allocator.
#[test]
fn what_is_allocated_is_bounded_by_the_formula() {
    let before = HEAP.current_usage();
    let mut trio = Trio::new(config);
    trio.run_ms(3_000);
    let settled = trio.run_ms(3_000) - before;
    let bound = heap_bytes_max(&config(0), &load()) * usize::from(DCS);
    assert!(settled <= bound, "{settled} bytes are allocated, {bound} at most");
    assert!(bound <= 3 * settled, "{bound} bytes say little of {settled}");
    // It does not grow with what was done.
    let later = trio.run_ms(12_000) - before;
    assert!(later <= settled + settled / 10, "{later} bytes after {settled}");

    // One is away: what is kept for it is bounded too.
    trio.is_away[2] = true;
    let kept = trio.run_ms(12_000) - before;
    let away = heap_bytes_max(&config(0), &Load { dcs_away: 1, ..load() }) * usize::from(DCS);
    assert!(kept > settled && kept <= away, "{kept} bytes are allocated, {away} at most");
    assert!(trio.replicas[0].kept_bytes(DcId(0)) <= config(0).forward_bytes_max);
}
