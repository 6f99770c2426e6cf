//! Keys, and the mapping from keys to partitions.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::timestamp::PartitionId;
use crate::types::Kind;

/// The key of one data item. The type is part of the key: two items of different types under one
/// name are two items. So data centers agree even if they use one name for two types at the same
/// time.
///
/// # Examples
///
/// ```
/// use mingle_geo::{Key, Kind};
///
/// let cart = Key::new(Kind::Set, "cart:{ana}");
/// let name = Key::new(Kind::Register, "name:{ana}");
/// assert_eq!(cart.partition(64), name.partition(64));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The type of the item.
    pub kind: Kind,
    /// Its name.
    pub name: Arc<[u8]>,
}

impl Key {
    /// The key of the item of type `kind` called `name`.
    pub fn new(kind: Kind, name: impl AsRef<[u8]>) -> Self {
        Self { kind, name: name.as_ref().into() }
    }

    /// Returns the partition of this key, out of `count` partitions; it is the same in all data
    /// centers. The hash covers the part of the name between the first `{` and the next `}`, or the
    /// whole name if that part is missing or empty.
    pub fn partition(&self, count: u16) -> PartitionId {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for byte in tag(&self.name) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        PartitionId((mingle_model::random::mix(hash) % u64::from(count.max(1))) as u16)
    }

    /// Returns a rough count of its bytes of memory.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.name.len()
    }
}

fn tag(name: &[u8]) -> &[u8] {
    let Some(open) = name.iter().position(|byte| *byte == b'{') else { return name };
    let inner = &name[open + 1..];
    match inner.iter().position(|byte| *byte == b'}') {
        Some(end) if end > 0 => &inner[..end],
        _ => name,
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{}", self.kind, self.name.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_decides_unless_it_is_empty_or_open() {
        for (name, expected) in
            [("a{b}c", "b"), ("a{}c{d}", "a{}c{d}"), ("a{b", "a{b"), ("ab", "ab"), ("{a}{b}", "a")]
        {
            assert_eq!(tag(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }
}
