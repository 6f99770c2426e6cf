//! Users and rights, TLS and the audit log of a server.
//!
//! Users are in a file with the lines of an `aclfile` of Redis ([`Users`]). Each has passwords and rules
//! ([`User`]): which commands it may run, and which items it may read and write. Certificates ([`Tls`])
//! and users change while the server runs. What concerns security is noted ([`Audit`]).

mod audit;
mod category;
mod rule;
mod stream;
mod tls;
mod user;
mod users;

pub use audit::{Audit, AuditEvent, Denial};
pub use category::{CATEGORIES, categories, in_category};
pub use stream::{Incoming, Stream};
pub use tls::{Configs, Tls, TlsFiles, shake_hands};
pub use user::{Denied, PROGRAMS, User};
pub use users::{Users, UsersError};

/// Returns random bytes for a password; `None` if the system gives none.
pub(crate) fn random_bytes() -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).ok().map(|()| bytes)
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn digits(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Text has room.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
