//! The bytes of the journal: segments of frames.
//!
//! A segment begins with a [`Header`]. A frame is one entry with its length, the position up to which
//! the journal was known to be safe when the frame was written, and two checksums (CRC32C): one of
//! these fields, one of the entry. Both also cover the segment's salt and the frame's position, so
//! no bytes in an entry are taken for a frame, and no frame of another place for one of this. An entry
//! has at least one byte. Positions count the frames' bytes of all segments since the first one.
//!
//! A segment may have a rest of zeros, which were written ahead so that a sync writes data alone.
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
//!
//! Damage that reaches the last frames of a journal looks like a torn tail, also if they had been
//! synced: no later frame says so.

mod header;

use std::fmt;

pub use header::{HEADER_BYTES, Header, HeaderError, Identity, Kind, VERSION, checksum};

/// The bytes of a frame beside its entry: the length, the safe position, the checksums.
pub const FRAME_BYTES: usize = 20;

/// The maximum length of an entry. A longer length is damage.
pub const ENTRY_BYTES_MAX: usize = 1 << 30;

/// The error for a journal that has lost bytes on which promises may rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupt {
    /// A segment does not begin with a header of a version that this build reads.
    Header(HeaderError),
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
            Self::Header(why) => why.fmt(f),
            Self::Middle { at, safe } => write!(
                f,
                "the journal is corrupt: the bytes at position {at} are damaged, and were safe, as was \
                 everything up to position {safe}. Give up this data center, and admit it again"
            ),
        }
    }
}

impl std::error::Error for Corrupt {}

/// Returns the checksum of a frame's fields.
fn head_sum(salt: u64, position: u64, length: [u8; 4], safe: [u8; 8]) -> u32 {
    checksum([&salt.to_le_bytes()[..], &position.to_le_bytes(), &length, &safe])
}

/// Appends a frame at this position of a segment with this salt; the journal is safe up to position
/// `safe`.
pub fn put_frame(out: &mut Vec<u8>, salt: u64, position: u64, safe: u64, entry: &[u8]) {
    let (length, safe) = ((entry.len() as u32).to_le_bytes(), safe.to_le_bytes());
    let head = head_sum(salt, position, length, safe).to_le_bytes();
    out.extend(length);
    out.extend(safe);
    out.extend(head);
    out.extend(checksum([&head[..], entry]).to_le_bytes());
    out.extend_from_slice(entry);
}

/// The contents of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned<'a> {
    /// The header.
    pub header: Header,
    /// The intact entries, in order.
    pub entries: Vec<&'a [u8]>,
    /// The position behind the last of them.
    pub end: u64,
    /// True if a torn tail follows, or a rest of zeros.
    pub is_torn: bool,
}

/// Reads the frame at this position; returns its entry and its safe position.
fn take_frame(bytes: &[u8], salt: u64, position: u64) -> Option<(&[u8], u64)> {
    let (length, rest) = bytes.split_first_chunk()?;
    let count = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    // Cheap checks come first: a search for frames looks at every place.
    if count == 0 || count > ENTRY_BYTES_MAX || count > rest.len() {
        return None;
    }
    let (safe, rest) = rest.split_first_chunk()?;
    if u64::from_le_bytes(*safe) > position {
        return None;
    }
    let (head, rest) = rest.split_first_chunk::<4>()?;
    if head_sum(salt, position, *length, *safe) != u32::from_le_bytes(*head) {
        return None;
    }
    let (sum, rest) = rest.split_first_chunk()?;
    let entry = rest.get(..count)?;
    let is_intact = checksum([&head[..], entry]) == u32::from_le_bytes(*sum);
    is_intact.then(|| (entry, u64::from_le_bytes(*safe)))
}

/// Returns the entries of all intact frames in these bytes, which begin at this position, with their
/// safe positions. A damaged length hides where the next frame begins, so every place is tried.
fn intact(bytes: &[u8], salt: u64, position: u64) -> Vec<(&[u8], u64)> {
    let (mut place, mut found) = (0, Vec::new());
    while place < bytes.len() {
        match take_frame(&bytes[place..], salt, position + place as u64) {
            Some((entry, safe)) => {
                found.push((entry, safe));
                place += FRAME_BYTES + entry.len();
            }
            None => place += 1,
        }
    }
    found
}

/// Reads the entries of all intact frames of a segment, also of those behind a damaged one. Only a
/// planted mistake uses it: the entries rest on those that are lost.
pub(crate) fn salvage(bytes: &[u8]) -> Vec<&[u8]> {
    let Ok(header) = Header::take(bytes) else { return Vec::new() };
    let frames = intact(&bytes[HEADER_BYTES..], header.salt, header.position);
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
/// use mingle_geo_node::segment::{Corrupt, HEADER_BYTES, Header, put_frame, scan};
///
/// let mut bytes = Vec::new();
/// Header::default().put(&mut bytes);
/// put_frame(&mut bytes, 0, 0, 0, b"one");
/// let end = (bytes.len() - HEADER_BYTES) as u64;
/// put_frame(&mut bytes, 0, end, 0, b"two");
/// let scanned = scan(&bytes[..bytes.len() - 1]).expect("the tail is torn");
/// assert_eq!((scanned.entries, scanned.end, scanned.is_torn), (vec![&b"one"[..]], end, true));
///
/// // A third frame knows that the second one was safe.
/// let safe = (bytes.len() - HEADER_BYTES) as u64;
/// *bytes.last_mut().expect("there are two frames") ^= 1;
/// put_frame(&mut bytes, 0, safe, safe, b"three");
/// assert_eq!(scan(&bytes), Err(Corrupt::Middle { at: end, safe }));
/// ```
pub fn scan(bytes: &[u8]) -> Result<Scanned<'_>, Corrupt> {
    let header = Header::take(bytes).map_err(Corrupt::Header)?;
    let (salt, mut end) = (header.salt, header.position);
    if header.kind == Kind::Checkpoint {
        // Its frames count from 0, and its header says which part of the journal it replaces.
        end = 0;
    }
    let (mut rest, mut entries) = (&bytes[HEADER_BYTES..], Vec::new());
    while let Some((entry, _)) = take_frame(rest, salt, end) {
        entries.push(entry);
        let length = FRAME_BYTES + entry.len();
        (rest, end) = (&rest[length..], end + length as u64);
    }
    let is_torn = !rest.is_empty();
    let safe = intact(rest, salt, end).into_iter().map(|(_, safe)| safe).max().unwrap_or(0);
    if safe > end {
        return Err(Corrupt::Middle { at: end, safe });
    }
    Ok(Scanned { header, entries, end, is_torn })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three syncs of two frames each; returns the bytes, and the ends of the frames.
    fn written() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let header = Header { salt: 77, ..Header::default() };
        header.put(&mut bytes);
        for sync in 0..3u8 {
            let safe = (bytes.len() - HEADER_BYTES) as u64;
            for frame in 0..2u8 {
                let position = (bytes.len() - HEADER_BYTES) as u64;
                let entry = vec![sync * 2 + frame; 5 + usize::from(frame)];
                put_frame(&mut bytes, header.salt, position, safe, &entry);
                ends.push(bytes.len());
            }
        }
        (bytes, ends)
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
            let refused = Corrupt::Header(HeaderError::Foreign);
            assert_eq!(scan(&bytes[..length]), Err(refused));
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
                Err(Corrupt::Header(_)) => panic!("the header is intact"),
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

    /// A client may write bytes that look like a frame.
    #[test]
    fn a_frame_within_a_torn_entry_is_no_frame() {
        let (mut bytes, ends) = written();
        let safe = (bytes.len() - HEADER_BYTES) as u64;
        let mut forged = Vec::new();
        for place in 0..64 {
            // The client guesses the position; it cannot guess the salt.
            put_frame(&mut forged, 0, safe + FRAME_BYTES as u64 + place, safe + 1, b"x");
        }
        put_frame(&mut bytes, 77, safe, safe, &forged);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let scanned = scan(&bytes).expect("only the last frame is damaged");
        assert_eq!((scanned.entries.len(), scanned.is_torn), (ends.len(), true));
    }

    #[test]
    fn a_frame_of_another_position_is_damage() {
        let (mut bytes, ends) = written();
        let frame = bytes[ends[2]..ends[3]].to_vec();
        bytes.splice(ends[4]..ends[5], frame);
        assert_eq!(scan(&bytes).expect("a torn tail").entries.len(), 5);
    }
}
