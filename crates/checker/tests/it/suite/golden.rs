//! Known anomalies: the models that allow each, those that reject it, and the explanations.
//!
//! A file begins with a sentence that states the claim, and the models; the counterexamples follow
//! `---`. `MINGLE_BLESS=1` rewrites them: read the difference before you commit it.

use std::fmt::Write as _;

use mingle_checker::{Model, Verdict, check};

use super::files;

/// The models that a file lists as allowed, rejected and unknown.
struct Expected {
    allowed: Vec<Model>,
    rejected: Vec<Model>,
    unknown: Vec<Model>,
}

fn models(header: &str, word: &str) -> Vec<Model> {
    let start = format!("# {word}: ");
    let line = header.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default();
    line.split_whitespace().map(|name| Model::find(name).expect("a model")).collect()
}

#[test]
fn anomalies_are_accepted_and_rejected_as_the_models_say() {
    let all = files::histories();
    assert!(all.len() >= 28, "{} files", all.len());
    for (name, text) in all {
        let (header, rest) = text.split_once("\n\n").expect("a header and a history");
        let (body, shown) = rest.split_once("---\n").expect("a history and counterexamples");
        let is_claim = header.lines().next().is_some_and(|line| line.ends_with('.'));
        assert!(is_claim, "{name} begins with a sentence");
        let expected = Expected {
            allowed: models(header, "allowed"),
            rejected: models(header, "rejected"),
            unknown: models(header, "unknown"),
        };
        let count = expected.allowed.len() + expected.rejected.len() + expected.unknown.len();
        assert_eq!(count, Model::ALL.len(), "{name} speaks of every model once");
        let found = counterexamples(&name, body, &expected);
        if files::bless() {
            files::write(&name, &format!("{header}\n\n{body}---\n{found}"));
        } else {
            assert_eq!(found, shown, "{name}");
        }
    }
}

/// Checks the verdicts, and returns the counterexamples of all models that reject.
fn counterexamples(name: &str, body: &str, expected: &Expected) -> String {
    let history = files::read(body);
    let mut found = String::new();
    for model in Model::ALL {
        let verdict = check(&history, model);
        let list = match &verdict {
            Verdict::Satisfied(_) => &expected.allowed,
            Verdict::Violated(_) => &expected.rejected,
            Verdict::Unknown(_) => &expected.unknown,
        };
        assert!(list.contains(&model), "{name}: {model}: {verdict}");
        if verdict.is_violated() {
            write!(found, "{verdict}").expect("writing to a string does not fail");
        }
    }
    found
}

#[test]
fn stronger_models_reject_more() {
    for (name, text) in files::histories() {
        let (_, rest) = text.split_once("\n\n").expect("a header and a history");
        let (body, _) = rest.split_once("---\n").expect("a history and counterexamples");
        let history = files::read(body);
        let chain = [Model::Serializability, Model::Snapshot, Model::CausalPlus];
        for weaker in [Model::Causal, Model::ReadAtomic] {
            let verdicts = chain.iter().chain([&weaker]).map(|model| check(&history, *model));
            let satisfied: Vec<bool> = verdicts.map(|verdict| verdict.is_satisfied()).collect();
            assert!(satisfied.is_sorted(), "{name}: {satisfied:?}");
        }
    }
}
