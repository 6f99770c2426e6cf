//! A missing replica or store delays only the calls that visit it, and leaves nothing behind.

use std::ops::Range;
use std::time::Duration;

use mingle_sim::Flaw;
use mingle_sim::workload::outage::{Outage, Report};

/// The maximum number of witness rows for each open transaction.
const ROWS_MAX: f64 = 10.0;

fn run(away: &str, is_eventual: bool, flaw: &str) -> Report {
    run_over(100, away, is_eventual, flaw)
}

/// Runs an outage over so many objects of each kind.
fn run_over(objects: u8, away: &str, is_eventual: bool, flaw: &str) -> Report {
    let outage = Outage {
        objects,
        away: away.into(),
        is_eventual,
        around: Duration::from_secs(12),
        lasts: Duration::from_secs(20),
        ..Outage::default()
    };
    let flaw = if flaw.is_empty() { Flaw::None } else { Flaw::find(flaw).expect("it is one") };
    let report = outage.run(flaw);
    println!("{away} {is_eventual} {flaw}\n{report}");
    report
}

/// Returns the violated expectations of a report.
fn faults(report: &Report) -> Vec<String> {
    let mut faults = Vec::new();
    let mut demand = |holds: bool, fault: String| {
        if !holds {
            faults.push(fault);
        }
    };
    let before = 2..report.away.start;
    // The first seconds pass until the processes know that a part is missing.
    let meanwhile = report.away.start + 3..report.away.end;
    let (usual, kept) = (report.others(before.clone()), report.others(meanwhile.clone()));
    demand(kept >= 0.9 * usual, format!("others: {kept:.1} calls a second, {usual:.1} before"));
    let (usual, now) = (report.others_p99(before.clone()), report.others_p99(meanwhile));
    demand(now <= 2 * usual, format!("others take {now:?}, {usual:?} before"));
    let rows = report.rows_per_open();
    demand(rows <= ROWS_MAX, format!("{rows:.1} rows for each open transaction"));
    let after = report.away.end + 10..report.seconds.len() - 1;
    let (usual, again) = (report.all(before), report.all(after));
    demand(
        again >= 0.9 * usual,
        format!("afterwards {again:.1} calls a second, {usual:.1} before"),
    );
    let is_soon = report.rest.is_some_and(|rest| rest <= Duration::from_secs(30));
    demand(is_soon, format!("what is left is gone after {:?}", report.rest));
    demand(report.wrong.is_empty(), format!("{:?}", report.wrong));
    faults
}

#[test]
fn a_replica_that_is_away_holds_up_nobody_else() {
    for (away, is_eventual) in [("feed/r3", true), ("feed/r3", false), ("wall/r3", true)] {
        let report = run(away, is_eventual, "");
        assert_eq!(faults(&report), Vec::<String>::new(), "{away}");
        // The lanes of the other stores go on: their commit witnesses are no more than before.
        let most = |seconds: Range<usize>| {
            report.seconds[seconds].iter().map(|second| second.witnesses_elsewhere).max()
        };
        let (before, meanwhile) = (most(2..report.away.start), most(report.away.clone()));
        let bound = before.map(|before| 2 * before + 10);
        assert!(meanwhile <= bound, "{away}: {meanwhile:?} commit witnesses, {before:?} before");
    }
}

#[test]
fn rows_of_hot_objects_stay_bounded_while_a_replica_is_away() {
    for is_eventual in [true, false] {
        // One object of each kind, which all calls write.
        let report = run_over(1, "feed/r3", is_eventual, "");
        let rows = report.rows_per_open();
        assert!(rows <= ROWS_MAX, "{rows:.1} rows for each open transaction");
        assert!(report.rest.is_some_and(|rest| rest <= Duration::from_secs(30)));
        assert_eq!(report.wrong, Vec::<String>::new());
    }
}

#[test]
fn a_store_that_is_away_holds_up_nobody_else() {
    assert_eq!(faults(&run("feed", true, "")), Vec::<String>::new());
    // These stores come earlier in the order, and half of all calls visit them. Clients that were
    // using one when it went away have to wait for their own calls. But all is as before once it is
    // back, and rows do not multiply.
    for away in ["wall", "shop", "bank"] {
        let mut faults = faults(&run(away, true, ""));
        faults.retain(|fault| !fault.starts_with("others:"));
        assert_eq!(faults, Vec::<String>::new(), "{away}");
    }
}

#[test]
fn an_outage_that_is_not_contained_is_noticed() {
    assert_ne!(faults(&run("feed/r3", false, "AllPassedOn")), Vec::<String>::new());
    assert_ne!(faults(&run("feed", true, "NobodyAway")), Vec::<String>::new());
}
