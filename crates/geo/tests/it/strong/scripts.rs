//! The paper's examples of strong transactions, step by step.

use mingle_geo::flaw::Planted;
use mingle_geo::types::Counter;
use mingle_geo::{Address, DcId, Envelope, Event, Key, Kind, Op, Refusal, State};
use mingle_model::Value;

use crate::strong::map::{Map, is_committed, is_replication};

const FAR: u64 = 40_000;

/// Three data centers, all equally far from each other.
const THREE: &[&[u64]] = &[&[0, FAR, FAR], &[FAR, 0, FAR], &[FAR, FAR, 0]];

fn sound() -> Planted {
    Planted::default()
}

fn balance(state: &State) -> i128 {
    state.as_counter().map_or(0, Counter::value)
}

/// True for replication from the first data center.
fn replication_of_the_first(from: Address, envelope: &Envelope) -> bool {
    matches!(from, Address::Replica(DcId(0), _)) && is_replication(envelope)
}

/// Plays Figure 2 up to the loss: one client at d0 runs a causal t1 and then a strong t2, and t1
/// has not left d0 when d0 is lost. Returns t2's outcome, and the number of failed attempts of a
/// conflicting t3 at d2 before it committed, if it did.
fn figure_2(planted: Planted) -> (Event, Option<u32>) {
    let mut map = Map::new(THREE, 1, planted);
    let (author, other) = (map.session(0, planted), map.session(2, planted));
    let (note, seat) = (Key::new(Kind::Register, "note"), Key::new(Kind::Register, "seat"));
    map.hold(replication_of_the_first);
    let (t1, _) = map.write(author, (&note, Op::Write(Value::Int(1))), None);
    assert!(is_committed(&t1), "{t1:?}");
    map.begin_strong(author);
    let (t2, _) = map.write(author, (&seat, Op::Write(Value::Int(2))), None);
    map.run_for(2_000_000);
    map.lose(0);
    for tries in 0..20 {
        // Once it has met t2, it asks for a snapshot that no data center has.
        if map.try_read(other, true, &seat).is_some() {
            let (t3, _) = map.write(other, (&seat, Op::Write(Value::Int(3))), None);
            if is_committed(&t3) {
                return (t2, Some(tries));
            }
        }
        map.run_for(500_000);
    }
    (t2, None)
}

/// §4, Figure 2: a strong transaction whose past is lost with its data center must not block
/// transactions that conflict with it.
#[test]
fn a_strong_transaction_waits_until_its_past_survives() {
    let (t2, tries) = figure_2(sound());
    assert!(!is_committed(&t2), "t1 is nowhere else: {t2:?}");
    assert!(tries.is_some(), "t3 is in nobody's way");
}

/// Without the barrier, the same script shows the figure's anomaly.
#[cfg(feature = "planted")]
#[test]
fn without_the_barrier_conflicting_transactions_are_blocked_for_ever() {
    let (t2, tries) = figure_2(mingle_geo::flaw::Flaw::BarrierSkipped.into());
    assert!(is_committed(&t2), "{t2:?}");
    assert_eq!(tries, None);
}

/// §1: two withdrawals at two data centers, each of the whole balance.
#[test]
fn an_account_is_not_overdrawn() {
    for is_strong in [true, false] {
        let mut map = Map::new(THREE, 2, sound());
        let clients = [map.session(1, sound()), map.session(2, sound())];
        let account = Key::new(Kind::Counter, "account");
        let label = is_strong.then_some("withdraw");
        let (paid, _) = map.write(clients[0], (&account, Op::Add(100)), None);
        assert!(is_committed(&paid));
        map.run_for(2_000_000);
        // Both read before either withdraws.
        for client in clients {
            assert_eq!(balance(&map.read(client, is_strong, &account)), 100);
        }
        let (first, _) = map.write(clients[0], (&account, Op::Add(-100)), label);
        let (second, _) = map.write(clients[1], (&account, Op::Add(-100)), label);
        assert!(is_committed(&first), "{first:?}");
        map.run_for(2_000_000);
        let left = balance(&map.read(clients[1], is_strong, &account));
        if is_strong {
            let is_conflict =
                matches!(&second, Event::Aborted { refusal: Refusal::Conflict { .. }, .. });
            assert!(is_conflict, "{second:?}");
            assert_eq!(left, 0);
        } else {
            assert!(is_committed(&second), "causal ones do not see each other");
            assert_eq!(left, -100);
        }
    }
}

/// §3: with labels, deposits conflict with nothing, strong or causal.
#[test]
fn deposits_do_not_conflict_with_withdrawals() {
    let mut map = Map::new(THREE, 2, sound());
    let clients = [map.session(1, sound()), map.session(2, sound())];
    let account = Key::new(Kind::Counter, "account");
    assert!(is_committed(&map.write(clients[0], (&account, Op::Add(100)), None).0));
    map.run_for(2_000_000);
    for client in clients {
        map.begin_strong(client);
    }
    let (deposit, _) = map.write(clients[0], (&account, Op::Add(5)), Some("deposit"));
    let (withdrawal, _) = map.write(clients[1], (&account, Op::Add(-100)), Some("withdraw"));
    assert!(is_committed(&deposit) && is_committed(&withdrawal), "{deposit:?} {withdrawal:?}");
    assert!(is_committed(&map.write(clients[0], (&account, Op::Add(1)), None).0));
    map.run_for(2_000_000);
    assert_eq!(balance(&map.read(clients[1], false, &account)), 6);
}

/// Returns the duration, in microseconds, of a strong commit whose snapshot is uniform.
fn strong_commit_us(map: &mut Map, dc: u8) -> u64 {
    let client = map.session(dc, sound());
    let key = Key::new(Kind::Counter, format!("key-{dc}"));
    map.read(client, true, &key);
    let (event, took_us) = map.write(client, (&key, Op::Add(1)), None);
    assert!(is_committed(&event), "{event:?}");
    took_us
}

/// The local part of a commit, in microseconds: the barrier, the request to the local replica, and
/// its answer.
const LOCAL_US: u64 = 5_000;

/// `geo.md`: one round trip to the leader or, beside it, to the nearest majority.
#[test]
fn a_strong_commit_takes_one_trip_to_the_leader_and_back() {
    let far_us: &[&[u64]] = &[&[0, 30_000, 70_000], &[30_000, 0, 80_000], &[70_000, 80_000, 0]];
    let mut map = Map::new(far_us, 2, sound());
    for (dc, expected_us) in [(0, 60_000), (1, 60_000), (2, 140_000)] {
        let took_us = strong_commit_us(&mut map, dc);
        let most_us = expected_us + LOCAL_US;
        assert!((expected_us..=most_us).contains(&took_us), "d{dc}: {took_us} of {expected_us}");
    }
}

/// With five data centers, the leader and one other are no majority: a third must accept, and its
/// answer comes directly.
#[test]
fn of_five_data_centers_the_third_answers_directly() {
    let far_us: &[&[u64]] = &[
        &[0, 10_000, 40_000, 90_000, 90_000],
        &[10_000, 0, 45_000, 90_000, 90_000],
        &[40_000, 45_000, 0, 90_000, 90_000],
        &[90_000; 5],
        &[90_000; 5],
    ];
    let mut map = Map::new(far_us, 1, sound());
    // For d1: to the leader (10 ms), from there to d2 (40 ms), from there to d1 (45 ms).
    for (dc, expected_us) in [(0, 80_000), (1, 95_000), (2, 95_000)] {
        let took_us = strong_commit_us(&mut map, dc);
        let most_us = expected_us + LOCAL_US;
        assert!((expected_us..=most_us).contains(&took_us), "d{dc}: {took_us} of {expected_us}");
    }
}
