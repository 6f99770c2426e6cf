//! Transactions, versions and witness rows.

use std::fmt;

use crate::value::{Name, Ref};

/// One incarnation of a session: it numbers its transactions from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(pub u128);

/// Names one transaction for ever, at every store that it visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId {
    /// Who began it.
    pub origin: Origin,
    /// Its number at that origin, from 1.
    pub sequence: u64,
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{}", self.origin.0, self.sequence)
    }
}

/// When a store last changed what was read, in its own count; 0 where nothing was ever written.
/// Two reads of one unit that give the same version saw the same write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// Says that a transaction wrote an object and visits other stores too (MixT §5.4, write
/// witness). Who meets one waits, at each store it names, for that transaction's commit witness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WitnessRow {
    /// What was written.
    pub object: Ref,
    /// By which transaction.
    pub id: TransactionId,
    /// The store that holds its intent.
    pub intent: Name,
    /// Every other store that it visits.
    pub stores: Vec<Name>,
}
