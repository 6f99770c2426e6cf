//! Frames of a connection.

use crate::segment::checksum;

/// The maximum length of a frame in bytes.
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// The bytes of a frame beside its content: length, kind, connection, sequence, checksum.
const HEAD_BYTES: usize = 4 + 1 + 8 + 8 + 4;

/// The maximum length of a frame's content in bytes.
pub const CONTENT_BYTES_MAX: usize = FRAME_BYTES_MAX - HEAD_BYTES;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// HELLO; the connection number is that of the sender alone.
    Hello,
    /// A refusal, after which the connection ends.
    Refused,
    /// A message, or its last part.
    Message,
    /// A part of a message, of which more follows.
    Part,
    /// A sign of life.
    Ping,
}

const KINDS: [Kind; 5] = [Kind::Hello, Kind::Refused, Kind::Message, Kind::Part, Kind::Ping];

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: Kind,
    /// The number of the connection.
    pub connection: u64,
    /// The number of the frame on the connection.
    pub sequence: u64,
    pub content: &'a [u8],
}

impl<'a> Frame<'a> {
    pub fn to_bytes(self) -> Vec<u8> {
        let Self { kind, connection, sequence, content } = self;
        debug_assert!(content.len() <= CONTENT_BYTES_MAX);
        let mut bytes = Vec::with_capacity(HEAD_BYTES + content.len());
        bytes.extend(((HEAD_BYTES + content.len()) as u32).to_le_bytes());
        bytes.push(kind as u8);
        bytes.extend(connection.to_le_bytes());
        bytes.extend(sequence.to_le_bytes());
        let sum = checksum([&bytes[..], content]);
        bytes.extend(sum.to_le_bytes());
        bytes.extend_from_slice(content);
        bytes
    }

    /// Reads the first frame of these bytes; returns it with its length, or `None` if it is not
    /// complete. The error says why the bytes are no frame.
    pub fn take(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, &'static str> {
        let Some(length) = bytes.first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if !(HEAD_BYTES..=FRAME_BYTES_MAX).contains(&length) {
            return Err("a frame has a length that is not possible");
        }
        let Some(frame) = bytes.get(..length) else { return Ok(None) };
        let (head, content) = frame.split_at(HEAD_BYTES);
        let (fields, sum) = head.split_at(HEAD_BYTES - 4);
        if checksum([fields, content]).to_le_bytes() != sum {
            return Err("the checksum of a frame does not fit");
        }
        let kind = *KINDS.get(usize::from(fields[4])).ok_or("a frame has an unknown kind")?;
        let wide = |at: usize| fields[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        Ok(Some((Self { kind, connection: wide(5), sequence: wide(13), content }, length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_and_damage_is_noticed() {
        let frame = Frame { kind: Kind::Part, connection: 1 << 50, sequence: 9, content: b"abc" };
        let bytes = frame.to_bytes();
        assert_eq!(Frame::take(&bytes), Ok(Some((frame, bytes.len()))));
        for length in 0..bytes.len() {
            assert_eq!(Frame::take(&bytes[..length]), Ok(None), "{length} bytes");
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let taken = Frame::take(&damaged);
            assert!(!matches!(taken, Ok(Some(_))), "bit {bit}: {taken:?}");
        }
        assert!(Frame::take(b"GET / HTTP/1.1\r\n\r\n").is_err());
    }
}
