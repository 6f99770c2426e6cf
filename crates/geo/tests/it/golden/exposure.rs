//! Transactions of other data centers are visible only once they are uniform. The own data center's
//! are visible at once, even if it is cut off.

use mingle_geo::{DcId, Event, Refusal};

use crate::support::{World, register};

#[test]
fn a_remote_transaction_is_exposed_only_once_it_is_uniform() {
    let mut world = World::with(5, 1, 1, |config| config.f = 2);
    let key = register("k");
    world.run_ms(200);
    // It reaches d1, which is cut off from the others: two data centers have it, but three are
    // needed.
    for other in 2..5 {
        world.down.extend([(0, other), (1, other)]);
    }
    world.open(1, 0);
    let commit_vec = world.put(1, &key, 1);
    world.run_ms(500);
    assert!(world.replica(1, 0).known_vec()[DcId(0)] >= commit_vec[DcId(0)], "it is there");
    world.open(2, 1);
    assert_eq!(world.get(2, &[&key]), [None], "exposed, and may be lost with two data centers");
    world.heal();
    world.run_until("it is exposed", |world| world.get(2, &[&key]) == [Some(1)]);
}

#[test]
fn two_local_sessions_see_each_other_though_cut_off() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    world.run_ms(100);
    world.isolate(0);
    for client in 1..=3 {
        world.open(client, 0);
    }
    for value in 1..=5 {
        world.put(1, &key, value);
        assert_eq!(world.get(2, &[&key]), [Some(value)]);
    }
    // A causally later transaction becomes visible too.
    world.put(2, &key, 9);
    assert_eq!(world.get(3, &[&key]), [Some(9)]);
}

#[test]
fn a_barrier_ends_when_f_losses_are_survived_and_not_before() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    world.run_ms(100);
    world.isolate(0);
    world.open_with(1, 0, |config| config.deadline_ms = 1_000);
    world.put(1, &key, 1);
    world.call(1, |session, now, out| session.barrier(now, out).expect("idle"));
    let event = world.event(1);
    assert!(matches!(event, Event::Failed(Refusal::TimedOut { .. })), "{event:?}");
    world.heal();
    world.call(1, |session, now, out| session.barrier(now, out).expect("idle"));
    assert_eq!(world.event(1), Event::Uniform);
    world.lose(0);
    world.open(2, 1);
    world.run_until("it survives", |world| world.get(2, &[&key]) == [Some(1)]);
    world.open(3, 2);
    world.run_until("it survives", |world| world.get(3, &[&key]) == [Some(1)]);
}

#[test]
fn a_durable_session_is_answered_when_its_commit_is_uniform() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    world.run_ms(100);
    world.open_with(1, 0, |config| config.is_durable = true);
    world.write(1, &key, mingle_geo::Op::Write(mingle_model::Value::Int(1)));
    let event = world.commit(1);
    let Event::Committed { is_uniform: true, commit_vec, .. } = event else { panic!("{event:?}") };
    assert!(world.replica(0, 0).uniform_vec()[DcId(0)] >= commit_vec[DcId(0)]);
    world.lose(0);
    // Its attach needs no answer from the lost data center.
    world.call(1, |session, now, out| session.attach(now, DcId(1), out).expect("idle"));
    loop {
        match world.event(1) {
            Event::Waiting(_) => {}
            event => break assert_eq!(event, Event::Resumed(DcId(1))),
        }
    }
    assert_eq!(world.get(1, &[&key]), [Some(1)]);
}
