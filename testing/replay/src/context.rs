//! Sets of received updates.

use std::collections::{BTreeMap, BTreeSet};

/// A set of updates: for each replica all up to some number, and some more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    origins: BTreeMap<usize, Seen>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// All updates up to this number are in the set.
    prefix: u64,
    /// Further updates in the set, all above `prefix + 1`.
    extras: BTreeSet<u64>,
}

impl Context {
    /// Adds an update.
    pub fn add(&mut self, origin: usize, number: u64) {
        let seen = self.origins.entry(origin).or_default();
        if number > seen.prefix {
            seen.extras.insert(number);
        }
        while seen.extras.remove(&(seen.prefix + 1)) {
            seen.prefix += 1;
        }
    }

    /// True if this update is in the set.
    pub fn contains(&self, origin: usize, number: u64) -> bool {
        let seen = self.origins.get(&origin);
        seen.is_some_and(|seen| number <= seen.prefix || seen.extras.contains(&number))
    }

    /// Returns the number up to which all updates of this replica are in the set.
    pub fn prefix(&self, origin: usize) -> u64 {
        self.origins.get(&origin).map_or(0, |seen| seen.prefix)
    }

    /// True if all of `other` is in the set.
    pub fn covers(&self, other: &Self) -> bool {
        other.origins.iter().all(|(origin, theirs)| {
            theirs.prefix <= self.prefix(*origin)
                && theirs.extras.iter().all(|number| self.contains(*origin, *number))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_close() {
        let (mut one, mut other) = (Context::default(), Context::default());
        for number in [1, 3, 2, 5] {
            one.add(0, number);
        }
        assert_eq!(one.prefix(0), 3);
        assert!(one.contains(0, 5) && !one.contains(0, 4) && !one.contains(1, 1));
        other.add(0, 5);
        assert!(one.covers(&other) && !other.covers(&one));
        other.add(1, 1);
        assert!(!one.covers(&other));
    }
}
