//! Among operations with one id, run at several data centers, only one counts. Below its origin's
//! floor none is accepted.

use mingle_geo::message::RaiseFloor;
use mingle_geo::{Event, Key, Kind, Message, Op, OpId, Refusal, Update};
use mingle_model::{Origin, TransactionId, Value};

use crate::support::World;

fn id(sequence: u64) -> OpId {
    let transaction = TransactionId { origin: Origin(500), sequence };
    OpId { transaction, phase: 2, position: 0 }
}

fn run(world: &mut World, client: u64, key: &Key, op: Op, id: OpId) -> Event {
    let update = Update { key: key.clone(), op, id: Some(id) };
    world.call(client, |session, now, _| session.write(now, update).expect("idle"));
    world.commit(client)
}

#[test]
fn helpers_at_several_data_centers_count_once() {
    for kept_ms in [100, 10_000] {
        // Once everything is folded in between, once nothing is.
        let mut world = World::with(3, 1, 1, |config| config.transaction_ms_max = kept_ms);
        let (sum, lines) = (Key::new(Kind::Counter, "sum"), Key::new(Kind::Log, "lines"));
        world.run_ms(200);
        world.isolate(2);
        for client in [0, 2] {
            world.open(client, client as u8);
            for (key, op) in [(&sum, Op::Add(5)), (&lines, Op::Append(Value::Int(1)))] {
                let event = run(&mut world, client, key, op, id(1));
                assert!(matches!(event, Event::Committed { .. }), "{event:?}");
            }
            world.run_ms(2_000);
        }
        world.heal();
        world.run_ms(3_000);
        for dc in 0..3 {
            world.open(10 + u64::from(dc), dc);
            let states = world.read(10 + u64::from(dc), &[&sum, &lines]).expect("a read");
            assert_eq!(states[0].as_counter().expect("a counter").value(), 5, "d{dc}");
            assert_eq!(states[1].as_log().expect("a log").count(), 1, "d{dc}");
        }
    }
}

#[test]
fn below_the_floor_nothing_is_accepted_and_nothing_is_remembered() {
    let mut world = World::with(1, 1, 1, |config| config.transaction_ms_max = 100);
    let sum = Key::new(Kind::Counter, "sum");
    world.open(1, 0);
    run(&mut world, 1, &sum, Op::Add(5), id(1));
    let raise = RaiseFloor { origin: Origin(500), sequence: 1 };
    world.inject(7, 0, 0, Message::RaiseFloor(raise));
    world.run_ms(10);
    let [Message::FloorRaised(raised)] = &world.answers(7)[..] else { panic!("no answer") };
    assert_eq!(raised.sequence, 1);
    world.crash(0, 0, false);
    world.restart(0, 0);
    world.run_ms(10);
    let event = run(&mut world, 1, &sum, Op::Add(5), id(1));
    let is_refused = matches!(event, Event::Aborted { refusal: Refusal::BelowFloor { id: refused }, .. } if refused == id(1));
    assert!(is_refused, "{event:?}");
    let event = run(&mut world, 1, &sum, Op::Add(5), id(2));
    assert!(matches!(event, Event::Committed { .. }), "{event:?}");
}

fn raise_floor(world: &mut World, dc: u8) {
    let raise = RaiseFloor { origin: Origin(500), sequence: 1 };
    world.inject(7, dc, 0, Message::RaiseFloor(raise));
    world.run_ms(10);
}

fn remembers(world: &World, dc: u8, key: &Key) -> bool {
    let replica = world.replica(dc, 0);
    let state = replica.inspect(key, &replica.known_vec()).expect("the newest");
    !format!("{state:?}").contains("Ids({})")
}

#[test]
fn an_id_is_forgotten_only_once_it_can_come_from_nowhere() {
    let mut world = World::with(2, 1, 1, |config| config.transaction_ms_max = 100);
    let sum = Key::new(Kind::Counter, "sum");
    for client in 0..2 {
        world.open(client, client as u8);
    }
    world.run_ms(200);
    run(&mut world, 0, &sum, Op::Add(5), id(1));
    // d1 runs it too, before it receives the first run; its floor is not raised yet.
    world.down.insert((0, 1));
    run(&mut world, 1, &sum, Op::Add(5), id(1));
    world.down.insert((1, 0));
    raise_floor(&mut world, 0);
    run(&mut world, 0, &sum, Op::Add(100), id(7));
    world.run_ms(1_000);
    assert!(remembers(&world, 0, &sum), "d1 may still have run it");
    world.heal();
    world.run_ms(1_000);
    raise_floor(&mut world, 1);
    world.run_ms(1_000);
    for client in 0..2 {
        let states = world.read(client, &[&sum]).expect("a read");
        world.call(client, |session, _, _| session.rollback());
        assert_eq!(states[0].as_counter().expect("a counter").value(), 105);
        // The id is forgotten when the item is next changed and folded.
        let mut other = id(9);
        other.transaction.origin = Origin(501);
        run(&mut world, client, &sum, Op::Add(0), other);
    }
    world.run_ms(1_000);
    for dc in 0..2 {
        let replica = world.replica(dc, 0);
        let state = replica.inspect(&sum, &replica.known_vec()).expect("the newest");
        let text = format!("{state:?}");
        assert!(!text.contains("sequence: 1 }"), "d{dc}: {text}");
    }
}
