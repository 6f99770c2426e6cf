//! Diagnostics: what is wrong with a program, as data.
//!
//! Each code has a file of its own: the text that `mingle explain` prints stands in
//! `m0301.md`, the words of the message in `m0301.rs`. The rest of the compiler hands over facts
//! and never chooses words.

mod cut;
mod edit;
pub(crate) mod flow;
mod json;
mod render;

use std::fmt;

use crate::syntax::Span;

pub use edit::apply_edits;
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

            /// How it is written.
            pub fn text(self) -> &'static str {
                match self { $(Self::$code => stringify!($code),)* }
            }

            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self { $(Self::$code => Severity::$severity,)* }
            }

            /// What it is about, in one line.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$code => $summary,)* }
            }

            /// What it is, why it is unsound, how to mend it, and an example, as Markdown.
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
    w0403 W0403 Warning "endorsement without effect",
    w0501 W0501 Warning "unused variable, parameter, object or store",
    w0502 W0502 Warning "two writes without an atomic commit",
    w0503 W0503 Warning "uniqueness checked where it cannot be promised",
}

impl Code {
    /// The code that is written like this, in capitals or not.
    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.text().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The program does not run.
    Error,
    /// It does, but probably not as meant.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One thing that is wrong with a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Which.
    pub code: Code,
    /// One line that stands alone.
    pub title: String,
    /// The place that it is about.
    pub span: Span,
    /// Places and what to see there; the first is at `span`. The path of a flow is in its order.
    pub labels: Vec<Label>,
    /// What to know besides.
    pub notes: Vec<String>,
    /// What can be done, the smallest or strongest change first.
    pub help: Vec<Help>,
}

impl Diagnostic {
    /// A diagnostic with a label at its place.
    pub fn new(code: Code, title: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        let labels = vec![Label { span, message: label.into() }];
        Self { code, title: title.into(), span, labels, notes: Vec::new(), help: Vec::new() }
    }

    /// With one more label.
    pub fn with_label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: message.into() });
        self
    }

    /// With one more note.
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// With one more piece of advice.
    pub fn with_help(mut self, message: impl Into<String>, edits: Vec<Edit>) -> Self {
        self.help.push(Help { message: message.into(), edits });
        self
    }

    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// Every place that it speaks of.
    pub(crate) fn spans_mut(&mut self) -> impl Iterator<Item = &mut Span> {
        let edits = self.help.iter_mut().flat_map(|help| &mut help.edits);
        let labels = self.labels.iter_mut().map(|label| &mut label.span);
        std::iter::once(&mut self.span).chain(labels).chain(edits.map(|edit| &mut edit.span))
    }
}

/// A place and what to see there.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What to see.
    pub message: String,
}

/// Advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Help {
    /// What to do.
    pub message: String,
    /// The same as changes to the text; empty where the text cannot say it alone.
    pub edits: Vec<Edit>,
}

/// A change to the text: what stands at `span` gives way to `text`. An empty span inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub span: Span,
    /// By what.
    pub text: String,
}

/// Diagnostics as they are found, without repeats, and no more of them than somebody would read.
#[derive(Debug, Default)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    warnings: usize,
    seen: std::collections::HashSet<(Span, Code)>,
    /// How many more there were.
    pub omitted: usize,
    /// How many errors there were, shown or not.
    pub errors: usize,
    /// Parts of the program could not be read, so what speaks of missing names or of things
    /// unused may come from that, and is not shown.
    pub only_certain: bool,
}

/// A program with more errors or more warnings than this shows only so many of them.
pub const DIAGNOSTICS_MAX: usize = 1_000;

impl Diagnostics {
    /// Adds one, unless the same code was reported at the same place.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.only_certain
            && (diagnostic.code == Code::M0101 || diagnostic.severity() == Severity::Warning)
        {
            return;
        }
        if self.seen.insert((diagnostic.span, diagnostic.code)) {
            self.push_distinct(diagnostic);
        } else {
            self.errors += usize::from(diagnostic.severity() == Severity::Error);
        }
    }

    /// Adds one although there may be another of its code at its place.
    pub fn push_distinct(&mut self, diagnostic: Diagnostic) {
        let is_error = diagnostic.severity() == Severity::Error;
        self.errors += usize::from(is_error);
        // Warnings are counted for themselves: no number of them hides an error.
        let kept = if is_error { self.found.len() - self.warnings } else { self.warnings };
        if kept >= DIAGNOSTICS_MAX {
            self.omitted += 1;
        } else {
            self.warnings += usize::from(!is_error);
            self.found.push(cut::cut(diagnostic));
        }
    }

    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether there is no more room for errors.
    pub fn is_full(&self) -> bool {
        self.found.len() - self.warnings >= DIAGNOSTICS_MAX
    }

    /// The name among `known` that `name` was probably meant to be; none where nobody would see it.
    pub(crate) fn near_miss<'a>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        if self.is_full() { None } else { near_miss(name, known) }
    }

    /// Those that are kept, as they came.
    pub(crate) fn found(&self) -> &[Diagnostic] {
        &self.found
    }

    /// As [`Self::found`], for good.
    pub(crate) fn into_found(self) -> Vec<Diagnostic> {
        self.found
    }

    /// All of them, in source order.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
        self.found
    }
}

/// Where more names than this are of about the right length, no guess is worth its time.
const CANDIDATES_MAX: usize = 2_000;

fn near_miss<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = match name.chars().count() {
        // Any other letter would be as near.
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
    // Of those equally near the first by name, in whatever order they came.
    distances.filter(|(distance, _)| *distance <= limit).min().map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance: insertions, deletions, changes, and swaps of neighbours.
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
