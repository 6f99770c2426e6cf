//! The systems that UniStore's evaluation compares (§8.1, §8.3), as settings of this core.
//!
//! | system | what the paper says of it | what it is here |
//! | --- | --- | --- |
//! | `UniStore` | the full protocol | the usual settings |
//! | `Strong` | all transactions are strong, all pairs of operations conflict | all begin as strong ones, without labels |
//! | `RedBlue` | all strong transactions conflict; a centralized service certifies | one log for all partitions; any two that touch one item conflict |
//! | `Causal` | all transactions are causal | none begins as a strong one |
//! | `CureFT` | causal, with forwarding, without uniformity | `f = 0`: remote transactions show once they are stable here |
//! | `Uniform` | causal with uniformity, without anything of strong ones | replicas without groups |
//!
//! # Departures
//!
//! - **Strong**: two reads of one item do not conflict, since serializability needs no order of them.
//!   It aborts less for that.
//! - **`RedBlue`**: were any two strong transactions to conflict, whatever they touch, hardly one would
//!   commit at this distance, where the paper counts 0.12 % of aborts. All of them are in one order,
//!   that of the service's log; to be aborted, two must touch one item.

use serde::{Deserialize, Serialize};

use crate::certify::Conflicts;
use crate::config::{Certification, Config};
use crate::session::SessionConfig;

/// One of the systems that are compared.
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
    /// The whole of it: causal and strong transactions, by what is declared.
    UniStore,
    /// Serializability: every transaction is strong.
    Strong,
    /// Causal and strong transactions, with one service that certifies.
    RedBlue,
    /// Every transaction is causal.
    Causal,
    /// Every transaction is causal, and nothing waits to be uniform.
    CureFt,
    /// Every transaction is causal, and there is nobody to certify.
    Uniform,
}

impl Baseline {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::UniStore, Self::Strong, Self::RedBlue, Self::Causal, Self::CureFt, Self::Uniform];

    /// Its name in the paper.
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

    /// The settings of a replica.
    #[must_use]
    pub fn config(self, config: Config) -> Config {
        match self {
            Self::RedBlue => Config { certification: Certification::Central, ..config },
            Self::CureFt => Config { f: 0, ..config },
            Self::UniStore | Self::Strong | Self::Causal | Self::Uniform => config,
        }
    }

    /// The settings of a session.
    #[must_use]
    pub fn session_config(self, config: SessionConfig) -> SessionConfig {
        match self {
            Self::RedBlue => SessionConfig { certification: Certification::Central, ..config },
            _ => config,
        }
    }

    /// What conflicts, where an application declares this.
    pub fn conflicts(self, declared: Conflicts) -> Conflicts {
        match self {
            Self::Strong => Conflicts::default(),
            Self::RedBlue => Conflicts::all(),
            _ => declared,
        }
    }

    /// Whether a transaction runs as a strong one, by what an application declares.
    pub fn is_strong(self, is_declared: bool) -> bool {
        match self {
            Self::UniStore | Self::RedBlue => is_declared,
            Self::Strong => true,
            Self::Causal | Self::CureFt | Self::Uniform => false,
        }
    }

    /// Whether labels and declared touches count; where they do not, what was read and written does.
    pub fn is_declared(self) -> bool {
        matches!(self, Self::UniStore | Self::RedBlue)
    }

    /// Whether replicas have groups that certify.
    pub fn has_groups(self) -> bool {
        !matches!(self, Self::CureFt | Self::Uniform)
    }
}
