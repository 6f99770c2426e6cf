//! The bounds that a run keeps to.

use std::time::Duration;

/// How long a call may take, and what it may use until its first commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Conflicts are retried, and others waited for, for so long.
    pub deadline: Duration,
    /// Whoever has waited for a transaction for so long finishes it.
    pub help_after: Duration,
    /// An origin that gave no sign of life for so long is taken for dead: what it began is
    /// finished and cleaned up. One that was alive after all goes on under another name.
    pub lease: Duration,
    /// How often to look for what others have left behind.
    pub sweep_every: Duration,
    /// How long to gather finished transactions before they are cleaned up together.
    pub clean_after: Duration,
    /// Instructions up to the end of the first phase that writes.
    pub steps_max: u64,
    /// Bytes of values that are read, recorded or written up to the end of that phase.
    pub memory_bytes_max: usize,
    /// The first pause after a conflict; it doubles, with jitter.
    pub backoff_min: Duration,
    /// The longest pause after a conflict.
    pub backoff_max: Duration,
    /// For how many transactions one transaction may have to wait; with more it is refused before
    /// it writes.
    pub worklist_max: usize,
    /// Off, transactions leave nothing for others to finish or wait for, and sessions remember
    /// nothing: across stores nothing is promised any more. For measuring what that costs, and for
    /// nothing else.
    #[doc(hidden)]
    pub tracking: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(10),
            help_after: Duration::from_millis(500),
            lease: Duration::from_secs(10),
            sweep_every: Duration::from_secs(5),
            clean_after: Duration::from_millis(200),
            steps_max: 200_000_000,
            memory_bytes_max: 1 << 30,
            backoff_min: Duration::from_millis(1),
            backoff_max: Duration::from_millis(500),
            worklist_max: 1_000,
            tracking: true,
        }
    }
}

impl Settings {
    /// For how long from its reads on nobody can have finished and cleaned up a transaction in the
    /// place of its own process: before that they wait for it, or for a sign of life of its origin.
    pub(crate) fn fresh_for(&self) -> Duration {
        self.help_after.min(self.lease) / 2
    }
}

/// Steps that a phase computes before it lets others compute: well under a millisecond.
pub const SLICE_STEPS: u64 = 10_000;

/// Reading or writing so many bytes counts as one step of a slice.
pub(crate) const BYTES_PER_STEP: usize = 256;

/// Visiting so many values of a collection counts as one step of a slice.
pub(crate) const VALUES_PER_STEP: usize = 8;

/// A session token has at most so many characters.
pub const TOKEN_BYTES_MAX: usize = 1 << 18;

/// Sessions that wait for more transactions than this have looked which of them are through.
pub(crate) const SESSION_PRUNE_AT: usize = 32;

/// Transactions that were met are looked for so long after, many at once.
pub(crate) const LOOK_AFTER: Duration = Duration::from_millis(50);

/// So many transactions are passed on for each store, before they are joined to what a replica had seen with them.
pub(crate) const PASSED_ON_MAX: usize = 2;

/// A store that has failed for so long, and at least [`AWAY_FAILURES`] times, is away: nothing is begun that has to
/// visit it. What starts anew within that time is waited for.
pub(crate) const AWAY_AFTER: Duration = Duration::from_secs(1);

/// See [`AWAY_AFTER`].
pub(crate) const AWAY_FAILURES: u32 = 3;

/// After the deadline of a call a store is asked for so long what became of its commit.
pub(crate) const ASKED_AFTER_DEADLINE: Duration = Duration::from_millis(200);

/// How often a store that is away is asked, at first and in the end.
pub(crate) const PROBE_EVERY: Duration = Duration::from_millis(250);
pub(crate) const PROBE_EVERY_MAX: Duration = Duration::from_secs(1);

/// A replica that did not answer is not looked at for so long.
pub(crate) const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// So many transactions are looked for at a replica at once.
pub(crate) const LOOKED_FOR_MAX: usize = 512;

/// With the key of a call a result of at most so many bytes is kept.
pub const RESULT_KEPT_BYTES_MAX: usize = 1 << 20;

/// So many records are read or removed at once where many are.
pub(crate) const BATCH: usize = 1_000;

/// Clean-up removes so many rows with one commit: a call that conflicts with it waits for a short time.
pub(crate) const REMOVED_AT_ONCE: usize = 100;

/// At most such a pause follows.
pub(crate) const REMOVAL_PAUSE_MAX: Duration = Duration::from_millis(100);

/// A helper that has to help somebody else first goes so deep at most.
pub(crate) const HELP_DEPTH_MAX: usize = 16;

/// So many commit witnesses that were seen are remembered.
pub(crate) const VISIBLE_MAX: usize = 100_000;

/// A phase inside a transaction of the application's is tried so often, as it learns of witness rows.
pub(crate) const INSIDE_ATTEMPTS_MAX: u32 = 8;

/// Whoever does not know whether the application's transaction has ended looks so often for an intent
/// before asking, which may take until the end of that transaction.
pub(crate) const LOOKS_BEFORE_ASKING: u32 = 8;

/// Of so many such transactions is asked at once.
pub(crate) const ASKED_AT_ONCE_MAX: usize = 2;

/// Whoever runs attempts of others beside a store tries one so often before it answers: after
/// conflicts, and with witness rows that the store has named.
pub(crate) const BESIDE_TRIES_MAX: u32 = 8;

/// An attempt of more bytes than this takes a turn of computation to be decoded.
pub(crate) const BESIDE_INLINE_BYTES_MAX: usize = 16 << 10;

/// So many programs whose texts a store keeps are remembered beside it.
pub(crate) const BESIDE_KEPT_MAX: usize = 10_000;

/// Floors are raised so often for commit witnesses that were left out.
pub(crate) const SETTLED_EVERY: Duration = Duration::from_millis(25);

/// A commit witness that was left out is written if no floor stands for it so long after its phase
/// has committed.
pub(crate) const OWED_FOR: Duration = Duration::from_millis(100);

/// What is read ahead of the first commit keeps that waiting for so long at most.
pub(crate) const AHEAD_MAX: Duration = Duration::from_millis(50);

/// A store that did not answer by then is not asked ahead for so long.
pub(crate) const AHEAD_AGAIN_AFTER: Duration = Duration::from_secs(5);
