//! Calls that are dropped.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use mingle::typed::Program as _;
use mingle_store::World as _;
use serde_json::json;

use super::groups::{Database, Group, User};
use crate::support::Setup;

/// Drops a call after so long; returns if it had ended by then, and if it took effect.
fn drop_after(limit: Duration) -> (bool, bool) {
    let binding = "[stores.groups]\ndistance = \"10ms\"\n[stores.inboxes]\ndistance = \"3ms\"";
    let setup = Setup::with(Database::TEXT, binding, &BTreeMap::new());
    let database = Database::over(setup.database.clone()).expect("it is the same program");
    let (user, group) = (User::new("ana"), Group::new("rust"));
    let ended = setup.world.block_on(async {
        let mut call = pin!(database.join_group(&user, &group).into_future());
        let mut sleep = setup.world.sleep(limit);
        poll_fn(|context| {
            if let Poll::Ready(result) = call.as_mut().poll(context) {
                result.expect("nothing stands in its way");
                return Poll::Ready(true);
            }
            sleep.as_mut().poll(context).map(|()| false)
        })
        .await
    });
    assert!(setup.world.block_on(setup.database.settle(Duration::from_mins(1))));
    let members = setup.show("Group", "rust")["members"] == json!(["ana"]);
    let groups = setup.show("User", "ana")["groups"] == json!(["rust"]);
    assert_eq!(members, groups, "dropped after {limit:?}, a part of it was done");
    assert!(members || !ended, "it had ended, and nothing was done");
    (ended, members)
}

#[test]
fn a_call_that_is_dropped_is_undone_or_finishes() {
    let dropped: Vec<(bool, bool)> =
        (0..60).map(|ms| drop_after(Duration::from_millis(ms))).collect();
    for expected in [(false, false), (false, true), (true, true)] {
        assert!(dropped.contains(&expected), "{expected:?} is not among {dropped:?}");
    }
    let done: Vec<bool> = dropped.iter().map(|(_, done)| *done).collect();
    assert!(done.is_sorted(), "once it is past the first commit it is done: {done:?}");
}
