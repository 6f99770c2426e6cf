//! Transactions with very many operations, for which quadratic steps would not finish.
//!
//! None of these tests reads a clock. A quadratic step takes 10^10 steps or more for 200,000
//! operations.

use mingle_checker::{Basis, History, Model, Verdict, check, read_jsonl, read_text, write_jsonl};

const OPERATIONS: usize = 200_000;

fn read(text: &str) -> History {
    read_text(text).expect("a history")
}

fn all_satisfied(history: &History) {
    for model in Model::ALL {
        // These two models require times, which the plain form cannot express.
        if !matches!(model, Model::StrictSerializability | Model::Mixed) {
            let verdict = check(history, model);
            assert!(verdict.is_satisfied(), "{model}: {verdict}");
        }
    }
}

/// One transaction writes all keys, another reads them all and writes them again.
#[test]
fn one_writer_and_one_reader() {
    let mut lines = Vec::new();
    lines.extend((0..OPERATIONS).map(|key| format!("w({key},1,1,1)")));
    lines.extend((0..OPERATIONS).map(|key| format!("r({key},1,2,2)")));
    lines.extend((0..OPERATIONS).map(|key| format!("w({key},2,2,2)")));
    let history = read(&lines.join("\n"));
    all_satisfied(&history);
    assert_eq!(read_jsonl(&write_jsonl(&history)).as_ref(), Ok(&history));
}

/// The reader reads from many writers, in a few sessions, each of which wrote two keys.
#[test]
fn many_writers_and_one_reader() {
    let writers = OPERATIONS / 10;
    let mut lines = Vec::new();
    for writer in 0..writers {
        let (a, b, session, id) = (writer, writers + writer, writer % 4, writer + 1);
        lines.push(format!("w({a},1,{session},{id})\nw({b},1,{session},{id})"));
    }
    lines.extend((0..2 * writers).map(|key| format!("r({key},1,9,{})", writers + 1)));
    all_satisfied(&read(&lines.join("\n")));
}

/// The search handles them too: the reader is listed before its writer, so the listed order does
/// not explain the reads.
#[test]
fn out_of_order() {
    let wide = OPERATIONS / 2;
    let mut lines = Vec::new();
    lines.extend((0..wide).map(|key| format!("r({key},1,2,2)")));
    lines.extend((0..wide).map(|key| format!("w({key},2,2,2)")));
    lines.extend((0..wide).map(|key| format!("w({key},1,1,1)")));
    // A third writer without readers leaves the order of the writes open.
    lines.extend((0..wide).map(|key| format!("w({key},3,3,3)")));
    let history = read(&lines.join("\n"));
    all_satisfied(&history);
    let Verdict::Satisfied(witness) = check(&history, Model::Serializability) else {
        panic!("it is serializable");
    };
    assert_eq!(witness.basis, Basis::Search);
}

/// A violation that only a search shows is made small, even within very wide transactions.
#[test]
fn a_wide_violation_is_made_small() {
    let wide = OPERATIONS / 40;
    let mut text = mingle_checker::write_text(&super::files::named("no_order.txt"));
    let lines: Vec<String> = (0..wide).map(|key| format!("w({},7,77,77)", 1_000 + key)).collect();
    text.push_str(&lines.join("\n"));
    let Verdict::Violated(found) = check(&read(&text), Model::Serializability) else {
        panic!("there is no order");
    };
    assert!(found.transactions.iter().all(|line| !line.starts_with("T77,")), "{found}");
}
