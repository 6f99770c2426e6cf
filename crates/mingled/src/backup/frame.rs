//! The bytes of a backup: a preamble, and frames with checksums.
//!
//! | part | content |
//! | --- | --- |
//! | preamble | `MINGLEBK`, and the version as a 32-bit number |
//! | first frame | the [`Header`] |
//! | further frames | pieces of one stream: records of the journal, each after its length in 4 bytes |
//! | last frame | the [`Totals`] of the stream |
//!
//! Numbers are little-endian. A frame is its kind (1 byte), its number (8), the length of its content (4), a CRC32C (4), and
//! the content. The checksum covers all of these, and the backup's salt: so no frame of another backup, and none of another
//! place, is taken for one of this. A frame has at most [`FRAME_BYTES_MAX`] bytes; a longer record is in several.

use mingle_geo::vector::DCS_MAX;
use mingle_geo::{DcId, Timestamp, Vector};
use mingle_geo_node::segment::checksum;

use super::Damage;

/// The first bytes of a backup.
pub const MAGIC: [u8; 8] = *b"MINGLEBK";

/// The version of backups that this build writes and reads.
pub const VERSION: u32 = 1;

/// The number of bytes before the first frame.
pub const PREAMBLE_BYTES: usize = MAGIC.len() + 4;

/// The number of bytes of a frame before its content.
pub const HEAD_BYTES: usize = 17;

/// The maximum number of bytes of a frame.
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// The maximum number of bytes of a frame's content.
pub const CONTENT_BYTES_MAX: usize = FRAME_BYTES_MAX - HEAD_BYTES;

/// The latest time of a vector, in microseconds since 1970: some centuries from now.
const MICROS_MAX: u64 = u64::MAX >> 11;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The header.
    Header,
    /// A piece of the stream.
    Piece,
    /// The totals.
    End,
}

impl FrameKind {
    fn number(self) -> u8 {
        match self {
            Self::Header => 1,
            Self::Piece => 2,
            Self::End => 3,
        }
    }

    fn of(number: u8) -> Option<Self> {
        [Self::Header, Self::Piece, Self::End].into_iter().find(|kind| kind.number() == number)
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// The kind.
    pub kind: FrameKind,
    /// The number, from 0.
    pub number: u64,
    /// The length of the content.
    pub length: usize,
    sum: u32,
}

fn sum(salt: u64, head: &[u8], content: &[u8]) -> u32 {
    checksum([&salt.to_le_bytes()[..], head, content])
}

/// Returns a frame.
pub fn frame(salt: u64, kind: FrameKind, number: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind.number()];
    bytes.extend(number.to_le_bytes());
    bytes.extend((content.len() as u32).to_le_bytes());
    let sum = sum(salt, &bytes, content);
    bytes.extend(sum.to_le_bytes());
    bytes.extend_from_slice(content);
    bytes
}

impl FrameHead {
    /// Reads the head of a frame, whose length is within the bounds.
    pub fn take(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let [kind] = fields.next()?;
        let (kind, number) = (FrameKind::of(kind)?, u64::from_le_bytes(fields.next()?));
        let length = u32::from_le_bytes(fields.next()?) as usize;
        let sum = u32::from_le_bytes(fields.next()?);
        (length <= CONTENT_BYTES_MAX).then_some(Self { kind, number, length, sum })
    }

    /// True if the checksum fits.
    pub fn fits(&self, salt: u64, bytes: &[u8; HEAD_BYTES], content: &[u8]) -> bool {
        sum(salt, &bytes[..HEAD_BYTES - 4], content) == self.sum
    }
}

/// The first frame of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The cluster that it was made of.
    pub cluster: u128,
    /// The data center that made it.
    pub dc: DcId,
    /// The incarnation of the data center.
    pub incarnation: u32,
    /// The number of data centers.
    pub dc_count: u8,
    /// The number of partitions.
    pub partition_count: u16,
    /// The epoch of the vector.
    pub epoch: u32,
    /// The time at which it was begun, in microseconds since 1970.
    pub wall_us: u64,
    /// The vector of all items.
    pub at: Vector,
    /// A random number that goes into each checksum.
    pub salt: u64,
}

/// The last frame of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of records.
    pub records: u64,
    /// The number of items.
    pub items: u64,
    /// The number of floors of operation ids.
    pub floors: u64,
    /// The bytes of the stream.
    pub bytes: u64,
}

impl Header {
    /// Returns the content of the header's frame.
    pub fn content(&self) -> Vec<u8> {
        let Self { cluster, dc, incarnation, dc_count, partition_count, epoch, wall_us, at, salt } =
            self;
        let mut content = cluster.to_le_bytes().to_vec();
        content.extend([dc.0, *dc_count]);
        content.extend(incarnation.to_le_bytes());
        content.extend(partition_count.to_le_bytes());
        content.extend(epoch.to_le_bytes());
        content.extend(wall_us.to_le_bytes());
        content.extend(salt.to_le_bytes());
        for (_, entry) in at.iter() {
            content.extend(entry.0.to_le_bytes());
        }
        content
    }

    /// Reads the content of the header's frame.
    ///
    /// # Errors
    ///
    /// If it is not that of a header.
    pub fn take(content: &[u8]) -> Result<Self, Damage> {
        let header = Self::fields(content).ok_or(Damage::Header)?;
        let is_known = header.dc.0 < header.dc_count && usize::from(header.dc_count) <= DCS_MAX;
        let is_time = header.at.highest().micros() <= MICROS_MAX;
        let is_sound = is_known && is_time && header.partition_count > 0;
        if is_sound { Ok(header) } else { Err(Damage::Header) }
    }

    fn fields(content: &[u8]) -> Option<Self> {
        let mut fields = Fields(content);
        let cluster = u128::from_le_bytes(fields.next()?);
        let [dc, dc_count] = fields.next()?;
        let incarnation = u32::from_le_bytes(fields.next()?);
        let partition_count = u16::from_le_bytes(fields.next()?);
        let epoch = u32::from_le_bytes(fields.next()?);
        let wall_us = u64::from_le_bytes(fields.next()?);
        let salt = u64::from_le_bytes(fields.next()?);
        let mut at = Vector::ZERO;
        for column in 0..=DCS_MAX as u8 {
            at[DcId(column)] = Timestamp(u64::from_le_bytes(fields.next()?));
        }
        let dc = DcId(dc);
        fields.0.is_empty().then_some(Self {
            cluster,
            dc,
            incarnation,
            dc_count,
            partition_count,
            epoch,
            wall_us,
            at,
            salt,
        })
    }
}

impl Totals {
    /// Returns the content of the last frame.
    pub fn content(&self) -> Vec<u8> {
        let Self { records, items, floors, bytes } = self;
        [records, items, floors, bytes].into_iter().flat_map(|count| count.to_le_bytes()).collect()
    }

    /// Reads the content of the last frame.
    pub fn take(content: &[u8]) -> Option<Self> {
        let mut fields = Fields(content);
        let [records, items, floors, bytes] =
            [fields.next()?, fields.next()?, fields.next()?, fields.next()?]
                .map(u64::from_le_bytes);
        fields.0.is_empty().then_some(Self { records, items, floors, bytes })
    }
}

/// The fields that are not read yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}
