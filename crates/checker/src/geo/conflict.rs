//! Conflicts between strong transactions (UniStore §3), from their records.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Action, Item, Transaction};

/// The attribute of a strong transaction: strong transactions that conflict are ordered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strong {
    /// The labels of used items, for which conflicts are declared.
    pub labels: BTreeMap<Item, String>,
}

/// Pairs of labels that conflict on one item.
///
/// Two uses of an item that both have labels conflict if the pair is declared. Other pairs of uses
/// conflict if at least one writes; a use with a label counts as a write there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    pairs: BTreeSet<(String, String)>,
    touching_is_enough: bool,
}

impl Conflicts {
    /// Creates the relation in which these pairs of labels conflict, in both orders.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let both = |(a, b): (String, String)| [(a.clone(), b.clone()), (b, a)];
        Self { pairs: pairs.into_iter().flat_map(both).collect(), touching_is_enough: false }
    }

    /// Creates the relation in which any two uses of one item conflict.
    pub fn all() -> Self {
        Self { pairs: BTreeSet::new(), touching_is_enough: true }
    }

    pub(super) fn between(&self, a: Use<'_>, b: Use<'_>) -> bool {
        match (a, b) {
            _ if self.touching_is_enough => true,
            (Use::Labelled(a), Use::Labelled(b)) => {
                self.pairs.contains(&(a.to_owned(), b.to_owned()))
            }
            (a, b) => a != Use::Read || b != Use::Read,
        }
    }
}

/// The way in which a transaction uses an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use<'r> {
    Read,
    Write,
    Labelled(&'r str),
}

/// Returns the items that a strong transaction used, with their uses; empty for other transactions.
pub fn uses(transaction: &Transaction) -> BTreeMap<Item, Use<'_>> {
    let mut uses = BTreeMap::new();
    let Some(strong) = &transaction.strong else { return uses };
    for action in &transaction.actions {
        let (item, how) = match action {
            Action::Read { item, .. } => (*item, Use::Read),
            Action::Update { item, .. } => (*item, Use::Write),
        };
        let known = uses.entry(item).or_insert(how);
        *known = how.max(*known);
    }
    uses.extend(strong.labels.iter().map(|(item, label)| (*item, Use::Labelled(label))));
    uses
}
