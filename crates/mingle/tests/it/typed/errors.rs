//! Errors that can be told apart.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mingle::typed::Program as _;
use mingle::{Error, StoreError};
use mingle_store::wrap::fault::{Call, Fault, FaultPlan};

use super::groups::{Database, Group, User};
use crate::support::Setup;

const PATIENCE: Duration = Duration::from_millis(100);

/// Opens stores, one of which fails calls of certain kinds, from the first one on.
fn failing(store: &str, faults: &[(Call, Fault)]) -> (Setup, Database) {
    let script = faults.iter().flat_map(|(call, fault)| (0..1_000).map(|at| (*call, at, *fault)));
    let plan: BTreeMap<&str, Arc<FaultPlan>> = [(store, FaultPlan::scripted(script))].into();
    let setup = Setup::with(Database::TEXT, "", &plan);
    let database = Database::over(setup.database.clone()).expect("it is the same program");
    (setup, database)
}

fn join(setup: &Setup, database: &Database) -> Error {
    let (user, group) = (User::new("ana"), Group::new("rust"));
    let call = database.join_group(&user, &group).deadline(PATIENCE);
    setup.world.block_on(call.into_future()).expect_err("a store fails")
}

#[test]
fn conflicts_that_outlast_the_deadline() {
    let (setup, database) = failing("groups", &[(Call::Commit, Fault::Conflict)]);
    let error = join(&setup, &database);
    assert!(
        matches!(&error, Error::Conflict { store, attempts: 2.., deadline }
            if **store == *"groups" && *deadline == PATIENCE),
        "{error:?}"
    );
    assert!(error.is_retryable() && error.committed().is_empty() && error.unreachable().is_none());
}

#[test]
fn a_store_that_cannot_be_reached_at_first() {
    let (setup, database) = failing("groups", &[(Call::Commit, Fault::Unavailable)]);
    let error = join(&setup, &database);
    assert!(matches!(&error, Error::Store(StoreError::Unavailable { .. })), "{error:?}");
    assert_eq!(error.unreachable().map(|store| &**store), Some("groups"));
    assert!(error.committed().is_empty() && error.is_retryable());
}

#[test]
fn a_store_that_cannot_be_reached_once_another_has_committed() {
    let (setup, database) = failing("inboxes", &[(Call::Commit, Fault::Unavailable)]);
    let error = join(&setup, &database);
    assert!(matches!(&error, Error::Incomplete { .. }), "{error:?}");
    assert_eq!(error.unreachable().map(|store| &**store), Some("inboxes"));
    let committed: Vec<&str> = error.committed().iter().map(|store| &**store).collect();
    assert_eq!(committed, ["groups"]);
    assert!(!error.is_retryable(), "it follows by itself");
}

#[test]
fn an_outcome_that_nobody_knows() {
    let faults = [(Call::Commit, Fault::LostAfter), (Call::Outcome, Fault::Unavailable)];
    let (setup, database) = failing("groups", &faults);
    let error = join(&setup, &database);
    assert!(
        matches!(&error, Error::Unknown { store, id: Some(_) } if **store == *"groups"),
        "{error:?}"
    );
    assert!(!error.is_retryable());
}

#[test]
fn calls_that_are_wrong() {
    let (setup, database) = failing("groups", &[]);
    let call = database.create_user("a\0b");
    let error = setup.world.block_on(call.into_future()).expect_err("no string holds that");
    let expected = "name of create_user: a string holds no U+0000";
    assert_eq!(error, Error::Misuse(expected.into()));
    let other = Setup::new("store a: causal;").database;
    let error = Database::over(other).expect_err("it is another program");
    assert!(matches!(&error, Error::Misuse(why) if why.contains("another program")), "{error:?}");
}
