//! The bounds on requests.

use std::time::Duration;

/// The maximum size of a body, in bytes, unless [`crate::Config::body_bytes_max`] says otherwise.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// The maximum memory for the bodies of all requests and the arguments decoded from them, in bytes,
/// unless [`crate::Config::body_memory_max`] says otherwise.
pub const BODY_MEMORY_MAX: usize = 128 << 20;

/// The largest body or result, in bytes, that is decoded or encoded on the threads that answer
/// requests; larger ones are handled on other threads.
pub const INLINE_BYTES_MAX: usize = 16 << 10;

/// The maximum number of calls that run at a time, unless [`crate::Config::concurrent_max`] says
/// otherwise.
pub const CONCURRENT_MAX: usize = 256;

/// The maximum number of open connections; further ones wait to be accepted.
pub const CONNECTIONS_MAX: usize = 1_024;

/// The longest deadline that a caller may ask for, unless [`crate::Config::deadline_max`] says
/// otherwise.
pub const DEADLINE_MAX: Duration = Duration::from_secs(30);

/// The time that running calls have to end after the server is told to stop, unless
/// [`crate::Config::shutdown_after`] says otherwise.
pub const SHUTDOWN_AFTER: Duration = Duration::from_secs(10);

/// The time within which the head of a request must arrive, and the next request of a connection.
pub const HEAD_WITHIN: Duration = Duration::from_secs(15);

/// The time within which the body of a request must arrive.
pub const BODY_WITHIN: Duration = Duration::from_secs(15);

/// The maximum number of bytes that are still read of a body that is too large, so that the client
/// receives the answer.
pub const DISCARDED_BYTES_MAX: usize = 8 << 20;

/// The maximum time for which they are read.
pub const DISCARDED_WITHIN: Duration = Duration::from_millis(500);

/// The time within which the client must accept some bytes of the answer.
pub const WRITE_WITHIN: Duration = Duration::from_secs(15);

/// The time within which a TLS handshake must be complete.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// The maximum size of the head of a request, in bytes. A session token is a part of it.
pub const HEAD_BYTES_MAX: usize = 2 * mingle_runtime::limits::TOKEN_BYTES_MAX;

/// The size in bytes above which a head counts towards the memory of bodies.
pub const HEAD_INLINE_BYTES_MAX: usize = 16 << 10;

/// The maximum number of headers of a request.
pub const HEADERS_MAX: usize = 100;

/// The maximum length of the name of a header, in bytes.
pub const HEADER_NAME_BYTES_MAX: usize = 1_024;

/// The maximum length of the target of a request (its path and its query), in bytes.
pub const TARGET_BYTES_MAX: usize = 65_534;

/// The maximum number of session tokens of a request.
pub const SESSIONS_MAX: usize = 16;

/// The maximum length of an idempotency key, in characters.
pub const KEY_CHARS_MAX: usize = 128;

/// The minimum time for which the record of a call is kept under its idempotency key.
pub const KEYS_KEPT: Duration = Duration::from_hours(24);

/// The interval between removals of older keys.
pub const KEYS_SWEPT_EVERY: Duration = Duration::from_mins(10);

/// The maximum number of objects on one page of a list.
pub const LISTED_MAX: usize = 100;

/// The number of objects on one page of a list, unless the request says otherwise.
pub const LISTED_USUALLY: usize = 20;

/// The number of elements shown of each collection of an object in a list, unless the request says otherwise.
pub const LISTED_ELEMENTS: usize = 3;

/// The maximum number of elements shown of each collection of an object.
pub const SHOWN_MAX: usize = 10_000;

/// The maximum number of events of a call that its watcher has not read yet; further events are
/// dropped.
pub const EVENTS_WAITING_MAX: usize = 1_024;

/// The time in seconds after which a client may try again if the server was too busy for its
/// request.
pub const RETRY_AFTER_SECONDS: u32 = 1;

/// The pause of the server after an error of accepting, such as too many open files.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The maximum number of API tokens in a file.
pub const TOKENS_MAX: usize = 10_000;

/// The maximum number of instructions of one attempt at a phase that runs for a client elsewhere,
/// unless [`crate::WorkerBounds::steps_max`] says otherwise.
pub const WORKER_STEPS_MAX: u64 = 50_000_000;

/// The maximum size of the values in one such attempt, in bytes, unless
/// [`crate::WorkerBounds::memory_bytes_max`] says otherwise.
pub const WORKER_MEMORY_BYTES_MAX: usize = 256 << 20;

/// The maximum number of clients' programs that a worker knows at a time.
pub const WORKER_PROGRAMS_MAX: usize = 64;

/// The maximum size of a client's program, in bytes.
pub const WORKER_PROGRAM_BYTES_MAX: usize = 256 << 10;

/// The maximum size of a request to a worker, in bytes: an attempt carries the records of earlier
/// phases.
pub const WORKER_BODY_BYTES_MAX: usize = 64 << 20;

/// The time for which an attempt's answer is kept for a client that has lost it.
pub const WORKER_ANSWERS_KEPT: Duration = Duration::from_mins(1);

/// The maximum number of answers that are kept.
pub const WORKER_ANSWERS_KEPT_MAX: usize = 10_000;

/// The maximum total size of the answers that are kept, in bytes; the last answer is always kept.
pub const WORKER_ANSWER_BYTES_KEPT_MAX: usize = 64 << 20;

/// The longest time that a request waits for a running attempt; then the worker answers that the
/// attempt still runs.
pub const WORKER_ASKED_WITHIN: Duration = Duration::from_secs(5);

/// The maximum number of clients' transactions that are open at a worker at a time.
pub const WORKER_OPEN_MAX: usize = 1_024;

/// The time without requests after which a transaction is over.
pub const WORKER_OPEN_FOR: Duration = Duration::from_secs(30);

/// The interval at which a worker looks for transactions and answers that are over.
pub const WORKER_SWEPT_EVERY: Duration = Duration::from_secs(5);
