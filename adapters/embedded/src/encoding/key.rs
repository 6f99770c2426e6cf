//! The keys of all rows.
//!
//! | key | row |
//! | --- | --- |
//! | `c` | the catalog |
//! | `h` | the form of the copies: replicas or data centers |
//! | `x` | which transactions conflict (data centers), and the number of that declaration |
//! | `l` data-center partition number | a part of a record of a replica's log |
//! | `n` data-center | the number of times that the data center began anew, if any |
//! | `m` | the number of commits (serializable stores) |
//! | `o` id | the outcome of that commit, and its time |
//! | `p` origin | the number up to which the outcomes of its commits are removed |
//! | `s` kind | the greatest number that a commit drew for the key of an object (serializable stores) |
//! | `r` replica | the progress of the replica |
//! | `u` number | an update that some replica lacks |
//! | `q` replica number | the replica lacks that update |
//! | `e` replica … | a removal that the replica makes once its target arrives |
//! | `k` replica kind | header of a kind: the number of existing objects |
//! | `d` replica kind object `0` | presence of an object |
//! | `d` replica kind object field | a register or counter |
//! | `d` replica kind object field `0` | header of a collection |
//! | `d` replica kind object field `1` … | an element, entry or line |
//! | `d` replica `0` `0` kind object … | a witness row, by its object; kind 0 for the whole store |
//! | `d` replica `0` record-kind key | a record |
//! | `i` replica id … | the same witness row, by its transaction: its key after the replica |
//! | `v` replica kind number-of-fields fields … `0` | header of an index |
//! | `v` replica kind number-of-fields fields … `0` value | header of the rows whose first field has the value |
//! | `v` replica kind number-of-fields fields … `1` values … object | an object in an index |
//! | `g` record-kind key | a record as it was last committed at any replica, with its timestamp |
//!
//! Keys contain kinds and fields as the catalog's durable ids, which begin at 1. So rows of kind 0 belong
//! to the runtime. A serializable store has one replica.

use mingle_model::{Origin, TransactionId, Value};
use mingle_store::{RecordKey, RecordKind};

use super::order;

/// The catalog's key.
pub const CATALOG: &[u8] = b"c";

/// The key of the form of the copies: replicas or data centers.
pub const FORM: &[u8] = b"h";

/// The key of the declared conflicts between transactions.
pub const CONFLICTS: &[u8] = b"x";

/// The start of the keys of witness rows, after section and replica.
pub const WITNESSES: [u8; 5] = [0; 5];

/// Number of bytes of a transaction id in a key.
const TRANSACTION: usize = 24;

/// The key of the number of commits.
pub const COMMITS: &[u8] = b"m";

/// The prefix of the keys of outcomes.
pub const OUTCOMES: &[u8] = b"o";

/// The key of a commit's outcome.
pub fn outcome(id: TransactionId) -> Vec<u8> {
    with(OUTCOMES, &transaction(id))
}

/// Returns the commit whose outcome has this key.
pub fn outcome_id(key: &[u8]) -> TransactionId {
    let (origin, _) = key[OUTCOMES.len()..].split_first_chunk().expect("it ends in an id");
    TransactionId { origin: Origin(u128::from_be_bytes(*origin)), sequence: number(key) }
}

/// Returns the key of the number of removed outcomes of a commit's origin.
pub fn outcomes_gone(id: TransactionId) -> Vec<u8> {
    with(b"p", &id.origin.0.to_be_bytes())
}

/// Encodes a transaction as a part of keys, in the order of transactions.
pub fn transaction(id: TransactionId) -> [u8; TRANSACTION] {
    let mut part = [0; TRANSACTION];
    part[..16].copy_from_slice(&id.origin.0.to_be_bytes());
    part[16..].copy_from_slice(&id.sequence.to_be_bytes());
    part
}

/// The transaction of a result of [`transaction`]; none for other bytes.
pub fn transaction_of(part: &[u8]) -> Option<TransactionId> {
    let (origin, sequence) = part.split_at_checked(16)?;
    let origin = Origin(u128::from_be_bytes(origin.try_into().ok()?));
    Some(TransactionId { origin, sequence: u64::from_be_bytes(sequence.try_into().ok()?) })
}

/// The key of the greatest number drawn for a kind.
pub fn numbers(kind: u32) -> Vec<u8> {
    with(b"s", &kind.to_be_bytes())
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

/// Returns the key of the mark that a replica lacks an update.
pub fn queued(replica: u8, number: u64) -> Vec<u8> {
    let mut key = queue(replica);
    key.extend(number.to_be_bytes());
    key
}

/// The number at the end of a key of an update, or of an outcome.
pub fn number(key: &[u8]) -> u64 {
    let tail = key.last_chunk().expect("such keys end in eight bytes");
    u64::from_be_bytes(*tail)
}

/// Returns the prefix of the removals that a replica has to make later.
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

/// The prefix of the rows of an index.
pub fn values(replica: u8, kind: u32, fields: &[u16]) -> Vec<u8> {
    let mut key = vec![b'v', replica];
    key.extend(kind.to_be_bytes());
    key.push(u8::try_from(fields.len()).expect("indexes are bounded by INDEX_FIELDS_MAX"));
    key.extend(fields.iter().flat_map(|field| field.to_be_bytes()));
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

/// The prefix of the witness rows of an object, or of those of the whole store.
pub fn witnesses(replica: u8, object: Option<(u32, &Value)>) -> Vec<u8> {
    let mut prefix = with(&[b'd', replica], &WITNESSES);
    prefix.extend(object.map_or(0, |(kind, _)| kind).to_be_bytes());
    if let Some((_, key)) = object {
        order::encode(key, &mut prefix);
    }
    prefix
}

/// The prefix of the witness rows of a transaction, or of all, in order of their transactions.
pub fn by_transaction(replica: u8, id: Option<TransactionId>) -> Vec<u8> {
    let id = id.map(transaction);
    with(&[b'i', replica], id.as_ref().map_or(&[], |id| &id[..]))
}

/// Splits the key of a witness row, after section and replica, into its kind and the rest.
pub fn witness_kind(rest: &[u8]) -> (u32, &[u8]) {
    let (kind, rest) =
        rest[WITNESSES.len()..].split_first_chunk().expect("a witness key has a kind");
    (u32::from_be_bytes(*kind), rest)
}

/// Returns a witness row's key by its transaction; `rest` is its key after section and replica.
pub fn index(replica: u8, rest: &[u8]) -> Vec<u8> {
    let (kind, mut tail) = witness_kind(rest);
    if kind != 0 {
        order::decode(&mut tail);
    }
    with(&with(&[b'i', replica], &tail[..TRANSACTION]), rest)
}

/// Returns a witness row's key after section and replica, from its key by its transaction.
pub fn indexed(index: &[u8]) -> &[u8] {
    &index[2 + TRANSACTION..]
}

/// The prefix of all records of a kind.
pub fn records(replica: u8, kind: RecordKind) -> Vec<u8> {
    with(&objects(replica, 0), &[kind.code()])
}

/// The key of a record.
pub fn record(replica: u8, record: &RecordKey) -> Vec<u8> {
    with(&records(replica, record.kind), &record.key)
}

/// The key of a record as it was last committed at any replica.
pub fn latest(record: &RecordKey) -> Vec<u8> {
    with(&[b'g', record.kind.code()], &record.key)
}

/// `prefix` and `rest`.
pub fn with(prefix: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + rest.len());
    key.extend(prefix);
    key.extend(rest);
    key
}
