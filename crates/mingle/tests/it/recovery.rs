//! Transactions take effect wholly or not at all when processes die, or stores refuse or are away.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::dying::{Dying, Life};
use crate::support::losing::Losing;
use crate::support::shared::{Stores, call};
use mingle::{Binding, Call, Database, Error, Session, TokioWorld};
use mingle_model::Name;
use mingle_store::wrap::fault::{Call as StoreCall, Fault, FaultPlan, FaultyStore, Rates};
use mingle_store::{DataStore, World};
use serde_json::{Value as Json, json};

/// The operations count, so that a repeated one would show.
const TEXT: &str = "store bank: linearizable; store feed: causal; store journal: eventual;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; unread: counter; lines: log<string>; }
    object Day in journal { key name: string; count: counter; }
    transaction pay(to: ref Account, inbox: ref Inbox, day: ref Day) -> int {
        to.balance += 10;
        inbox.unread.add(1);
        inbox.lines.append(\"balance \" + string(to.balance));
        day.count.add(1);
        return to.balance;
    }
    transaction look(of: ref Account, inbox: ref Inbox, day: ref Day) -> list<int> {
        return [of.balance, inbox.unread.value(), inbox.lines.size(), day.count.value()];
    }
    ";

const BINDING: &str = "[runtime]\ndeadline = \"3s\"\n[stores.bank]\ndistance = \"20ms\"\n\
    [stores.feed]\nreplicas = 3\ndelay = \"40ms±10ms\"\ndistance = \"1ms\"\n\
    [stores.journal]\nreplicas = 3\ndelay = \"30ms±10ms\"\ndistance = \"1ms\"";

const PAY: [(&str, &str); 3] = [("to", "ana"), ("inbox", "ana"), ("day", "monday")];
const LOOK: [(&str, &str); 3] = [("of", "ana"), ("inbox", "ana"), ("day", "monday")];

fn once() -> Json {
    json!([10, 1, 1, 1])
}

/// Stores, one of which fails as planned.
fn with_plan(store: &str, plan: &Arc<FaultPlan>) -> Stores {
    Stores::wrapped(TEXT, BINDING, |name, inner| {
        if name == store { FaultyStore::new(inner, plan.clone()) } else { inner }
    })
}

/// A process pays, and dies at one of its calls. Returns true if it made that call.
fn pay_and_die(stores: &Stores, life: &Arc<Life>) -> bool {
    let server =
        stores.server_over(stores.world.clone(), |_, store| Dying::within(store, life.clone()));
    let ended = Arc::new(Mutex::new(false));
    let at_end = ended.clone();
    stores.world.spawn(Box::pin(async move {
        let _ = call(&server, &Session::at("r1"), "pay", &PAY).await;
        server.settle(Duration::from_secs(1)).await;
        *at_end.lock().expect("nobody panics with it") = true;
    }));
    stores.pass(1);
    life.is_over()
}

#[test]
fn whoever_meets_what_a_dead_process_left_finishes_it() {
    let (mut undone, mut done) = (0, 0);
    for arrives in [false, true] {
        for last in 0.. {
            let stores = Stores::new(TEXT, BINDING);
            let life = Life::until(last, arrives);
            if !pay_and_die(&stores, &life) {
                break;
            }
            let place =
                format!("call {last}, which {}", if arrives { "arrives" } else { "does not" });
            // No process sweeps here: the reader finishes it.
            let reader = stores.server_over(stores.world.clone(), |_, store| store);
            let before = stores.world.elapsed();
            let seen = stores.ok(&reader, &Session::at("r1"), "look", &LOOK);
            let took = stores.world.elapsed().saturating_sub(before);
            assert!(took < Duration::from_secs(2), "{place}: {took:?}");
            let is_done = seen == once();
            assert!(is_done || seen == json!([0, 0, 0, 0]), "{place}: {seen}");
            if is_done {
                done += 1;
            } else {
                undone += 1;
            }

            // Once the lease has run out, another process cleans up, and the effects stay.
            let _sweeper = stores.server();
            stores.pass(60);
            assert_eq!(stores.left(), Vec::<String>::new(), "{place}");
            for replica in ["r1", "r2", "r3"] {
                let later = stores.ok(&reader, &Session::at(replica), "look", &LOOK);
                assert_eq!(later, seen, "{place}, at {replica}");
            }
        }
    }
    assert!(undone >= 2 && done > 10, "{undone} undone, {done} done");
}

#[test]
fn a_sweep_finishes_what_nobody_meets() {
    // The first commit arrives: a read, and the commit.
    let stores = Stores::new(TEXT, BINDING);
    let life = Life::until(1, true);
    assert!(pay_and_die(&stores, &life));
    let sweeper = stores.server();
    let unfinished = stores.world.block_on(sweeper.unfinished()).expect("the stores answer");
    assert_eq!(unfinished.len(), 1, "{unfinished:?}");
    assert_eq!((&*unfinished[0].transaction, &*unfinished[0].intent), ("pay", "bank"));
    assert_eq!(unfinished[0].missing, [Name::from("feed"), Name::from("journal")]);
    assert_eq!(unfinished[0].parked, None);
    stores.pass(60);
    let unfinished = stores.world.block_on(sweeper.unfinished()).expect("the stores answer");
    assert_eq!(unfinished, []);
    assert_eq!(stores.left(), Vec::<String>::new());
    assert_eq!(stores.ok(&sweeper, &Session::default(), "look", &LOOK), once());
}

#[test]
fn a_phase_that_waited_for_what_was_given_up_meanwhile_goes_on_with_what_is_left() {
    let mut losing = None;
    let stores = Stores::wrapped(TEXT, BINDING, |name, inner| match name {
        "feed" => losing.insert(Losing::around(inner)).clone(),
        _ => inner,
    });
    let (server, session) = (stores.server(), Session::at("r1"));
    let losing = losing.expect("there is a feed");
    assert_eq!(stores.ok(&server, &session, "pay", &PAY), json!(10));
    assert_eq!(losing.refused(), 0);
    // It commits at the bank, and asks the feed once for all that its session has seen.
    assert_eq!(stores.ok(&server, &session, "pay", &PAY), json!(20));
    assert_eq!(losing.refused(), 1);
    let unfinished = stores.world.block_on(server.unfinished()).expect("the stores answer");
    assert_eq!(unfinished, []);
    // The session knows its loss, and goes on once the client accepts it.
    let refused = stores.call(&server, &session, "look", &LOOK);
    let refused = refused.expect_err("the session has seen what is lost").to_string();
    assert!(refused.contains("lost was given up"), "{refused}");
    assert_eq!(server.accept_losses(&session).len(), 1);
    assert_eq!(stores.ok(&server, &session, "look", &LOOK), json!([20, 2, 2, 2]));
}

#[test]
fn two_helpers_at_once_finish_it_once() {
    let stores = Stores::new(TEXT, BINDING);
    let life = Life::until(1, true);
    assert!(pay_and_die(&stores, &life));
    let servers = [stores.server(), stores.server(), stores.server()];
    let looks = servers.iter().enumerate().map(|(number, server)| {
        let look: mingle_store::BoxFuture<'_, Json> = Box::pin(async move {
            let session = Session::at(format!("r{}", number + 1));
            let report = call(server, &session, "look", &LOOK).await.expect("it is finished");
            server.result_json("look", &report)
        });
        look
    });
    let seen = stores.world.block_on(mingle_store::test_world::join_all(looks.collect()));
    assert_eq!(seen, [once(), once(), once()]);
    stores.pass(60);
    assert_eq!(stores.ok(&servers[0], &Session::at("r2"), "look", &LOOK), once());
    assert_eq!(stores.left(), Vec::<String>::new());
}

#[test]
fn what_a_store_refuses_is_parked_until_it_is_recovered() {
    let refused = (0..100_000).map(|number| (StoreCall::Commit, number, Fault::Refused));
    let plan = FaultPlan::scripted(refused);
    let stores = with_plan("feed", &plan);
    let server = stores.server();
    let error = stores.call(&server, &Session::at("r1"), "pay", &PAY).expect_err("it refuses");
    let Error::Incomplete { id: Some(id), committed, missing, cause } = &error else {
        panic!("{error}")
    };
    assert_eq!((&*committed[0], &*missing[0], &*missing[1]), ("bank", "feed", "journal"));
    assert!(matches!(&**cause, Error::Parked { id: parked, .. } if parked == id), "{cause}");
    assert!(!error.is_retryable());
    assert!(error.to_string().contains("`mingle recover` tries it again"), "{error}");
    // It does not go on by itself, so no call waits for it.
    let before = stores.world.elapsed();
    assert!(!stores.world.block_on(server.settle(Duration::from_mins(1))), "something is left");
    assert!(stores.world.elapsed().saturating_sub(before) < Duration::from_secs(2));

    // A call that meets it is refused soon, long before the deadline.
    let settings = server.runtime().settings().clone();
    let other = stores.server();
    for server in [&server, &other] {
        let before = stores.world.elapsed();
        let error = stores.call(server, &Session::at("r1"), "look", &LOOK).expect_err("parked");
        assert!(matches!(&error, Error::Parked { id: parked, .. } if parked == id), "{error}");
        let took = stores.world.elapsed().saturating_sub(before);
        assert!(took < settings.help_after * 2 && took < settings.deadline, "{took:?}");
    }
    let listed = stores.world.block_on(other.unfinished()).expect("the stores answer");
    assert_eq!((listed.len(), listed[0].id), (1, *id));
    assert_eq!(listed[0].parked.as_deref(), Some("a fault was injected"));

    // Recovery cannot finish it while the store refuses, and reports that.
    let swept = stores.world.block_on(server.recover()).expect("the stores answer");
    assert_eq!((swept.finished.len(), swept.left.len()), (0, 1), "{swept:?}");
    plan.set_on(false);
    stores.pass(60);
    let listed = stores.world.block_on(other.unfinished()).expect("the stores answer");
    assert_eq!(listed.len(), 1, "nobody tries it by himself");
    let swept = stores.world.block_on(server.recover()).expect("the stores answer");
    assert_eq!(swept.finished, [*id], "{swept:?}");
    assert_eq!(stores.ok(&other, &Session::at("r1"), "look", &LOOK), once());
    stores.pass(60);
    assert_eq!(stores.left(), Vec::<String>::new());
}

#[test]
fn another_process_recovers_what_is_parked() {
    let refused = (0..100_000).map(|number| (StoreCall::Commit, number, Fault::Refused));
    let plan = FaultPlan::scripted(refused);
    let stores = with_plan("journal", &plan);
    let first = stores.server();
    let error = stores.call(&first, &Session::at("r1"), "pay", &PAY).expect_err("it refuses");
    assert!(matches!(&error, Error::Incomplete { .. }), "{error}");
    drop(first);
    plan.set_on(false);
    let second = stores.server();
    let swept = stores.world.block_on(second.recover()).expect("the stores answer");
    assert_eq!((swept.finished.len(), &*swept.left), (1, &[][..]), "{swept:?}");
    assert_eq!(stores.ok(&second, &Session::at("r1"), "look", &LOOK), once());
    stores.pass(60);
    assert_eq!(stores.left(), Vec::<String>::new());
}

#[test]
fn a_store_that_is_away_is_waited_for_and_named() {
    let plan = FaultPlan::seeded(1, Rates { unavailable: 1_000, ..Rates::default() });
    let stores = with_plan("feed", &plan);
    let server = stores.server();
    let before = stores.world.elapsed();
    let error = stores.call(&server, &Session::at("r1"), "pay", &PAY).expect_err("it is away");
    let took = stores.world.elapsed().saturating_sub(before);
    assert!(took <= Duration::from_millis(3_500), "{took:?}");
    let text = error.to_string();
    let expected = "committed at bank, not yet at feed, journal, where it follows by itself: \
        store feed is unavailable: a fault was injected (transaction ";
    assert!(text.starts_with(expected), "{text}");
    // The caller is gone, and half an hour passes.
    stores.pass(1_800);
    plan.set_on(false);
    assert!(stores.world.block_on(server.settle(Duration::from_secs(30))));
    assert_eq!(stores.ok(&server, &Session::at("r2"), "look", &LOOK), once());
    assert_eq!(stores.left(), Vec::<String>::new());
}

#[test]
fn who_waits_for_a_store_that_is_away_waits_until_the_deadline() {
    let plan = FaultPlan::seeded(1, Rates { unavailable: 1_000, ..Rates::default() });
    let stores = with_plan("feed", &plan);
    let life = Life::until(1, true);
    assert!(pay_and_die(&stores, &life));
    let server = stores.server();
    for _ in 0..2 {
        let before = stores.world.elapsed();
        let error = stores.call(&server, &Session::at("r1"), "look", &LOOK).expect_err("away");
        let took = stores.world.elapsed().saturating_sub(before);
        assert!(took <= Duration::from_millis(3_500), "{took:?}");
        assert!(error.to_string().contains("store feed"), "{error}");
    }
    plan.set_on(false);
    assert_eq!(stores.ok(&server, &Session::at("r1"), "look", &LOOK), once());
}

#[test]
fn the_result_is_there_once_a_store_has_committed() {
    let stores = Stores::new(TEXT, &BINDING.replace("\"1ms\"", "\"400ms\""));
    let server = stores.server();
    let ask = |until: Option<&str>| {
        let arguments = server.arguments("pay", PAY).expect("they are right");
        let session = Session::at("r1");
        let until = until.map(Into::into);
        let call = Call { session: session.clone(), until, ..Call::new("pay", arguments) };
        let before = stores.world.elapsed();
        let report = stores.world.block_on(server.submit(call)).expect("it runs");
        (report, stores.world.elapsed().saturating_sub(before), session)
    };
    let (report, took, session) = ask(Some("bank"));
    assert_eq!(report.following, [Name::from("feed"), Name::from("journal")]);
    assert_eq!(server.result_json("pay", &report), json!(10));
    assert!(took < Duration::from_millis(100), "{took:?}");
    // The session waits for the later phases, though its caller does not.
    assert_eq!(stores.ok(&server, &session, "look", &LOOK), once());
    let (report, took, _) = ask(Some("feed"));
    assert_eq!(report.following, [Name::from("journal")]);
    assert!(took < Duration::from_secs(1), "{took:?}");
    for until in [Some("journal"), None] {
        let (report, took, _) = ask(until);
        assert!(report.following.is_empty(), "{report:?}");
        assert!(took >= Duration::from_millis(800), "{took:?}");
    }
    let arguments = server.arguments("pay", PAY).expect("they are right");
    let call = Call { until: Some("bnak".into()), ..Call::new("pay", arguments) };
    let error = stores.world.block_on(server.submit(call)).expect_err("there is none");
    assert_eq!(error.to_string(), "pay does not visit a store \"bnak\"");
    assert!(stores.world.block_on(server.settle(Duration::from_mins(1))));
    let expected = json!([40, 4, 4, 4]);
    assert_eq!(stores.ok(&server, &Session::at("r1"), "look", &LOOK), expected);
}

#[test]
fn the_rest_of_an_early_answer_is_finished_by_others_too() {
    let stores = Stores::new(TEXT, BINDING);
    // It reads and commits at the bank, answers, and dies at the feed.
    let life = Life::until(2, false);
    let server =
        stores.server_over(stores.world.clone(), |_, store| Dying::within(store, life.clone()));
    let arguments = server.arguments("pay", PAY).expect("they are right");
    let call = Call { until: Some("bank".into()), ..Call::new("pay", arguments) };
    let report = stores.world.block_on(server.submit(call)).expect("it has answered");
    assert_eq!(server.result_json("pay", &report), json!(10));
    stores.pass(1);
    assert!(life.is_over());
    let other = stores.server();
    assert_eq!(stores.ok(&other, &Session::at("r1"), "look", &LOOK), once());
}

/// Opens the stores in a folder, in a process of its own, and does something there. All tasks end
/// with the process, at any point.
fn in_process<T>(
    folder: &std::path::Path,
    plan: Option<&Arc<FaultPlan>>,
    work: impl AsyncFnOnce(Database) -> T,
) -> T {
    let program = mingle::compile(TEXT).expect("the program is right");
    let binding = Binding::parse("[runtime]\ndeadline = \"50ms\"").expect("it is right");
    let process = tokio::runtime::Builder::new_current_thread().enable_all().build();
    process.expect("it starts").block_on(async {
        let wrap = |name: &str, store: Arc<dyn DataStore>| -> Arc<dyn DataStore> {
            match plan {
                Some(plan) if name == "feed" => FaultyStore::new(store, plan.clone()),
                _ => store,
            }
        };
        let world = Arc::new(TokioWorld::new());
        let database = Database::open_wrapped(program, &binding, Some(folder), world, wrap);
        work(database.await.unwrap_or_else(|error| panic!("{error}"))).await
    })
}

#[test]
fn a_folder_is_finished_when_it_is_opened_again() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let plan = FaultPlan::seeded(1, Rates { unavailable: 1_000, ..Rates::default() });
    in_process(folder.path(), Some(&plan), async |database| {
        let error = call(&database, &Session::default(), "pay", &PAY).await;
        assert!(matches!(error, Err(Error::Incomplete { .. })), "{error:?}");
    });
    in_process(folder.path(), None, async |database| {
        assert!(database.settle(Duration::from_mins(1)).await, "it is finished in the background");
        let inbox = database.object("Inbox", "ana").expect("there are inboxes");
        let shown = database.show(&inbox, &Session::default(), 10).await;
        assert_eq!(shown.expect("the store answers")["lines"], json!(["balance 10"]));
        assert_eq!(database.unfinished().await.expect("the stores answer"), []);
        assert!(database.close(Duration::from_mins(1)).await);
    });
    in_process(folder.path(), None, async |database| {
        let seen = call(&database, &Session::default(), "look", &LOOK).await;
        let seen = database.result_json("look", &seen.expect("it runs"));
        assert_eq!(seen, once(), "once");
    });
}

#[test]
fn a_database_that_is_closed_can_be_opened_again_in_the_same_process() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    in_process(folder.path(), None, async |first| {
        call(&first, &Session::default(), "pay", &PAY).await.expect("it runs");
        assert!(first.close(Duration::from_mins(1)).await);
        let program = mingle::compile(TEXT).expect("the program is right");
        let binding = Binding::default();
        let second = Database::open(program, &binding, Some(folder.path())).await;
        let second = second.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(second.unfinished().await.expect("the stores answer"), []);
    });
}

#[test]
fn an_unknown_outcome_can_be_asked_for() {
    let outcomes = (0..10_000).map(|number| (StoreCall::Outcome, number, Fault::Unavailable));
    let lost = [(StoreCall::Commit, 0, Fault::LostAfter)];
    let plan = FaultPlan::scripted(outcomes.chain(lost));
    let stores = with_plan("bank", &plan);
    let server = stores.server();
    let error = stores.call(&server, &Session::at("r1"), "pay", &PAY).expect_err("unknown");
    let Error::Unknown { store, id: Some(id) } = &error else { panic!("{error}") };
    plan.set_on(false);
    let outcome = stores.world.block_on(server.outcome(store, *id)).expect("it answers");
    assert_eq!(outcome, mingle_store::Outcome::Committed);
    // The rest follows.
    assert!(stores.world.block_on(server.settle(Duration::from_mins(1))));
    assert_eq!(stores.ok(&server, &Session::at("r1"), "look", &LOOK), once());
}

#[test]
fn a_session_stays_at_its_replica_in_the_stores_that_have_one_of_that_name() {
    let elsewhere = "[stores.bank]\n[stores.journal]\n[stores.feed]\nreplicas = [\"oslo\", \"rome\"]\ndelay = \"40ms\"";
    let stores = Stores::new(TEXT, elsewhere);
    let server = stores.server();
    let session = Session::at("rome");
    stores.ok(&server, &session, "pay", &PAY);
    assert_eq!(stores.ok(&server, &session, "look", &LOOK), once());
    let error = stores.call(&server, &Session::at("bern"), "pay", &PAY).expect_err("none has it");
    assert_eq!(error.to_string(), "no store has a replica bern; there are oslo, r1, rome");
}
