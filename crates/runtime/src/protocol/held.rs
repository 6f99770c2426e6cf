//! What a transaction holds of a bounded counter ahead of its first commit.
//!
//! It stands at the store of the counter as a [`RecordKind::Hold`](mingle_store::RecordKind::Hold), written together
//! with the change of the counter, and in a queue of the recorded values, so that every process that runs the phase
//! of that store knows it. That phase takes the change back, removes the record, and takes anew as the program
//! says: in one commit, so the counter's value does not move.

use mingle_model::{Ref, Value};
use mingle_store::{Address, Bytes, RecordKey, RecordKind, Write};

use crate::protocol::intent::{decode, encode};

/// A change of a bounded counter that a transaction holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// The store, as the program numbers it.
    pub(crate) store: u32,
    pub(crate) object: Ref,
    pub(crate) field: u16,
    /// The number added to the counter: negative for a take.
    pub(crate) change: i64,
    /// The key of the record.
    pub(crate) key: RecordKey,
}

impl Held {
    /// Returns the value in the queue of what is held.
    pub(crate) fn to_value(&self) -> Value {
        Value::list([
            Value::Int(self.store.into()),
            Value::Ref(self.object.clone()),
            Value::Int(self.field.into()),
            Value::Int(self.change),
            Value::Bytes(self.key.key.clone()),
        ])
    }

    /// Reads a value that [`Held::to_value`] has written.
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        let [
            Value::Int(store),
            Value::Ref(object),
            Value::Int(field),
            Value::Int(change),
            Value::Bytes(key),
        ] = &**value.as_list()?
        else {
            return None;
        };
        Some(Self {
            store: u32::try_from(*store).ok()?,
            object: object.clone(),
            field: u16::try_from(*field).ok()?,
            change: *change,
            key: RecordKey { kind: RecordKind::Hold, key: key.clone() },
        })
    }

    /// Returns the content of the record.
    pub(crate) fn record(&self) -> Bytes {
        let address = Address { object: self.object.clone(), field: self.field };
        encode(&(address, self.change)).into()
    }

    /// Returns the writes that give back what a record holds: none for the mark of a hold that was given up before
    /// it stood.
    pub(crate) fn given_back(record: &[u8]) -> Option<Vec<Write>> {
        if record.is_empty() {
            return Some(Vec::new());
        }
        let (address, change): (Address, i64) = decode(record).ok()?;
        Some(vec![Write::Add(address, -i128::from(change))])
    }
}
