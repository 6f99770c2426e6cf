//! The results of an examination of a store's servers, for an operator.

/// A fact about a server or its settings, and its meaning for a store.
///
/// # Examples
///
/// ```
/// use mingle_store::{Finding, Judgement};
///
/// let found = Finding::wrong("version", "it is PostgreSQL 12; at least 14 is needed");
/// assert_eq!(found.judgement, Judgement::Wrong);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The subject in a word or two: `version`, `clock`.
    pub subject: String,
    /// The meaning for the store.
    pub judgement: Judgement,
    /// The fact, as a sentence without a full stop; with a remedy unless all is well.
    pub text: String,
}

/// The meaning of a fact for a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// All is well.
    Good,
    /// The store works, with a risk or a limit.
    Warning,
    /// The store cannot work.
    Wrong,
}

impl Finding {
    /// Creates a finding of something that is well.
    pub fn good(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self { subject: subject.into(), judgement: Judgement::Good, text: text.into() }
    }

    /// Creates a finding of a risk or a limit.
    pub fn warning(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self { subject: subject.into(), judgement: Judgement::Warning, text: text.into() }
    }

    /// Creates a finding of something because of which the store cannot work.
    pub fn wrong(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self { subject: subject.into(), judgement: Judgement::Wrong, text: text.into() }
    }

    /// Judges a server's clock, which an answer has shown: `ahead_ms` is its lead over this machine's at the
    /// middle of the request, and `took_ms` the time of the request.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_store::{Finding, Judgement};
    ///
    /// assert_eq!(Finding::clock(3, 8).judgement, Judgement::Good);
    /// assert_eq!(Finding::clock(-90_000, 8).judgement, Judgement::Warning);
    /// ```
    pub fn clock(ahead_ms: i64, took_ms: i64) -> Self {
        let off = ahead_ms.saturating_abs();
        let way = if ahead_ms < 0 { "behind" } else { "ahead of" };
        let margin = took_ms / 2 + 1;
        if off <= margin {
            return Self::good("clock", format!("agrees with this machine's within {margin} ms"));
        }
        let text = format!("is {off} ms {way} this machine's (within {margin} ms)");
        if off <= CLOCK_OFF_MS_MAX {
            return Self::good("clock", text);
        }
        let remedy =
            "leases and the last writer of a register rest on clocks: synchronize both (NTP)";
        Self::warning("clock", format!("{text}; {remedy}"))
    }
}

/// The largest difference between two clocks that is usual with NTP.
const CLOCK_OFF_MS_MAX: i64 = 500;
