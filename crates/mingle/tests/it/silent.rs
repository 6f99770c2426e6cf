//! Stores that never answer: a call ends with its deadline, and names the store that has not answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::support::Setup;
use mingle::Error;
use mingle_store::wrap::fault::{Call, Fault, FaultPlan};
use mingle_store::{StoreError, World};
use serde_json::json;

const BANK: &str = "store accounts: linearizable; store feed: causal;
    object Account in accounts { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; messages: log<string>; count: int; }
    transaction deposit(to: ref Account, amount: int) -> int {
        to.balance += amount;
        Inbox[to.owner].messages.append(\"got \" + string(amount));
        Inbox[to.owner].count += 1;
        return to.balance;
    }
    transaction look(at: ref Account) -> int { return at.balance; }\n";

/// The deadline of calls, and the time by which they may exceed it.
const DEADLINE: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_millis(250);

/// A plan by which calls of these kinds are never answered.
fn silent(calls: &[Call]) -> Arc<FaultPlan> {
    let all = calls.iter().flat_map(|call| (0..10_000).map(|index| (*call, index, Fault::Silent)));
    FaultPlan::scripted(all)
}

fn setup(store: &'static str, calls: &[Call]) -> (Setup, Arc<FaultPlan>) {
    let plan = silent(calls);
    let faults = BTreeMap::from([(store, plan.clone())]);
    (Setup::with(BANK, "[runtime]\ndeadline = \"1s\"", &faults), plan)
}

/// Makes a call, and checks that it ends with its deadline.
fn in_time(
    setup: &Setup,
    transaction: &str,
    arguments: &[(&str, &str)],
    deadlines: u32,
) -> Result<(), Error> {
    let begin = setup.world.elapsed();
    let ended = setup.call(transaction, arguments);
    let took = setup.world.elapsed().saturating_sub(begin);
    let most = DEADLINE * deadlines + GRACE;
    assert!(took <= most, "{transaction} took {took:?}: {ended:?}");
    ended.map(|_| ())
}

const DEPOSIT: [(&str, &str); 2] = [("to", "ana"), ("amount", "20")];

#[test]
fn before_the_first_commit_nothing_is_written() {
    for call in [Call::Begin, Call::Read] {
        let (setup, plan) = setup("accounts", &[call]);
        for (transaction, arguments) in [("deposit", &DEPOSIT[..]), ("look", &[("at", "ana")])] {
            let error = in_time(&setup, transaction, arguments, 1).unwrap_err();
            let Error::Store(StoreError::Unavailable { store, reason }) = &error else {
                panic!("{error}")
            };
            assert_eq!(&**store, "accounts");
            assert!(reason.contains("no answer for 1.0 s"), "{call:?}: {reason}");
        }
        plan.set_on(false);
        assert_eq!(setup.show("Account", "ana"), json!(null), "{call:?}");
        assert_eq!(setup.show("Inbox", "ana"), json!(null), "{call:?}");
    }
}

#[test]
fn a_commit_without_an_answer_is_never_taken_for_one_that_was_not() {
    // The store reports the outcome.
    let (asked, _) = setup("accounts", &[Call::Commit]);
    in_time(&asked, "deposit", &DEPOSIT, 2).expect("it has committed, and the rest followed");
    assert_eq!(asked.show("Account", "ana"), json!({"owner": "ana", "balance": 20}));
    // The store does not report it.
    let (unknown, plan) = setup("accounts", &[Call::Commit, Call::Outcome]);
    let error = in_time(&unknown, "deposit", &DEPOSIT, 1).unwrap_err();
    assert!(
        matches!(&error, Error::Unknown { store, id: Some(_) } if &**store == "accounts"),
        "{error}"
    );
    plan.set_on(false);
    assert_eq!(unknown.show("Account", "ana"), json!({"owner": "ana", "balance": 20}));
}

#[test]
fn after_the_first_commit_the_rest_follows() {
    for calls in
        [[Call::Begin, Call::Begin], [Call::Read, Call::Begin], [Call::Commit, Call::Outcome]]
    {
        let (setup, plan) = setup("feed", &calls);
        let error = in_time(&setup, "deposit", &DEPOSIT, 2).unwrap_err();
        let Error::Incomplete { committed, missing, cause, .. } = &error else { panic!("{error}") };
        assert_eq!((&*committed[0], &*missing[0]), ("accounts", "feed"), "{calls:?}");
        assert!(cause.to_string().contains("feed"), "{calls:?}: {cause}");
        plan.set_on(false);
        let followed =
            setup.world.block_on(async { setup.database.settle(Duration::from_mins(2)).await });
        assert!(followed, "{calls:?}: it does not follow");
        let inbox = json!({"owner": "ana", "messages": ["got 20"], "count": 1});
        assert_eq!(setup.show("Inbox", "ana"), inbox, "{calls:?}");
    }
}

#[test]
fn a_store_that_never_answers_is_away_after_some_calls() {
    let (setup, plan) = setup("accounts", &[Call::Read]);
    for _ in 0..3 {
        in_time(&setup, "look", &[("at", "ana")], 1).unwrap_err();
    }
    let begin = setup.world.elapsed();
    let error = setup.call("look", &[("at", "ana")]).unwrap_err();
    assert_eq!(setup.world.elapsed(), begin, "it is refused at once");
    let text = error.to_string();
    assert!(text.contains("accounts") && text.contains("has not answered for"), "{text}");
    plan.set_on(false);
    let deadline = setup.world.elapsed() + Duration::from_secs(30);
    while setup.call("look", &[("at", "ana")]).is_err() {
        assert!(setup.world.elapsed() < deadline, "it does not come back");
        setup.world.advance(Duration::from_millis(100));
    }
}
