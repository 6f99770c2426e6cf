//! The named bounds of this adapter.

use std::time::Duration;

/// One commit carries at most this many writes, flushed ones included.
pub const WRITES_MAX: usize = 100_000;

/// The values in one commit take at most about this many bytes: 256 MiB. A message of PostgreSQL
/// holds less than 1 GiB.
pub const COMMIT_BYTES_MAX: usize = 256 << 20;

/// One batch holds at most this many reads.
pub const READS_MAX: usize = 100_000;

/// One value takes at most this many bytes: 128 MiB. A field of PostgreSQL holds less than 1 GiB,
/// and JSON may write a byte as six.
pub const VALUE_BYTES_MAX: usize = 128 << 20;

/// The key of a record takes at most this many bytes, so that it fits an index.
pub const RECORD_KEY_BYTES_MAX: usize = 1_024;

/// One `add` changes a counter by at most this much either way, so that a sum in 128 bits stays
/// exact for more adds than a store can hold: 2^90.
pub const ADD_MAX: i128 = 1 << 90;

/// A declared query gives at most this many rows.
pub const QUERY_ROWS_MAX: usize = 1_000_000;

/// So many texts of statements are kept, beside those that connections have prepared.
pub const TEXTS_MAX: usize = 1_000;

/// So many different statements for control, such as `BEGIN`, stay prepared on a connection.
pub const CONTROLS_MAX: usize = 64;

/// A name of PostgreSQL has at most this many bytes.
pub const NAME_BYTES_MAX: usize = 63;

/// Old outcomes of an origin are removed in so many steps, in the time that they are kept.
pub const AGEING_STEPS: u32 = 32;

/// The floors of so many origins are remembered, to know what is old.
pub const AGEING_MAX: usize = 1_000;

/// After so many commits with an id, old outcomes are removed, unless that was done not long ago.
pub const PURGE_EVERY: u64 = 1_000;

/// How much longer than the server's own limit to wait for an answer before the connection is
/// given up.
pub const GRACE: Duration = Duration::from_secs(5);

/// A store is over at most this many servers: `mingle_run` leaves room for 63 beside a version.
pub const SERVERS_MAX: usize = 16;

/// So many updates are copied at once where a subscription is made again.
pub const COPIED_AT_ONCE: usize = 200;

/// How long after a commit the servers are asked to tell each other what they have.
pub const ACKNOWLEDGE_AFTER: Duration = Duration::from_secs(1);

/// How often they are asked again at least, as long as one of them lacks something.
pub const ACKNOWLEDGE_EVERY_MAX: Duration = Duration::from_secs(10);

/// A connection holds at most this many prepared statements; then it begins anew.
pub const STATEMENTS_MAX: usize = 4_096;

/// So many rows that are looked for by name are many.
pub const MANY: usize = 64;

/// So many new records are written by a statement that names each; more as a list.
pub const NEW_RECORDS_MAX: usize = 4;
