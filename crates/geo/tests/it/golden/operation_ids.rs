//! Among operations with one id, run at several data centers, only one counts. Below its origin's
//! floor none is accepted.

use mingle_geo::message::RaiseFloor;
use mingle_geo::types::item::{ItemOp, Place, Side};
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

/// The operations of a phase on items of several types, each with an id of its own.
fn item_ops() -> Vec<(Key, Op, OpId)> {
    let ops = [
        ("sum", ItemOp::Add(Place::Value, 5)),
        ("list", ItemOp::Push(Side::Right, Value::Int(1))),
        ("hash", ItemOp::Add(Place::Field(Value::Int(1)), 7)),
        ("value", ItemOp::Set(Value::Int(3))),
        ("set", ItemOp::Insert(Value::Int(4))),
    ];
    let of = |(index, (name, op))| {
        let mut id = id(1);
        id.position = index as u32;
        (Key::new(Kind::Item, name), Op::Item(op), id)
    };
    ops.into_iter().enumerate().map(of).collect()
}

/// Runs the phase in one transaction.
fn run_phase(world: &mut World, client: u64) {
    // A transaction that only writes takes the last snapshot that the client knows, which may be too old.
    let keys: Vec<Key> = item_ops().into_iter().map(|(key, ..)| key).collect();
    world.read(client, &keys.iter().collect::<Vec<_>>()).expect("a read");
    for (key, op, id) in item_ops() {
        let update = Update { key, op, id: Some(id) };
        world.call(client, |session, now, _| session.write(now, update).expect("idle"));
    }
    let event = world.commit(client);
    assert!(matches!(event, Event::Committed { .. }), "{event:?}");
}

/// Checks that a client at each data center finds each operation once.
fn check_phase(world: &mut World, first: u64) {
    let keys: Vec<Key> = item_ops().into_iter().map(|(key, ..)| key).collect();
    let keys: Vec<&Key> = keys.iter().collect();
    for dc in 0..3 {
        world.open(first + u64::from(dc), dc);
        let states = world.read(first + u64::from(dc), &keys).expect("a read");
        let views: Vec<_> =
            states.iter().map(|state| state.as_item().expect("an item").at(u64::MAX)).collect();
        assert_eq!(views[0].value(), Some(Value::Int(5)), "d{dc}");
        assert_eq!(views[1].elements().count(), 1, "d{dc}");
        assert_eq!(views[2].field(&Value::Int(1)), Some(Value::Int(7)), "d{dc}");
        assert_eq!(views[3].value(), Some(Value::Int(3)), "d{dc}");
        assert_eq!(views[4].members().count(), 1, "d{dc}");
    }
}

#[test]
fn operations_on_items_count_once_across_data_centers_and_folds() {
    for kept_ms in [100, 10_000] {
        let mut world = World::with(3, 2, 1, |config| config.transaction_ms_max = kept_ms);
        world.run_ms(200);
        world.isolate(2);
        for client in [0, 2] {
            world.open(client, client as u8);
            run_phase(&mut world, client);
            world.run_ms(2_000);
        }
        world.heal();
        world.run_ms(3_000);
        check_phase(&mut world, 10);
        // A third helper comes late, at a data center that has both runs.
        world.open(1, 1);
        run_phase(&mut world, 1);
        world.run_ms(3_000);
        check_phase(&mut world, 20);
    }
}

#[test]
fn a_client_that_does_not_know_the_outcome_runs_its_operations_again_over_a_crash() {
    for kept_ms in [100, 10_000] {
        let mut world = World::with(3, 1, 1, |config| config.transaction_ms_max = kept_ms);
        world.run_ms(200);
        world.open(0, 0);
        run_phase(&mut world, 0);
        world.run_ms(2_000);
        // Its answer was lost with the process; the client begins anew.
        world.crash(0, 0, false);
        world.restart(0, 0);
        world.run_ms(100);
        world.open(5, 0);
        run_phase(&mut world, 5);
        world.run_ms(2_000);
        check_phase(&mut world, 10);
        world.crash(0, 0, false);
        world.restart(0, 0);
        world.run_ms(2_000);
        check_phase(&mut world, 20);
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
