//! The systems that UniStore's evaluation compares (§8.1, §8.3), as settings of this core.
//!
//! | system | the paper's description | settings of this core |
//! | --- | --- | --- |
//! | `UniStore` | the full protocol | the usual settings |
//! | `Strong` | all transactions are strong, all pairs of operations conflict | every transaction begins as strong, without labels |
//! | `RedBlue` | all strong transactions conflict; a centralized service certifies | one log for all partitions; any two that touch one item conflict |
//! | `Causal` | all transactions are causal | no transaction begins as strong |
//! | `CureFT` | causal, with forwarding, without uniformity | `f = 0`: remote transactions are visible once they are stable here |
//! | `Uniform` | causal with uniformity, without strong transactions | replicas without groups |
//!
//! # Departures
//!
//! - **Strong**: two reads of one item do not conflict, since serializability does not order them.
//!   This makes aborts rarer than in the paper.
//! - **`RedBlue`**: if every pair of strong transactions conflicted regardless of their items,
//!   hardly any would commit at this distance, although the paper counts 0.12 % of aborts. Here the
//!   service's log puts all of them in one order, and two transactions must touch a common item for
//!   one to abort.

use serde::{Deserialize, Serialize};

use crate::certify::Conflicts;
use crate::config::{Certification, Config};
use crate::session::SessionConfig;

/// One of the compared systems.
///
/// # Examples
///
/// ```
/// use mingle_geo::{Baseline, Certification, Config, DcId, PartitionId};
///
/// let config = Config::new(DcId(0), 3, PartitionId(0), 32);
/// assert_eq!(Baseline::RedBlue.config(config.clone()).certification, Certification::Central);
/// assert_eq!(Baseline::CureFt.config(config).f, 0);
/// // Of a transaction that an application declares to be causal:
/// assert!(Baseline::Strong.is_strong(false) && !Baseline::RedBlue.is_strong(false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Baseline {
    /// The full protocol: causal and strong transactions, as declared.
    UniStore,
    /// Serializability: every transaction is strong.
    Strong,
    /// Causal and strong transactions, with one central certification service.
    RedBlue,
    /// Every transaction is causal.
    Causal,
    /// Every transaction is causal, and remote transactions do not wait to be uniform.
    CureFt,
    /// Every transaction is causal, and there is no certification.
    Uniform,
}

impl Baseline {
    /// All systems.
    pub const ALL: [Self; 6] =
        [Self::UniStore, Self::Strong, Self::RedBlue, Self::Causal, Self::CureFt, Self::Uniform];

    /// Returns its name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Self::UniStore => "UniStore",
            Self::Strong => "Strong",
            Self::RedBlue => "RedBlue",
            Self::Causal => "Causal",
            Self::CureFt => "CureFT",
            Self::Uniform => "Uniform",
        }
    }

    /// Returns the settings of a replica.
    #[must_use]
    pub fn config(self, config: Config) -> Config {
        match self {
            Self::RedBlue => Config { certification: Certification::Central, ..config },
            Self::CureFt => Config { f: 0, ..config },
            Self::UniStore | Self::Strong | Self::Causal | Self::Uniform => config,
        }
    }

    /// Returns the settings of a session.
    #[must_use]
    pub fn session_config(self, config: SessionConfig) -> SessionConfig {
        match self {
            Self::RedBlue => SessionConfig { certification: Certification::Central, ..config },
            _ => config,
        }
    }

    /// Returns the conflict relation, given the application's `declared` one.
    pub fn conflicts(self, declared: Conflicts) -> Conflicts {
        match self {
            Self::Strong => Conflicts::default(),
            Self::RedBlue => Conflicts::all(),
            _ => declared,
        }
    }

    /// True if a transaction runs as strong, given the application's declaration.
    pub fn is_strong(self, is_declared: bool) -> bool {
        match self {
            Self::UniStore | Self::RedBlue => is_declared,
            Self::Strong => true,
            Self::Causal | Self::CureFt | Self::Uniform => false,
        }
    }

    /// True if labels and declared touches define conflicts; otherwise the actual reads and writes
    /// do.
    pub fn is_declared(self) -> bool {
        matches!(self, Self::UniStore | Self::RedBlue)
    }

    /// True if replicas form certification groups.
    pub fn has_groups(self) -> bool {
        !matches!(self, Self::CureFt | Self::Uniform)
    }
}
