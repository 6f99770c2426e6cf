//! Diagnostics: the mistakes in a program, as data.
//!
//! Each code has its own files: `m0301.md` holds the text that `mingle explain` prints, `m0301.rs`
//! the wording of the message. The rest of the compiler passes facts and never chooses words.

pub(crate) mod alias;
pub(crate) mod allowed;
mod cut;
mod edit;
pub(crate) mod flow;
mod json;
mod render;

use std::fmt;

use crate::syntax::Span;

pub use allowed::allowing;
pub use edit::{apply_edits, edited_source};
pub use json::{diagnostics_to_json, endorsements_to_json, to_json};
pub use render::{render_human, render_short};

macro_rules! codes {
    ($($module:ident $code:ident $severity:ident $summary:literal,)*) => {
        $(pub(crate) mod $module;)*

        /// A stable code: errors start with `M`, warnings with `W`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum Code { $($code,)* }

        impl Code {
            /// All codes, errors first.
            pub const ALL: &[Self] = &[$(Self::$code,)*];

            /// Returns the code as text.
            pub fn text(self) -> &'static str {
                match self { $(Self::$code => stringify!($code),)* }
            }

            /// Returns the code's severity.
            pub fn severity(self) -> Severity {
                match self { $(Self::$code => Severity::$severity,)* }
            }

            /// Returns a one-line summary.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$code => $summary,)* }
            }

            /// Returns what the mistake is, why it is unsound, how to mend it, and an example, as
            /// Markdown.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$code => include_str!(concat!(stringify!($module), ".md")),)* }
            }
        }
    };
}

codes! {
    m0001 M0001 Error "unexpected token or character",
    m0002 M0002 Error "`return` in a loop",
    m0101 M0101 Error "unknown name",
    m0102 M0102 Error "name declared twice",
    m0103 M0103 Error "`between` names levels that are not strictly ordered",
    m0201 M0201 Error "types differ, or a type is not allowed here",
    m0202 M0202 Error "wrong number or names of arguments or fields",
    m0203 M0203 Error "assignment to what cannot be assigned",
    m0204 M0204 Error "the operation does not exist on this type",
    m0205 M0205 Error "a path ends without the value that the transaction returns",
    m0206 M0206 Error "a collection outside an object's field",
    m0301 M0301 Error "weaker data is written to a stronger store",
    m0302 M0302 Error "a weaker condition decides whether a stronger store is touched",
    m0303 M0303 Error "a weaker ref names the object that is touched",
    m0304 M0304 Error "what may fail depends on data weaker than what the transaction writes",
    m0305 M0305 Error "stores of one level need each other's data",
    m0306 M0306 Error "a loop that may not end depends on data weaker than what the transaction writes",
    m0307 M0307 Error "a command or query may fail after a stronger store has committed",
    m0401 M0401 Error "`endorse` without a reason",
    m0402 M0402 Error "`endorse` of what the transaction itself may have written",
    m0403 M0403 Error "an `isolated` transaction visits a store for an `endorse`, and again afterwards",
    m0404 M0404 Error "`endorse` where it cannot be known in time whether it counts",
    m0601 M0601 Error "a policy where none can stand",
    m0602 M0602 Error "an answer that may be weak or late is used as a plain value",
    m0603 M0603 Error "the arms of a `match` over an answer are incomplete or out of order",
    m0605 M0605 Error "a write that could leave the bounds of a counter",
    m0606 M0606 Error "a policy, or a `take` that runs ahead, in an `isolated` transaction",
    m0607 M0607 Error "a `take` or `give` where it cannot stand",
    m0608 M0608 Error "a `unique` at a store that cannot keep it",
    m0701 M0701 Error "a file that cannot be imported",
    w0403 W0403 Warning "endorsement without effect",
    w0501 W0501 Warning "unused variable, parameter, object or store",
    w0502 W0502 Warning "two writes without an atomic commit",
    w0503 W0503 Warning "uniqueness checked where it cannot be promised",
    w0504 W0504 Warning "`allow` without effect",
    w0601 W0601 Warning "an arm for a level that no answer has",
}

impl Code {
    /// Returns the code with this text, ignoring case.
    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.text().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The program does not run.
    Error,
    /// The program runs, but probably not as intended.
    Warning,
}

impl Severity {
    /// Returns `error` or `warning`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One mistake in a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Its code.
    pub code: Code,
    /// One line that is understandable alone.
    pub title: String,
    /// The place of the mistake.
    pub span: Span,
    /// Marked places with explanations; the first is at `span`. The labels of a flow stand in the
    /// order of its path.
    pub labels: Vec<Label>,
    /// Additional information.
    pub notes: Vec<String>,
    /// Advice, the smallest change or the strongest guarantee first.
    pub help: Vec<Help>,
}

impl Diagnostic {
    /// Creates a diagnostic with a label at its place.
    pub fn new(code: Code, title: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        let labels = vec![Label { span, message: label.into() }];
        Self { code, title: title.into(), span, labels, notes: Vec::new(), help: Vec::new() }
    }

    /// Adds a label.
    pub fn with_label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: message.into() });
        self
    }

    /// Adds a note.
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds a piece of advice.
    pub fn with_help(mut self, message: impl Into<String>, edits: Vec<Edit>) -> Self {
        self.help.push(Help { message: message.into(), edits });
        self
    }

    /// Returns its severity.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// Returns every span in it.
    pub(crate) fn spans_mut(&mut self) -> impl Iterator<Item = &mut Span> {
        let edits = self.help.iter_mut().flat_map(|help| &mut help.edits);
        let labels = self.labels.iter_mut().map(|label| &mut label.span);
        std::iter::once(&mut self.span).chain(labels).chain(edits.map(|edit| &mut edit.span))
    }
}

/// A marked place with an explanation.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The explanation.
    pub message: String,
}

/// Advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Help {
    /// The advice in words.
    pub message: String,
    /// The advice as changes to the text; empty if edits alone cannot express it.
    pub edits: Vec<Edit>,
}

/// A change to the text: `text` replaces the text at `span`. An empty span inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The replaced part.
    pub span: Span,
    /// The new text.
    pub text: String,
}

/// A collector of diagnostics: it drops repeats and keeps at most [`DIAGNOSTICS_MAX`] errors and as
/// many warnings.
#[derive(Debug, Default)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    warnings: usize,
    seen: std::collections::HashSet<(Span, Code)>,
    /// The number of diagnostics dropped beyond the limit.
    pub omitted: usize,
    /// The number of errors, shown or not.
    pub errors: usize,
    /// True if parts of the program could not be read. Reports of unknown names and warnings may
    /// then be wrong, so they are dropped.
    pub only_certain: bool,
    /// True if warnings are dropped: the program has mistakes in its syntax, and a warning may be
    /// about a part that was not read as it is meant.
    pub no_warnings: bool,
}

/// The maximum number of errors, and of warnings, shown for a program.
pub const DIAGNOSTICS_MAX: usize = 1_000;

impl Diagnostics {
    /// Adds a diagnostic unless the same code was reported at the same place.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.only_certain
            && (matches!(diagnostic.code, Code::M0101 | Code::M0002)
                || diagnostic.severity() == Severity::Warning)
        {
            return;
        }
        if self.no_warnings && diagnostic.severity() == Severity::Warning {
            return;
        }
        if self.seen.insert((diagnostic.span, diagnostic.code)) {
            self.push_distinct(diagnostic);
        } else {
            self.errors += usize::from(diagnostic.severity() == Severity::Error);
        }
    }

    /// Adds a diagnostic even if its code was reported at the same place.
    pub fn push_distinct(&mut self, diagnostic: Diagnostic) {
        let is_error = diagnostic.severity() == Severity::Error;
        self.errors += usize::from(is_error);
        // Warnings have their own limit: no number of warnings hides an error.
        let kept = if is_error { self.found.len() - self.warnings } else { self.warnings };
        if kept >= DIAGNOSTICS_MAX {
            self.omitted += 1;
        } else {
            self.warnings += usize::from(!is_error);
            self.found.push(cut::cut(diagnostic));
        }
    }

    /// True if any is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// True if no more errors are kept.
    pub fn is_full(&self) -> bool {
        self.found.len() - self.warnings >= DIAGNOSTICS_MAX
    }

    /// Returns the name in `known` closest to a misspelled `name`; none if further errors are
    /// dropped.
    pub(crate) fn near_miss<'a>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        if self.is_full() { None } else { near_miss(name, known) }
    }

    /// Returns the kept diagnostics in the order of their reports.
    pub(crate) fn found(&self) -> &[Diagnostic] {
        &self.found
    }

    /// Like [`Self::found`], but consumes the collector.
    pub(crate) fn into_found(self) -> Vec<Diagnostic> {
        self.found
    }

    /// Returns the kept diagnostics in source order.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
        self.found
    }
}

/// With more candidates of similar length than this, no suggestion is computed, to bound the time.
const CANDIDATES_MAX: usize = 2_000;

fn near_miss<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = match name.chars().count() {
        // Every other one-letter name would be equally near.
        1 => 0,
        count => (count / 3).clamp(1, 3),
    };
    let known = known.into_iter();
    let candidates: Vec<&str> = known
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= limit + 2)
        .take(CANDIDATES_MAX + 1)
        .collect();
    if candidates.len() > CANDIDATES_MAX {
        return None;
    }
    let distances = candidates.into_iter().map(|candidate| (distance(name, candidate), candidate));
    // Of equally near names, the alphabetically first is chosen, independent of the order in
    // `known`.
    distances.filter(|(distance, _)| *distance <= limit).min().map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance: insertions, deletions, substitutions, and swaps of
/// neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_near() {
        let known = ["inboxes", "accounts", "journal"];
        assert_eq!(near_miss("inbxes", known), Some("inboxes"));
        assert_eq!(near_miss("Acocunts", known), Some("accounts"));
        assert_eq!(near_miss("x", known), None);
        assert_eq!(near_miss("x", ["y"]), None);
        assert_eq!(near_miss("cat", ["hat", "bat"]), Some("bat"));
    }

    #[test]
    fn warnings_hide_no_error() {
        let mut diagnostics = Diagnostics::default();
        for start in 0..=DIAGNOSTICS_MAX as u32 {
            diagnostics.push(Diagnostic::new(Code::W0501, "", Span::token(start), ""));
        }
        diagnostics.push(Diagnostic::new(Code::M0101, "", Span::token(0), ""));
        assert_eq!((diagnostics.omitted, diagnostics.is_full()), (1, false));
        assert!(diagnostics.into_sorted().iter().any(|found| found.code == Code::M0101));
    }
}
