//! Consistency levels and their order (MixT, §4.1: a lattice ordered by strength).

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::Name;

/// A built-in level, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Strict serializability.
    Linearizable,
    /// Snapshot isolation.
    Snapshot,
    /// Causal consistency, updates of one transaction together.
    Causal,
    /// Replicas converge once updates stop.
    Eventual,
}

impl Level {
    /// All built-in levels, strongest first.
    pub const ALL: [Self; 4] = [Self::Linearizable, Self::Snapshot, Self::Causal, Self::Eventual];

    /// The name that programs use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linearizable => "linearizable",
            Self::Snapshot => "snapshot",
            Self::Causal => "causal",
            Self::Eventual => "eventual",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A level of one program: an index into its [`Levels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId(pub u16);

/// The levels of one program and their order: the four built-in ones and those it adds.
///
/// # Examples
///
/// ```
/// use mingle_model::{Level, Levels};
///
/// let mut levels = Levels::default();
/// let (linearizable, causal) = (levels.find("linearizable").unwrap(), levels.find("causal").unwrap());
/// let regional = levels.add_between("regional".into(), &[linearizable], &[causal]).unwrap();
/// let snapshot = levels.find("snapshot").unwrap();
/// assert!(levels.is_at_least(linearizable, regional) && levels.is_at_least(regional, causal));
/// assert!(!levels.is_at_least(regional, snapshot) && !levels.is_at_least(snapshot, regional));
/// assert_eq!(levels.carrier(regional), Level::Linearizable);
/// // Stronger than two that are incomparable: their join.
/// let both = levels.add_between("both".into(), &[linearizable], &[regional, snapshot]).unwrap();
/// assert!(levels.is_at_least(both, regional) && levels.is_at_least(both, snapshot));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    names: Vec<Name>,
    ids: HashMap<Name, LevelId>,
    /// For each level that is not built in, the levels above and below it; all of these are older.
    between: Vec<(Vec<LevelId>, Vec<LevelId>)>,
    carriers: Vec<Level>,
}

impl Default for Levels {
    fn default() -> Self {
        let names: Vec<Name> = Level::ALL.iter().map(|level| level.name().into()).collect();
        let ids = names.iter().cloned().zip((0..).map(LevelId)).collect();
        Self { names, ids, between: Vec::new(), carriers: Level::ALL.to_vec() }
    }
}

impl Levels {
    /// Returns the level called `name`.
    pub fn find(&self, name: &str) -> Option<LevelId> {
        self.ids.get(name).copied()
    }

    /// Returns the name of a level.
    pub fn name(&self, level: LevelId) -> &Name {
        &self.names[usize::from(level.0)]
    }

    /// Returns all names, the built-in levels first.
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// True if `a` is `b`, or stronger.
    pub fn is_at_least(&self, a: LevelId, b: LevelId) -> bool {
        let bounds = |level: LevelId| {
            usize::from(level.0).checked_sub(Level::ALL.len()).map(|added| &self.between[added])
        };
        // The bounds of the younger level determine its order relative to all older levels.
        let (mut open, mut seen) = (vec![(a, b)], HashSet::new());
        while let Some((a, b)) = open.pop() {
            if a == b {
                return true;
            }
            if !seen.insert((a, b)) {
                continue;
            }
            if let Some((above, _)) = bounds(b).filter(|_| b > a) {
                open.extend(above.iter().map(|above| (a, *above)));
            } else if let Some((_, below)) = bounds(a) {
                open.extend(below.iter().map(|below| (*below, b)));
            } else if a < b {
                return true;
            }
        }
        false
    }

    /// True if `a` is strictly stronger than `b`.
    pub fn is_stronger(&self, a: LevelId, b: LevelId) -> bool {
        a != b && self.is_at_least(a, b)
    }

    /// Adds a level below each of `above` and above each of `below`. Gives none when some of `above` is not strictly
    /// stronger than some of `below`, either is empty, or the program has 65,535 levels.
    pub fn add_between(
        &mut self,
        name: Name,
        above: &[LevelId],
        below: &[LevelId],
    ) -> Option<LevelId> {
        let fits = |above: &LevelId| below.iter().all(|below| self.is_stronger(*above, *below));
        if below.is_empty() || !above.iter().all(fits) {
            return None;
        }
        let carriers = above.iter().map(|above| self.carriers[usize::from(above.0)]);
        let carrier = carriers.max()?;
        let added = LevelId(u16::try_from(self.names.len()).ok()?);
        self.between.push((above.to_vec(), below.to_vec()));
        self.carriers.push(carrier);
        self.ids.entry(name.clone()).or_insert(added);
        self.names.push(name);
        Some(added)
    }

    /// Returns the weakest built-in level that guarantees everything `level` promises: the engine
    /// runs at this level.
    pub fn carrier(&self, level: LevelId) -> Level {
        self.carriers[usize::from(level.0)]
    }
}
