//! Reasons for which a process refuses another one.

use std::fmt;

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The processes belong to different clusters.
    Cluster,
    /// They speak no common version.
    Version,
    /// The clock of the other process is too far ahead.
    Clock,
    /// The other process is not the one that was dialed, or is no data center of the cluster.
    Place,
    /// A process of the same data center is connected, and it is another start. This may end: the old
    /// connection of a process that died is closed after a while.
    Running,
    /// A later start of the same process has been seen.
    Outdated,
    /// Two processes run with the same start of one journal.
    Copy,
    /// The data centers differ in settings that all of them share.
    Settings,
}

const CODES: [Code; 8] = [
    Code::Cluster,
    Code::Version,
    Code::Clock,
    Code::Place,
    Code::Running,
    Code::Outdated,
    Code::Copy,
    Code::Settings,
];

impl Code {
    /// True if the refused process must stop: another one has its place for good.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Outdated | Self::Copy)
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The kind.
    pub code: Code,
    /// The reason, which names the found value and the expected one.
    pub why: String,
}

impl Refused {
    pub(super) fn new(code: Code, why: impl Into<String>) -> Self {
        Self { code, why: why.into() }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.code as u8];
        bytes.extend(self.why.bytes().take(1_000));
        bytes
    }

    /// Reads a refusal; `None` if this build does not know its kind.
    pub(super) fn take(bytes: &[u8]) -> Option<Self> {
        let (code, why) = bytes.split_first()?;
        let code = *CODES.get(usize::from(*code))?;
        Some(Self { code, why: String::from_utf8_lossy(why).into_owned() })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Refused {}
