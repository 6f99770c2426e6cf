//! The phases of a transaction as text for people.

use std::fmt::Write as _;

use super::{Explained, ExplainedPhase, RoundTrips};
use crate::split::Mode;

/// Renders the text that `mingle explain` prints for one transaction.
pub fn render(explained: &Explained) -> String {
    let mut text = format!("{}\n", explained.signature);
    for (index, phase) in explained.phases.iter().enumerate() {
        text.push('\n');
        render_phase(&mut text, index + 1, phase);
    }
    text
}

fn render_phase(text: &mut String, number: usize, phase: &ExplainedPhase) {
    let place = match (&phase.store, &phase.level) {
        (Some(store), Some(level)) => format!("{store} ({level})"),
        _ => "no store".into(),
    };
    let mode = match (phase.mode, phase.before_endorsement) {
        (_, true) => "reads ahead, for an endorsement",
        (Mode::Read, _) => "reads",
        (Mode::Write, _) => "writes",
    };
    let mut push = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    let beside = if phase.is_beside { ", to the worker of its store" } else { "" };
    let trips = round_trips(&phase.round_trips);
    let waits = match phase.wait_ms {
        (0, 0) => String::new(),
        (once, 0) => format!("; waits at most {once} ms for its bounds"),
        (once, rounds) => {
            format!("; waits at most {once} ms for its bounds, and {rounds} ms in each round")
        }
    };
    push(format!("  phase {number}: {place}, {mode}; {trips}{beside}{waits}"));
    for line in &phase.code {
        push(format!("      {line}"));
    }
    for (title, list) in [("hands on", &phase.records), ("was handed", &phase.replays)] {
        if !list.is_empty() {
            push(format!("    {title}: {}", list.join(", ")));
        }
    }
}

fn round_trips(cost: &RoundTrips) -> String {
    let plural = |count: u32| if count == 1 { "round trip" } else { "round trips" };
    let mut text = format!("{} {}", cost.fixed, plural(cost.fixed));
    for extra in &cost.per_iteration {
        let rounds = match extra.iterations {
            1 => "in each round".to_owned(),
            many => format!("for each {many} rounds"),
        };
        write!(text, ", and {} {rounds} of the loop at line {}", extra.count, extra.line)
            .expect("writing to a string cannot fail");
    }
    text
}
