//! Vectors from outside are never trusted.

use mingle_geo::message::{Attach, Read, Snapshot};
use mingle_geo::{DcId, Message, Refusal, Timestamp, Vector};

use crate::support::{World, register};

fn read_at(world: &mut World, snapshot: Vector) -> Result<(), Refusal> {
    let keys = vec![register("k")];
    let snapshot = Snapshot::At(snapshot);
    world.inject(7, 0, 0, Message::Read(Read { incarnation: 0, request: 1, snapshot, keys }));
    world.run_ms(10);
    let answers = world.answers(7);
    let [Message::ReadReply(reply)] = &answers[..] else { panic!("{answers:?}") };
    reply.result.clone().map(|_| ())
}

#[test]
fn a_snapshot_above_what_is_known_is_refused_and_raises_nothing() {
    let mut world = World::new(3, 1, 1);
    world.run_ms(300);
    let (known, uniform) = (world.replica(0, 0).known_vec(), world.replica(0, 0).uniform_vec());
    let ahead = Timestamp(known[DcId(1)].0 + (1_000_000 << 12));
    let refused = read_at(&mut world, uniform.with(DcId(1), ahead));
    let is_ahead =
        matches!(refused, Err(Refusal::Ahead { dc: DcId(1), want, .. }) if want == ahead);
    assert!(is_ahead, "{refused:?}");
    // Lines 1:2-3 and 1:19-20 would have raised it.
    assert!(world.replica(0, 0).uniform_vec()[DcId(1)] < ahead);
    // There is no such data center.
    let refused = read_at(&mut world, uniform.with(DcId(5), Timestamp(1)));
    assert!(matches!(refused, Err(Refusal::Ahead { dc: DcId(5), .. })), "{refused:?}");
    assert_eq!(read_at(&mut world, uniform), Ok(()));
}

#[test]
fn a_snapshot_of_the_far_future_is_refused_and_drags_no_clock() {
    let mut world = World::new(1, 1, 1);
    world.run_ms(100);
    let known = world.replica(0, 0).known_vec()[DcId(0)];
    let future = Timestamp(known.0 + (60_000_000 << 12));
    let refused = read_at(&mut world, Vector::ZERO.with(DcId(0), future));
    assert!(matches!(refused, Err(Refusal::ClockAhead { .. })), "{refused:?}");
    let past_vec = Vector::ZERO.with(DcId(0), future);
    world.inject(7, 0, 0, Message::Attach(Attach { epoch: 0, newest: 0, request: 2, past_vec }));
    world.run_ms(10);
    assert_eq!(world.answers(7).len(), 1);
    assert!(world.replica(0, 0).known_vec()[DcId(0)].micros() < known.micros() + 100_000);
    // A little ahead is followed.
    let near = Timestamp(known.0 + (1_000_000 << 12));
    assert_eq!(read_at(&mut world, Vector::ZERO.with(DcId(0), near)), Ok(()));
    assert!(world.replica(0, 0).known_vec()[DcId(0)] >= near);
}
