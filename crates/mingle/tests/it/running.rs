//! The endings of calls: results, refusals, conflicts, lost answers, and callers that go away.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::support::Setup;
use mingle::binding::Engine;
use mingle::{Error, Session};
use mingle_store::wrap::fault::{Call, Fault, FaultPlan};
use mingle_store::{StoreError, World};
use serde_json::json;

const BANK: &str = "store accounts: linearizable; store feed: causal;
    object Account in accounts { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; messages: log<string>; }
    transaction deposit(to: ref Account, amount: int) -> int {
        require amount > 0 else \"an amount is positive\" as amount;
        to.balance += amount;
        Inbox[to.owner].messages.append(\"got \" + string(amount));
        return to.balance;
    }
    transaction open(owner: string) -> ref Account { return new Account { owner: owner, balance: 0 }; }\n";

fn plan(script: &[(Call, u64, Fault)]) -> Arc<FaultPlan> {
    FaultPlan::scripted(script.iter().copied())
}

#[test]
fn a_transaction_over_two_stores_runs() {
    let setup = Setup::new(BANK);
    assert_eq!(setup.ok("deposit", &[("to", "ana"), ("amount", "20")]), json!(20));
    assert_eq!(setup.ok("deposit", &[("to", "ana"), ("amount", "5")]), json!(25));
    assert_eq!(
        setup.show("Inbox", "ana"),
        json!({"owner": "ana", "messages": ["got 20", "got 5"]})
    );
    assert_eq!(setup.show("Account", "bob"), json!(null));
}

#[test]
fn refusals_write_nothing() {
    let setup = Setup::new(BANK);
    let error = setup.call("deposit", &[("to", "ana"), ("amount", "-1")]).unwrap_err();
    assert_eq!(
        error,
        Error::Require { code: Some("amount".into()), message: "an amount is positive".into() }
    );
    assert_eq!(setup.show("Account", "ana"), json!(null));
    setup.ok("open", &[("owner", "ana")]);
    let error = setup.call("open", &[("owner", "ana")]).unwrap_err();
    assert_eq!(error.to_string(), "Account[\"ana\"] exists already");
}

#[test]
fn misuse_is_named() {
    let setup = Setup::new(BANK);
    let message = |transaction: &str, arguments: &[(&str, &str)]| {
        setup.call(transaction, arguments).unwrap_err().to_string()
    };
    assert_eq!(
        message("depositt", &[]),
        "no transaction is called \"depositt\"; there are deposit, open"
    );
    assert_eq!(message("deposit", &[("to", "ana")]), "deposit needs amount, of type int");
    assert_eq!(
        message("deposit", &[("whom", "ana")]),
        "deposit has no parameter \"whom\"; it takes to, amount"
    );
    assert!(
        message("deposit", &[("to", "ana"), ("amount", "many")])
            .starts_with("amount of deposit: expected int")
    );
}

#[test]
fn conflicts_are_tried_again() {
    let faults = BTreeMap::from([(
        "accounts",
        plan(&[(Call::Commit, 0, Fault::Conflict), (Call::Read, 1, Fault::Conflict)]),
    )]);
    let setup = Setup::with(BANK, "", &faults);
    let report = setup
        .call("deposit", &[("to", "ana"), ("amount", "20")])
        .expect("the third attempt succeeds");
    assert_eq!(report.phases[0].attempts, 3);
    assert_eq!(setup.show("Account", "ana"), json!({"owner": "ana", "balance": 20}));
}

#[test]
fn conflicts_end_at_the_deadline() {
    let script: Vec<_> = (0..100_000).map(|index| (Call::Commit, index, Fault::Conflict)).collect();
    let faults = BTreeMap::from([("accounts", plan(&script))]);
    let setup = Setup::with(BANK, "[runtime]\ndeadline = \"3s\"", &faults);
    let error = setup.call("deposit", &[("to", "ana"), ("amount", "20")]).unwrap_err();
    assert!(matches!(&error, Error::Conflict { store, .. } if &**store == "accounts"), "{error}");
    assert!(error.is_retryable());
    assert!(setup.world.elapsed().as_secs() <= 3);
    assert_eq!(setup.show("Inbox", "ana"), json!(null));
}

#[test]
fn a_failure_after_the_first_commit_says_what_is_committed() {
    let script: Vec<_> =
        (0..100_000).map(|index| (Call::Commit, index, Fault::Unavailable)).collect();
    let faults = BTreeMap::from([("feed", plan(&script))]);
    let setup = Setup::with(BANK, "[runtime]\ndeadline = \"3s\"", &faults);
    let error = setup.call("deposit", &[("to", "ana"), ("amount", "20")]).unwrap_err();
    let Error::Incomplete { committed, missing, cause, .. } = &error else { panic!("{error}") };
    assert_eq!((&*committed[0], &*missing[0]), ("accounts", "feed"));
    assert!(matches!(**cause, Error::Store(StoreError::Unavailable { .. })));
    assert_eq!(setup.show("Account", "ana"), json!({"owner": "ana", "balance": 20}));
}

#[test]
fn a_lost_answer_is_asked_for() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        let faults = BTreeMap::from([("accounts", plan(&[(Call::Commit, 0, fault)]))]);
        let setup = Setup::with(BANK, "", &faults);
        assert_eq!(setup.ok("deposit", &[("to", "ana"), ("amount", "20")]), json!(20), "{fault:?}");
        assert_eq!(
            setup.show("Account", "ana"),
            json!({"owner": "ana", "balance": 20}),
            "{fault:?}"
        );
    }
}

#[test]
fn an_outcome_that_stays_unknown_is_said_to_be() {
    let outcomes = (0..100_000).map(|index| (Call::Outcome, index, Fault::Unavailable));
    let script: Vec<_> = outcomes.chain([(Call::Commit, 0, Fault::LostAfter)]).collect();
    let faults = BTreeMap::from([("accounts", plan(&script))]);
    let setup = Setup::with(BANK, "[runtime]\ndeadline = \"2s\"", &faults);
    let error = setup.call("deposit", &[("to", "ana"), ("amount", "20")]).unwrap_err();
    assert!(matches!(&error, Error::Unknown { id: Some(_), .. }), "{error}");
}

#[test]
fn bounds_hold_until_the_first_commit() {
    let text = "store s: causal; object O in s { key k: int; n: int; text: string; }
        transaction spin(o: ref O) { while o.n == 0 { o.text = \"x\"; } o.n = 1; }
        transaction grow(o: ref O) { var text = \"0123456789\"; var n = 0; while n < 40 { text = text + text; n += 1; } o.text = text; }";
    let setup = Setup::with(text, "[runtime]\nsteps = 1000000", &BTreeMap::new());
    let error = setup.call("spin", &[("o", "1")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the transaction took more steps than it may before its first commit"
    );
    let error = setup.call("grow", &[("o", "1")]).unwrap_err();
    assert!(error.to_string().starts_with("a string of "), "{error}");
    assert_eq!(setup.show("O", "1"), json!(null));
}

/// Polls a call so many times, drops it, and lets the world run on.
fn give_up_after(setup: &Setup, polls: usize) -> bool {
    let arguments = setup
        .database
        .arguments("deposit", [("to", "ana"), ("amount", "20")])
        .expect("the arguments are right");
    let mut done = false;
    {
        let mut call = pin!(setup.database.call("deposit", arguments, Session::default()));
        let mut polled = 0;
        let mut turn = |context: &mut Context<'_>| {
            if polled == polls {
                return Poll::Ready(false);
            }
            polled += 1;
            let finished = call.as_mut().poll(context).is_ready();
            if finished { Poll::Ready(true) } else { Poll::Pending }
        };
        // The task of the call runs on between two polls; time passes when all wait.
        done |= setup.world.block_on(std::future::poll_fn(&mut turn));
    }
    setup.world.block_on(setup.world.sleep(std::time::Duration::from_mins(1)));
    done
}

#[test]
fn a_caller_that_goes_away_leaves_it_undone_or_finished() {
    let binding = "[stores.accounts]\ndistance = \"85ms\"\n[stores.feed]\ndistance = \"1ms\"";
    let (mut undone, mut finished) = (0, 0);
    // The call's future is polled when it starts and when it ends; its task has an await point
    // for each store call, at which the world's clock moves. So the caller goes away after each
    // millisecond that the call may take.
    for ms in 0..200 {
        let setup = Setup::with(BANK, binding, &BTreeMap::new());
        let arguments = setup
            .database
            .arguments("deposit", [("to", "ana"), ("amount", "20")])
            .expect("the arguments are right");
        {
            let mut call = pin!(setup.database.call("deposit", arguments, Session::default()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(call.as_mut().poll(&mut context).is_pending());
            setup.world.block_on(setup.world.sleep(std::time::Duration::from_millis(ms)));
            let _ = call.as_mut().poll(&mut context);
        }
        setup.world.block_on(setup.world.sleep(std::time::Duration::from_mins(1)));
        let (account, inbox) = (setup.show("Account", "ana"), setup.show("Inbox", "ana"));
        assert_eq!(
            account.is_null(),
            inbox.is_null(),
            "half done after {ms} ms: {account} and {inbox}"
        );
        if account.is_null() { undone += 1 } else { finished += 1 }
    }
    assert!(undone > 0 && finished > 0, "{undone} undone, {finished} finished");
    assert!(give_up_after(&Setup::with(BANK, binding, &BTreeMap::new()), usize::MAX));
    assert!(!give_up_after(&Setup::with(BANK, binding, &BTreeMap::new()), 0));
}

#[test]
fn replicas_have_views_of_their_own() {
    let binding =
        "[stores.accounts]\n[stores.feed]\nreplicas = [\"oslo\", \"rome\"]\ndelay = \"40ms\"";
    let setup = Setup::with(BANK, binding, &BTreeMap::new());
    setup.ok("deposit", &[("to", "ana"), ("amount", "20")]);
    let inbox = setup.database.object("Inbox", "ana").expect("the kind is right");
    let at = |replica: &str| Session::at(replica);
    let see = |replica: &str| {
        setup.world.block_on(setup.database.show(&inbox, &at(replica), 10)).expect("it answers")
    };
    assert_eq!(see("rome"), json!(null));
    assert_eq!(see("oslo"), json!({"owner": "ana", "messages": ["got 20"]}));
    setup.world.advance(std::time::Duration::from_millis(41));
    assert_eq!(see("rome"), see("oslo"));
    let session = at("bern");
    let error = setup.world.block_on(setup.database.show(&inbox, &session, 10)).unwrap_err();
    assert!(error.to_string().contains("oslo"), "{error}");
}

#[test]
fn the_binding_of_the_book_is_one() {
    let book = include_str!("../../../../docs/binding.md");
    let text = book.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let binding =
        mingle::Binding::parse(text.expect("the book shows a binding")).expect("it is right");
    assert_eq!(binding.stores["inboxes"].engine.replicas(), ["oslo", "rome"]);
    let Engine::Embedded(groups) = &binding.stores["groups"].engine else { panic!("{binding:?}") };
    assert_eq!(groups.distance.to_string(), "85ms±10ms");
}

#[test]
fn values_in_values_are_bounded() {
    let setup = Setup::new(
        "store s: linearizable;
        struct Tree { parts: list<Tree> }
        struct Chain { rest: option<Chain> }
        transaction tree(count: int) -> Tree {
            var tree = Tree { parts: [] };
            var round = 0;
            while round < count { tree = Tree { parts: [tree, tree] }; round += 1; }
            return tree;
        }
        transaction chain(count: int) -> Chain {
            var chain = Chain { rest: none };
            var round = 0;
            while round < count { chain = Chain { rest: some(chain) }; round += 1; }
            return chain;
        }
        transaction spin() {
            var text = \"0123456789abcdef\";
            for _ in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16] { text = text + text; }
            while true { text = text + \"\"; }
        }\n",
    );
    setup.ok("chain", &[("count", "40")]);
    for (transaction, arguments) in
        [("tree", &[("count", "60")][..]), ("chain", &[("count", "100000")]), ("spin", &[])]
    {
        let error = setup.call(transaction, arguments).unwrap_err();
        assert!(matches!(error, Error::Limit(_)), "{transaction}: {error}");
    }
}

#[test]
fn mistakes_in_a_binding_are_named() {
    for (text, expected) in [
        ("[stores.a]\nengine = \"oracle\"", "stores.a.engine: "),
        ("[stores.a]\nengine = 7", "stores.a.engine: invalid type: integer `7`, expected a string"),
        ("[stores.a]\nreplcas = 3", "stores.a: unknown field `replcas`, expected one of"),
        (
            "[stores.a]\nreplicas = true",
            "stores.a: replicas: expected a number, or a list of names",
        ),
        ("[stores.a]\nreplicas = 0", "stores.a.replicas: expected at least one"),
        ("[stores.a]\nreplicas = 65", "stores.a.replicas: expected at most 64, found 65"),
        ("[stores.a]\ndelay = \"far\"", "stores.a.delay: "),
        ("[stores.a]\noperations = 3", "stores.a.operations: "),
        ("[store.a]", "unknown field `store`"),
        ("[stores.a]\nengine = \"postgres\"", "stores.a.url: expected the address of a server"),
        (
            "[stores.a]\nengine = \"postgres\"\nurl = \"\"\nservers = { b = \"\" }",
            "stores.a.url: expected either url",
        ),
        (
            "[stores.a]\nengine = \"postgres\"\nservers = { b = \"${MINGLE_NO_SUCH}\" }",
            "stores.a.servers.b",
        ),
        ("[stores.a]\nengine = \"redis\"\nurl = \"${X\"", "stores.a.url: expected } after ${"),
        (
            "[stores.a]\nengine = \"postgres\"\nurl = \"${MINGLE_NO_SUCH}\"",
            "stores.a.url: the environment has no variable \"MINGLE_NO_SUCH\"",
        ),
        (
            "[stores.a]\nengine = \"postgres\"\nurl = \"\"\nlock_timeout = \"soon\"",
            "stores.a.lock_timeout: ",
        ),
        (
            "[stores.a]\nengine = \"postgres\"\nurl = \"\"\nmigrate = \"never\"",
            "stores.a: unknown variant `never`, expected `auto` or `refuse`",
        ),
        (
            "[stores.a]\nengine = \"redis\"\nurl = \"\"\n[stores.a.objects.K.fields.f]\nkey = \"f\"",
            "stores.a: missing field `type`",
        ),
    ] {
        let error = mingle::Binding::parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn settings_of_the_runtime_come_from_the_binding() {
    let parse = mingle::Binding::parse;
    let text = "[runtime]\nhelp_after = \"50ms\"\nlease = \"20s\"\nsweep_every = \"2s\"";
    let settings = parse(text).expect("it is right").settings;
    assert_eq!(settings.help_after.as_millis(), 50);
    assert_eq!((settings.lease.as_secs(), settings.sweep_every.as_secs()), (20, 2));
    for (text, expected) in [
        ("[runtime]\nhelp_after = \"soon\"", "runtime.help_after"),
        ("[runtime]\nlease = \"6s\"", "runtime.lease: expected at least twice sweep_every"),
        ("[runtime]\nsweep_every = \"0s\"", "runtime.sweep_every"),
        ("[runtime]\nhelp_afer = \"1s\"", "help_afer"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
