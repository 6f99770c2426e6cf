//! Logs.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::dots::Seen;
use super::ids::Past;
use super::{Mark, OpId};
use crate::timestamp::Version;
use crate::vector::Vector;

/// Lines in the order of their versions, which extends causality. Clearing removes the lines that
/// it saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log(BTreeMap<Version, Line>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    commit_vec: Vector,
    id: Option<Box<OpId>>,
    value: Value,
}

impl Log {
    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the lines in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.0.values().map(|line| &line.value)
    }

    pub(super) fn displace_all(&mut self, seen: &Seen<'_>) {
        self.0.retain(|version, line| {
            let mark = Mark { version: *version, commit_vec: line.commit_vec };
            !seen.observes(&mark, line.id.as_deref())
        });
    }

    pub(super) fn place(&mut self, mark: Mark, id: Option<&OpId>, value: &Value) {
        let (id, value) = (id.copied().map(Box::new), value.clone());
        self.0.insert(mark.version, Line { commit_vec: mark.commit_vec, id, value });
    }

    /// Returns the lines of both, without those that were removed in the other.
    pub(super) fn joined(&self, past: &Past<'_>, other: &Self, other_past: &Past<'_>) -> Self {
        let named = other.0.iter().filter_map(|(at, line)| Some((line.id.as_deref()?, *at)));
        let by_id: BTreeMap<&OpId, Version> = named.collect();
        let had = |past: &Past<'_>, at: Version, line: &Line| {
            past.had(&Mark { version: at, commit_vec: line.commit_vec }, line.id.as_deref())
        };
        let (mut lines, mut both) = (BTreeMap::new(), BTreeSet::new());
        for (at, line) in &self.0 {
            let same = line.id.as_deref().map_or(Some(*at), |id| by_id.get(id).copied());
            match same.and_then(|at| other.0.get_key_value(&at)) {
                Some((theirs, it)) => {
                    let (at, line) = if theirs < at { (theirs, it) } else { (at, line) };
                    lines.insert(*at, line.clone());
                    both.insert(*theirs);
                }
                None if !had(other_past, *at, line) => {
                    lines.insert(*at, line.clone());
                }
                None => {}
            }
        }
        let new = other.0.iter().filter(|(at, line)| !both.contains(at) && !had(past, **at, line));
        lines.extend(new.map(|(at, line)| (*at, line.clone())));
        Self(lines)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &OpId> {
        self.0.values().filter_map(|line| line.id.as_deref())
    }

    /// Lowers the version of the line under `id` at `was`, if it is still here.
    pub(super) fn restamp(&mut self, id: &OpId, was: Version, mark: Mark) {
        let stands = self.0.get(&was).is_some_and(|line| line.id.as_deref() == Some(id));
        if stands && mark.version < was {
            let line = self.0.remove(&was).expect("it stands");
            self.0.insert(mark.version, Line { commit_vec: mark.commit_vec, ..line });
        }
    }
}
