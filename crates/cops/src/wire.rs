//! The encoding of frames, for connections that keep the order of their bytes.
//!
//! Numbers are in base 128, the lowest digits first, lists begin with their length, and variants with a
//! tag. The ends of a packet are those of its connection, so that they are not encoded.
//!
//! A value is one number in these protocols. On a connection it takes as many bytes as a user's value
//! would: the low bits of the number say how many bytes follow it, see [`sized`].
//!
//! # Examples
//!
//! ```
//! use mingle_cops::message::{Frame, Message};
//! use mingle_cops::wire::{put_frame, sized, take_frame};
//!
//! let (value, deps) = (sized(7, 128), Vec::new());
//! let (request, key, nearest) = (1, 2, Vec::new());
//! let frame = Frame::Plain(Message::WriteAfter { request, key, value, deps, nearest });
//! let mut bytes = Vec::new();
//! put_frame(&mut bytes, 5, &frame);
//! assert!((128..150).contains(&bytes.len()));
//! assert_eq!(take_frame(&bytes), Ok((5, frame)));
//! assert!(take_frame(&bytes[1..]).is_err());
//! ```

mod forms;

use std::fmt;

use crate::message::Frame;

/// The bits of a value that are its size.
const SIZE_BITS: u32 = 13;

/// The largest size of a value, in bytes.
pub const VALUE_BYTES_MAX: usize = (1 << SIZE_BITS) - 1;

/// Returns a value that takes `bytes` bytes on a connection, at most [`VALUE_BYTES_MAX`]; `number` tells
/// it from others of this size.
pub fn sized(number: u64, bytes: usize) -> u64 {
    (number << SIZE_BITS) | bytes.min(VALUE_BYTES_MAX) as u64
}

/// Returns the number of bytes that a value takes on a connection.
///
/// # Examples
///
/// ```
/// use mingle_cops::wire::{size, sized};
///
/// assert_eq!(size(sized(3, 4_096)), 4_096);
/// ```
pub fn size(value: u64) -> usize {
    value as usize & VALUE_BYTES_MAX
}

/// Bytes that no frame encodes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The place of the first byte that is wrong or missing.
    pub at: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of a frame is wrong or missing", self.at)
    }
}

impl std::error::Error for Malformed {}

/// Appends a frame, with the logical time of its sender.
pub fn put_frame(out: &mut Vec<u8>, time: u64, frame: &Frame) {
    time.put(out);
    frame.put(out);
}

/// Reads the logical time of the sender and a frame, which is all of the rest.
///
/// # Errors
///
/// If the bytes are no frame.
pub fn take_frame(bytes: &[u8]) -> Result<(u64, Frame), Malformed> {
    let mut reader = Reader { bytes, at: 0 };
    let time = u64::take(&mut reader)?;
    let frame = Frame::take(&mut reader)?;
    if reader.at < bytes.len() {
        return Err(reader.malformed());
    }
    Ok((time, frame))
}

/// The bytes that are still to be read.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    fn malformed(&self) -> Malformed {
        Malformed { at: self.at }
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = self.bytes.get(self.at).copied().ok_or(self.malformed())?;
        self.at += 1;
        Ok(byte)
    }

    /// Skips bytes.
    fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        if self.bytes.len() - self.at < count {
            return Err(self.malformed());
        }
        self.at += count;
        Ok(())
    }
}

/// A part of a frame.
trait Wire: Sized {
    /// Appends the encoding.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads an encoding.
    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed>;
}

impl Wire for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = reader.byte()?;
            let digit = Self::from(byte & 0x7f);
            if digit << shift >> shift != digit {
                return Err(Malformed { at: reader.at - 1 });
            }
            number |= digit << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(reader.malformed())
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::random::Random;

    use super::*;

    #[test]
    fn numbers_of_all_sizes_come_back() {
        let mut random = Random::new(3);
        for bits in 0..=64 {
            let number = if bits == 0 { 0 } else { random.bits() >> (64 - bits) };
            let mut bytes = Vec::new();
            number.put(&mut bytes);
            let mut reader = Reader { bytes: &bytes, at: 0 };
            assert_eq!((u64::take(&mut reader), reader.at), (Ok(number), bytes.len()));
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_malformed() {
        let mut reader = Reader { bytes: &[0xff; 12], at: 0 };
        assert_eq!(u64::take(&mut reader), Err(Malformed { at: 9 }));
    }
}
