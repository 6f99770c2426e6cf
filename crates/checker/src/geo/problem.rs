//! The result of a check of a run: the broken promises, with the place of each problem.

use std::fmt;

use mingle_model::{TransactionId, Value};

use super::any::{Body, Element};
use super::history::{Content, Item};
use crate::limits::{SHOWN_AROUND, SHOWN_VALUES_MAX};

/// A promise of the store, with a checker of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// The run is recorded correctly. Otherwise nothing else is checked.
    Recording,
    /// Causality preservation: vectors make an order that is transitive and irreflexive and
    /// includes session order, across tokens and data centers (UniStore §3).
    CausalOrder,
    /// Return value consistency: every value read is the value of its snapshot (UniStore §3).
    ReturnValues,
    /// The reads of registers are causal+, independent of vectors.
    Registers,
    /// The order of last writers extends causality and is the same everywhere.
    VersionOrder,
    /// No transaction sees only a part of another.
    Atomicity,
    /// A transaction committed at a data center that is not lost becomes visible everywhere; no
    /// other transaction does, and none takes effect twice.
    EventualVisibility,
    /// Uniform transactions survive the loss of `f` data centers, and sessions continue with them.
    Uniformity,
    /// Commits continue, and no call is stuck.
    Liveness,
    /// Only one of several operations with one id counts, and none is accepted below a floor.
    OperationIds,
    /// A transaction sees what was acknowledged to any session of its process, at its data center,
    /// before it began.
    ProcessOrder,
    /// One of two conflicting strong transactions has seen the other (UniStore §3).
    ConflictOrder,
    /// Strong transactions take effect in the order of their timestamps, which agrees with real
    /// time.
    StrictSerializability,
    /// Invariants kept by strong transactions hold: no account is overdrawn.
    Invariants,
}

impl Promise {
    /// All promises, in the order in which they are checked.
    pub const ALL: [Self; 14] = [
        Self::Recording,
        Self::CausalOrder,
        Self::ReturnValues,
        Self::Registers,
        Self::VersionOrder,
        Self::Atomicity,
        Self::EventualVisibility,
        Self::Uniformity,
        Self::Liveness,
        Self::OperationIds,
        Self::ProcessOrder,
        Self::ConflictOrder,
        Self::StrictSerializability,
        Self::Invariants,
    ];

    /// Returns the name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::CausalOrder => "causal-order",
            Self::ReturnValues => "return-values",
            Self::Registers => "registers",
            Self::VersionOrder => "version-order",
            Self::Atomicity => "atomicity",
            Self::EventualVisibility => "eventual-visibility",
            Self::Uniformity => "uniformity",
            Self::Liveness => "liveness",
            Self::OperationIds => "operation-ids",
            Self::ProcessOrder => "process-order",
            Self::ConflictOrder => "conflict-order",
            Self::StrictSerializability => "strict-serializability",
            Self::Invariants => "invariants",
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A violation of a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The promise.
    pub promise: Promise,
    /// A description in one line, without a full stop.
    pub what: String,
    /// The transactions concerned; the first is the one at which the problem shows.
    pub transactions: Vec<TransactionId>,
    /// The item, if the problem concerns one.
    pub item: Option<Item>,
    /// The data center, if the problem concerns one.
    pub dc: Option<u8>,
    /// The expected value.
    pub expected: String,
    /// The value found.
    pub found: String,
}

impl Problem {
    pub(crate) fn new(promise: Promise, what: impl Into<String>) -> Self {
        Self {
            promise,
            what: what.into(),
            transactions: Vec::new(),
            item: None,
            dc: None,
            expected: String::new(),
            found: String::new(),
        }
    }

    pub(crate) fn of(mut self, transactions: impl IntoIterator<Item = TransactionId>) -> Self {
        self.transactions.extend(transactions);
        self
    }

    pub(crate) fn at(mut self, item: Item) -> Self {
        self.item = Some(item);
        self
    }

    pub(crate) fn in_dc(mut self, dc: u8) -> Self {
        self.dc = Some(dc);
        self
    }

    pub(crate) fn values(mut self, expected: impl ToString, found: impl ToString) -> Self {
        (self.expected, self.found) = (expected.to_string(), found.to_string());
        self
    }

    /// Adds the contents that were expected and found, cut to the first difference.
    pub(crate) fn contents(self, expected: &Content, found: &Content) -> Self {
        let (expected, found) = (pieces(expected), pieces(found));
        let same = expected.iter().zip(&found).take_while(|(one, other)| one == other).count();
        self.values(cut(&expected, same), cut(&found, same))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)?;
        if let Some(dc) = self.dc {
            write!(f, ", at d{dc}")?;
        }
        if let Some(item) = self.item {
            write!(f, ", {item}")?;
        }
        for (index, id) in self.transactions.iter().enumerate() {
            let before = if index == 0 { "; transactions" } else { "," };
            write!(f, "{before} {}", Short(id))?;
        }
        if !self.expected.is_empty() || !self.found.is_empty() {
            write!(f, "; expected {}, found {}", self.expected, self.found)?;
        }
        Ok(())
    }
}

fn pieces(content: &Content) -> Vec<String> {
    fn all<T: fmt::Debug>(values: &[T]) -> Vec<String> {
        values.iter().map(|value| format!("{value:?}")).collect()
    }
    match content {
        Content::Register(values) | Content::Set(values) | Content::Log(values) => all(values),
        Content::Counter(sum) => vec![sum.to_string()],
        Content::Map { entries, counts } => {
            let entries = entries.iter().map(|(key, value)| format!("{key:?}={value:?}"));
            entries.chain(counts.iter().map(|(key, sum)| format!("{key:?}+{sum}"))).collect()
        }
        Content::Item { body, deadline_us } => {
            let deadline = deadline_us.map(|at_us| format!("until {at_us} us"));
            body.iter().flat_map(of_body).chain(deadline).collect()
        }
    }
}

/// Returns the type of a content, and its parts.
fn of_body(body: &Body) -> Vec<String> {
    let pairs = |entries: &[(Value, Value)]| {
        entries.iter().map(|(key, value)| format!("{key:?}={value:?}")).collect()
    };
    let (name, parts): (&str, Vec<String>) = match body {
        Body::Value(value) => ("value", vec![format!("{value:?}")]),
        Body::Hash(fields) => ("hash", pairs(fields)),
        Body::Set(members) => ("set", members.iter().map(|member| format!("{member:?}")).collect()),
        Body::SortedSet(scores) => ("sorted set", pairs(scores)),
        Body::List(elements) => {
            let shown = elements.iter().map(|(Element { transaction, index }, value)| {
                format!("{value:?} of {}/{index}", Short(transaction))
            });
            ("list", shown.collect())
        }
    };
    [name.to_owned()].into_iter().chain(parts).collect()
}

/// Returns at most [`SHOWN_VALUES_MAX`] pieces, from shortly before the first that differs.
fn cut(pieces: &[String], same: usize) -> String {
    let first = same.saturating_sub(SHOWN_AROUND);
    let shown = &pieces[first.min(pieces.len())..];
    let last = shown.len().min(SHOWN_VALUES_MAX);
    let (before, after) = (first.min(pieces.len()), shown.len() - last);
    let before = if before > 0 { format!("{before} more, ") } else { String::new() };
    let after = if after > 0 { format!(", {after} more") } else { String::new() };
    format!("[{before}{}{after}]", shown[..last].join(", "))
}

/// A transaction's id in the form used in messages.
pub(crate) struct Short<'a>(pub &'a TransactionId);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.0.origin.0, self.0.sequence)
    }
}
