//! Errors of decoding.

use std::fmt;

use super::version::VERSIONS;

/// The error for bytes that this build cannot read. A connection that brought them must be closed;
/// a log that holds them is not replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// No encoder writes these bytes.
    Malformed(&'static str),
    /// A part has a valid form but an impossible content.
    Invalid(String),
    /// The bytes have another version of the encoding.
    Version {
        /// The part that names its version.
        of: &'static str,
        /// The version of the bytes.
        found: u16,
    },
    /// The other end of a connection and this build have no version of the encoding in common.
    NoCommonVersion {
        /// The lowest version of the other end.
        least: u16,
        /// The highest version of the other end.
        most: u16,
    },
    /// The number of a variant is unknown: a later version may have added it.
    Variant {
        /// The name of the enumeration.
        of: &'static str,
        /// The number.
        found: u64,
        /// The number of variants that this build knows; they are numbered from 0.
        known: u64,
        /// The version of the bytes.
        version: u16,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (own_least, own_most) = (VERSIONS.least, VERSIONS.most);
        match self {
            Self::Malformed(why) => write!(f, "the bytes are malformed: {why}"),
            Self::Invalid(why) => write!(f, "the bytes are malformed: {why}"),
            Self::Version { of, found } => write!(
                f,
                "{of} has version {found} of the encoding, and this build reads versions \
                 {own_least} to {own_most}"
            ),
            Self::NoCommonVersion { least, most } => write!(
                f,
                "the other end speaks versions {least} to {most} of the encoding, and this build \
                 versions {own_least} to {own_most}"
            ),
            Self::Variant { of, found, known, version } => write!(
                f,
                "{of} has no variant {found}, expected a number below {known}: the bytes have \
                 version {version} of the encoding, and this build reads versions {own_least} to \
                 {own_most}"
            ),
        }
    }
}

impl std::error::Error for WireError {}

impl serde::de::Error for WireError {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self::Invalid(why.to_string())
    }
}

/// An encoder does not fail: every type of the core has a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritable(pub String);

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unwritable {}

impl serde::ser::Error for Unwritable {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self(why.to_string())
    }
}
