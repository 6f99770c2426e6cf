//! Where each row lives.
//!
//! | key | row |
//! | --- | --- |
//! | `c` | the catalog |
//! | `m` | how many commits there were (serializable stores) |
//! | `o` id | the outcome of that commit |
//! | `r` replica | how far the replica is |
//! | `u` number | an update that some replica lacks |
//! | `q` replica number | the replica lacks that update |
//! | `e` replica … | what the replica has to remove once it arrives |
//! | `k` replica kind | header of a kind: how many objects exist |
//! | `d` replica kind object `0` | presence of an object |
//! | `d` replica kind object field | a register or counter |
//! | `d` replica kind object field `0` | header of a collection |
//! | `d` replica kind object field `1` … | an element, entry or line |
//! | `w` replica kind object … | a witness row |
//!
//! Kinds and fields stand as the catalog's durable ids. A serializable store has one replica.

use mingle_model::{TransactionId, Value};

use super::order;

/// The catalog's key.
pub const CATALOG: &[u8] = b"c";

/// The key of the number of commits.
pub const COMMITS: &[u8] = b"m";

/// The key of a commit's outcome.
pub fn outcome(id: TransactionId) -> Vec<u8> {
    let mut key = Vec::with_capacity(25);
    key.push(b'o');
    key.extend(id.origin.0.to_be_bytes());
    key.extend(id.sequence.to_be_bytes());
    key
}

/// The key of a replica's state.
pub fn replica(replica: u8) -> Vec<u8> {
    vec![b'r', replica]
}

/// The key of an update.
pub fn update(number: u64) -> Vec<u8> {
    let mut key = vec![b'u'];
    key.extend(number.to_be_bytes());
    key
}

/// The prefix of the queue of a replica.
pub fn queue(replica: u8) -> Vec<u8> {
    vec![b'q', replica]
}

/// The key that says that a replica lacks an update.
pub fn queued(replica: u8, number: u64) -> Vec<u8> {
    let mut key = queue(replica);
    key.extend(number.to_be_bytes());
    key
}

/// The number at the end of a key.
pub fn number(key: &[u8]) -> u64 {
    let tail = key.last_chunk().expect("the keys of updates end in eight bytes");
    u64::from_be_bytes(*tail)
}

/// The prefix of what a replica has to remove later.
pub fn early(replica: u8) -> Vec<u8> {
    vec![b'e', replica]
}

/// The key of a kind's header.
pub fn kind(replica: u8, kind: u32) -> Vec<u8> {
    let mut key = vec![b'k', replica];
    key.extend(kind.to_be_bytes());
    key
}

/// The prefix of all objects of a kind.
pub fn objects(replica: u8, kind: u32) -> Vec<u8> {
    let mut key = vec![b'd', replica];
    key.extend(kind.to_be_bytes());
    key
}

/// The prefix of all rows of an object.
pub fn object(replica: u8, kind: u32, key: &Value) -> Vec<u8> {
    let mut prefix = objects(replica, kind);
    order::encode(key, &mut prefix);
    prefix
}

/// The key of an object's presence, from the prefix of its rows.
pub fn presence(object: &[u8]) -> Vec<u8> {
    field(object, 0)
}

/// The key of a register or counter, and the prefix of a collection's rows.
pub fn field(object: &[u8], field: u16) -> Vec<u8> {
    let mut key = Vec::with_capacity(object.len() + 16);
    key.extend(object);
    key.extend(field.to_be_bytes());
    key
}

/// The key of a collection's header, from its prefix.
pub fn header(field: &[u8]) -> Vec<u8> {
    with(field, &[0])
}

/// The prefix of a collection's elements, entries or lines, from its own.
pub fn elements(field: &[u8]) -> Vec<u8> {
    with(field, &[1])
}

/// The key of an element or entry.
pub fn element(field: &[u8], element: &Value) -> Vec<u8> {
    let mut key = elements(field);
    order::encode(element, &mut key);
    key
}

/// The prefix of the witness rows of an object.
pub fn witnesses(replica: u8, kind: u32, key: &Value) -> Vec<u8> {
    let mut prefix = vec![b'w', replica];
    prefix.extend(kind.to_be_bytes());
    order::encode(key, &mut prefix);
    prefix
}

/// `prefix` and `rest`.
pub fn with(prefix: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + rest.len());
    key.extend(prefix);
    key.extend(rest);
    key
}
