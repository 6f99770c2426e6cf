//! The declared relation of conflicts between transactions of the program (`UniStore` §3: the
//! relation that the programmer provides).
//!
//! Without a declaration, any two transactions conflict by the items they use ([`super::touch`]).
//! With a declaration, two named transactions conflict by the program data they use if their pair
//! is declared, and not otherwise. The rest is as without a declaration: the runtime's own data
//! (witness rows, records, notes of ids), and transactions without a name.
//!
//! A vote must be a function of the log, but a declaration may change from one start to the next.
//! So the relation of labels is fixed ([`conflicts`]), and the declaration is encoded in the
//! touches of a transaction:
//!
//! - the item, under a label that says that the transaction is named and by which declaration: it
//!   conflicts with transactions without a name, and with transactions named by another
//!   declaration;
//! - for each declared pair that contains the transaction, a key that stands for the item and the
//!   pair, under a label that says which of the two it is.

use std::collections::BTreeSet;

use mingle_geo::certify::{Access, Conflicts, Label, Touch};
use mingle_geo::{DcId, Key, Update};
use mingle_model::Name;

use super::config::GeoConfig;
use super::disk::Disk;
use super::name;
use super::touch::{Use, Uses};
use crate::encoding::key;
use crate::storage::{Changes, Storage, StorageError};

/// Successive declarations are told apart by a number modulo this. No transaction stays undecided
/// for so long that a declaration meets the remains of an earlier one of the same number.
const GENERATIONS: u8 = 3;

/// The declared pairs of conflicting transactions: the lesser name first.
pub type Pairs = BTreeSet<(Name, Name)>;

/// The declaration of conflicts, with its generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    generation: u8,
    pairs: Pairs,
}

/// The part of the declaration that concerns one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    generation: u8,
    /// For each pair of the transaction: the suffix of keys that stand for an item and the pair,
    /// and the transaction's side of the pair.
    pairs: Vec<(Vec<u8>, Side)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// The transaction conflicts with itself.
    Both,
    One,
    Other,
}

impl Side {
    fn label(self, how: Use) -> Label {
        match self {
            Self::Both => how.label().into(),
            Self::One => format!("one: {}", how.label()).into(),
            Self::Other => format!("other: {}", how.label()).into(),
        }
    }
}

fn named(generation: u8, how: Use) -> Label {
    format!("{} by {generation}", how.label()).into()
}

impl Relation {
    /// Stores the declaration and returns it: a declaration that differs from the previous one gets
    /// the next generation.
    pub fn keep(storage: &dyn Storage, pairs: &Pairs) -> Result<Self, StorageError> {
        let lines = pairs.iter().map(|(one, other)| format!("{one} {other}\n"));
        let text: String = lines.collect();
        let kept = storage.snapshot()?.get(key::CONFLICTS)?;
        let kept = kept.as_deref().and_then(|row| row.split_first());
        let generation = match kept {
            Some((generation, before)) if *before == *text.as_bytes() => *generation,
            Some((generation, _)) => (generation + 1) % GENERATIONS,
            None => 0,
        };
        let row = [&[generation], text.as_bytes()].concat();
        if kept.is_none_or(|(before, _)| *before != generation) {
            storage.commit(Changes::from([(key::CONFLICTS.into(), Some(row.into()))]))?;
        }
        Ok(Self { generation, pairs: pairs.clone() })
    }

    /// True if a transaction is in one of the pairs.
    pub fn lists(&self, transaction: &Name) -> bool {
        self.pairs.iter().any(|(one, other)| one == transaction || other == transaction)
    }

    /// Returns the role of a transaction in the declaration.
    pub fn role(&self, transaction: &Name) -> Role {
        let pairs = self.pairs.iter().filter_map(|pair| {
            let (one, other) = pair;
            let side = match (one == transaction, other == transaction) {
                (true, true) => Side::Both,
                (true, false) => Side::One,
                (false, true) => Side::Other,
                (false, false) => return None,
            };
            Some((name::pair(one, other), side))
        });
        Role { generation: self.generation, pairs: pairs.collect() }
    }
}

/// Checks the list of conflicts against the data of a store that is kept: a causal store that had a list
/// has one, and one that gets its first has all its founding data centers, since these found the groups
/// that agree on the order. Returns the reason for which it cannot be opened.
///
/// # Errors
///
/// When the disk fails.
pub fn check_kept(
    geo: &GeoConfig,
    storage: &dyn Storage,
) -> Result<Result<(), String>, StorageError> {
    let view = storage.snapshot()?;
    let has_pairs = view.get(key::CONFLICTS)?.is_some();
    if geo.is_strong || has_pairs == geo.conflicts.is_some() {
        return Ok(Ok(()));
    }
    if has_pairs {
        let reason = "`conflicts` is missing, and its data were written under such a list; to have no pairs, write `conflicts = []`";
        return Ok(Err(reason.into()));
    }
    for (dc, name) in (0..).map(DcId).zip(&geo.datacenters) {
        if Disk::incarnation(dc, &*view)? > 0 {
            return Ok(Err(format!(
                "`conflicts` cannot be added any more: its data center {name} was given up and admitted again"
            )));
        }
    }
    Ok(Ok(()))
}

impl Role {
    /// Returns the touches of a transaction with these uses. None if it only reads data and is in
    /// no pair: then any snapshot will do.
    pub fn touches(&self, uses: Uses, updates: &[Update]) -> Vec<Touch> {
        let is_free = |(key, how): (&Key, &Use)| name::is_data(key) && how.access() == Access::Read;
        if self.pairs.is_empty() && updates.is_empty() && uses.iter().all(is_free) {
            return Vec::new();
        }
        let mut touches = Vec::new();
        for (key, how) in uses.into_items() {
            let touch = |key, label| Touch { key, access: how.access(), label: Some(label) };
            if !name::is_data(&key) {
                touches.push(touch(key, how.label().into()));
                continue;
            }
            for (pair, side) in &self.pairs {
                let stands_for = Key::new(key.kind, [&*key.name, pair].concat());
                touches.push(touch(stands_for, side.label(how)));
            }
            touches.push(touch(key, named(self.generation, how)));
        }
        touches
    }
}

/// Returns the pairs of labels that conflict on one key, independent of the declaration.
pub fn conflicts() -> Conflicts {
    let both = Use::CONFLICTS.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]);
    let mut pairs: Vec<(Label, Label)> = Vec::new();
    for (one, other) in both {
        pairs.push((one.label().into(), other.label().into()));
        pairs.push((Side::One.label(one), Side::Other.label(other)));
        for generation in 0..GENERATIONS {
            pairs.push((named(generation, one), other.label().into()));
            let others = (0..GENERATIONS).filter(|another| *another != generation);
            pairs.extend(others.map(|another| (named(generation, one), named(another, other))));
        }
    }
    Conflicts::new(pairs)
}

#[cfg(test)]
mod tests {
    use mingle_geo::Kind;

    use super::*;
    use crate::storage::memory::MemoryStorage;

    fn pairs(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(one, other)| ((*one).into(), (*other).into())).collect()
    }

    fn touches(by: Option<(&Relation, &str)>, section: &str, how: Use) -> Vec<Touch> {
        let mut uses = Uses::default();
        uses.add(Key::new(Kind::Counter, section), how);
        match by {
            Some((relation, name)) => relation.role(&name.into()).touches(uses, &[]),
            None => uses.touches(),
        }
    }

    fn conflict(one: &[Touch], other: &[Touch]) -> bool {
        let conflicts = conflicts();
        one.iter().any(|one| other.iter().any(|other| conflicts.between(one, other)))
    }

    #[test]
    fn named_transactions_conflict_if_their_pair_is_declared() {
        let storage = MemoryStorage::default();
        let declared = pairs(&[("transfer", "withdraw"), ("withdraw", "withdraw")]);
        let relation = Relation::keep(&storage, &declared).expect("it is memory");
        let all = ["deposit", "transfer", "withdraw"];
        for one in all {
            for other in all {
                for (how, with) in [(Use::Write, Use::Read), (Use::WritePart, Use::Write)] {
                    let pair = (one.min(other).into(), one.max(other).into());
                    let found = conflict(
                        &touches(Some((&relation, one)), "f{a}1", how),
                        &touches(Some((&relation, other)), "f{a}1", with),
                    );
                    assert_eq!(found, declared.contains(&pair), "{one} {how:?}, {other} {with:?}");
                }
                let parts = [one, other]
                    .map(|name| touches(Some((&relation, name)), "f{a}1", Use::WritePart));
                assert!(!conflict(&parts[0], &parts[1]), "additions conflict with nobody's");
            }
        }
    }

    /// Items that are not program data conflict as without a declaration, and so do transactions
    /// without a name.
    #[test]
    fn nothing_else_is_declared() {
        let storage = MemoryStorage::default();
        let relation = Relation::keep(&storage, &pairs(&[])).expect("it is memory");
        for (section, expected) in [("w{a}", true), ("rk", true), ("c1", true), ("f{a}1", false)] {
            let write = touches(Some((&relation, "deposit")), section, Use::Write);
            let read = touches(Some((&relation, "look")), section, Use::Read);
            assert_eq!(conflict(&write, &read), expected, "{section}");
            let nobody = touches(None, section, Use::Read);
            assert!(conflict(&write, &nobody) && conflict(&nobody, &write), "{section}");
        }
        assert_eq!(touches(Some((&relation, "look")), "f{a}1", Use::Read), []);
        assert_ne!(touches(Some((&relation, "look")), "w{a}", Use::Read), []);
    }

    #[test]
    fn who_is_named_by_another_declaration_conflicts_as_without_any() {
        let storage = MemoryStorage::default();
        let keep = |declared: &Pairs| Relation::keep(&storage, declared).expect("it is memory");
        let (none, some) = (pairs(&[]), pairs(&[("look", "look")]));
        let [before, same, after] = [&none, &none, &some].map(keep);
        assert_eq!(before, same);
        let write = |relation| touches(Some((relation, "deposit")), "f{a}1", Use::WritePart);
        let read = |relation| touches(Some((relation, "look")), "f{a}1", Use::Read);
        assert!(conflict(&write(&before), &read(&after)));
        assert!(!conflict(&write(&after), &read(&after)));
    }
}
