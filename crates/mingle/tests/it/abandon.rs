//! A transaction that cannot be finished: calls that would have to wait for it are refused before they
//! write anything, and an operator tries it again or ends it.

use std::sync::Arc;

use mingle::{Database, Error, Session};
use mingle_model::{Origin, TransactionId};
use mingle_store::wrap::fault::{Call as StoreCall, Fault, FaultPlan, FaultyStore};
use serde_json::{Value as Json, json};

use crate::support::shared::Stores;

const TEXT: &str = "store bank: linearizable; store feed: causal; store journal: eventual;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; unread: counter; }
    object Day in journal { key name: string; count: counter; }
    transaction pay(to: ref Account, inbox: ref Inbox, day: ref Day) -> int {
        to.balance += 10;
        inbox.unread.add(to.balance);
        day.count.add(inbox.unread.value());
        return to.balance;
    }
    transaction balance(of: ref Account) -> int { return of.balance; }
    transaction look(of: ref Account, inbox: ref Inbox, day: ref Day) -> list<int> {
        return [of.balance, inbox.unread.value(), day.count.value()];
    }
    ";

const BINDING: &str = "[runtime]\ndeadline = \"3s\"\n[stores.bank]\ndistance = \"20ms\"\n\
    [stores.feed]\nreplicas = 3\ndelay = \"40ms±10ms\"\ndistance = \"1ms\"\n\
    [stores.journal]\nreplicas = 3\ndelay = \"30ms±10ms\"\ndistance = \"1ms\"";

const ALL: [(&str, &str); 3] = [("inbox", "ana"), ("day", "monday"), ("to", "ana")];
const LOOK: [(&str, &str); 3] = [("inbox", "ana"), ("day", "monday"), ("of", "ana")];

/// Stores, one of which refuses all commits while the plan is on.
fn refusing(store: &str) -> (Stores, Arc<FaultPlan>) {
    let refused = (0..100_000).map(|number| (StoreCall::Commit, number, Fault::Refused));
    let plan = FaultPlan::scripted(refused);
    let stores = Stores::wrapped(TEXT, BINDING, |name, inner| {
        if name == store { FaultyStore::new(inner, plan.clone()) } else { inner }
    });
    (stores, plan)
}

fn park(stores: &Stores, server: &Database) -> TransactionId {
    let error = stores.call(server, &Session::at("r1"), "pay", &ALL).expect_err("it refuses");
    match error {
        Error::Incomplete { id: Some(id), cause, .. } if matches!(*cause, Error::Parked { .. }) => {
            id
        }
        other => panic!("{other}"),
    }
}

fn balance(stores: &Stores, server: &Database) -> Json {
    stores.ok(server, &Session::at("r1"), "balance", &[("of", "ana")])
}

#[test]
fn who_would_wait_for_a_parked_one_commits_nothing() {
    let (stores, plan) = refusing("feed");
    let server = stores.server();
    let id = park(&stores, &server);
    let other = stores.server();
    for server in [&server, &other, &server] {
        let error = stores.call(server, &Session::at("r1"), "pay", &ALL).expect_err("parked");
        assert!(matches!(&error, Error::Parked { id: parked, .. } if *parked == id), "{error}");
        assert_eq!(balance(&stores, server), json!(10), "nothing was written");
    }
    let listed = stores.world.block_on(other.unfinished()).expect("the stores answer");
    assert_eq!(listed.iter().map(|left| left.id).collect::<Vec<_>>(), [id]);
    // Once it is tried again and done, all calls succeed again.
    let refused = stores.world.block_on(server.retry(id)).expect_err("it is refused still");
    assert!(matches!(&refused, Error::Parked { .. }), "{refused}");
    plan.set_on(false);
    stores.world.block_on(other.retry(id)).expect("nothing refuses it");
    assert_eq!(stores.ok(&server, &Session::at("r1"), "pay", &ALL), json!(20));
    stores.pass(60);
    assert_eq!(stores.ok(&other, &Session::at("r1"), "look", &LOOK), json!([20, 30, 40]));
    assert_eq!(stores.left(), Vec::<String>::new());
}

/// Ends a parked transaction; `dies` says if the process that began it has ended by then.
fn abandon(store: &str, dies: bool, never_came_to: &[&str], after: [i64; 3]) {
    let (stores, plan) = refusing(store);
    let first = stores.server();
    let id = park(&stores, &first);
    let first = Some(first).filter(|_| !dies);
    let operator = stores.server();
    let unsaid = stores.world.block_on(operator.abandon(id, " ")).expect_err("no reason");
    assert!(matches!(&unsaid, Error::Misuse(_)), "{unsaid}");
    plan.set_on(false);
    let ended = stores.world.block_on(operator.abandon(id, "refunded")).expect("it is parked");
    let missing: Vec<&str> = ended.missing.iter().map(|store| &**store).collect();
    assert_eq!((ended.id, &*missing, &*ended.because), (id, never_came_to, "refunded"));
    let listed = stores.world.block_on(operator.abandoned()).expect("the stores answer");
    assert_eq!(listed, [ended]);
    // Its first part stays, the rest never follows, and no call waits for it.
    for server in [&operator].into_iter().chain(&first) {
        assert_eq!(balance(&stores, server), json!(10));
    }
    stores.pass(60);
    assert_eq!(stores.world.block_on(operator.unfinished()).expect("they answer"), []);
    assert_eq!(stores.ok(&operator, &Session::at("r1"), "pay", &ALL), json!(20));
    stores.pass(60);
    assert_eq!(stores.ok(&operator, &Session::at("r2"), "look", &LOOK), json!(after));
    // Only the record of the abandonment is left.
    let left = stores.left();
    assert!(left.len() == 1 && left[0].contains("Abandoned"), "{left:?}");
    let again = stores.world.block_on(operator.abandon(id, "again")).expect_err("it is over");
    assert!(matches!(&again, Error::Misuse(_)), "{again}");
}

#[test]
fn what_is_abandoned_keeps_its_first_part_and_holds_up_nobody() {
    abandon("feed", false, &["feed", "journal"], [20, 20, 20]);
    abandon("journal", false, &["journal"], [20, 30, 30]);
}

#[test]
fn another_process_can_abandon_what_a_dead_one_left() {
    abandon("feed", true, &["feed", "journal"], [20, 20, 20]);
    abandon("journal", true, &["journal"], [20, 30, 30]);
}

#[test]
fn only_what_is_parked_can_be_abandoned() {
    let (stores, plan) = refusing("feed");
    plan.set_on(false);
    let server = stores.server();
    stores.ok(&server, &Session::at("r1"), "pay", &ALL);
    let id = TransactionId { origin: Origin(1), sequence: 1 };
    let calls = [
        stores.world.block_on(server.abandon(id, "why")).map(|_| ()),
        stores.world.block_on(server.retry(id)),
    ];
    for error in calls {
        assert!(matches!(error, Err(Error::Misuse(_))), "{error:?}");
    }
}

const GROWING: &str = "store bank: linearizable; store feed: causal;
    object Account in bank { key owner: string; note: string; }
    object Inbox in feed { key owner: string; all: string; }
    transaction fill(inbox: ref Inbox, text: string) { inbox.all = text; }
    transaction double(to: ref Account, inbox: ref Inbox) {
        to.note = \"doubled\";
        inbox.all = inbox.all + inbox.all;
    }
    transaction measure(to: ref Account, inbox: ref Inbox) -> int {
        to.note = \"measured\";
        return (inbox.all + inbox.all).size();
    }
    transaction size(inbox: ref Inbox) -> int { return inbox.all.size(); }
    ";

/// A value that is too large is too large in every process, so no call waits for it.
#[test]
fn a_later_part_that_is_too_large_is_parked_and_says_so() {
    let stores = Stores::new(GROWING, "");
    let server = stores.server();
    let text = "x".repeat(9 << 20);
    let session = Session::default();
    stores.ok(&server, &session, "fill", &[("inbox", "ana"), ("text", &text)]);
    let arguments = [("to", "ana"), ("inbox", "ana")];
    let error = stores.call(&server, &session, "double", &arguments).expect_err("it is too large");
    let Error::Incomplete { id: Some(id), cause, .. } = &error else { panic!("{error}") };
    assert!(matches!(&**cause, Error::Parked { id: parked, .. } if parked == id), "{cause}");
    assert_eq!(
        error.to_string(),
        format!(
            "committed at bank, but not at feed: what it computes for that store is too large: a \
             string of 18874368 bytes, the limit is 16777216; it is parked, and `mingle recover` \
             tries it again (transaction {id})"
        )
    );
    // An operator may give up the part that was never written; nothing is left then.
    let refused = stores.world.block_on(server.retry(*id)).expect_err("it is too large still");
    assert!(matches!(&refused, Error::Parked { .. }), "{refused}");
    stores.world.block_on(server.abandon(*id, "it would never fit")).expect("it is parked");
    assert_eq!(stores.ok(&server, &session, "size", &[("inbox", "ana")]), json!(9 << 20));
}

/// If all parts are written, there is nothing to finish.
#[test]
fn a_result_that_is_too_large_leaves_nothing_behind() {
    let stores = Stores::new(GROWING, "");
    let server = stores.server();
    let text = "x".repeat(9 << 20);
    let session = Session::default();
    stores.ok(&server, &session, "fill", &[("inbox", "ana"), ("text", &text)]);
    let arguments = [("to", "ana"), ("inbox", "ana")];
    let error = stores.call(&server, &session, "measure", &arguments).expect_err("too large");
    assert_eq!(
        error.to_string(),
        "committed at bank, and nothing is left to write; there is no result, since what is read at \
         feed gives a string of 18874368 bytes, the limit is 16777216"
    );
    assert!(stores.world.block_on(server.unfinished()).expect("they answer").is_empty());
}
