//! The bytes of the journal: segments of frames.
//!
//! A segment begins with a header that names the version. A frame is one entry with its length, the
//! position up to which the journal was known to be safe when the frame was written, and a checksum of
//! all of that (CRC32C). Positions count the bytes of all segments since the first one.
//!
//! # Damage
//!
//! A crash may leave any part of the bytes that were not synced. So [`scan`] takes the frames up to
//! the first damaged one. If that frame was not known to be safe, it is the torn tail of the last
//! sync: no promise rests on it or on later frames, and all of them are dropped. But if any intact
//! frame behind it says that the journal was safe beyond it, then bytes that promises rest on are
//! lost: the journal is [corrupt](Corrupt), and the node must not start from it.
//!
//! Departure from the design, where any intact frame behind the damaged one makes the journal corrupt:
//! a disk may write the later blocks of one sync before its earlier ones, so after a loss of power an
//! intact frame may follow a torn one.

use std::fmt;

/// The first bytes of a segment.
const MAGIC: [u8; 4] = *b"MGJ1";

/// The bytes of a segment's header: [`MAGIC`], and the position of the first frame.
pub const HEADER_BYTES: usize = 12;

/// The bytes of a frame beside its entry: the length, the safe position, the checksum.
pub const FRAME_BYTES: usize = 16;

/// The maximum length of an entry. A longer length is damage.
pub const ENTRY_BYTES_MAX: usize = 1 << 30;

/// The remainders of all bytes, for the reflected polynomial of CRC32C.
const REMAINDERS: [u32; 256] = {
    let mut remainders = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut remainder, mut bit) = (byte as u32, 0);
        while bit < 8 {
            let is_odd = remainder & 1 == 1;
            remainder = (remainder >> 1) ^ if is_odd { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        remainders[byte] = remainder;
        byte += 1;
    }
    remainders
};

/// Returns the CRC32C of these bytes.
pub fn checksum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let bytes = parts.into_iter().flatten();
    !bytes.fold(u32::MAX, |sum, byte| {
        (sum >> 8) ^ REMAINDERS[((sum ^ u32::from(*byte)) & 0xff) as usize]
    })
}

/// The error for a journal that has lost bytes on which promises may rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupt {
    /// A segment does not begin with a header of a version that this build reads.
    Header,
    /// A frame is damaged, and a later one says that it was safe.
    Middle {
        /// The position of the damaged frame.
        at: u64,
        /// The journal was safe up to here.
        safe: u64,
    },
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str(
                "the journal is corrupt: a segment does not begin with the header of version 1",
            ),
            Self::Middle { at, safe } => write!(
                f,
                "the journal is corrupt: the bytes at position {at} are damaged, and were safe, as was \
                 everything up to position {safe}. Give up this data center, and admit it again"
            ),
        }
    }
}

impl std::error::Error for Corrupt {}

/// Writes the header of a segment whose first frame has this position.
pub fn put_header(out: &mut Vec<u8>, position: u64) {
    out.extend(MAGIC);
    out.extend(position.to_le_bytes());
}

/// Appends a frame; the journal is safe up to position `safe`.
pub fn put_frame(out: &mut Vec<u8>, safe: u64, entry: &[u8]) {
    let length = (entry.len() as u32).to_le_bytes();
    let safe = safe.to_le_bytes();
    let sum = checksum([&length[..], &safe, entry]);
    out.extend(length);
    out.extend(safe);
    out.extend(sum.to_le_bytes());
    out.extend_from_slice(entry);
}

/// The contents of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned<'a> {
    /// The intact entries, in order.
    pub entries: Vec<&'a [u8]>,
    /// The position behind the last of them.
    pub end: u64,
    /// True if a torn tail follows.
    pub is_torn: bool,
}

/// Reads a frame; returns its entry, its safe position, and the bytes behind it.
fn take_frame(bytes: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (safe, rest) = rest.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk()?;
    let count = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let entry = rest.get(..count).filter(|_| count <= ENTRY_BYTES_MAX)?;
    let is_intact = checksum([&length[..], safe, entry]) == u32::from_le_bytes(*sum);
    is_intact.then(|| (entry, u64::from_le_bytes(*safe), &rest[count..]))
}

/// Returns the entries of all intact frames in these bytes, which begin at this position, with their
/// safe positions. A damaged length hides where the next frame begins, so every place is tried.
fn intact(bytes: &[u8], position: u64) -> Vec<(&[u8], u64)> {
    let (mut place, mut found) = (0, Vec::new());
    while place < bytes.len() {
        match take_frame(&bytes[place..]) {
            Some((entry, safe, _)) if safe <= position + place as u64 => {
                found.push((entry, safe));
                place += FRAME_BYTES + entry.len();
            }
            _ => place += 1,
        }
    }
    found
}

/// Reads the entries of all intact frames of a segment, also of those behind a damaged one. Only a
/// planted mistake uses it: the entries rest on those that are lost.
pub(crate) fn salvage(bytes: &[u8]) -> Vec<&[u8]> {
    let frames = intact(bytes.get(HEADER_BYTES..).unwrap_or_default(), u64::MAX / 2);
    frames.into_iter().map(|(entry, _)| entry).collect()
}

/// Reads the last segment of a journal.
///
/// # Errors
///
/// [`Corrupt`], if bytes that were safe are damaged.
///
/// # Examples
///
/// ```
/// use mingle_geo_node::segment::{Corrupt, put_frame, put_header, scan};
///
/// let mut bytes = Vec::new();
/// put_header(&mut bytes, 0);
/// put_frame(&mut bytes, 0, b"one");
/// let end = (bytes.len() - 12) as u64;
/// put_frame(&mut bytes, 0, b"two");
/// let scanned = scan(&bytes[..bytes.len() - 1]).expect("the tail is torn");
/// assert_eq!((scanned.entries, scanned.end, scanned.is_torn), (vec![&b"one"[..]], end, true));
///
/// // A third frame knows that the second one was safe.
/// let safe = (bytes.len() - 12) as u64;
/// put_frame(&mut bytes, safe, b"three");
/// bytes[12 + 19 + 16] ^= 1;
/// assert_eq!(scan(&bytes), Err(Corrupt::Middle { at: end, safe }));
/// ```
pub fn scan(bytes: &[u8]) -> Result<Scanned<'_>, Corrupt> {
    let (magic, rest) = bytes.split_first_chunk().ok_or(Corrupt::Header)?;
    let (position, mut rest) = rest.split_first_chunk().ok_or(Corrupt::Header)?;
    if *magic != MAGIC {
        return Err(Corrupt::Header);
    }
    let mut end = u64::from_le_bytes(*position);
    let mut entries = Vec::new();
    while let Some((entry, _, behind)) = take_frame(rest) {
        entries.push(entry);
        end += (rest.len() - behind.len()) as u64;
        rest = behind;
    }
    let is_torn = !rest.is_empty();
    let safe = intact(rest, end).into_iter().map(|(_, safe)| safe).max().unwrap_or(0);
    if safe > end {
        return Err(Corrupt::Middle { at: end, safe });
    }
    Ok(Scanned { entries, end, is_torn })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three syncs of two frames each; returns the bytes, and the ends of the frames.
    fn written() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        put_header(&mut bytes, 0);
        for sync in 0..3u8 {
            let safe = (bytes.len() - HEADER_BYTES) as u64;
            for frame in 0..2u8 {
                put_frame(&mut bytes, safe, &vec![sync * 2 + frame; 5 + usize::from(frame)]);
                ends.push(bytes.len());
            }
        }
        (bytes, ends)
    }

    #[test]
    fn the_checksum_is_crc32c() {
        // The check value of the catalogue of parametrised CRC algorithms.
        assert_eq!(checksum([&b"12345"[..], b"6789"]), 0xe306_9283);
        assert_eq!(checksum([]), 0);
    }

    #[test]
    fn a_journal_that_ends_anywhere_gives_its_intact_entries() {
        let (bytes, ends) = written();
        for length in HEADER_BYTES..=bytes.len() {
            let scanned = scan(&bytes[..length]).expect("only the tail is missing");
            let count = ends.iter().filter(|end| **end <= length).count();
            assert_eq!(scanned.entries.len(), count, "{length} bytes");
            assert_eq!(scanned.is_torn, length > HEADER_BYTES && !ends.contains(&length));
        }
        for length in 0..HEADER_BYTES {
            assert_eq!(scan(&bytes[..length]), Err(Corrupt::Header));
        }
    }

    /// Damage to any byte is noticed; it is corruption exactly if a later frame knows that the byte
    /// was safe.
    #[test]
    fn a_damaged_byte_is_torn_in_the_last_sync_and_corruption_before_it() {
        let (bytes, ends) = written();
        for place in HEADER_BYTES..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << (place % 8);
            let frame = ends.iter().filter(|end| **end <= place).count();
            match scan(&damaged) {
                Ok(scanned) => {
                    assert!(frame >= 4, "byte {place} of frame {frame} was safe");
                    assert_eq!((scanned.entries.len(), scanned.is_torn), (frame, true));
                }
                Err(Corrupt::Middle { at, safe }) => {
                    let begin = frame.checked_sub(1).map_or(0, |last| ends[last] - HEADER_BYTES);
                    assert!(frame < 4 && safe > at, "byte {place} of frame {frame}");
                    assert_eq!(at, begin as u64);
                }
                Err(Corrupt::Header) => panic!("the header is intact"),
            }
        }
    }

    #[test]
    fn a_preallocated_rest_of_zeros_is_a_tail() {
        let (mut bytes, ends) = written();
        bytes.extend([0; 4_096]);
        let scanned = scan(&bytes).expect("only zeros follow");
        assert_eq!((scanned.entries.len(), scanned.is_torn), (ends.len(), true));
    }
}
