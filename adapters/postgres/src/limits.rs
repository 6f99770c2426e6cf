//! The named bounds of this adapter.

use std::time::Duration;

/// Maximum number of writes in one commit, including flushed writes.
pub const WRITES_MAX: usize = 100_000;

/// Maximum size of the values in one commit, approximately: 256 MiB. A PostgreSQL message holds
/// less than 1 GiB.
pub const COMMIT_BYTES_MAX: usize = 256 << 20;

/// Maximum number of reads in one batch.
pub const READS_MAX: usize = 100_000;

/// Maximum size of one value: 128 MiB. A PostgreSQL field holds less than 1 GiB, and JSON may write
/// one byte as six.
pub const VALUE_BYTES_MAX: usize = 128 << 20;

/// Maximum size of a record's key, in bytes, so that it fits an index.
pub const RECORD_KEY_BYTES_MAX: usize = 1_024;

/// Maximum change of a counter by one `add`, in either direction: 2^90. A sum in 128 bits then
/// stays exact for more adds than a store can hold.
pub const ADD_MAX: i128 = 1 << 90;

/// Maximum number of rows that a declared query returns.
pub const QUERY_ROWS_MAX: usize = 1_000_000;

/// Maximum number of statement texts in the cache, besides those that connections have prepared.
pub const TEXTS_MAX: usize = 1_000;

/// Maximum number of different control statements, such as `BEGIN`, that stay prepared on a
/// connection.
pub const CONTROLS_MAX: usize = 64;

/// Maximum length of a PostgreSQL name, in bytes.
pub const NAME_BYTES_MAX: usize = 63;

/// Number of steps in which old outcomes of an origin are removed, within the time that they are
/// kept.
pub const AGEING_STEPS: u32 = 32;

/// Number of origins whose floors are remembered to decide which outcomes are old.
pub const AGEING_MAX: usize = 1_000;

/// Number of commits with an id after which old outcomes are removed, unless that was done
/// recently.
pub const PURGE_EVERY: u64 = 1_000;

/// Time beyond the server's own limit after which a missing answer means that the connection is
/// given up.
pub const GRACE: Duration = Duration::from_secs(5);

/// Maximum number of servers of a store: `mingle_run` leaves room for 63 besides a version.
pub const SERVERS_MAX: usize = 16;

/// Number of updates that are copied at once when a subscription is recreated.
pub const COPIED_AT_ONCE: usize = 200;

/// Delay after a commit until the servers are asked to exchange their state.
pub const ACKNOWLEDGE_AFTER: Duration = Duration::from_secs(1);

/// Maximum interval between repeated requests, as long as a server lacks something.
pub const ACKNOWLEDGE_EVERY_MAX: Duration = Duration::from_secs(10);

/// Maximum number of prepared statements on a connection; then it starts over.
pub const STATEMENTS_MAX: usize = 4_096;

/// Number of rows looked up by name from which a statement counts as large.
pub const MANY: usize = 64;

/// Number of new records up to which a statement names each one; more are passed as a list.
pub const NEW_RECORDS_MAX: usize = 4;
