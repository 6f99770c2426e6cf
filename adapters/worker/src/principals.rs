//! Which transactions a worker runs for whom among a client's callers.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Principal;
use mingle_store::Admission;
use serde::{Deserialize, Serialize};

/// The transactions that each of a client's callers may call. The name `*` stands for every caller, named or not, and
/// for every transaction.
///
/// # Examples
///
/// ```
/// use mingle_model::Principal;
/// use mingle_store::Admission;
/// use mingle_store_worker::Principals;
///
/// let listed = [("till", vec!["sell"]), ("*", vec!["look"])];
/// let principals: Principals = listed.into_iter().collect();
/// let till = Principal::new("till").unwrap();
/// assert!(principals.admits(Some(&till), "sell") && principals.admits(None, "look"));
/// assert!(!principals.admits(None, "sell") && !principals.admits(Some(&till), "refund"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principals(BTreeMap<String, BTreeSet<String>>);

const ALL: &str = "*";

impl Principals {
    /// The names of callers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Admission for Principals {
    fn admits(&self, principal: Option<&Principal>, transaction: &str) -> bool {
        let named = principal.and_then(|principal| self.0.get(principal.as_str()));
        let listed = named.into_iter().chain(self.0.get(ALL));
        listed.into_iter().any(|names| names.contains(transaction) || names.contains(ALL))
    }
}

impl<'a> FromIterator<(&'a str, Vec<&'a str>)> for Principals {
    fn from_iter<T: IntoIterator<Item = (&'a str, Vec<&'a str>)>>(listed: T) -> Self {
        let owned = listed.into_iter().map(|(name, transactions)| {
            (name.to_owned(), transactions.into_iter().map(str::to_owned).collect())
        });
        Self(owned.collect())
    }
}
