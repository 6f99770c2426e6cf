//! The key of a call: however often a call with a key is made, it takes effect once.

use std::fmt;

use mingle_store::{RecordKey, RecordKind};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A key that makes several calls one.
///
/// # Examples
///
/// ```
/// use mingle_runtime::CallKey;
///
/// assert_eq!(CallKey::new("shop", "order 7"), CallKey::new("shop", "order 7"));
/// assert_ne!(CallKey::new("shop", "order 7"), CallKey::new("till", "order 7"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallKey([u8; 32]);

impl CallKey {
    /// The key that the client `who` gave: the same text from another client is another key.
    pub fn new(who: &str, key: &str) -> Self {
        let mut digest = Sha256::new();
        digest.update((who.len() as u64).to_be_bytes());
        digest.update(who);
        digest.update(key);
        Self(digest.finalize().into())
    }

    pub(crate) fn record(self, part: u32) -> RecordKey {
        let key = [self.0.as_slice(), &part.to_be_bytes()].concat();
        RecordKey { kind: RecordKind::Called, key: key.into() }
    }

    /// Returns the call key in the record key of a first part; none for other parts.
    pub(crate) fn of_first_part(key: &[u8]) -> Option<Self> {
        let (key, part) = key.split_first_chunk()?;
        (part == 0_u32.to_be_bytes()).then_some(Self(*key))
    }
}

impl fmt::Debug for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
