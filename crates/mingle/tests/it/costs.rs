//! The cost of the guarantees: none if a transaction writes one store.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::shared::Stores;
use mingle::{Database, Session};
use mingle_store::DataStore;
use mingle_store::wrap::count::{Counters, CountingStore, Counts};

const TEXT: &str = "store bank: linearizable; store feed: causal; store journal: eventual;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; unread: counter; lines: log<string>; }
    object Day in journal { key name: string; count: counter; }
    transaction strong(a: ref Account) -> int { a.balance += 1; return a.balance; }
    transaction weak(i: ref Inbox) { i.unread.add(1); i.lines.append(\"x\"); }
    transaction weakest(d: ref Day) { d.count.add(1); }
    transaction look(a: ref Account, i: ref Inbox) -> int { return a.balance + i.unread.value(); }
    transaction maybe(a: ref Account, i: ref Inbox, paid: bool) {
        if paid { a.balance += 1; }
        i.unread.add(1);
    }
    transaction both(a: ref Account, i: ref Inbox) { a.balance += 1; i.unread.add(1); }
    transaction all(a: ref Account, i: ref Inbox, d: ref Day) {
        a.balance += 1; i.unread.add(1); d.count.add(1);
    }
    isolated transaction alone(a: ref Account, i: ref Inbox) { a.balance += 1; i.unread.add(1); }
    ";

const BINDING: &str = "[stores.bank]\ndistance = \"20ms\"\n[stores.feed]\nreplicas = 3\n\
    delay = \"40ms±10ms\"\ndistance = \"1ms\"\n[stores.journal]\nreplicas = 2\ndelay = \"30ms±10ms\"";

struct Counted {
    stores: Stores,
    server: Arc<Database>,
    counters: BTreeMap<String, Arc<Counters>>,
}

impl Counted {
    /// A server that does not sweep: all round trips are those of its transactions.
    fn new() -> Self {
        let mut counters = BTreeMap::new();
        let stores = Stores::wrapped(TEXT, BINDING, |name, store| {
            let (counted, counter) = CountingStore::new(store);
            counters.insert(name.to_owned(), counter);
            let counted: Arc<dyn DataStore> = counted;
            counted
        });
        let server = stores.server_over(stores.world.clone(), |_, store| store);
        Self { stores, server, counters }
    }

    /// Reads and commits at each store, until a minute after the call.
    fn cost(&self, transaction: &str, arguments: &[(&str, &str)]) -> BTreeMap<&str, (u64, u64)> {
        let now = |counter: &Counters| -> Counts { counter.now() };
        let before: Vec<Counts> = self.counters.values().map(|counter| now(counter)).collect();
        self.stores.ok(&self.server, &Session::default(), transaction, arguments);
        self.stores.pass(60);
        let after = self.counters.iter().zip(before);
        let costs = after.map(|((name, counter), before)| {
            let after = now(counter);
            let (reads, commits) = (after.reads - before.reads, after.commits - before.commits);
            let all = after.round_trips() - before.round_trips();
            assert_eq!(all, reads + commits, "{transaction} at {name}: {after:?}");
            (name.as_str(), (reads, commits))
        });
        costs.filter(|(_, cost)| *cost != (0, 0)).collect()
    }
}

#[test]
fn who_writes_one_store_pays_nothing() {
    let counted = Counted::new();
    for _ in 0..2 {
        for (transaction, arguments, expected) in [
            ("strong", vec![("a", "ana")], vec![("bank", (1, 1))]),
            ("weak", vec![("i", "ana")], vec![("feed", (0, 1))]),
            ("weakest", vec![("d", "monday")], vec![("journal", (0, 1))]),
            ("look", vec![("a", "ana"), ("i", "ana")], vec![("bank", (1, 0)), ("feed", (1, 0))]),
            // The plan writes two stores; this call writes one.
            ("maybe", vec![("a", "ana"), ("i", "ana"), ("paid", "false")], vec![("feed", (0, 1))]),
        ] {
            let cost = counted.cost(transaction, &arguments);
            assert_eq!(cost, BTreeMap::from_iter(expected), "{transaction}");
        }
    }
    assert_eq!(counted.stores.found(), Vec::<String>::new());
}

#[test]
fn the_caller_of_two_stores_waits_for_no_more_round_trips() {
    let counted = Counted::new();
    let arguments = [("a", "ana"), ("i", "ana")];
    let report = counted.stores.call(&counted.server, &Session::default(), "both", &arguments);
    let report = report.expect("it runs");
    let trips: Vec<u32> = report.phases.iter().map(|phase| phase.round_trips).collect();
    // A read and a commit, and a commit: the intent and the witness travel with the writes.
    assert_eq!(trips, [2, 1]);
    assert!(report.id.is_some());
}

#[test]
fn a_minute_later_nothing_is_left_but_floors_and_the_program() {
    for transaction in ["both", "all", "alone"] {
        let counted = Counted::new();
        let mut arguments = vec![("a", "ana"), ("i", "ana")];
        if transaction == "all" {
            arguments.push(("d", "monday"));
        }
        for replica in ["r1", "r2", "r1"] {
            let session = Session::at(replica);
            counted.stores.ok(&counted.server, &session, transaction, &arguments);
        }
        assert_ne!(
            counted.stores.left(),
            Vec::<String>::new(),
            "{transaction}: at first it is there"
        );
        counted.stores.pass(60);
        assert_eq!(counted.stores.left(), Vec::<String>::new(), "{transaction}");
        let found = counted.stores.found();
        let programs = found.iter().filter(|found| found.contains(": Program ")).count();
        assert_eq!(programs, 1, "{transaction}: {found:?}");
        assert!(found.iter().any(|found| found.starts_with("bank/: Floor ")), "{found:?}");
        assert!(found.iter().any(|found| found.starts_with("feed/r3: Floor ")), "{found:?}");
        // The next transaction again pays nothing extra.
        let cost = counted.cost("strong", &[("a", "ana")]);
        assert_eq!(cost, BTreeMap::from([("bank", (1, 1))]), "{transaction}");
    }
}
