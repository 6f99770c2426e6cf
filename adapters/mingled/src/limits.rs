//! The named bounds of this crate.

use std::time::Duration;

/// The longest time to connect, unless the binding sets another: 5 s.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The longest wait for an answer, unless the binding sets another: 15 s. The data center itself gives up
/// a call after ten seconds.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// The expected time of a round trip, unless the binding sets another: 1 ms.
pub const ROUND_TRIP: Duration = Duration::from_millis(1);

/// The most idle connections of a program to one data center.
pub const IDLE_MAX: usize = 64;

/// The most bytes of a message: 64 MiB.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// The most bytes of the first message of a connection, which comes before the data center knows the user: 4 KiB.
pub const HELLO_BYTES_MAX: usize = 4 << 10;

/// The most bytes of a user's name.
pub const USER_BYTES_MAX: usize = 256;

/// The most bytes of a password.
pub const PASSWORD_BYTES_MAX: usize = 1 << 10;

/// The most stores of a program in one cluster.
pub const STORES_MAX: usize = 100;

/// The most structs, objects, fields, operations and parameters of one store's declarations.
pub const DECLARATIONS_MAX: usize = 100_000;

/// The deepest nesting of a declared type.
pub const TYPE_DEPTH_MAX: usize = 64;
