//! Wording shared by the flow diagnostics: the steps of a path and its two ends.

use super::Label;
use crate::syntax::Span;

/// A store, or an endorsement, and its level.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The store's name; empty for an endorsement.
    pub(crate) name: String,
    pub(crate) level: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.name.is_empty() {
            write!(f, "a value endorsed as {}", self.level)
        } else {
            write!(f, "`{}` ({})", self.name, self.level)
        }
    }
}

/// The facts about a flow that breaks a rule.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// The origin of the weaker data.
    pub(crate) source: Place,
    /// The store that it reaches, whose level is stronger or incomparable.
    pub(crate) target: Place,
    /// True if the levels are incomparable.
    pub(crate) is_incomparable: bool,
    /// True if the effect at that store is a read.
    pub(crate) is_read: bool,
    /// The statement that may fail, in words.
    pub(crate) failing: String,
    /// The path.
    pub(crate) labels: Vec<Label>,
    /// The effect.
    pub(crate) span: Span,
}

impl Fact {
    /// Returns the title's words for the reached store.
    pub(crate) fn reached(&self) -> String {
        if self.is_incomparable {
            return format!("the store {}, neither weaker nor stronger", self.target);
        }
        format!("the stronger store {}", self.target)
    }
}

pub(crate) fn read(source: &Place) -> String {
    format!("read from {source} here")
}

pub(crate) fn endorsed(source: &Place) -> String {
    format!("{source}, which is no stronger than that")
}

pub(crate) fn at_own(source: &Place) -> String {
    format!("whether this succeeds depends on {source}")
}

pub(crate) fn called() -> String {
    "in the function that is called here".into()
}

pub(crate) fn assigned(name: &str) -> String {
    format!("carried into `{name}` here")
}

pub(crate) fn iterated(name: &str) -> String {
    format!("`{name}` is one of what is iterated here")
}

pub(crate) fn decides_value(name: &str) -> String {
    format!("decides here which value `{name}` has")
}

pub(crate) fn decides() -> String {
    "decides here whether what is inside runs".into()
}

pub(crate) fn returns() -> String {
    "may return here, so decides whether what follows runs".into()
}

pub(crate) fn reads(target: &Place) -> String {
    format!("{target} is read here")
}

pub(crate) fn writes(target: &Place) -> String {
    format!("{target} is written here")
}

pub(crate) fn unique_declared() -> String {
    "no two objects may have the same values here".into()
}

pub(crate) fn may_fail(target: &Place) -> String {
    format!("may fail here, when {target} has committed already")
}

pub(crate) fn may_not_end(target: &Place) -> String {
    format!("may not end here, when {target} has committed already")
}

pub(crate) fn command_may_fail(target: &Place) -> String {
    format!("the command may fail here, when {target} has committed already")
}

pub(crate) fn query_may_fail(target: &Place) -> String {
    format!("the query may fail here, when {target} has committed already")
}

/// Builds a diagnostic whose labels are the path.
pub(crate) fn diagnostic(code: super::Code, title: String, fact: Fact) -> super::Diagnostic {
    super::Diagnostic {
        code,
        title,
        span: fact.span,
        labels: fact.labels,
        notes: Vec::new(),
        help: Vec::new(),
    }
}
