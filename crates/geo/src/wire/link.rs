//! The encoding of messages between siblings, as the bytes of a link.
//!
//! A link between two data centers carries the messages of all partitions, in order. Frequent
//! messages (intervals of transactions, and vectors) are encoded as differences to the last ones on
//! the link: an unchanged vector entry takes no byte, and a session is named in full only once. So
//! both ends keep a state, [`Encoder`] and [`Decoder`], and both restart with each connection.
//! Bytes after an error cannot be decoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{Origin, TransactionId};

use super::sessions::{Places, Sessions};
use crate::codec::{
    Reader, VERSION, WireError, put_near, put_number, put_timestamp, put_value, put_vector,
};
use crate::message::form::Covered;
use crate::message::{Message, Replicate, SiblingVecs};
use crate::timestamp::{DcId, PartitionId, Timestamp};
use crate::tx::Transaction;
use crate::vector::Vector;

/// The first byte of a message.
const PLAIN: u8 = 0;
const REPLICATE: u8 = 1;
const VECS: u8 = 2;

/// The last values on the link.
#[derive(Clone, Debug, Default)]
struct Last {
    commit_vec: Vector,
    snapshot_own: Timestamp,
    /// The end of the last interval, by partition and origin.
    to: BTreeMap<(PartitionId, DcId), Timestamp>,
    known_vec: Vector,
}

/// The sending end of a link.
///
/// # Examples
///
/// ```
/// use mingle_geo::message::SiblingVecs;
/// use mingle_geo::wire::{Decoder, Encoder};
/// use mingle_geo::{DcId, Message, PartitionId, Timestamp, Vector};
///
/// let known_vec = Vector::ZERO.with(DcId(0), Timestamp(1 << 60));
/// let vecs = SiblingVecs { epoch: 0, dc: DcId(0), known_vec, stable_vec: known_vec };
/// let (message, partition) = (Message::SiblingVecs(vecs), PartitionId(3));
///
/// let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
/// let (mut first, mut second) = (Vec::new(), Vec::new());
/// encoder.put(partition, &message, &mut first);
/// encoder.put(partition, &message, &mut second);
/// assert!(second.len() < first.len());
/// for frame in [first, second] {
///     let mut taken = Vec::new();
///     decoder.take(&frame, |partition, message| taken.push((partition, message))).expect("it is sound");
///     assert_eq!(taken, [(partition, message.clone())]);
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    last: Last,
    sessions: Places,
}

/// The receiving end of a link.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    last: Last,
    sessions: Sessions,
}

impl Encoder {
    /// Appends a message between two replicas of `partition` to a frame.
    pub fn put(&mut self, partition: PartitionId, message: &Message, out: &mut Vec<u8>) {
        match message {
            Message::Replicate(replicate) if is_regular(replicate) => {
                out.push(REPLICATE);
                put_number(out, partition.0.into());
                self.put_replicate(partition, replicate, out);
            }
            Message::SiblingVecs(vecs) => {
                out.push(VECS);
                put_number(out, partition.0.into());
                out.push(vecs.dc.0);
                put_number(out, vecs.epoch.into());
                put_vector(out, &self.last.known_vec, &vecs.known_vec);
                put_vector(out, &vecs.known_vec, &vecs.stable_vec);
                put_value(out, &Covered::default());
                self.last.known_vec = vecs.known_vec;
            }
            _ => {
                out.push(PLAIN);
                put_number(out, partition.0.into());
                put_value(out, message);
            }
        }
    }

    fn put_replicate(&mut self, partition: PartitionId, replicate: &Replicate, out: &mut Vec<u8>) {
        let Replicate { epoch, sender, origin, from, to, transactions, floors } = replicate;
        put_number(out, (*epoch).into());
        out.extend([sender.0, origin.0]);
        let last = self.last.to.entry((partition, *origin)).or_default();
        put_timestamp(out, *last, *from);
        put_timestamp(out, *from, *to);
        *last = *to;
        put_value(out, floors);
        put_number(out, transactions.len() as u64);
        for transaction in transactions {
            self.put_transaction(transaction, out);
        }
    }

    fn put_transaction(&mut self, transaction: &Transaction, out: &mut Vec<u8>) {
        let Transaction { id, begun_us, commit_vec, snapshot_own, updates, .. } = transaction;
        let place = if let Some(place) = self.sessions.find(id.origin) {
            put_number(out, place as u64 + 1);
            place
        } else {
            out.push(0);
            out.extend(id.origin.0.to_le_bytes());
            self.sessions.add(id.origin)
        };
        let sequence = self.sessions.last(place);
        put_near(out, *sequence, id.sequence);
        *sequence = id.sequence;
        put_vector(out, &self.last.commit_vec, commit_vec);
        self.last.commit_vec = *commit_vec;
        put_timestamp(out, self.last.snapshot_own, *snapshot_own);
        self.last.snapshot_own = *snapshot_own;
        put_near(out, transaction.timestamp().micros(), *begun_us);
        put_value(out, updates);
    }
}

impl Decoder {
    /// Takes the messages of a frame, in order, with the partitions that they are for.
    ///
    /// # Errors
    ///
    /// [`WireError`], after the messages that could be read.
    pub fn take(
        &mut self,
        frame: &[u8],
        mut each: impl FnMut(PartitionId, Message),
    ) -> Result<(), WireError> {
        let mut reader = Reader::new(frame, VERSION);
        while !reader.is_empty() {
            let kind = reader.byte()?;
            let number = u16::try_from(reader.number()?);
            let partition =
                PartitionId(number.map_err(|_| WireError::Malformed("a partition is too large"))?);
            let message = match kind {
                PLAIN => reader.value()?,
                REPLICATE => Message::Replicate(self.replicate(partition, &mut reader)?),
                VECS => {
                    let dc = DcId(reader.byte()?);
                    let epoch = epoch(&mut reader)?;
                    let known_vec = reader.vector(&self.last.known_vec)?;
                    let stable_vec = reader.vector(&known_vec)?;
                    reader.value::<Covered>()?.check().map_err(WireError::Invalid)?;
                    self.last.known_vec = known_vec;
                    Message::SiblingVecs(SiblingVecs { epoch, dc, known_vec, stable_vec })
                }
                _ => {
                    return Err(WireError::Variant {
                        of: "the kind of a message between siblings",
                        found: kind.into(),
                        known: u64::from(VECS) + 1,
                        version: VERSION,
                    });
                }
            };
            each(partition, message);
        }
        Ok(())
    }

    fn replicate(
        &mut self,
        partition: PartitionId,
        reader: &mut Reader<'_>,
    ) -> Result<Replicate, WireError> {
        let epoch = epoch(reader)?;
        let (sender, origin) = (DcId(reader.byte()?), DcId(reader.byte()?));
        if origin.0 > DcId::STRONG.0 {
            return Err(WireError::Malformed("an origin that there is not"));
        }
        let last = self.last.to.get(&(partition, origin)).copied().unwrap_or_default();
        let from = reader.timestamp(last)?;
        let to = reader.timestamp(from)?;
        self.last.to.insert((partition, origin), to);
        let floors = reader.value()?;
        let count = reader.length()?;
        let mut transactions = Vec::new();
        for _ in 0..count {
            transactions.push(Arc::new(self.transaction(origin, reader)?));
        }
        Ok(Replicate { epoch, sender, origin, from, to, transactions, floors })
    }

    fn transaction(
        &mut self,
        origin: DcId,
        reader: &mut Reader<'_>,
    ) -> Result<Transaction, WireError> {
        let place = match reader.number()? {
            0 => self.sessions.add(Origin(u128::from_le_bytes(reader.bytes()?))).0,
            met => met as usize - 1,
        };
        let Some((session, last)) = self.sessions.get(place) else {
            return Err(WireError::Malformed("a session that was not named"));
        };
        *last = reader.near(*last)?;
        let id = TransactionId { origin: *session, sequence: *last };
        let commit_vec = reader.vector(&self.last.commit_vec)?;
        self.last.commit_vec = commit_vec;
        let snapshot_own = reader.timestamp(self.last.snapshot_own)?;
        self.last.snapshot_own = snapshot_own;
        let begun_us = reader.near(commit_vec[origin].micros())?;
        let updates = reader.value()?;
        Ok(Transaction { id, begun_us, origin, commit_vec, snapshot_own, updates })
    }
}

fn epoch(reader: &mut Reader<'_>) -> Result<u32, WireError> {
    u32::try_from(reader.number()?).map_err(|_| WireError::Malformed("an epoch is too large"))
}

/// True if all transactions have the interval's origin, as they should.
fn is_regular(replicate: &Replicate) -> bool {
    let origin = replicate.origin;
    origin.0 <= DcId::STRONG.0
        && replicate.transactions.iter().all(|transaction| transaction.origin == origin)
}

#[cfg(test)]
#[path = "link_tests.rs"]
pub mod tests;
