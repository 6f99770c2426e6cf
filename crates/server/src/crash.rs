//! Crashes on request: a developer asks for the end of the process at a step of a call, and sees what it
//! leaves. Only a server whose configuration has a [`Crash`] does so, which `mingle dev` is.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use mingle::{Event, Watcher};
use mingle_lang::explain::ExplainedPhase;
use mingle_lang::split::Mode;
use serde_json::{Value as Json, json};

use crate::problem::{Code, Problem};

/// The header that asks for a crash: `before N` or `after N`, with the index of a phase.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("mingle-crash");

/// Ends the process at once, as a crash does: nothing is written, finished or released first.
///
/// # Examples
///
/// ```
/// use mingle_server::Crash;
///
/// let crash = Crash::new(|| std::process::abort());
/// assert_eq!(format!("{crash:?}"), "Crash(..)");
/// ```
#[derive(Clone)]
pub struct Crash(Arc<dyn Fn() + Send + Sync>);

impl Crash {
    /// Wraps the function that ends the process.
    pub fn new(end: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(end))
    }
}

impl fmt::Debug for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Crash(..)")
    }
}

/// A place in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Before the phase of this index.
    Before(usize),
    /// After the commit of the phase of this index.
    After(usize),
}

impl Step {
    fn parse(text: &str, phases: usize) -> Option<Self> {
        let (moment, index) = text.split_once(' ')?;
        let index = index.parse().ok().filter(|index| *index < phases)?;
        match moment {
            "before" => Some(Self::Before(index)),
            "after" => Some(Self::After(index)),
            _ => None,
        }
    }

    fn is_reached(self, event: &Event) -> bool {
        match (self, event) {
            (Self::Before(index), Event::Began { phase, .. })
            | (Self::After(index), Event::Committed { phase, .. }) => index == *phase,
            _ => false,
        }
    }
}

/// A crash that a request asks for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    step: Step,
    crash: Crash,
}

impl Asked {
    /// Returns the crash that a request for a transaction with so many phases asks for, if it does.
    pub(crate) fn of(
        headers: &HeaderMap,
        crash: Option<&Crash>,
        phases: usize,
    ) -> Result<Option<Self>, Problem> {
        let Some(value) = headers.get(&HEADER) else { return Ok(None) };
        let Some(crash) = crash.cloned() else {
            let detail = "this server does not crash on request; one that `mingle dev` starts does";
            return Err(Problem::new(Code::InvalidArgument, detail));
        };
        let step = value.to_str().ok().and_then(|text| Step::parse(text, phases));
        let Some(step) = step else {
            let detail = format!(
                "expected Mingle-Crash: `before N` or `after N`, where N is a phase from 0 to {}, found {:?}",
                phases.saturating_sub(1),
                String::from_utf8_lossy(value.as_bytes()),
            );
            return Err(Problem::new(Code::InvalidArgument, detail));
        };
        Ok(Some(Self { step, crash }))
    }

    /// Returns a watcher that crashes the process at the step, after it has told the next watcher.
    pub(crate) fn watcher(self, next: Option<Watcher>) -> Watcher {
        Watcher::new(move |event| {
            let is_reached = self.step.is_reached(&event);
            if let Some(next) = &next {
                next.tell(event);
            }
            if is_reached {
                (self.crash.0)();
            }
        })
    }
}

/// Returns the steps of a transaction at which a crash leaves something else than one step before, each with
/// what it leaves.
pub(crate) fn steps(phases: &[ExplainedPhase]) -> Json {
    let mut steps = Vec::new();
    let (mut last, mut done) = (String::new(), Vec::new());
    for index in 0..phases.len() {
        let leaves = leaves(phases, &done);
        if leaves != last {
            steps.push(json!({ "step": format!("before {index}"), "leaves": leaves }));
        }
        done.push(index);
        let after = self::leaves(phases, &done);
        if after != leaves {
            steps.push(json!({ "step": format!("after {index}"), "leaves": after }));
        }
        last = after;
    }
    steps.into()
}

/// Returns what is left by a crash once these phases have committed.
fn leaves(phases: &[ExplainedPhase], done: &[usize]) -> String {
    let stores = |is_done: bool| {
        let writes = phases
            .iter()
            .enumerate()
            .filter(|(index, phase)| phase.mode == Mode::Write && done.contains(index) == is_done);
        let mut names: Vec<&str> = writes.filter_map(|(_, phase)| phase.store.as_deref()).collect();
        names.dedup();
        names
    };
    let (written, missing) = (stores(true), stores(false));
    if written.is_empty() {
        return "Nothing: no store has been written. The call can be made again.".to_owned();
    }
    if missing.is_empty() {
        return "Everything: only the answer is lost. The call with the same Idempotency-Key gets it."
            .to_owned();
    }
    let have = if written.len() == 1 { "has its writes" } else { "have their writes" };
    let get = if missing.len() == 1 { "gets its own" } else { "get theirs" };
    format!(
        "A promise: {} {have}, and {} {get} from this process after its start, or from another one.",
        written.join(" and "),
        missing.join(" and "),
    )
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn asked(value: &str, crash: Option<&Crash>) -> Result<Option<Step>, String> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_str(value).expect("it is a header"));
        let asked = Asked::of(&headers, crash, 2);
        asked
            .map(|asked| asked.map(|asked| asked.step))
            .map_err(|problem| problem.to_json().to_string())
    }

    #[test]
    fn a_crash_is_asked_for_at_a_step_of_a_server_that_allows_it() {
        let crash = Crash::new(|| {});
        assert_eq!(asked("before 0", Some(&crash)), Ok(Some(Step::Before(0))));
        assert_eq!(asked("after 1", Some(&crash)), Ok(Some(Step::After(1))));
        for wrong in ["after 2", "after", "", "after -1", "during 1", "after 1 "] {
            let error = asked(wrong, Some(&crash)).expect_err(wrong);
            assert!(error.contains("from 0 to 1"), "{error}");
        }
        let error = asked("after 1", None).expect_err("it is not allowed");
        assert!(error.contains("mingle dev"), "{error}");
        assert!(Asked::of(&HeaderMap::new(), None, 2).is_ok_and(|asked| asked.is_none()));
    }

    #[test]
    fn what_a_crash_leaves_is_told_for_each_step() {
        let text = "store bank: linearizable; store feed: causal;
            object Account in bank { key name: string; balance: int; }
            object Wall in feed { key owner: string; lines: log<string>; }
            transaction pay(from: ref Account, wall: ref Wall) {
                from.balance -= 1;
                wall.lines.append(\"paid\");
            }
            transaction balance(of: ref Account) -> int { return of.balance; }";
        let checked = mingle_lang::check(text);
        let program = checked.program.as_ref().expect("it is right");
        let told = |name: &str| {
            let plan = program.plan(name).expect("it is there");
            let explained = mingle_lang::explain::explain(&checked.source, program, plan);
            let steps = steps(&explained.phases);
            let steps = steps.as_array().expect("it is a list").iter();
            steps
                .map(|step| {
                    let leaves = step["leaves"].as_str().expect("it is text");
                    let first = leaves.split(':').next().expect("it has a first word");
                    format!("{}: {first}", step["step"].as_str().expect("it is text"))
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(told("pay"), ["before 0: Nothing", "after 0: A promise", "after 1: Everything"]);
        assert_eq!(told("balance"), ["before 0: Nothing"]);
    }
}
