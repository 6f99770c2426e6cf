//! Large runs: several thousand transactions over several dozen items.
//!
//! No test reads a clock; a checker with quadratic cost in the transactions would take minutes.

use mingle_checker::geo::{Action, Content, Promise, check};

use super::random::{Shape, run};

const LARGE: Shape =
    Shape { steps: 40_000, sessions: 30, items: 8, ids: 20, has_loss: true, delivers: 3 };

#[test]
fn a_large_run_is_checked_and_one_wrong_value_in_it_found() {
    let mut run = run(1, &LARGE);
    let report = check(&run);
    assert!(report.is_kept(), "{report}");
    let counts = report.counts;
    assert!(counts.transactions > 4_000 && counts.reads > 8_000, "{counts:?}");
    let calls = run.sessions.iter_mut().flat_map(|session| &mut session.calls);
    let transactions = calls.filter_map(|call| match &mut call.what {
        mingle_checker::geo::What::Transaction(transaction) => Some(transaction),
        _ => None,
    });
    let mut actions = transactions.flat_map(|transaction| transaction.actions.iter_mut().rev());
    let last = actions.rfind(|action| matches!(action, Action::Read { found: Content::Log(lines), .. } if lines.len() > 1));
    let Some(Action::Read { found: Content::Log(lines), .. }) = last else { panic!("a read") };
    lines.pop();
    let report = check(&run);
    assert!(report.broken().contains(&Promise::ReturnValues), "{report}");
    assert!(report.to_string().contains("lacks a transaction of its snapshot"), "{report}");
}
