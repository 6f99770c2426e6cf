//! Messages with their source and destination.

use crate::codec::{Reader, WireError, put_value};
use crate::message::{Address, Message};

/// A message with its source and destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Parcel {
    /// The source.
    pub from: Address,
    /// The destination.
    pub to: Address,
    /// The content.
    pub message: Message,
}

/// Writes a message without addresses.
pub fn put_message(out: &mut Vec<u8>, message: &Message) {
    put_value(out, message);
}

/// Reads a message without addresses, which was written in this version and is all of the bytes.
///
/// # Errors
///
/// If this build cannot read it.
pub fn take_message(version: u16, bytes: &[u8]) -> Result<Message, WireError> {
    let mut reader = Reader::new(bytes, version);
    let message = reader.value()?;
    reader.end().map(|()| message)
}

/// Appends a message to a frame.
///
/// # Examples
///
/// ```
/// use mingle_geo::message::Abort;
/// use mingle_geo::wire::{Parcel, VERSION, put_parcel, take_parcels};
/// use mingle_geo::{Address, DcId, Message, PartitionId};
/// use mingle_model::{Origin, TransactionId};
///
/// let message = Message::Abort(Abort { id: TransactionId { origin: Origin(7), sequence: 1 } });
/// let (from, to) = (Address::Client(3), Address::Replica(DcId(0), PartitionId(5)));
/// let mut frame = Vec::new();
/// put_parcel(&mut frame, from, to, &message);
/// let mut taken = Vec::new();
/// take_parcels(VERSION, &frame, |parcel| taken.push(parcel)).expect("it is sound");
/// assert_eq!(taken, [Parcel { from, to, message }]);
/// ```
pub fn put_parcel(out: &mut Vec<u8>, from: Address, to: Address, message: &Message) {
    put_value(out, &(from, to));
    put_value(out, message);
}

/// Takes the messages of a frame, in order, which was written in this version.
///
/// # Errors
///
/// [`WireError`], after the messages that could be read.
pub fn take_parcels(
    version: u16,
    frame: &[u8],
    mut each: impl FnMut(Parcel),
) -> Result<(), WireError> {
    let mut reader = Reader::new(frame, version);
    while !reader.is_empty() {
        each(take_parcel(&mut reader)?);
    }
    Ok(())
}

/// Takes the next message. It is compiled once, with this crate.
fn take_parcel(reader: &mut Reader<'_>) -> Result<Parcel, WireError> {
    let (from, to) = reader.value()?;
    Ok(Parcel { from, to, message: reader.value()? })
}
