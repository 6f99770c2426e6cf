//! Values as parts of keys: bytes compare as the values do, and no encoding is a prefix of another.

use mingle_model::Value;
pub use mingle_store::order::{Span, encode, next, span};

/// Takes one value from the front of `key`.
///
/// # Panics
///
/// When `key` does not start with a result of [`encode`].
pub fn decode(key: &mut &[u8]) -> Value {
    mingle_store::order::decode(key).expect("a key was written with its parts: it is corrupt")
}
