//! Pools of connections: each sees what was acknowledged on the others.

use std::sync::Barrier;

use super::*;

const CONNECTIONS: usize = 4;

/// The acknowledged writes of the test. Each is read on all other connections.
const ROUNDS: i64 = 150;

#[test]
fn every_session_of_a_process_sees_what_it_has_acknowledged() {
    let cluster = Cluster::new(1);
    let process = &cluster.processes[&0];
    let sessions: Vec<Session> = (0..CONNECTIONS).map(|_| process.session()).collect();
    // The items of each are on other partitions; one transaction changes two of them.
    let names: Vec<[String; 2]> =
        (0..CONNECTIONS).map(|number| [format!("a{number}"), format!("b{number}")]).collect();
    let turn = Barrier::new(CONNECTIONS);
    std::thread::scope(|scope| {
        for (own, session) in sessions.iter().enumerate() {
            let (names, turn) = (&names, &turn);
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    let [one, other] = &names[own];
                    add(session, &[one, other], 1).expect("it commits");
                    // All have been acknowledged to.
                    turn.wait();
                    for (writer, [one, other]) in names.iter().enumerate() {
                        for name in [one, other] {
                            let found = value(session, name).expect("it is read");
                            assert_eq!(found, round.into(), "{name} of {writer}, read by {own}");
                        }
                    }
                    turn.wait();
                }
            });
        }
    });
}

#[test]
fn it_sees_a_strong_commit_of_another_session() {
    let cluster = Cluster::new(3);
    let process = &cluster.processes[&2];
    let (one, other) = (process.session(), process.session());
    add(&one, &["stock"], 20).expect("it commits");
    for left in (0..20).rev() {
        assert_eq!(take(&one, "stock"), Ok(true));
        assert_eq!(value(&other, "stock"), Ok(left));
    }
}
