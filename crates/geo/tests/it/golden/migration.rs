//! A session continues at another data center with all of its past, waits for it, or gives up the
//! lost part, which is named.

use mingle_geo::{DcId, Event, Outcome};

use crate::support::{World, register};

#[test]
fn a_session_that_moves_reads_what_it_wrote() {
    let mut world = World::new(3, 2, 1);
    let key = register("k");
    world.run_ms(100);
    world.open(1, 0);
    world.put(1, &key, 1);
    world.call(1, |session, now, out| session.barrier(now, out).expect("idle"));
    assert_eq!(world.event(1), Event::Uniform);
    world.call(1, |session, now, out| session.attach(now, DcId(2), out).expect("idle"));
    loop {
        match world.event(1) {
            Event::Waiting(missing) => assert!(missing.iter().all(|missing| missing.dc == DcId(0))),
            event => break assert_eq!(event, Event::Resumed(DcId(2))),
        }
    }
    assert_eq!(world.get(1, &[&key]), [Some(1)]);
    // It returns, with its writes from there.
    world.put(1, &key, 2);
    world.call(1, |session, now, out| session.attach(now, DcId(0), out).expect("idle"));
    while !matches!(world.event(1), Event::Resumed(_)) {}
    assert_eq!(world.get(1, &[&key]), [Some(2)]);
}

#[test]
fn an_attach_waits_for_what_is_not_there() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    world.run_ms(100);
    world.isolate(0);
    world.open(1, 0);
    world.put(1, &key, 1);
    world.call(1, |session, now, out| session.attach(now, DcId(1), out).expect("idle"));
    let Event::Waiting(missing) = world.event(1) else { panic!("it did not wait") };
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].dc, DcId(0));
    assert!(missing[0].have < missing[0].want);
    world.run_ms(1_000);
    assert!(world.events.is_empty(), "it went on without its past");
    world.heal();
    assert_eq!(world.event(1), Event::Resumed(DcId(1)));
    assert_eq!(world.get(1, &[&key]), [Some(1)]);
}

#[test]
fn what_is_lost_is_named() {
    let mut world = World::new(3, 1, 1);
    let (kept, lost) = (register("kept"), register("lost"));
    world.run_ms(100);
    world.open(1, 0);
    world.put(1, &kept, 1);
    world.call(1, |session, now, out| session.barrier(now, out).expect("idle"));
    assert_eq!(world.event(1), Event::Uniform);
    world.isolate(0);
    world.write(1, &lost, mingle_geo::Op::Write(mingle_model::Value::Int(2)));
    let Event::Committed { id, .. } = world.commit(1) else { panic!("not committed") };
    world.lose(0);
    world.call(1, |session, now, out| session.attach(now, DcId(1), out).expect("idle"));
    assert!(matches!(world.event(1), Event::Waiting(_)));
    world.call(1, |session, now, out| session.accept_loss(now, out).expect("it waits"));
    let event = Event::ResumedWithLoss {
        dc: DcId(1),
        lost: vec![id],
        is_complete: true,
        is_certain: false,
    };
    assert_eq!(world.event(1), event);
    assert_eq!(world.get(1, &[&kept, &lost]), [Some(1), None]);
    // The session continues.
    world.put(1, &lost, 3);
    assert_eq!(world.get(1, &[&lost]), [Some(3)]);
}

#[test]
fn what_is_uniform_and_not_here_makes_the_loss_one_that_is_not_all_named() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    world.run_ms(100);
    // d1 does not receive it, but d0 and d2 have it: it is uniform.
    world.isolate(1);
    world.open(1, 0);
    world.put(1, &key, 1);
    world.call(1, |session, now, out| session.barrier(now, out).expect("idle"));
    assert_eq!(world.event(1), Event::Uniform);
    world.call(1, |session, now, out| session.attach(now, DcId(1), out).expect("idle"));
    assert!(matches!(world.event(1), Event::Waiting(_)));
    world.call(1, |session, now, out| session.accept_loss(now, out).expect("it waits"));
    let event = Event::ResumedWithLoss {
        dc: DcId(1),
        lost: Vec::new(),
        is_complete: false,
        is_certain: false,
    };
    assert_eq!(world.event(1), event);
    assert_eq!(world.get(1, &[&key]), [None]);
}

#[test]
fn another_process_goes_on_with_a_token_and_must_attach() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    world.run_ms(100);
    world.open(1, 0);
    world.put(1, &key, 1);
    let token = world.sessions[&1].token();
    world.resume(2, 1, &token);
    world.call(2, |session, now, out| {
        let refused = session.read(now, vec![register("k")], out);
        assert_eq!(refused, Err(mingle_geo::session::CallError::Detached));
        session.attach(now, DcId(1), out).expect("idle");
    });
    while !matches!(world.event(2), Event::Resumed(_)) {}
    assert_eq!(world.get(2, &[&key]), [Some(1)]);
}

#[test]
fn a_commit_without_an_answer_is_found_elsewhere() {
    let mut world = World::new(3, 1, 1);
    let key = register("k");
    world.run_ms(100);
    world.open_with(1, 0, |config| config.deadline_ms = 2_000);
    // It commits, and no answer reaches the session.
    world.filter(|_, envelope| match &envelope.message {
        mingle_geo::Message::OutcomeReply(reply) if reply.result != Ok(None) => {
            crate::support::Verdict::Drop
        }
        _ => crate::support::Verdict::Pass,
    });
    world.write(1, &key, mingle_geo::Op::Write(mingle_model::Value::Int(1)));
    let Event::Unknown { id, .. } = world.commit(1) else { panic!("it was answered") };
    world.no_filter();
    world.lose(0);
    world.call(1, |session, now, out| session.attach(now, DcId(1), out).expect("idle"));
    while !matches!(world.event(1), Event::Resumed(_)) {}
    assert!(matches!(world.replica(1, 0).outcome(&id), Some(Outcome::Committed(_))));
    world.call(1, |session, now, out| session.ask(now, out).expect("an open commit"));
    let event = world.event(1);
    assert!(matches!(event, Event::Committed { id: found, .. } if found == id), "{event:?}");
}
