//! The versions of one key.

use std::collections::BTreeMap;

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
    /// The time at which a newer version was there, in COPS-RT.
    replaced_us: Option<u64>,
    /// The place in the order of arrival.
    arrival: u64,
}

impl Version {
    pub fn new(value: u64, deps: Vec<Dep>) -> Self {
        Self { value, deps, never_depend: false, replaced_us: None, arrival: 0 }
    }
}

/// The versions of a key: one in COPS, the recent ones in COPS-RT, the concurrent ones in COPS-CD.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    kept: BTreeMap<Timestamp, Version>,
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
                self.kept.insert(ts, version);
                self.age(config, now_us);
            }
            _ => {
                if self.newest() < ts {
                    self.kept = BTreeMap::from([(ts, version)]);
                }
            }
        }
    }

    /// Marks versions that are no longer the newest, and drops those that have not been for twice
    /// `trans_time`.
    fn age(&mut self, config: &Config, now_us: u64) {
        let newest = self.newest();
        for (ts, version) in &mut self.kept {
            if *ts != newest && version.replaced_us.is_none() {
                version.replaced_us = Some(now_us);
            }
        }
        // The delta is for transactions that began just before.
        let kept_us = config.trans_time_us * 2;
        self.kept.retain(|_, version| version.replaced_us.is_none_or(|us| us + kept_us > now_us));
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
