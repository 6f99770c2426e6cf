//! Which data centers a store has, and how far they are from each other.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_geo::timestamp::PARTITIONS_MAX;
use mingle_geo::vector::DCS_MAX;
use mingle_model::Name;
use mingle_store::wrap::distance::Distance;

use super::relation::Pairs;

/// What strong transactions are called in what a session has seen: no data center is called so.
pub const STRONG_NAME: &str = "*";

/// In what a session has seen, the incarnation of a data center that was admitted again is its name,
/// this, and its number.
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
    /// Into how many partitions the data of each are cut.
    pub partitions: u16,
    /// What `f + 1` data centers have is visible everywhere and survives the loss of `f`; the most
    /// of which there are `2f + 1` data centers, if none.
    pub f: Option<u8>,
    /// What a round trip between two data centers takes, where `distances` says nothing of them.
    pub distance: Distance,
    /// The same by pair of names, the lesser first.
    pub distances: BTreeMap<(Name, Name), Distance>,
    /// How long a transaction waits until what its session has seen elsewhere has come, before it
    /// is told that its data center is behind.
    pub attach_wait: Duration,
    /// Whether its transactions are strong: those of a linearizable store are, whatever this says.
    pub is_strong: bool,
    /// Which transactions of the program conflict, in a linearizable store: of two of a pair that use
    /// an object in common, one has seen the other. None means that any two conflict.
    pub conflicts: Option<Pairs>,
}

impl GeoConfig {
    /// Data centers of these names, one partition, no distance.
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

    /// A round trip between any two takes so long.
    #[must_use]
    pub fn with_distance(mut self, distance: Distance) -> Self {
        self.distance = distance;
        self
    }

    /// A round trip between these two takes so long.
    #[must_use]
    pub fn with_distance_between(mut self, one: &str, other: &str, distance: Distance) -> Self {
        self.distances.insert(pair(one, other), distance);
        self
    }

    /// A transaction waits so long for what its session has seen elsewhere.
    #[must_use]
    pub fn with_attach_wait(mut self, attach_wait: Duration) -> Self {
        self.attach_wait = attach_wait;
        self
    }

    /// So many partitions.
    #[must_use]
    pub fn with_partitions(mut self, partitions: u16) -> Self {
        self.partitions = partitions;
        self
    }

    /// Of its transactions, these pairs conflict and no others.
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

    /// What a round trip between these two takes.
    pub fn between(&self, one: &str, other: &str) -> Distance {
        self.distances.get(&pair(one, other)).copied().unwrap_or(self.distance)
    }

    /// The longest round trip between two of them.
    pub fn farthest(&self) -> Duration {
        let all = self.distances.values().chain([&self.distance]);
        all.map(|distance| distance.mean + distance.jitter).max().unwrap_or_default()
    }

    /// Whether all of this makes sense.
    ///
    /// # Errors
    ///
    /// What does not, and what was expected.
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
