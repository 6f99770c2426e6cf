//! The options of a call, and sessions.

use std::collections::BTreeMap;

use mingle::Session;
use mingle::typed::{Early, Program as _};

use super::groups::{Database, Group, User};
use crate::support::Setup;

fn open(binding: &str) -> (Setup, Database) {
    let setup = Setup::with(Database::TEXT, binding, &BTreeMap::new());
    let database = Database::over(setup.database.clone()).expect("it is the same program");
    (setup, database)
}

#[test]
fn a_caller_waits_until_a_store_has_committed() {
    let (setup, db) = open("[stores.inboxes]\ndistance = \"50ms\"");
    let (ana, rust) = (User::new("ana"), Group::new("rust"));
    setup.world.block_on(async {
        let early = db.join_group(&ana, &rust).until("groups").await;
        assert_eq!(early, Ok(Early { result: Some(()), following: vec!["inboxes".into()] }));
        // No call ends early before something is written, and this call writes to the inboxes alone.
        let early = db.add_post(&rust, "hello").until("groups").await;
        assert_eq!(early, Ok(Early { result: Some(1), following: Vec::new() }));
        let late = db.check_inbox(&ana).until("inboxes").await.expect("it always succeeds");
        assert!(late.following.is_empty() && late.result.is_some());
        let (count, report) = db.add_post(&rust, "again").report().await.expect("it is open");
        let stores: Vec<_> =
            report.phases.iter().filter_map(|phase| phase.store.as_deref()).collect();
        assert_eq!((count, stores), (1, vec!["groups", "inboxes"]));
        let error = db.add_post(&rust, "where?").until("inbox").await.expect_err("no such store");
        assert_eq!(error.to_string(), "add_post does not visit a store \"inbox\"");
    });
}

#[test]
fn a_session_sees_what_it_has_written_wherever_it_goes_on() {
    let binding = "[stores.inboxes]\nreplicas = [\"oslo\", \"rome\"]\ndelay = \"1s\"";
    let (setup, db) = open(binding);
    let (ana, rust) = (User::new("ana"), Group::new("rust"));
    setup.world.block_on(async {
        let session = Session::at("oslo");
        let client = db.with_session(&session);
        client.join_group(&ana, &rust).await.expect("it always succeeds");
        client.add_post(&rust, "hello").await.expect("it is open");
        session.move_to("rome");
        // Another client, in Rome, has not received it yet.
        let other = db.check_inbox(&ana).session(&Session::at("rome")).await;
        assert_eq!(other, Ok(Vec::new()));
        assert_eq!(client.check_inbox(&ana).await, Ok(vec!["hello".to_owned()]));
    });
}
