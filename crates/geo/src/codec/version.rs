//! Versions of the encoding.
//!
//! A version fixes every byte: the order of fields, and the numbers of variants. Golden files of each
//! version are kept under `golden/`. A change of any of them needs a new version. A variant that is
//! added at the end of an enumeration needs one too: older builds refuse its number.

use serde::{Deserialize, Serialize};

use super::error::WireError;

/// The version that this build writes.
pub const VERSION: u16 = 1;

/// The versions that this build reads.
pub const VERSIONS: Versions = Versions { least: 1, most: VERSION };

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
