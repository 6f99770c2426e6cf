//! One process with the two partitions of a single data center, and a client.

use mingle_geo::certify::{CertifierConfig, Conflicts};
use mingle_geo::message::SiblingVecs;
use mingle_geo::session::SessionOutput;
use mingle_geo::wire::{VERSION, take_parcels};
use mingle_geo::{Event, Key, Kind, Now, Op, Session, SessionConfig, Update, Vector};
use mingle_model::Origin;

use super::*;
use crate::memory::{Kept, MemoryJournal};
use crate::outside::{Journal, Time, Transport};

const DC: DcId = DcId(0);
const CLIENT: u64 = 9;

/// A machine whose clock and disk the test moves.
#[derive(Default)]
struct Machine {
    now_us: u64,
    disk: MemoryJournal,
    is_syncing: bool,
    sent: Vec<Outgoing>,
}

impl Time for Machine {
    fn now(&self) -> Now {
        Now { wall_us: 1_700_000_000_000_000 + self.now_us, mono_us: self.now_us }
    }
}

impl Transport for Machine {
    fn send(&mut self, outgoing: Outgoing) {
        self.sent.push(outgoing);
    }
}

impl Journal for Machine {
    fn append(&mut self, entry: &[u8]) {
        self.disk.append(entry);
    }

    fn sync(&mut self) {
        assert!(!self.is_syncing, "one sync at a time");
        self.is_syncing = true;
        self.disk.begin();
    }

    fn length(&self) -> usize {
        self.disk.length()
    }

    fn replace(&mut self, entries: Vec<Vec<u8>>) {
        self.disk.replace(&entries);
    }
}

fn setups() -> [Setup; 2] {
    [0, 1].map(|number| {
        let partition = PartitionId(number);
        let certifier = CertifierConfig::new(partition, Conflicts::default());
        let config = Config::new(DC, 1, partition, 2);
        Setup { config, group: GroupConfig::new(DC, 1, certifier) }
    })
}

fn open(limits: Limits, entries: &[Vec<u8>]) -> Result<Node, OpenError> {
    Node::restore(DC, limits, setups(), entries.iter().map(Vec::as_slice))
}

struct World {
    node: Node,
    machine: Machine,
    session: Session,
    events: Vec<Event>,
    /// The number of messages that reached the client.
    answers: usize,
}

impl World {
    fn new(limits: Limits) -> Self {
        let node = open(limits, &[]).expect("the settings are sound");
        let session = Session::new(SessionConfig::new(Origin(1), DC, 2));
        let machine = Machine::default();
        Self { node, machine, session, events: Vec::new(), answers: 0 }
    }

    /// Calls the session, and carries its messages as bytes.
    fn call(&mut self, call: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>)) {
        let mut outputs = Vec::new();
        call(&mut self.session, self.machine.now(), &mut outputs);
        for output in outputs {
            match output {
                SessionOutput::Send(Envelope { to, message }) => {
                    let mut frame = Vec::new();
                    put_parcel(&mut frame, Address::Client(CLIENT), to, &message);
                    self.arrive(&frame);
                }
                SessionOutput::Event(event) => self.events.push(event),
            }
        }
    }

    fn arrive(&mut self, frame: &[u8]) {
        let mut parcels = Vec::new();
        take_parcels(VERSION, frame, |parcel| parcels.push(parcel)).expect("it was written");
        for parcel in parcels {
            self.node.receive(parcel, &mut self.machine);
        }
    }

    /// Ends the running sync.
    fn sync(&mut self) {
        assert!(std::mem::take(&mut self.machine.is_syncing), "a sync is under way");
        self.machine.disk.end();
        self.node.synced(&mut self.machine);
    }

    /// Carries the messages that the node has sent to the client.
    fn deliver(&mut self) {
        for outgoing in std::mem::take(&mut self.machine.sent) {
            assert_eq!(outgoing.to, Address::Client(CLIENT), "partitions here need no network");
            self.answers += 1;
            let mut parcels = Vec::new();
            take_parcels(VERSION, &outgoing.frame, |parcel| parcels.push(parcel)).expect("sound");
            for Parcel { from, message, .. } in parcels {
                self.call(|session, now, out| session.handle(now, from, message, out));
            }
        }
    }

    /// Lets time pass, with ticks and syncs.
    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.machine.now_us += 1_000;
            if self.node.tick_at_us().is_some_and(|at_us| at_us <= self.machine.now_us) {
                self.node.tick(&mut self.machine);
            }
            while self.machine.is_syncing {
                self.sync();
            }
            self.deliver();
        }
    }

    /// Writes both keys in one transaction; returns when all messages are sent.
    fn write(&mut self, value: i64) {
        for key in keys() {
            let update = Update { key, op: Op::Add(value), id: None };
            self.call(|session, now, _| session.write(now, update).expect("it is attached"));
        }
        self.call(|session, now, out| session.commit(now, out).expect("it can begin"));
    }

    fn read(&mut self) -> Vec<i128> {
        self.events.clear();
        let keys = keys().to_vec();
        self.call(|session, now, out| session.read(now, keys, out).expect("it can begin"));
        self.run(50);
        let Some(Event::Read(states)) = self.events.pop() else { panic!("{:?}", self.events) };
        self.call(|session, _, _| session.rollback());
        let values = states.iter().map(|state| state.as_counter().expect("a counter").value());
        values.collect()
    }
}

/// A key of each partition.
fn keys() -> [Key; 2] {
    [0, 1].map(|partition| {
        let keys = (0..).map(|number| Key::new(Kind::Counter, format!("count-{number}")));
        let mut here = keys.filter(|key| key.partition(2) == PartitionId(partition));
        here.next().expect("some name hashes to each partition")
    })
}

#[test]
fn a_transaction_of_two_partitions_commits_through_their_shell() {
    let mut world = World::new(Limits::default());
    world.run(50);
    world.write(3);
    world.run(50);
    assert!(matches!(world.events.last(), Some(Event::Committed { .. })), "{:?}", world.events);
    world.run(200);
    assert_eq!(world.read(), [3, 3]);
}

#[test]
fn no_answer_leaves_before_its_records_are_safe() {
    let mut world = World::new(Limits::default());
    world.run(50);
    let answers = world.answers;
    world.write(1);
    world.deliver();
    assert!(world.machine.is_syncing);
    assert_eq!(world.answers, answers, "nothing is safe yet");
    // The second partition's record came while the sync was under way, so it waits for the next.
    world.sync();
    world.deliver();
    assert_eq!(world.answers, answers + 1);
    assert!(world.events.is_empty(), "{:?}", world.events);
    world.sync();
    world.deliver();
    assert!(matches!(world.events.last(), Some(Event::Committed { .. })), "{:?}", world.events);
}

#[test]
fn another_node_goes_on_from_the_journal_after_a_crash() {
    for (checkpoint_after, kept) in [(5, Kept::Nothing), (100_000, Kept::Torn(0)), (20, Kept::All)]
    {
        let limits = Limits { checkpoint_after };
        let mut world = World::new(limits);
        world.run(50);
        for _ in 0..10 {
            world.write(2);
            world.run(20);
        }
        world.write(5);
        world.machine.disk.crash(kept);
        let entries = world.machine.disk.recover().expect("only a tail is lost");
        world.node = open(limits, &entries).expect("it was written");
        world.machine.is_syncing = false;
        // The transaction whose coordinator is gone ends in one way or the other.
        world.session = Session::new(SessionConfig::new(Origin(2), DC, 2));
        world.run(5_000);
        let values = world.read();
        assert_eq!(values[0], values[1], "{kept:?}");
        assert!([20, 25].contains(&values[0]), "{values:?}");
    }
}

#[test]
fn a_journal_that_is_not_of_this_process_is_refused() {
    let record = Record::AgeFloor(1);
    let mut entry = put_entry(PartitionId(1), &record);
    assert!(open(Limits::default(), &[entry.clone()]).is_ok());
    let other = put_entry(PartitionId(2), &record);
    let refused = open(Limits::default(), &[entry.clone(), other]).unwrap_err();
    let partition = PartitionId(2);
    assert_eq!(refused, OpenError::NotHere { number: 1, partition });
    entry[3] = 9;
    let refused = open(Limits::default(), &[entry]).unwrap_err().to_string();
    assert!(refused.contains("entry 0") && refused.contains("version 9"), "{refused}");
}

/// Tells a partition that another data center knows this one up to `found`.
fn told(world: &mut World, found: Timestamp) -> Option<Outdated> {
    let known_vec = Vector::ZERO.with(DC, found);
    let vecs = SiblingVecs { epoch: 0, dc: DcId(1), known_vec, stable_vec: known_vec };
    let [from, to] = [DcId(1), DC].map(|dc| Address::Replica(dc, PartitionId(0)));
    world
        .node
        .receive(Parcel { from, to, message: Message::SiblingVecs(vecs) }, &mut world.machine);
    world.node.outdated()
}

fn known(node: &Node) -> Timestamp {
    node.replica(PartitionId(0)).expect("it is here").replica().known_vec()[DC]
}

#[test]
fn a_journal_that_lacks_what_another_data_center_knows_is_noticed() {
    let mut world = World::new(Limits::default());
    let old = world.machine.disk.recover().expect("it is whole");
    for _ in 0..4 {
        world.write(1);
        world.run(2_000);
        let found = known(&world.node);
        assert_eq!(told(&mut world, found), None, "it has announced that");
    }
    let announced = known(&world.node);
    // A whole journal covers everything that was announced, before and after the first tick.
    let whole = world.machine.disk.recover().expect("it is whole");
    world.machine.is_syncing = false;
    for (entries, is_whole) in [(whole, true), (old, false)] {
        for ms in [0, 60_000] {
            world.node = open(Limits::default(), &entries).expect("it was written");
            world.machine.disk = MemoryJournal::default();
            world.machine.is_syncing = false;
            world.run(ms);
            if ms > 0 {
                let outdated = told(&mut world, announced);
                assert_eq!(outdated.is_none(), is_whole, "{ms} ms: {outdated:?}");
                continue;
            }
            let mut greeting = PartitionId(0).0.to_le_bytes().to_vec();
            greeting.extend(announced.0.to_le_bytes());
            assert!(world.node.greeted(DcId(1), &greeting[1..]).is_err());
            world.node.greeted(DcId(1), &greeting).expect("it is one");
            let outdated = world.node.outdated();
            assert_eq!(outdated.is_none(), is_whole, "{ms} ms: {outdated:?}");
        }
    }
    let expected = known(&world.node);
    let words = told(&mut world, expected).expect("it stays so").to_string();
    assert!(words.contains("d1 knows") && words.contains("admit it again"), "{words}");
}

#[test]
fn a_client_that_does_not_wait_for_the_disk_has_its_commit_before_the_sync() {
    let mut world = World::new(Limits::default());
    world.run(50);
    world.node.answer_early(CLIENT, true);
    world.write(3);
    let appended = world.node.appended();
    while world.events.is_empty() {
        assert!(!world.machine.sent.is_empty(), "the answers wait for the disk");
        world.deliver();
    }
    assert!(matches!(world.events.last(), Some(Event::Committed { .. })), "{:?}", world.events);
    assert!(world.machine.is_syncing && world.node.safe() < appended, "nothing is safe yet");
    // A read shows nothing that is not safe.
    let keys = keys().to_vec();
    world.call(|session, now, out| session.read(now, keys, out).expect("it can begin"));
    world.deliver();
    assert!(!matches!(world.events.last(), Some(Event::Read(_))), "{:?}", world.events);
    world.run(50);
    assert!(matches!(world.events.last(), Some(Event::Read(_))), "{:?}", world.events);
    assert!(world.node.safe() >= appended);
    world.call(|session, _, _| session.rollback());
    world.node.answer_early(CLIENT, false);
    world.events.clear();
    world.write(1);
    world.deliver();
    assert!(world.events.is_empty(), "{:?}", world.events);
}

#[test]
fn a_copy_has_all_partitions_at_one_vector_until_its_reader_is_too_slow() {
    let mut world = World::new(Limits::default());
    world.run(100);
    world.write(1);
    world.run(300);
    let now = world.machine.now();
    let wanted = world.node.newest();
    let above = wanted.with(DC, Timestamp(wanted[DC].0 + (1 << 40)));
    let behind = world.node.begin_copy(now, &above).expect_err("it is in the future");
    assert!(matches!(&behind, CopyError::Behind { wanted, .. } if **wanted == above), "{behind}");
    let at = world.node.copyable().expect("it serves");
    let copying = world.node.begin_copy(now, &at).expect("all partitions have it");
    world.write(2);
    let part = |world: &mut World, number| {
        let (now, of) = (world.machine.now(), (&copying.at, copying.epoch));
        world.node.copy_part(now, of, PartitionId(number), None)
    };
    for number in 0..2 {
        // It is longer than a snapshot stays without a reader.
        world.run(9_000);
        let part = part(&mut world, number).expect("it is held");
        let values = part.states.iter().map(|(_, state)| state.as_counter().expect("one").value());
        assert_eq!((values.collect::<Vec<_>>(), part.next), (vec![1], None));
    }
    world.run(HOLD_MS + 12_000);
    assert_eq!(part(&mut world, 0), Err(CopyError::Passed));
    assert_eq!(world.read(), [3, 3]);
}
