//! A commit request whose answer was lost is repeated, and has no second effect.

use mingle_geo::message::{CommitOne, Snapshot};
use mingle_geo::{Event, Key, Kind, Message, Op, Outcome, Refusal, Update, Vector};
use mingle_model::{Origin, TransactionId};

use crate::support::{EPOCH_US, Verdict, World, key_of};

fn counter_value(world: &mut World, client: u64, key: &Key) -> i128 {
    let states = world.read(client, &[key]).expect("a read");
    world.call(client, |session, _, _| session.rollback());
    states[0].as_counter().expect("a counter").value()
}

#[test]
fn what_is_sent_again_counts_once() {
    for partitions in [1, 2] {
        let mut world = World::new(1, partitions, 1);
        let keys: Vec<Key> = (0..partitions)
            .map(|partition| key_of(Kind::Counter, partition, partitions, "c"))
            .collect();
        world.run_ms(100);
        world.open(1, 0);
        // The first two answers of each kind are lost.
        let mut lost = 0;
        world.filter(move |_, envelope| match &envelope.message {
            Message::OutcomeReply(_) | Message::PrepareAck(_) if lost < 3 => {
                lost += 1;
                Verdict::Drop
            }
            _ => Verdict::Pass,
        });
        for key in &keys {
            world.write(1, key, Op::Add(1));
        }
        world.committed(1);
        for key in &keys {
            assert_eq!(counter_value(&mut world, 1, key), 1);
        }
    }
}

#[test]
fn the_outcome_survives_a_restart() {
    let mut world = World::new(1, 1, 1);
    world.run_ms(100);
    let key = Key::new(Kind::Counter, "c");
    let commit = Message::CommitOne(CommitOne {
        incarnation: 0,
        id: TransactionId { origin: Origin(7), sequence: 1 },
        begun_us: EPOCH_US + world.now_us,
        answered: 1,
        snapshot: Snapshot::At(Vector::ZERO),
        updates: vec![Update { key: key.clone(), op: Op::Add(1), id: None }],
    });
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        world.inject(7, 0, 0, commit.clone());
        world.run_ms(10);
        let answers = world.answers(7);
        let [Message::OutcomeReply(reply)] = &answers[..] else { panic!("{answers:?}") };
        outcomes.push(reply.result.clone());
        world.crash(0, 0, false);
        world.restart(0, 0);
        world.run_ms(10);
    }
    assert_eq!(outcomes[0], outcomes[1]);
    assert!(matches!(outcomes[0], Ok(Some(Outcome::Committed(_)))));
    world.open(1, 0);
    assert_eq!(counter_value(&mut world, 1, &key), 1);
}

#[test]
fn what_was_refused_stays_refused() {
    let mut world = World::with(1, 1, 1, |config| config.log_bytes_max = 0);
    world.run_ms(100);
    let key = Key::new(Kind::Counter, "c");
    world.open(1, 0);
    // One operation makes the log full.
    world.write(1, &key, Op::Add(1));
    world.committed(1);
    let commit = Message::CommitOne(CommitOne {
        incarnation: 0,
        id: TransactionId { origin: Origin(7), sequence: 1 },
        begun_us: EPOCH_US + world.now_us,
        answered: 1,
        snapshot: Snapshot::At(Vector::ZERO),
        updates: vec![Update { key: key.clone(), op: Op::Add(1), id: None }],
    });
    world.inject(7, 0, 0, commit.clone());
    world.run_ms(10);
    let answers = world.answers(7);
    let [Message::OutcomeReply(reply)] = &answers[..] else { panic!("{answers:?}") };
    assert!(matches!(reply.result, Err(Refusal::Full { .. })));
    // Its session was told that it is aborted. The network delivers the message again when there
    // would be space.
    world.run_ms(20_000);
    assert_eq!(world.replica(0, 0).log_size().0, 0);
    world.inject(7, 0, 0, commit);
    world.run_ms(10);
    let answers = world.answers(7);
    let [Message::OutcomeReply(reply)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(reply.result, Ok(Some(Outcome::Aborted)));
    assert_eq!(counter_value(&mut world, 1, &key), 1);
}

#[test]
fn what_comes_after_its_session_went_on_is_not_accepted() {
    let mut world = World::new(1, 2, 1);
    let keys: Vec<Key> = (0..2).map(|at| key_of(Kind::Counter, at, 2, "c")).collect();
    world.run_ms(100);
    world.open(1, 0);
    // The prepare is late at partition 1. Partition 0 asks first, and the transaction is aborted.
    world.filter(|_, envelope| match &envelope.message {
        Message::Prepare(_)
            if envelope.to
                == mingle_geo::Address::Replica(
                    mingle_geo::DcId(0),
                    mingle_geo::PartitionId(1),
                ) =>
        {
            Verdict::Hold
        }
        _ => Verdict::Pass,
    });
    for key in &keys {
        world.write(1, key, Op::Add(1));
    }
    let event = world.commit(1);
    assert!(matches!(event, Event::Aborted { refusal: Refusal::Aborted, .. }), "{event:?}");
    world.no_filter();
    // The session continues and reports that it has the answer. Then the held messages arrive,
    // several times.
    for key in &keys {
        world.write(1, key, Op::Add(10));
    }
    world.committed(1);
    world.release();
    world.run_ms(3_000);
    for key in &keys {
        assert_eq!(counter_value(&mut world, 1, key), 10);
    }
}

#[test]
fn outcomes_do_not_pile_up() {
    let mut world = World::with(1, 1, 1, |config| {
        config.transaction_ms_max = 1_000;
        config.outcome_ms_max = 2_000;
    });
    world.run_ms(100);
    let key = Key::new(Kind::Counter, "c");
    world.open(1, 0);
    for _ in 0..100 {
        world.write(1, &key, Op::Add(1));
        world.committed(1);
    }
    assert!(world.replica(0, 0).outcome_count() <= 2, "its session has the answers");
    for client in 2..100 {
        world.open(client, 0);
        world.write(client, &key, Op::Add(1));
        world.committed(client);
    }
    world.run_ms(10_000);
    assert_eq!(world.replica(0, 0).outcome_count(), 0);
}
