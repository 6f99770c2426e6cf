//! Versions of the encoding, and their negotiation.
//!
//! A version fixes every byte: the order of fields, and the numbers of variants. Golden files of each
//! version are kept under `golden/`. A change of any of them needs a new version. A variant that is
//! added at the end of an enumeration needs one too: older builds refuse its number.

use serde::{Deserialize, Serialize};

use super::error::WireError;
use super::read::Reader;
use super::write::{put_number, put_value};
use crate::timestamp::DcId;

/// The version that this build writes.
pub const VERSION: u16 = 1;

/// The versions that this build reads.
pub const VERSIONS: Versions = Versions { least: 1, most: VERSION };

/// The first bytes of a HELLO.
const MAGIC: [u8; 4] = *b"MGEO";

/// A range of versions, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The lowest version.
    pub least: u16,
    /// The highest version.
    pub most: u16,
}

impl Versions {
    /// True if the range contains the version.
    pub fn has(self, version: u16) -> bool {
        (self.least..=self.most).contains(&version)
    }

    /// Returns the highest version that this build and the other end of a connection both know.
    ///
    /// # Errors
    ///
    /// [`WireError::NoCommonVersion`] if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_geo::wire::{VERSIONS, Versions};
    ///
    /// let newer = Versions { least: VERSIONS.most, most: VERSIONS.most + 3 };
    /// assert_eq!(VERSIONS.common(newer), Ok(VERSIONS.most));
    /// let refused = VERSIONS.common(Versions { least: 40, most: 41 }).unwrap_err().to_string();
    /// assert!(refused.contains("versions 40 to 41"), "{refused}");
    /// ```
    pub fn common(self, other: Self) -> Result<u16, WireError> {
        let most = self.most.min(other.most);
        let refused = WireError::NoCommonVersion { least: other.least, most: other.most };
        (most >= self.least.max(other.least)).then_some(most).ok_or(refused)
    }
}

/// The first message of each end of a connection. It has the same form in every version, and the
/// fields of later versions follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The versions that the sender reads.
    pub versions: Versions,
    /// The data center of the sender.
    pub dc: DcId,
    /// The number of the sending process in its data center; 0 while there is one per data center.
    pub node: u32,
    /// The number of starts of the sending process.
    pub boot: u32,
}

impl Hello {
    /// Appends the HELLO to a frame.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        let mut body = Vec::new();
        put_value(&mut body, self);
        put_number(out, body.len() as u64);
        out.append(&mut body);
    }

    /// Reads a HELLO, which is the whole frame. Fields that a later version added are skipped.
    ///
    /// # Errors
    ///
    /// If the bytes are no HELLO.
    pub fn take(frame: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(frame, VERSION);
        if reader.bytes()? != MAGIC {
            return Err(WireError::Malformed("a connection begins with HELLO"));
        }
        let length = reader.length()?;
        if length != reader.left() {
            return Err(WireError::Malformed("HELLO has another length than it says"));
        }
        reader.value()
    }
}
