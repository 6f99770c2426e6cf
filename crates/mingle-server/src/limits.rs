//! The bounds that requests keep to.

use std::time::Duration;

/// A body has at most so many bytes, unless [`crate::Config::body_bytes_max`] says otherwise.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// The bodies of all requests, and the arguments decoded from them, take at most so many bytes of memory,
/// unless [`crate::Config::body_memory_max`] says otherwise.
pub const BODY_MEMORY_MAX: usize = 128 << 20;

/// Bodies and results of more bytes than this are decoded and encoded beside the threads that answer
/// requests.
pub const INLINE_BYTES_MAX: usize = 16 << 10;

/// So many calls run at a time, unless [`crate::Config::concurrent_max`] says otherwise.
pub const CONCURRENT_MAX: usize = 256;

/// So many connections are open at a time; others wait to be accepted.
pub const CONNECTIONS_MAX: usize = 1_024;

/// A caller may ask for deadlines up to this, unless [`crate::Config::deadline_max`] says otherwise.
pub const DEADLINE_MAX: Duration = Duration::from_secs(30);

/// Calls that run when the server is told to stop have so long to finish, unless
/// [`crate::Config::shutdown_after`] says otherwise.
pub const SHUTDOWN_AFTER: Duration = Duration::from_secs(10);

/// The head of a request arrives within this time, and the next request of a connection too.
pub const HEAD_WITHIN: Duration = Duration::from_secs(15);

/// The body of a request arrives within this time.
pub const BODY_WITHIN: Duration = Duration::from_secs(15);

/// So many bytes of a body that is too large are still taken, so that the answer is heard.
pub const DISCARDED_BYTES_MAX: usize = 8 << 20;

/// So long they are taken.
pub const DISCARDED_WITHIN: Duration = Duration::from_millis(500);

/// Whoever asked takes some of the answer within this time.
pub const WRITE_WITHIN: Duration = Duration::from_secs(15);

/// A TLS connection is agreed upon within this time.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// Bytes of the head of a request. A session token is a part of it.
pub const HEAD_BYTES_MAX: usize = 2 * mingle_runtime::limits::TOKEN_BYTES_MAX;

/// A head of more bytes than this counts among the memory of bodies.
pub const HEAD_INLINE_BYTES_MAX: usize = 16 << 10;

/// Headers of a request.
pub const HEADERS_MAX: usize = 100;

/// Bytes of the name of a header.
pub const HEADER_NAME_BYTES_MAX: usize = 1_024;

/// Bytes of the target of a request: its path and its query.
pub const TARGET_BYTES_MAX: usize = 65_534;

/// A request brings at most so many session tokens.
pub const SESSIONS_MAX: usize = 16;

/// Characters of an idempotency key.
pub const KEY_CHARS_MAX: usize = 128;

/// What is kept of a call under its idempotency key is kept at least so long.
pub const KEYS_KEPT: Duration = Duration::from_hours(24);

/// How often keys are looked through for those that are older.
pub const KEYS_SWEPT_EVERY: Duration = Duration::from_mins(10);

/// Of a collection of an object at most so many elements are shown.
pub const SHOWN_MAX: usize = 10_000;

/// Events of a call that its watcher has not taken yet; more are left out.
pub const EVENTS_WAITING_MAX: usize = 1_024;

/// Whoever is refused because the server has enough to do may come again after so many seconds.
pub const RETRY_AFTER_SECONDS: u32 = 1;

/// After an error of accepting, such as too many open files, the server pauses for so long.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// API tokens in a file.
pub const TOKENS_MAX: usize = 10_000;

/// Instructions of one attempt at a phase that runs for somebody elsewhere, unless
/// [`crate::WorkerBounds::steps_max`] says otherwise.
pub const WORKER_STEPS_MAX: u64 = 50_000_000;

/// Bytes of values in one such attempt, unless [`crate::WorkerBounds::memory_bytes_max`] says
/// otherwise.
pub const WORKER_MEMORY_BYTES_MAX: usize = 256 << 20;

/// Programs of others that a worker knows at a time.
pub const WORKER_PROGRAMS_MAX: usize = 64;

/// Bytes of a program of others.
pub const WORKER_PROGRAM_BYTES_MAX: usize = 256 << 10;

/// Bytes of a request to a worker: an attempt carries what earlier phases have recorded.
pub const WORKER_BODY_BYTES_MAX: usize = 64 << 20;

/// So long an attempt's answer is kept for whoever has lost it.
pub const WORKER_ANSWERS_KEPT: Duration = Duration::from_mins(1);

/// So many answers are kept.
pub const WORKER_ANSWERS_KEPT_MAX: usize = 10_000;

/// So many bytes of answers are kept, and at least the last one.
pub const WORKER_ANSWER_BYTES_KEPT_MAX: usize = 64 << 20;

/// A request waits so long for an attempt that runs; then it is told that it still does.
pub const WORKER_ASKED_WITHIN: Duration = Duration::from_secs(5);

/// Transactions of clients that are open at a worker at a time.
pub const WORKER_OPEN_MAX: usize = 1_024;

/// A transaction in which nothing was asked for so long is over.
pub const WORKER_OPEN_FOR: Duration = Duration::from_secs(30);

/// How often a worker looks for transactions and answers that are over.
pub const WORKER_SWEPT_EVERY: Duration = Duration::from_secs(5);
