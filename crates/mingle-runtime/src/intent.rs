//! What is kept of a transaction so that somebody else can finish it.

use std::fmt;
use std::sync::Arc;

use mingle_model::{Name, Principal, Stamp, Time, TransactionId, Value};
use mingle_store::{Bytes, Data, RecordKey, RecordKind, Write};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::keyed::CallKey;
use crate::worklist::Worklist;

/// A program is known by the hash of its text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramHash(pub [u8; 32]);

impl ProgramHash {
    /// The hash of a program's text.
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Where the text is kept.
    pub fn key(&self) -> RecordKey {
        RecordKey { kind: RecordKind::Program, key: self.0.as_slice().into() }
    }
}

impl fmt::Debug for ProgramHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// All that is needed to run the phases of a transaction that remain, written with its first
/// writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// Which program.
    pub program: ProgramHash,
    /// Which transaction of it.
    pub transaction: Name,
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// `now()`.
    pub now: Time,
    /// What `unique()` draws from.
    pub seed: u128,
    /// When the phases that remain take place, at stores whose writes bear timestamps:
    /// microseconds. Whoever runs them writes with the same.
    pub time: u64,
    /// The index of the phase that wrote first.
    pub first: u32,
    /// The values that were recorded up to the end of that phase, by queue.
    pub recorded: Vec<Vec<Value>>,
    /// What the remaining phases wait for.
    pub worklist: Worklist,
    /// The replica at which the session stays.
    pub replica: Option<Name>,
    /// The key of the call, under which the result is kept: [`Intent::encode`] puts it behind all
    /// else, so that what was kept before there were keys still reads.
    #[serde(skip)]
    pub key: Option<CallKey>,
    /// The caller with whose rights all phases run. An intent that has one is of another form, which earlier versions refuse to
    /// read: they would run it with the rights of the helper. Those without one are as they were before there were any.
    #[serde(skip)]
    pub principal: Option<Principal>,
}

impl Intent {
    /// As bytes.
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

    /// From bytes.
    ///
    /// # Errors
    ///
    /// When they are not what [`Intent::encode`] writes.
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

/// What a commit witness says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Witness {
    /// The phase has committed.
    Committed {
        /// Tells apart the copies of a phase that two have run, where a store counts one of them:
        /// replicas that hold the same commit witness have counted the same.
        copy: u64,
        /// What it recorded for later phases, by queue.
        recorded: Vec<Vec<Value>>,
        /// The transaction's result, if the phase computed it.
        result: Option<Value>,
        /// What later phases wait for because of what the phase met.
        worklist: Worklist,
    },
    /// Somebody who had to wait for it has seen to it that it never commits.
    Aborted,
    /// An operator has ended the transaction: neither this part nor any later one ever comes.
    Abandoned,
}

/// The answers that a phase was given, batch by batch, fixed by whoever ran it first: where a store
/// counts one of several copies of a phase, all copies must do the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fixed {
    /// The answers to each batch of reads.
    pub answers: Vec<Vec<Data>>,
    /// What the replica that gave them had seen: a copy must come after it wherever it is made.
    pub seen: Stamp,
    /// The latest version among the answers.
    pub version: u64,
}

/// What is kept does not make sense: it is of a newer version, or corrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// The form in which things are kept; what is of another form is refused.
const FORMAT: u8 = 1;

/// The form of intents with a principal.
const FORMAT_OF_INTENTS: u8 = 2;

/// A record holds at most so many bytes; what is longer is kept in several.
const PART_BYTES: usize = 64 * 1024;

/// Something as bytes.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_extend(value, vec![FORMAT]).expect("writing to memory cannot fail")
}

/// Something from its bytes.
///
/// # Errors
///
/// When they are not what [`encode`] writes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    match bytes.split_first() {
        Some((&FORMAT, rest)) => postcard::from_bytes(rest).map_err(|_| Unreadable),
        _ => Err(Unreadable),
    }
}

/// Writes of as many records as it takes. The first one begins with their number.
pub fn write_parts(kind: RecordKind, id: TransactionId, bytes: &[u8]) -> Vec<Write> {
    parts_of(bytes, |part| RecordKey::of(kind, id, part))
}

/// As [`write_parts`], under keys of the caller's.
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

/// The number of parts and the bytes of the first one.
///
/// # Errors
///
/// When it is no first part.
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
            worklist: Worklist::default(),
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
            worklist: Worklist::default(),
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
