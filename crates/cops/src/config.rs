//! The settings that all servers and clients of a system share.

use crate::flaw::Flaw;
use crate::locator::Locator;
use crate::message::Value;

/// A reference protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The code of COPS without dependencies: the baseline of the thesis's comparisons.
    Eventual,
    /// The code of Eiger without dependencies and transactions: the same baseline, with columns. Atomic
    /// mutations are batches.
    EventualColumns,
    /// COPS (thesis §4.1 to §4.5): causal+ consistency of single keys.
    Cops,
    /// COPS-RT (§4.6): COPS with read-only transactions.
    CopsRt,
    /// COPS-CD (§6.3): COPS with the detection of conflicts, which a function resolves.
    CopsCd,
    /// Eiger (chapter 5): columns, read-only and write-only transactions.
    Eiger,
    /// One ordered log for each data center, which must have one server: the baseline for systems that
    /// exchange logs (§7.2).
    Log,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 7] = [
        Self::Eventual,
        Self::EventualColumns,
        Self::Cops,
        Self::CopsRt,
        Self::CopsCd,
        Self::Eiger,
        Self::Log,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eventual => "eventual",
            Self::EventualColumns => "eventual-columns",
            Self::Cops => "cops",
            Self::CopsRt => "cops-rt",
            Self::CopsCd => "cops-cd",
            Self::Eiger => "eiger",
            Self::Log => "log",
        }
    }

    /// True if clients keep a context, so that operations have dependencies of their actor's. In `log` they
    /// depend on all that the data center has applied.
    pub fn is_tracked(self) -> bool {
        !matches!(self, Self::Eventual | Self::EventualColumns | Self::Log)
    }

    /// True if operations are applied after those on which they depend.
    pub fn is_causal(self) -> bool {
        !matches!(self, Self::Eventual | Self::EventualColumns)
    }

    /// True if the data has Eiger's rows and columns.
    pub fn has_columns(self) -> bool {
        matches!(self, Self::EventualColumns | Self::Eiger)
    }

    /// Returns the protocol with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }
}

/// A convergent conflict handler (thesis §6.3): gets the values of concurrent versions, in the order of
/// their timestamps, and returns the value to read. It must be pure.
pub type Handler = fn(&[u64]) -> Value;

/// The conflict handler that keeps all values, in their order.
///
/// # Examples
///
/// ```
/// assert_eq!(mingle_cops::config::keep_all(&[8, 10]), [8, 10]);
/// ```
pub fn keep_all(values: &[u64]) -> Value {
    values.to_vec()
}

/// The settings of a system.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The protocol.
    pub protocol: Protocol,
    /// The data centers, servers and keys.
    pub locator: Locator,
    /// The longest time of a read-only transaction, in microseconds (`trans_time`, thesis §6.1).
    /// Versions are kept that long after they were overwritten.
    pub trans_time_us: u64,
    /// The time after which a message without an answer is sent again, in microseconds.
    pub retry_us: u64,
    /// The conflict handler of COPS-CD.
    pub handler: Handler,
    /// The planted fault, if any.
    pub flaw: Option<Flaw>,
}

impl Config {
    /// True if this fault is planted.
    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}
