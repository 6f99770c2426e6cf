//! The records that a transaction keeps at its stores so that another process can finish it.
//!
//! - [`Intent`]: left with the first write, deleted last. It holds all that the later phases need;
//! - [`Witness`]: left with the write of each later phase, which it proves, with the values that the phase has
//!   recorded for the phases after it;
//! - [`PinnedAnswers`]: the answers from which every process computes a phase, where its store counts one of
//!   several copies.
//!
//! A record begins with the number of its format. One that is longer than a store takes at once is cut into
//! parts: the key of a part ends with its number, and the first part begins with their count.

use std::fmt;
use std::sync::Arc;

use mingle_model::{Name, Principal, Stamp, Time, TransactionId, Value};
use mingle_store::{Bytes, Data, RecordKey, RecordKind, Write};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::protocol::call_key::CallKey;
use crate::protocol::wait_set::WaitSet;

/// The hash of a program's text, which identifies the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramHash(pub [u8; 32]);

impl ProgramHash {
    /// The hash of a program's text.
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// The key of the record that keeps the text.
    pub fn key(&self) -> RecordKey {
        RecordKey { kind: RecordKind::Program, key: self.0.as_slice().into() }
    }
}

impl fmt::Debug for ProgramHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// All that is needed to run the remaining phases of a transaction, written with its first
/// writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// The program.
    pub program: ProgramHash,
    /// The transaction's name in that program.
    pub transaction: Name,
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// `now()`.
    pub now: Time,
    /// The seed of `unique()`.
    pub seed: u128,
    /// The time of the remaining phases at stores whose writes bear timestamps, in microseconds. Every
    /// process that runs them writes with this time.
    pub time: u64,
    /// The index of the phase that wrote first.
    pub first: u32,
    /// The values that were recorded up to and including that phase, by queue.
    pub recorded: Vec<Vec<Value>>,
    /// The transactions for which the remaining phases wait.
    pub wait_set: WaitSet,
    /// The replica of the session.
    pub replica: Option<Name>,
    /// The key of the call, under which the result is kept. [`Intent::encode`] writes it last, so that
    /// intents from before there were keys can still be read.
    #[serde(skip)]
    pub key: Option<CallKey>,
    /// The caller with whose rights all phases run. An intent with a principal has another form, which earlier versions
    /// refuse to read: they would run it with the helper's rights. An intent without one has the old form.
    #[serde(skip)]
    pub principal: Option<Principal>,
}

impl Intent {
    /// Encodes the intent.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = encode(self);
        if self.principal.is_some() {
            bytes[0] = FORMAT_OF_INTENTS;
            let rest = (&self.key, &self.principal);
            bytes = postcard::to_extend(&rest, bytes).expect("writing to memory cannot fail");
        } else if let Some(key) = &self.key {
            bytes = postcard::to_extend(key, bytes).expect("writing to memory cannot fail");
        }
        bytes
    }

    /// Decodes an intent.
    ///
    /// # Errors
    ///
    /// When [`Intent::encode`] cannot have written the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let Some((format, rest)) = bytes.split_first() else { return Err(Unreadable) };
        if !matches!(*format, FORMAT | FORMAT_OF_INTENTS) {
            return Err(Unreadable);
        }
        let (mut intent, rest): (Self, _) =
            postcard::take_from_bytes(rest).map_err(|_| Unreadable)?;
        if *format == FORMAT_OF_INTENTS {
            (intent.key, intent.principal) = postcard::from_bytes(rest).map_err(|_| Unreadable)?;
        } else if !rest.is_empty() {
            intent.key = Some(postcard::from_bytes(rest).map_err(|_| Unreadable)?);
        }
        Ok(intent)
    }
}

/// The content of a commit witness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Witness {
    /// The phase has committed.
    Committed {
        /// Distinguishes the copies of a phase that two processes have run, where a store counts only one of
        /// them: replicas that hold the same commit witness have counted the same copy.
        copy: u64,
        /// The values that it recorded for later phases, by queue.
        recorded: Vec<Vec<Value>>,
        /// The transaction's result, if the phase computed it.
        result: Option<Value>,
        /// The transactions for which later phases wait because this phase has met them.
        wait_set: WaitSet,
    },
    /// A process that had to wait for the phase has ensured that it never commits.
    Aborted,
    /// An operator has ended the transaction: neither this part nor a later one will ever commit.
    Abandoned,
}

/// The answers that a phase was given, batch by batch, pinned by the process that ran it first: where a store
/// counts one of several copies of a phase, all copies must do the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PinnedAnswers {
    /// The answers to each batch of reads.
    pub answers: Vec<Vec<Data>>,
    /// The stamp of the replica that gave the answers: every copy must come after it, wherever it runs.
    pub seen: Stamp,
    /// The latest version among the answers.
    pub version: u64,
}

/// An error: the bytes are of a newer version, or corrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// The format of encoded records; bytes of another format are refused.
const FORMAT: u8 = 1;

/// The format of intents with a principal.
const FORMAT_OF_INTENTS: u8 = 2;

/// The most bytes that a record holds; longer values are kept in several records.
const PART_BYTES: usize = 64 * 1024;

/// Encodes a value.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_extend(value, vec![FORMAT]).expect("writing to memory cannot fail")
}

/// Decodes a value.
///
/// # Errors
///
/// When [`encode`] cannot have written the bytes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    match bytes.split_first() {
        Some((&FORMAT, rest)) => postcard::from_bytes(rest).map_err(|_| Unreadable),
        _ => Err(Unreadable),
    }
}

/// Returns writes of as many records as the bytes need. The first one begins with their number.
pub fn write_parts(kind: RecordKind, id: TransactionId, bytes: &[u8]) -> Vec<Write> {
    parts_of(bytes, |part| RecordKey::of(kind, id, part))
}

/// Does the same as [`write_parts`] under keys that the caller chooses.
pub fn parts_of(bytes: &[u8], key: impl Fn(u32) -> RecordKey) -> Vec<Write> {
    let count = bytes.len().div_ceil(PART_BYTES).max(1);
    let mut parts = Vec::with_capacity(count);
    for part in 0..count {
        let end = bytes.len().min((part + 1) * PART_BYTES);
        let chunk = &bytes[part * PART_BYTES..end];
        let value: Bytes = if part == 0 {
            [&(count as u32).to_be_bytes(), chunk].concat().into()
        } else {
            Arc::from(chunk)
        };
        parts.push(Write::Record(key(part as u32), value));
    }
    parts
}

/// Returns the number of parts and the bytes of the first one.
///
/// # Errors
///
/// When `value` is no first part.
pub fn first_part(value: &[u8]) -> Result<(u32, &[u8]), Unreadable> {
    let (count, chunk) = value.split_first_chunk().ok_or(Unreadable)?;
    Ok((u32::from_be_bytes(*count), chunk))
}

#[cfg(test)]
mod tests {
    use mingle_model::Origin;

    use super::*;

    #[test]
    fn what_is_kept_reads_back_and_what_is_corrupt_is_refused() {
        let witness = Witness::Committed {
            copy: 7,
            recorded: vec![vec![Value::from(1), Value::some(Value::from("x"))], Vec::new()],
            result: Some(Value::from(f64::NAN)),
            wait_set: WaitSet::default(),
        };
        let bytes = encode(&witness);
        assert_eq!(decode::<Witness>(&bytes), Ok(witness));
        for length in 0..bytes.len() {
            assert_eq!(decode::<Witness>(&bytes[..length]), Err(Unreadable), "{length}");
        }
        assert_eq!(decode::<Witness>(&[FORMAT + 1, 1]), Err(Unreadable));
    }

    #[test]
    fn an_intent_keeps_its_principal_and_one_of_an_earlier_version_is_read_without() {
        let till = Principal::new("till").ok();
        let key = CallKey::new("till", "order 7");
        let bare = Intent {
            program: ProgramHash([7; 32]),
            transaction: "sell".into(),
            arguments: vec![Value::from(3)],
            now: Time::from_micros(5),
            seed: 9,
            time: 11,
            first: 0,
            recorded: vec![vec![Value::from(4)]],
            wait_set: WaitSet::default(),
            replica: Some("r1".into()),
            key: None,
            principal: None,
        };
        // The forms of versions that had no principals: the fields alone, or with a key behind them.
        assert_eq!(bare.encode(), encode(&bare));
        let keyed = postcard::to_extend(&key, encode(&bare));
        let keyed = keyed.expect("writing to memory cannot fail");
        assert_eq!(Intent::decode(&keyed), Ok(Intent { key: Some(key), ..bare.clone() }));
        let key = Some(key);
        for (key, principal) in [(None, None), (key, None), (None, till.clone()), (key, till)] {
            let has_principal = principal.is_some();
            let intent = Intent { key, principal, ..bare.clone() };
            let bytes = intent.encode();
            assert_eq!(Intent::decode(&bytes), Ok(intent));
            // Versions without principals read the first form alone.
            assert_eq!(bytes[0] == FORMAT, !has_principal);
            let least = if has_principal { bytes.len() } else { encode(&bare).len() };
            for length in 0..least {
                assert_eq!(Intent::decode(&bytes[..length]), Err(Unreadable), "{length}");
            }
        }
        assert_eq!(Intent::decode(&[FORMAT_OF_INTENTS + 1, 1]), Err(Unreadable));
    }

    #[test]
    fn long_ones_are_kept_in_parts() {
        let id = TransactionId { origin: Origin(1), sequence: 2 };
        let bytes: Vec<u8> = (0..PART_BYTES * 2 + 7).map(|n| n as u8).collect();
        let parts = write_parts(RecordKind::Intent, id, &bytes);
        assert_eq!(parts.len(), 3);
        let mut joined: Vec<u8> = Vec::new();
        for (part, write) in parts.iter().enumerate() {
            let Write::Record(key, value) = write else { panic!("{write:?} is no record") };
            assert_eq!(key.transaction(), Some((id, part as u32)));
            if part == 0 {
                let (count, chunk) = first_part(value).unwrap();
                assert_eq!(count, 3);
                joined.extend(chunk);
            } else {
                joined.extend(&**value);
            }
        }
        assert_eq!(joined, bytes);
        assert_eq!(write_parts(RecordKind::Intent, id, &[]).len(), 1);
    }
}
