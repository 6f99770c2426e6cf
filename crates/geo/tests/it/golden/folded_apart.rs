//! Two sides were separated for longer than logs are kept. Each has folded operations that the
//! other lacks, and no longer keeps them. After the reunion every data center has all operations,
//! once.

use mingle_geo::limits::TRANSFER_ITEMS_MAX;
use mingle_geo::{Address, DcId, Envelope, Key, Kind, Op, OpId, State, Update};
use mingle_model::{Origin, TransactionId, Value};

use crate::support::{Verdict, World};

const DCS: u8 = 5;

/// The data centers of each side that have a client.
const SIDES: [[u8; 2]; 2] = [[0, 1], [3, 4]];

fn is_far(from: Address, to: Address) -> bool {
    let side = |address| match address {
        Address::Replica(DcId(dc), _) => Some(dc >= 3),
        Address::Client(_) => None,
    };
    side(from).zip(side(to)).is_some_and(|(from, to)| from != to)
}

fn apart(from: Address, envelope: &Envelope) -> Verdict {
    if is_far(from, envelope.to) { Verdict::Drop } else { Verdict::Pass }
}

fn world() -> World {
    let mut world = World::with(DCS, 1, 1, |config| {
        config.f = 1;
        config.forward_bytes_max = 0;
        config.transaction_ms_max = 200;
    });
    for dc in 0..DCS {
        world.open(dc.into(), dc);
    }
    world
}

fn write(world: &mut World, client: u64, key: &Key, op: Op) {
    world.write(client, key, op);
    world.committed(client);
}

fn read(world: &mut World, client: u64, key: &Key) -> State {
    let states = world.read(client, &[key]).expect("a read");
    world.call(client, |session, _, _| session.rollback());
    (*states[0]).clone()
}

/// Runs until both sides have folded everything and keep no transactions.
fn fold(world: &mut World) {
    world.run_ms(2_000);
    for dc in 0..DCS {
        for origin in SIDES[usize::from(dc >= 3)] {
            let kept = world.replica(dc, 0).kept_bytes(DcId(origin));
            assert_eq!(kept, 0, "d{dc} keeps what d{origin} committed");
        }
    }
}

fn key(kind: Kind) -> Key {
    Key::new(kind, "both")
}

fn strings(values: &[&str]) -> Vec<Value> {
    values.iter().map(|text| Value::from(*text)).collect()
}

#[test]
fn each_has_all_of_both_sides_once() {
    let mut world = world();
    for (op, kind) in [
        (Op::Add(1), Kind::Counter),
        (Op::Insert("old".into()), Kind::Set),
        (Op::Insert("kept".into()), Kind::Set),
        (Op::Put("old".into(), Value::Int(1)), Kind::Map),
        (Op::Append("first".into()), Kind::Log),
        (Op::Write("before".into()), Kind::Register),
    ] {
        write(&mut world, 2, &key(kind), op);
    }
    world.run_ms(2_000);
    world.filter(apart);
    for round in 0..30 {
        for (side, clients) in SIDES.iter().enumerate() {
            for client in clients.map(u64::from) {
                let amount = [10, 1_000][side];
                write(&mut world, client, &key(Kind::Counter), Op::Add(amount));
                let of_side = Key::new(Kind::Counter, format!("side {side}"));
                write(&mut world, client, &of_side, Op::Add(1));
                if round == 0 {
                    let name = format!("d{client}");
                    let (text, count) = (Value::from(name.as_str()), Value::from("count"));
                    write(&mut world, client, &key(Kind::Set), Op::Insert(text.clone()));
                    write(&mut world, client, &key(Kind::Log), Op::Append(text.clone()));
                    write(
                        &mut world,
                        client,
                        &key(Kind::Map),
                        Op::Put(text.clone(), Value::Int(2)),
                    );
                    write(&mut world, client, &key(Kind::Map), Op::Increment(count, 1));
                    write(&mut world, client, &key(Kind::Register), Op::Write(text));
                }
            }
        }
    }
    // One side removes values that the other side has folded too.
    write(&mut world, 0, &key(Kind::Set), Op::Remove("old".into()));
    write(&mut world, 3, &key(Kind::Map), Op::Delete("old".into()));
    fold(&mut world);
    world.no_filter();
    for client in 0..DCS {
        world.run_until("all is there", |world| {
            let state = read(world, client.into(), &key(Kind::Counter));
            state.as_counter().expect("a counter").value() == 1 + 60 * 1_010
        });
    }
    world.run_ms(2_000);
    for client in (0..DCS).map(u64::from) {
        let mut of = |kind| read(&mut world, client, &key(kind));
        let set = of(Kind::Set);
        let found: Vec<Value> = set.as_set().expect("a set").iter().cloned().collect();
        assert_eq!(found, strings(&["d0", "d1", "d3", "d4", "kept"]), "client {client}");
        let log = of(Kind::Log);
        let mut lines: Vec<Value> = log.as_log().expect("a log").iter().cloned().collect();
        assert_eq!(lines.remove(0), Value::from("first"));
        lines.sort();
        assert_eq!(lines, strings(&["d0", "d1", "d3", "d4"]), "client {client}");
        let map = of(Kind::Map);
        let map = map.as_map().expect("a map");
        let found: Vec<Value> = map.entries().map(|(key, _)| key.clone()).collect();
        assert_eq!(found, strings(&["d0", "d1", "d3", "d4"]), "client {client}");
        assert_eq!(map.count(&"count".into()).expect("a count").value(), 4);
        let register = of(Kind::Register);
        let register = register.as_register().expect("a register");
        // No write had seen another one.
        let found: Vec<Value> = register.siblings().map(|(_, value)| value.clone()).collect();
        assert_eq!(found, strings(&["d0", "d1", "d3", "d4"]), "client {client}");
    }
}

/// Helpers on both sides have run the same operation, and one side resets its known part of the
/// sum.
#[test]
fn an_operation_that_both_sides_ran_counts_once() {
    let mut world = world();
    let id = |sequence| {
        let transaction = TransactionId { origin: Origin(99), sequence };
        OpId { transaction, phase: 1, position: 0 }
    };
    let (sum, reset) = (Key::new(Kind::Counter, "sum"), Key::new(Kind::Counter, "reset"));
    world.filter(apart);
    for client in [0, 3] {
        for (sequence, key) in [(1, &sum), (2, &reset)] {
            let update = Update { key: key.clone(), op: Op::Add(100), id: Some(id(sequence)) };
            world.call(client, |session, now, _| session.write(now, update).expect("idle"));
            world.committed(client);
        }
    }
    write(&mut world, 3, &reset, Op::Reset);
    write(&mut world, 4, &reset, Op::Add(7));
    fold(&mut world);
    world.no_filter();
    let value = |world: &mut World, client, key: &Key| {
        read(world, client, key).as_counter().expect("a counter").value()
    };
    for client in (0..DCS).map(u64::from) {
        world.run_until("both sides meet", |world| {
            (value(world, client, &sum), value(world, client, &reset)) == (100, 7)
        });
    }
    // A later reset, which knows both runs, takes both away.
    write(&mut world, 1, &sum, Op::Reset);
    for client in (0..DCS).map(u64::from) {
        world.run_until("the reset is there", |world| value(world, client, &sum) == 0);
    }
}

#[test]
fn restarts_in_its_midst_and_after_it_find_the_same() {
    let mut world = world();
    world.filter(apart);
    let item = |side: usize, index: usize| Key::new(Kind::Counter, format!("{side} {index}"));
    let count = TRANSFER_ITEMS_MAX / 2 + 10;
    for (side, clients) in SIDES.iter().enumerate() {
        let client = u64::from(clients[0]);
        for index in 0..count {
            world.write(client, &item(side, index), Op::Add(1));
        }
        world.committed(client);
    }
    fold(&mut world);
    world.no_filter();
    world.run_ms(60);
    for dc in [1, 3] {
        world.crash(dc, 0, false);
        world.restart(dc, 0);
    }
    let last = [0, 1].map(|side| item(side, count - 1));
    let has_all = |world: &mut World, client: u64| {
        let mut values = last.iter().map(|key| read(world, client, key));
        values.all(|state| state.as_counter().expect("a counter").value() == 1)
    };
    for client in (0..DCS).map(u64::from) {
        world.run_until("all is there", |world| has_all(world, client));
    }
    for dc in 0..DCS {
        world.compact(dc, 0);
        world.crash(dc, 0, true);
        world.restart(dc, 0);
    }
    world.run_ms(2_000);
    for client in (0..DCS).map(u64::from) {
        assert!(has_all(&mut world, client), "client {client}");
    }
}
