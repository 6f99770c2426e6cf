//! The header of a segment, and the checksum of everything.

use std::fmt;

use mingle_geo::DcId;

/// The first bytes of a segment.
const MAGIC: [u8; 4] = *b"MGJR";

/// The version of segments that this build writes and reads. Version 1 had neither an identity nor
/// checksums of lengths; no release wrote it.
pub const VERSION: u16 = 2;

/// The bytes of a header.
pub const HEADER_BYTES: usize = 72;

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
    let mut sum = u32::MAX;
    for part in parts {
        for byte in part {
            sum = (sum >> 8) ^ REMAINDERS[((sum ^ u32::from(*byte)) & 0xff) as usize];
        }
    }
    !sum
}

/// The process that a journal belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The cluster, a random number that its founder drew.
    pub cluster: u128,
    /// The data center.
    pub dc: DcId,
    /// The number of the process in its data center; 0 while there is one per data center.
    pub node: u32,
    /// The incarnation of the data center.
    pub incarnation: u32,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, dc, node, incarnation } = self;
        write!(f, "process {node} of {dc}, incarnation {incarnation}, in cluster {cluster:032x}")
    }
}

/// The kind of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Entries as they were appended.
    #[default]
    Log,
    /// The same; it is the first of a start of the process, and counts once there is a checkpoint
    /// with its number.
    Start,
    /// Entries that replace all earlier ones. It is complete as soon as it has its name.
    Checkpoint,
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The kind of the segment.
    pub kind: Kind,
    /// The process that wrote it.
    pub identity: Identity,
    /// The number of starts of the process.
    pub boot: u32,
    /// The number of the segment; a checkpoint has that of the first segment that it does not
    /// replace.
    pub number: u64,
    /// The position of the first frame; for a checkpoint, the position up to which it replaces the
    /// journal.
    pub position: u64,
    /// The length of a checkpoint's frames in bytes; 0 for others, whose length is not known.
    pub length: u64,
    /// A number that goes into each checksum, so that bytes of a client are never taken for a frame.
    pub salt: u64,
}

/// The reason why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// There are fewer bytes than a header has, or they do not begin like one.
    Foreign,
    /// The header has another version.
    Version(u16),
    /// The checksum does not fit.
    Damaged,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("it does not begin with the header of a segment"),
            Self::Version(found) => write!(
                f,
                "it has version {found} of the journal, and this build reads version {VERSION}"
            ),
            Self::Damaged => f.write_str("its header is damaged"),
        }
    }
}

impl std::error::Error for HeaderError {}

impl Header {
    /// Appends the header to a segment.
    pub fn put(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        let Self { kind, identity, boot, number, position, length, salt } = self;
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend([*kind as u8, identity.dc.0]);
        out.extend(identity.cluster.to_le_bytes());
        out.extend(identity.node.to_le_bytes());
        out.extend(identity.incarnation.to_le_bytes());
        out.extend(boot.to_le_bytes());
        for wide in [number, position, length, salt] {
            out.extend(wide.to_le_bytes());
        }
        let sum = checksum([&out[begin..]]);
        out.extend(sum.to_le_bytes());
    }

    /// Reads the header of a segment.
    ///
    /// # Errors
    ///
    /// If the bytes do not begin with a header that this build reads.
    pub fn take(bytes: &[u8]) -> Result<Self, HeaderError> {
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(HeaderError::Foreign)?;
        let mut fields = Fields(header);
        if fields.next() != MAGIC {
            return Err(HeaderError::Foreign);
        }
        let version = u16::from_le_bytes(fields.next());
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        let [kind, dc] = fields.next();
        let kind = match kind {
            0 => Kind::Log,
            1 => Kind::Start,
            2 => Kind::Checkpoint,
            _ => return Err(HeaderError::Damaged),
        };
        let identity = Identity {
            dc: DcId(dc),
            cluster: u128::from_le_bytes(fields.next()),
            node: u32::from_le_bytes(fields.next()),
            incarnation: u32::from_le_bytes(fields.next()),
        };
        let boot = u32::from_le_bytes(fields.next());
        let [number, position, length, salt] = [(); 4].map(|()| u64::from_le_bytes(fields.next()));
        let sum = u32::from_le_bytes(fields.next());
        if sum != checksum([&header[..HEADER_BYTES - 4]]) {
            return Err(HeaderError::Damaged);
        }
        Ok(Self { kind, identity, boot, number, position, length, salt })
    }
}

/// The fields of a header that are not read yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) =
            self.0.split_first_chunk().expect("the fields have the header's length");
        self.0 = rest;
        *field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc32c() {
        // The check value of the catalogue of parametrised CRC algorithms.
        assert_eq!(checksum([&b"12345"[..], b"6789"]), 0xe306_9283);
        assert_eq!(checksum([]), 0);
    }

    #[test]
    fn a_header_comes_back_and_damage_to_any_bit_is_noticed() {
        let identity = Identity { cluster: 1 << 100, dc: DcId(2), node: 3, incarnation: 4 };
        let (kind, boot) = (Kind::Checkpoint, 5);
        let header =
            Header { kind, identity, boot, number: 6, position: 7, length: 8, salt: 1 << 60 };
        let mut bytes = Vec::new();
        header.put(&mut bytes);
        assert_eq!(bytes.len(), HEADER_BYTES);
        assert_eq!(Header::take(&bytes), Ok(header));
        for bit in 0..HEADER_BYTES * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::take(&damaged).is_err(), "bit {bit}");
        }
        for length in 0..HEADER_BYTES {
            assert_eq!(Header::take(&bytes[..length]), Err(HeaderError::Foreign));
        }
        bytes[4] = 9;
        let refused = Header::take(&bytes).unwrap_err().to_string();
        assert!(refused.contains("version 9") && refused.contains("version 2"), "{refused}");
    }
}
