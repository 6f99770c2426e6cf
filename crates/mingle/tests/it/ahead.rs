//! A read made ahead for a phase is fresh for the first attempt of the phase, and for no other.

use std::sync::Arc;
use std::time::Duration;

use crate::support::noting::Noting;
use crate::support::shared::Stores;
use mingle::Session;
use mingle_lang::hir::StoreId;
use mingle_store::wrap::fault::{Call as StoreCall, Fault, FaultPlan, FaultyStore};
use mingle_store::{Commit, Once, World};
use mingle_store_replay::{ReplayConfig, ReplayStore};

const TEXT: &str = "store bank: linearizable; store journal: eventual;
    object Account in bank { key owner: string; balance: int; }
    object Day in journal { key name: string; last: int; }
    transaction pay(to: ref Account, day: ref Day) {
        to.balance += 1;
        day.last = day.last + 1;
    }
    ";

const BINDING: &str = "[runtime]\nhelp_after = \"500ms\"\n[stores.bank]\ndistance = \"20ms\"\n\
    [stores.journal]\ndistance = \"1ms\"";

const PAY: [(&str, &str); 2] = [("to", "ana"), ("day", "monday")];

/// The commits that reach the bank and the journal during one `pay`, and the times of its begin and end.
fn paid(plan: &Arc<FaultPlan>) -> (Vec<Commit>, Vec<Commit>, [Duration; 2]) {
    let mut stores = Stores::new(TEXT, BINDING);
    // A journal that has several copies and counts one.
    let schema = stores.server().store_schema(StoreId(1));
    let replay = ReplayConfig::new(1, Once::ById);
    let journal = ReplayStore::open(replay, schema, stores.world.clone()).expect("it opens");
    let bank = Noting::around(stores.all[0].clone());
    // Failing commits are noted too.
    let journal = Noting::around(FaultyStore::new(journal, plan.clone()));
    stores.all = vec![bank.clone(), journal.clone()];
    let server = stores.server();
    let begin = stores.world.elapsed();
    stores.ok(&server, &Session::at("r1"), "pay", &PAY);
    (bank.take(), journal.take(), [begin, stores.world.elapsed()])
}

/// Commits of a phase that another process might repeat.
fn operations(commits: Vec<Commit>) -> Vec<Commit> {
    commits.into_iter().filter(|commit| commit.operation.is_some()).collect()
}

#[test]
fn a_phase_that_goes_on_in_what_was_read_ahead_says_until_when_that_is_fresh() {
    let (bank, journal, [begin, end]) = paid(&FaultPlan::scripted([]));
    assert!(!bank.is_empty() && bank.iter().all(|commit| commit.fresh_until.is_none()));
    let phases = operations(journal);
    assert_eq!(phases.len(), 1);
    let until = phases[0].fresh_until.expect("it goes on");
    // Half of the time after which others finish it, counted from its reads.
    let half = Duration::from_millis(250);
    assert!((begin + half..=end + half).contains(&until), "{begin:?}, {end:?}, {until:?}");
}

#[test]
fn a_phase_that_is_tried_again_asks_anew() {
    let (_, journal, _) = paid(&FaultPlan::scripted([(StoreCall::Commit, 0, Fault::Conflict)]));
    let phases = operations(journal);
    assert_eq!(phases.len(), 2, "it was refused once");
    assert!(phases[0].fresh_until.is_some());
    assert_eq!(phases[1].fresh_until, None);
}
