//! The contents of rows.
//!
//! Every row under `d` and `k` begins with the version of the commit that wrote it. The part for
//! readers follows, the same in every engine; the part that only a replicated engine needs to merge
//! comes last, and readers skip it.

use mingle_model::{Name, Origin, Ref, RowKind, Stamp, TransactionId, WitnessRow};

use super::key;
use super::wire::{Reader, Writer};

/// The version that a row begins with.
pub fn version(row: &[u8]) -> u64 {
    Reader(row).u64()
}

/// A row that holds a value: register, element (an empty value), entry, line.
pub fn unit(version: u64, value: &[u8]) -> Vec<u8> {
    let mut writer = Writer(Vec::with_capacity(12 + value.len()));
    writer.u64(version);
    writer.bytes(value);
    writer.0
}

/// The encoded value in a row made by [`unit`].
pub fn unit_value(row: &[u8]) -> &[u8] {
    let mut reader = Reader(row);
    reader.u64();
    reader.bytes()
}

/// A counter's row.
pub fn counter(version: u64, sum: i128) -> Writer {
    let mut writer = Writer::default();
    writer.u64(version);
    writer.i128(sum);
    writer
}

/// The sum in a counter's row.
pub fn counter_sum(row: &[u8]) -> i128 {
    let mut reader = Reader(row);
    reader.u64();
    reader.i128()
}

/// The head of a collection or of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The version of the last change to any part of it.
    pub version: u64,
    /// The number of its elements, entries, lines or objects.
    pub count: u64,
    /// The version of the last removal from it: the version of every absent part.
    pub removed_at: u64,
}

impl Header {
    /// The row form.
    pub fn encode(self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u64(self.version);
        writer.u64(self.count);
        writer.u64(self.removed_at);
        writer.0
    }

    /// From the row form.
    pub fn decode(row: &[u8]) -> Self {
        let mut reader = Reader(row);
        Self { version: reader.u64(), count: reader.u64(), removed_at: reader.u64() }
    }
}

/// The existence of an object. The row stays when the object is deleted, so that the version of
/// deleted data is known: one small row for each object that ever existed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// The version of the last change of `exists`.
    pub version: u64,
    /// True if it exists.
    pub exists: bool,
    /// The version of its last deletion: the version of its absent fields.
    pub deleted_at: u64,
}

impl Presence {
    /// The row form, to which an engine may add.
    pub fn encode(self) -> Writer {
        let mut writer = Writer::default();
        writer.u64(self.version);
        writer.u8(u8::from(self.exists));
        writer.u64(self.deleted_at);
        writer
    }

    /// From the row form.
    pub fn decode(reader: &mut Reader<'_>) -> Self {
        Self { version: reader.u64(), exists: reader.u8() != 0, deleted_at: reader.u64() }
    }
}

/// The part of a witness row's key after its object: the whole rest of the row, so that equal
/// rows are one and different ones stand side by side.
pub fn witness(row: &WitnessRow) -> Vec<u8> {
    let mut writer = Writer(key::transaction(row.id).to_vec());
    writer.u8(match row.kind {
        RowKind::Write => 0,
        RowKind::Read => 1,
    });
    writer.bytes(row.intent.as_bytes());
    writer.count(row.stores.len());
    for store in &row.stores {
        writer.bytes(store.as_bytes());
    }
    writer.count(row.seen.len());
    for (store, stamp) in &row.seen {
        writer.bytes(store.as_bytes());
        writer.count(stamp.iter().count());
        for (replica, count) in stamp.iter() {
            writer.bytes(replica.as_bytes());
            writer.u64(count);
        }
    }
    writer.0
}

/// The witness row of `object`, or of the whole store, with this key part.
pub fn decode_witness(object: Option<Ref>, key: &[u8]) -> WitnessRow {
    let (origin, rest) = key.split_first_chunk().expect("a witness key begins with an id");
    let (sequence, rest) = rest.split_first_chunk().expect("a witness key begins with an id");
    let reader = &mut Reader(rest);
    let kind = match reader.u8() {
        0 => RowKind::Write,
        1 => RowKind::Read,
        other => panic!("a witness row of kind {other} is corrupt"),
    };
    WitnessRow {
        object,
        id: TransactionId {
            origin: Origin(u128::from_be_bytes(*origin)),
            sequence: u64::from_be_bytes(*sequence),
        },
        kind,
        intent: read_name(reader),
        stores: (0..reader.count()).map(|_| read_name(reader)).collect(),
        seen: (0..reader.count()).map(|_| (read_name(reader), read_stamp(reader))).collect(),
    }
}

fn read_stamp(reader: &mut Reader<'_>) -> Stamp {
    (0..reader.count()).map(|_| (read_name(reader), reader.u64())).collect()
}

/// A name.
pub fn read_name(reader: &mut Reader<'_>) -> Name {
    std::str::from_utf8(reader.bytes()).expect("names were written as UTF-8: it is corrupt").into()
}

/// The outcome of a commit with an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It took effect.
    Committed,
    /// A helper was told that it did not take effect, so it must not take effect later.
    Barred,
}

/// The row of a commit with an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FateRow {
    /// The outcome.
    pub fate: Fate,
    /// The time of the outcome, in seconds since 1970; an earlier version did not write it.
    pub at: Option<u64>,
}

impl FateRow {
    /// The row form.
    pub fn encode(self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(match self.fate {
            Fate::Committed => 1,
            Fate::Barred => 0,
        });
        if let Some(at) = self.at {
            writer.u64(at);
        }
        writer.0
    }

    /// From the row form.
    pub fn decode(row: &[u8]) -> Self {
        let mut reader = Reader(row);
        let fate = match reader.u8() {
            0 => Fate::Barred,
            1 => Fate::Committed,
            other => panic!("an outcome {other} is corrupt"),
        };
        let at = (!reader.is_empty()).then(|| reader.u64());
        Self { fate, at }
    }
}
