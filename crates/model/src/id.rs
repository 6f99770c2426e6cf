//! Transactions, versions and witness rows.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::value::{Name, Ref};

/// One incarnation of a session: it numbers its transactions from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin(pub u128);

/// A permanent identifier of one transaction, valid at every store that it visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TransactionId {
    /// The session incarnation that began it.
    pub origin: Origin,
    /// Its number at that origin, from 1.
    pub sequence: u64,
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{}", self.origin.0, self.sequence)
    }
}

/// A text that names no transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTransactionId;

impl fmt::Display for NoTransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the id of a transaction is 32 hexadecimal digits, `-` and a number")
    }
}

impl std::error::Error for NoTransactionId {}

/// As it is displayed.
///
/// # Examples
///
/// ```
/// use mingle_model::{Origin, TransactionId};
///
/// let id = TransactionId { origin: Origin(7), sequence: 3 };
/// assert_eq!(id.to_string().parse(), Ok(id));
/// assert!("7-3".parse::<TransactionId>().is_err());
/// ```
impl FromStr for TransactionId {
    type Err = NoTransactionId;

    fn from_str(text: &str) -> Result<Self, NoTransactionId> {
        let (origin, sequence) = text.split_once('-').ok_or(NoTransactionId)?;
        if origin.len() != 32 || !origin.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NoTransactionId);
        }
        let origin = u128::from_str_radix(origin, 16).map_err(|_| NoTransactionId)?;
        let sequence = sequence.parse().map_err(|_| NoTransactionId)?;
        Ok(Self { origin: Origin(origin), sequence })
    }
}

/// The version of the data read: the store's counter at its last change; 0 if it was never written.
/// Two reads of one unit with the same version saw the same write.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Version(pub u64);

/// The commits that a replica has seen, or that a session depends on: a number of commits for each
/// replica of one store. Only stores with a causal level report a stamp; for others it is empty.
///
/// # Examples
///
/// ```
/// use mingle_model::Stamp;
///
/// let mut seen = Stamp::from_iter([("r1".into(), 3)]);
/// let later = Stamp::from_iter([("r1".into(), 2), ("r2".into(), 1)]);
/// assert!(!seen.covers(&later));
/// seen.join(&later);
/// assert_eq!(seen, Stamp::from_iter([("r1".into(), 3), ("r2".into(), 1)]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp(BTreeMap<Name, u64>);

impl Stamp {
    /// In a stamp of commits that are everywhere: the count of a replica that is gone for good. Its
    /// surviving commits are everywhere, and the others will never be seen.
    pub const ENDED: u64 = u64::MAX;

    /// True if no commits were seen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of commits seen from this replica.
    pub fn of(&self, replica: &str) -> u64 {
        self.0.get(replica).copied().unwrap_or(0)
    }

    /// Iterates over the replicas with commits seen, and the number of commits from each.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, u64)> {
        self.0.iter().map(|(replica, count)| (replica, *count))
    }

    /// True if everything that `other` has seen is seen here too.
    pub fn covers(&self, other: &Self) -> bool {
        other.iter().all(|(replica, count)| self.of(replica) >= count)
    }

    /// Adds the commits that `other` has seen.
    pub fn join(&mut self, other: &Self) {
        for (replica, count) in other.iter() {
            let seen = self.0.entry(replica.clone()).or_insert(0);
            *seen = count.max(*seen);
        }
    }

    /// Returns the stamp without the commits of replicas that are lost: of each of these names, commits up to this
    /// count are left.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// use mingle_model::Stamp;
    ///
    /// let seen: Stamp = [("oslo".into(), 7), ("paris".into(), 3)].into_iter().collect();
    /// let left = seen.kept(&BTreeMap::from([("oslo".into(), 5)]));
    /// assert_eq!((left.of("oslo"), left.of("paris")), (5, 3));
    /// ```
    #[must_use]
    pub fn kept(&self, ends: &BTreeMap<Name, u64>) -> Self {
        let left = |(name, count): (&Name, u64)| {
            (name.clone(), ends.get(name).map_or(count, |end| count.min(*end)))
        };
        self.iter().map(left).collect()
    }

    /// Keeps only the commits that both have seen.
    pub fn meet(&mut self, other: &Self) {
        for (replica, seen) in &mut self.0 {
            *seen = (*seen).min(other.of(replica));
        }
        self.0.retain(|_, seen| *seen > 0);
    }
}

impl FromIterator<(Name, u64)> for Stamp {
    fn from_iter<I: IntoIterator<Item = (Name, u64)>>(seen: I) -> Self {
        Self(seen.into_iter().filter(|(_, count)| *count > 0).collect())
    }
}

/// The reason for a witness row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RowKind {
    /// Its transaction wrote the object (MixT §5.4), or passes on the wait of a transaction that it
    /// waited for.
    Write,
    /// Its transaction is `isolated` and read the object (MixT §6.2).
    Read,
}

/// A record that a transaction wrote an object, or read it in isolation, and visits other stores
/// too. A transaction that finds a row waits, at each store named in it, for that transaction's
/// commit witness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WitnessRow {
    /// The object written or read; none for the whole store.
    pub object: Option<Ref>,
    /// The transaction.
    pub id: TransactionId,
    /// The reason for the row.
    pub kind: RowKind,
    /// The store that holds the transaction's intent.
    pub intent: Name,
    /// The stores at which to wait for its commit witness.
    pub stores: Vec<Name>,
    /// The commits that its session had seen at other stores and that some replica may lack (the
    /// technical report's tracking set, §4.2). A transaction that meets the row reads at those
    /// stores only where all of these commits are present.
    pub seen: Vec<(Name, Stamp)>,
}
