//! The data centers of a store and the distances between them.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_geo::timestamp::PARTITIONS_MAX;
use mingle_geo::vector::DCS_MAX;
use mingle_model::Name;
use mingle_store::wrap::distance::Distance;

use super::relation::Pairs;

/// The name of the strong clock in the stamps of sessions: no data center may have this name.
pub const STRONG_NAME: &str = "*";

/// In the stamps of sessions, the incarnation of a data center that was admitted again is the name
/// of the data center, this mark, and the incarnation's number.
pub const AGAIN_MARK: char = '#';

/// A store over several data centers.
///
/// # Examples
///
/// ```
/// use mingle_store_embedded::GeoConfig;
///
/// let config = GeoConfig::new(["oslo", "rome", "lima"])
///     .with_distance("30ms".parse().unwrap())
///     .with_distance_between("oslo", "lima", "190ms±10ms".parse().unwrap());
/// assert_eq!(config.between("lima", "oslo").to_string(), "190ms±10ms");
/// assert_eq!(config.between("rome", "oslo").to_string(), "30ms");
/// assert!(config.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeoConfig {
    /// Names of the data centers, 1 to 7.
    pub datacenters: Vec<Name>,
    /// Number of partitions of the data of each data center.
    pub partitions: u16,
    /// Data held by `f + 1` data centers are visible everywhere and survive the loss of `f` of
    /// them. If none: the largest `f` for which there are `2f + 1` data centers.
    pub f: Option<u8>,
    /// Round-trip time between two data centers without an entry in `distances`.
    pub distance: Distance,
    /// Round-trip times by pair of names, the lesser first.
    pub distances: BTreeMap<(Name, Name), Distance>,
    /// Longest time that a transaction waits for updates that its session has seen elsewhere; after
    /// it, the transaction fails because its data center is behind.
    pub attach_wait: Duration,
    /// True if its transactions are strong; opening the store sets it from the store's level.
    pub is_strong: bool,
    /// Pairs of the program's transactions that conflict: of two transactions of a pair that use a
    /// common object, one has seen the other. In a linearizable store, none means that any two
    /// conflict. In a causal store, none means that no two do; the transactions of a pair are
    /// strong there, and all others are causal.
    pub conflicts: Option<Pairs>,
}

impl GeoConfig {
    /// Creates a configuration with data centers of these names, one partition and no distance.
    pub fn new<N: Into<Name>>(datacenters: impl IntoIterator<Item = N>) -> Self {
        Self {
            datacenters: datacenters.into_iter().map(Into::into).collect(),
            partitions: 1,
            f: None,
            distance: Distance::default(),
            distances: BTreeMap::new(),
            attach_wait: Duration::from_millis(500),
            is_strong: false,
            conflicts: None,
        }
    }

    /// Sets the round-trip time between any two data centers.
    #[must_use]
    pub fn with_distance(mut self, distance: Distance) -> Self {
        self.distance = distance;
        self
    }

    /// Sets the round-trip time between these two data centers.
    #[must_use]
    pub fn with_distance_between(mut self, one: &str, other: &str, distance: Distance) -> Self {
        self.distances.insert(pair(one, other), distance);
        self
    }

    /// Sets the longest time that a transaction waits for updates its session has seen elsewhere.
    #[must_use]
    pub fn with_attach_wait(mut self, attach_wait: Duration) -> Self {
        self.attach_wait = attach_wait;
        self
    }

    /// Sets the number of partitions.
    #[must_use]
    pub fn with_partitions(mut self, partitions: u16) -> Self {
        self.partitions = partitions;
        self
    }

    /// Declares the pairs of its transactions that conflict; no other pairs do.
    #[must_use]
    pub fn with_conflicts<N: Into<Name>>(
        mut self,
        pairs: impl IntoIterator<Item = (N, N)>,
    ) -> Self {
        let ordered = |(one, other): (N, N)| {
            let (one, other) = (one.into(), other.into());
            if one <= other { (one, other) } else { (other, one) }
        };
        self.conflicts = Some(pairs.into_iter().map(ordered).collect());
        self
    }

    /// Returns the round-trip time between two data centers.
    pub fn between(&self, one: &str, other: &str) -> Distance {
        self.distances.get(&pair(one, other)).copied().unwrap_or(self.distance)
    }

    /// Returns the longest round-trip time between two data centers, jitter included.
    pub fn farthest(&self) -> Duration {
        let all = self.distances.values().chain([&self.distance]);
        all.map(|distance| distance.mean + distance.jitter).max().unwrap_or_default()
    }

    /// True if some of its transactions are certified, so that its replicas agree on their order.
    pub fn is_certifying(&self) -> bool {
        self.is_strong || self.conflicts.is_some()
    }

    /// Checks the configuration.
    ///
    /// # Errors
    ///
    /// The first invalid setting, with the expected values.
    pub fn check(&self) -> Result<(), String> {
        let count = self.datacenters.len();
        if count == 0 || count > DCS_MAX {
            return Err(format!("expected 1 to {DCS_MAX} data centers, found {count}"));
        }
        let mut names = self.datacenters.clone();
        names.sort();
        if let Some(index) = (1..count).find(|index| names[*index] == names[index - 1]) {
            return Err(format!("two data centers are called {}", names[index]));
        }
        let is_none =
            |name: &&Name| name.is_empty() || &***name == STRONG_NAME || name.contains(AGAIN_MARK);
        if let Some(name) = names.iter().find(is_none) {
            return Err(format!("{name:?} is no name of a data center"));
        }
        if self.partitions == 0 || usize::from(self.partitions) > PARTITIONS_MAX {
            let found = self.partitions;
            return Err(format!("expected 1 to {PARTITIONS_MAX} partitions, found {found}"));
        }
        if let Some(f) = self.f.filter(|f| usize::from(*f) >= count) {
            return Err(format!(
                "f is {f}: with {count} data centers at most {} can be lost",
                count - 1
            ));
        }
        for (one, other) in self.distances.keys() {
            let unknown = [one, other].into_iter().find(|name| !self.datacenters.contains(name));
            if let Some(name) = unknown {
                let known = self.datacenters.join(", ");
                return Err(format!("a distance to {name}, expected two of {known}"));
            }
            if one == other {
                return Err(format!("a distance from {one} to itself"));
            }
        }
        Ok(())
    }
}

fn pair(one: &str, other: &str) -> (Name, Name) {
    (one.min(other).into(), one.max(other).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_named() {
        let good = GeoConfig::new(["oslo", "rome", "lima"]);
        let far = Distance::default();
        for (bad, expected) in [
            (GeoConfig::new(["a"; 0]), "expected 1 to 7 data centers, found 0"),
            (GeoConfig::new((0..8).map(|n| n.to_string())), "found 8"),
            (GeoConfig::new(["a", "b", "a"]), "two data centers are called a"),
            (GeoConfig::new(["a", ""]), "\"\" is no name"),
            (GeoConfig::new(["a", "*"]), "\"*\" is no name"),
            (GeoConfig::new(["a", "a#1"]), "\"a#1\" is no name"),
            (good.clone().with_partitions(0), "expected 1 to 4096 partitions, found 0"),
            (GeoConfig { f: Some(3), ..good.clone() }, "at most 2 can be lost"),
            (good.clone().with_distance_between("oslo", "bonn", far), "a distance to bonn"),
            (good.clone().with_distance_between("oslo", "oslo", far), "from oslo to itself"),
        ] {
            let error = bad.check().expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(good.check(), Ok(()));
    }
}
