//! The models that a history can be checked against.

use std::fmt;

/// A consistency model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// There is one order of all transactions that explains every read, and in which a transaction
    /// that ended before another began precedes it (Papadimitriou 1979; Herlihy and Wing 1990).
    StrictSerializability,
    /// There is one order of all transactions, consistent with sessions, that explains every read
    /// (Biswas and Enea, OOPSLA 2019, §2.2).
    Serializability,
    /// Each transaction reads a snapshot, and no two overlapping transactions write one key;
    /// session order is kept (Biswas and Enea §2.2; Cerone and Gotsman, JACM 2018, Theorem 4.1).
    Snapshot,
    /// Transactional causal consistency: each transaction reads, key by key, the last write of a
    /// snapshot that is closed under causality and has all or nothing of every transaction.
    /// Transactions may disagree on the order of concurrent writes. Read-your-writes, monotonic
    /// reads, monotonic writes and writes-follow-reads are part of it.
    Causal,
    /// Causal convergence: like [`Model::Causal`], with one order of the writes on which all
    /// transactions agree and that is compatible with causality (Biswas and Enea §2.2, "causal
    /// consistency"; Bouajjani and others, POPL 2017, CCv).
    CausalPlus,
    /// A transaction that reads from another, or follows it in its session, sees all of its writes
    /// or none (Biswas and Enea §2.2, "read atomic").
    ReadAtomic,
    /// Once updates stop, all replicas return the same values.
    Convergence,
    /// Each level's model holds for the events at stores of at least that level (MixT, Definition
    /// 4.2).
    Mixed,
}

impl Model {
    /// All models.
    pub const ALL: [Self; 8] = [
        Self::StrictSerializability,
        Self::Serializability,
        Self::Snapshot,
        Self::CausalPlus,
        Self::Causal,
        Self::ReadAtomic,
        Self::Convergence,
        Self::Mixed,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::StrictSerializability => "strict-serializability",
            Self::Serializability => "serializability",
            Self::Snapshot => "snapshot",
            Self::Causal => "causal",
            Self::CausalPlus => "causal-plus",
            Self::ReadAtomic => "read-atomic",
            Self::Convergence => "convergence",
            Self::Mixed => "mixed",
        }
    }

    /// Returns the model with that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
