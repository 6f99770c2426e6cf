//! The limits of a run.

use std::time::Duration;

/// The time that a call may take, and the resources that it may use until its first commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The time for which conflicts are retried and other transactions are waited for.
    pub deadline: Duration,
    /// The time after which a transaction that waits for another one finishes it.
    pub help_after: Duration,
    /// An origin that gave no sign of life for this time is taken for dead: its transactions are
    /// finished and cleaned up. If it was alive after all, it goes on under another name.
    pub lease: Duration,
    /// The interval between two sweeps for records that other origins have left.
    pub sweep_every: Duration,
    /// The time for which finished transactions are gathered before they are cleaned up together.
    pub clean_after: Duration,
    /// The maximal number of instructions up to the end of the first phase that writes.
    pub steps_max: u64,
    /// The maximal number of bytes of values read, recorded or written up to the end of that phase.
    pub memory_bytes_max: usize,
    /// The first pause after a conflict; it doubles, with jitter.
    pub backoff_min: Duration,
    /// The longest pause after a conflict.
    pub backoff_max: Duration,
    /// The maximal number of transactions that one transaction may have to wait for; with more it
    /// is refused before it writes.
    pub worklist_max: usize,
    /// If false, transactions leave nothing for others to finish or wait for, and sessions remember
    /// nothing: across stores nothing is promised any more. Only for measuring the cost of
    /// tracking.
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
    /// Returns the time, counted from a transaction's reads, within which no other process can have
    /// finished and cleaned it up: until then others wait for it, or for a sign of life of its
    /// origin.
    pub(crate) fn fresh_for(&self) -> Duration {
        self.help_after.min(self.lease) / 2
    }
}

/// The steps that a phase computes before other tasks may compute: well under a millisecond.
pub const SLICE_STEPS: u64 = 10_000;

/// The number of bytes read or written that count as one step of a slice.
pub(crate) const BYTES_PER_STEP: usize = 256;

/// The number of visited values of a collection that count as one step of a slice.
pub(crate) const VALUES_PER_STEP: usize = 8;

/// The maximal number of characters of a session token.
pub const TOKEN_BYTES_MAX: usize = 1 << 18;

/// A session that waits for more transactions than this checks which of them are through.
pub(crate) const SESSION_PRUNE_AT: usize = 32;

/// The time after which transactions that were met are looked for, many at once.
pub(crate) const LOOK_AFTER: Duration = Duration::from_millis(50);

/// The number of transactions passed on for each store before they are joined into a replica's
/// stamp.
pub(crate) const PASSED_ON_MAX: usize = 2;

/// A store that has failed for this time, and at least [`AWAY_FAILURES`] times, is away: no call
/// that has to visit it begins. A store that restarts within this time is waited for.
pub(crate) const AWAY_AFTER: Duration = Duration::from_secs(1);

/// The number of failures; see [`AWAY_AFTER`].
pub(crate) const AWAY_FAILURES: u32 = 3;

/// The time after a call's deadline for which a store is asked for the outcome of its commit.
pub(crate) const ASKED_AFTER_DEADLINE: Duration = Duration::from_millis(200);

/// The interval between questions to a store that is away, at first and in the end.
pub(crate) const PROBE_EVERY: Duration = Duration::from_millis(250);
pub(crate) const PROBE_EVERY_MAX: Duration = Duration::from_secs(1);

/// The time for which a replica that did not answer is not looked at.
pub(crate) const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The maximal number of transactions looked for at a replica at once.
pub(crate) const LOOKED_FOR_MAX: usize = 512;

/// The maximal size in bytes of a result that is kept with the key of a call.
pub const RESULT_KEPT_BYTES_MAX: usize = 1 << 20;

/// The number of records that are read or removed at once.
pub(crate) const BATCH: usize = 1_000;

/// The number of rows that clean-up removes with one commit: a conflicting call waits only shortly.
pub(crate) const REMOVED_AT_ONCE: usize = 100;

/// The maximal pause after such a commit.
pub(crate) const REMOVAL_PAUSE_MAX: Duration = Duration::from_millis(100);

/// The maximal depth of helping, when a helper has to help another transaction first.
pub(crate) const HELP_DEPTH_MAX: usize = 16;

/// The maximal number of seen commit witnesses that are remembered.
pub(crate) const VISIBLE_MAX: usize = 100_000;

/// The number of tries of a phase inside a host transaction, as it learns of witness rows.
pub(crate) const HOSTED_ATTEMPTS_MAX: u32 = 8;

/// The number of looks for an intent before a process that does not know if the host transaction
/// has ended asks for its outcome, which may take until the end of that transaction.
pub(crate) const LOOKS_BEFORE_ASKING: u32 = 8;

/// The maximal number of host transactions whose outcomes are asked for at once.
pub(crate) const ASKED_AT_ONCE_MAX: usize = 2;

/// The number of tries that a worker beside a store makes before it answers: after conflicts, and
/// with witness rows that the store has named.
pub(crate) const WORKER_TRIES_MAX: u32 = 8;

/// The size in bytes above which decoding an attempt takes a turn of computation.
pub(crate) const WORKER_INLINE_BYTES_MAX: usize = 16 << 10;

/// The number of programs kept at a store that a worker beside it remembers.
pub(crate) const WORKER_KEPT_MAX: usize = 10_000;

/// The interval between raises of floors for deferred commit witnesses.
pub(crate) const SETTLED_EVERY: Duration = Duration::from_millis(25);

/// The time after its phase's commit at which a deferred commit witness is written, if no floor
/// stands for it.
pub(crate) const DEFERRED_FOR: Duration = Duration::from_millis(100);

/// The maximal time for which reading ahead delays the first commit.
pub(crate) const PREFETCH_MAX: Duration = Duration::from_millis(50);

/// The time for which a store that did not answer by then is not read ahead.
pub(crate) const PREFETCH_AGAIN_AFTER: Duration = Duration::from_secs(5);
