//! The versions of one key.

use std::collections::{BTreeMap, VecDeque};

use crate::clock::Timestamp;
use crate::config::{Config, Protocol};
use crate::deps::Dep;
use crate::flaw::Flaw;
use crate::message::Value;

/// One version.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub value: u64,
    /// All dependencies, in COPS-RT.
    pub deps: Vec<Dep>,
    /// True if the write is applied in all data centers.
    pub never_depend: bool,
    /// The place in the order of arrival.
    arrival: u64,
}

impl Version {
    pub fn new(value: u64, deps: Vec<Dep>) -> Self {
        Self { value, deps, never_depend: false, arrival: 0 }
    }
}

/// The versions of a key: one in COPS, the recent ones in COPS-RT, the concurrent ones in COPS-CD.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    kept: BTreeMap<Timestamp, Version>,
    /// The versions that are no longer the newest, in COPS-RT, with the times at which a newer one was
    /// there.
    replaced: VecDeque<(u64, Timestamp)>,
    arrivals: u64,
}

impl Versions {
    /// Adds a version; `previous` are those that it replaces in COPS-CD.
    pub fn add(
        &mut self,
        config: &Config,
        now_us: u64,
        (ts, mut version): (Timestamp, Version),
        previous: &[Timestamp],
    ) {
        self.arrivals += 1;
        version.arrival = self.arrivals;
        match config.protocol {
            Protocol::CopsCd => {
                if config.has(Flaw::ConflictIgnored) {
                    self.kept.clear();
                }
                self.kept.retain(|ts, _| !previous.contains(ts));
                self.kept.insert(ts, version);
            }
            Protocol::CopsRt => {
                let newest = self.newest();
                self.kept.insert(ts, version);
                if newest != Timestamp::ABSENT {
                    self.replaced.push_back((now_us, newest.min(ts)));
                }
                self.age(config, now_us);
            }
            _ => {
                if self.newest() < ts {
                    self.kept = BTreeMap::from([(ts, version)]);
                }
            }
        }
    }

    /// Drops versions that have not been the newest for twice `trans_time`.
    fn age(&mut self, config: &Config, now_us: u64) {
        // The delta is for transactions that began just before.
        let kept_us = config.trans_time_us * 2;
        while let Some((us, ts)) = self.replaced.front().copied()
            && us + kept_us <= now_us
        {
            self.replaced.pop_front();
            self.kept.remove(&ts);
        }
    }

    /// Returns the newest timestamp.
    pub fn newest(&self) -> Timestamp {
        self.kept.last_key_value().map_or(Timestamp::ABSENT, |(ts, _)| *ts)
    }

    /// Returns the newest version.
    pub fn latest(&self) -> Option<(Timestamp, &Version)> {
        self.kept.last_key_value().map(|(ts, version)| (*ts, version))
    }

    /// Returns the version with a timestamp.
    pub fn at(&self, ts: Timestamp) -> Option<&Version> {
        self.kept.get(&ts)
    }

    /// Returns the version with a timestamp, to change it.
    pub fn at_mut(&mut self, ts: Timestamp) -> Option<&mut Version> {
        self.kept.get_mut(&ts)
    }

    /// Returns the timestamps of all versions.
    pub fn timestamps(&self) -> Vec<Timestamp> {
        self.kept.keys().copied().collect()
    }

    /// Applies the conflict handler to the concurrent versions, in their order.
    pub fn merged(&self, config: &Config) -> Value {
        let mut versions: Vec<&Version> = self.kept.values().collect();
        if config.has(Flaw::MergeByArrival) {
            versions.sort_by_key(|version| version.arrival);
        }
        let values: Vec<u64> = versions.into_iter().map(|version| version.value).collect();
        (config.handler)(&values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::NodeId;
    use crate::config::keep_all;
    use crate::locator::Locator;

    #[test]
    fn a_version_is_kept_for_twice_trans_time_after_a_newer_one_was_there() {
        let locator = Locator::new(1, 1).unwrap();
        let (trans_time_us, retry_us, protocol) = (50, 10, Protocol::CopsRt);
        let (handler, flaw) = (keep_all as _, None);
        let config = Config { protocol, locator, trans_time_us, retry_us, handler, flaw };
        let mut versions = Versions::default();
        let mut add = |now_us, time| {
            let ts = Timestamp::new(time, NodeId::new(0, 0));
            versions.add(&config, now_us, (ts, Version::new(time, Vec::new())), &[]);
            versions.timestamps().into_iter().map(Timestamp::time).collect::<Vec<_>>()
        };
        assert_eq!(add(0, 5), [5]);
        assert_eq!(add(10, 7), [5, 7]);
        // It is not the newest when it arrives.
        assert_eq!(add(20, 6), [5, 6, 7]);
        assert_eq!(add(109, 8), [5, 6, 7, 8]);
        assert_eq!(add(110, 9), [6, 7, 8, 9]);
        assert_eq!(add(120, 10), [7, 8, 9, 10]);
    }
}
