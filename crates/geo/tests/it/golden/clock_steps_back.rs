//! A clock that steps back while its replica runs blocks nothing and repeats no timestamp.

use mingle_geo::{DcId, Key, Kind, Op};
use mingle_model::Value;

use crate::support::World;

#[test]
fn commits_go_on_above_what_was_announced() {
    let mut world = World::new(3, 1, 1);
    let log = Key::new(Kind::Log, "lines");
    world.run_ms(500);
    world.open(1, 0);
    world.open(2, 1);
    let (mut last, own) = (world.replica(0, 0).known_vec(), DcId(0));
    for line in 1..=20 {
        if line % 5 == 0 {
            world.nodes.get_mut(&(0, 0)).expect("a node").skew_us -= 1_000_000;
        }
        let began_us = world.now_us;
        world.write(1, &log, Op::Append(Value::Int(line)));
        let commit_vec = world.committed(1);
        assert!(commit_vec[own] > last[own], "{commit_vec} is not above {last}");
        assert!(world.now_us - began_us < 10_000, "it waited for the clock");
        last = commit_vec;
        last.join(&world.replica(0, 0).known_vec());
    }
    world.run_until("all lines arrive elsewhere", |world| {
        let states = world.read(2, &[&log]).expect("a read");
        world.call(2, |session, _, _| session.rollback());
        states[0].as_log().expect("a log").count() == 20
    });
    assert!(world.now_us < 2_000_000, "others had to wait for the clock");
}
