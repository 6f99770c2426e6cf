//! Which two strong transactions conflict (UniStore §3), by what was recorded of them.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Action, Item, Transaction};

/// What makes a transaction a strong one: those that conflict are ordered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strong {
    /// By what name items are used for which conflicts are declared.
    pub labels: BTreeMap<Item, String>,
}

/// Pairs of labels that conflict where they are put on one item.
///
/// Two uses of an item that both have labels conflict if the pair is declared. Of others they
/// conflict if at least one writes; one with a label counts as a write there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    pairs: BTreeSet<(String, String)>,
    touching_is_enough: bool,
}

impl Conflicts {
    /// The relation in which these pairs of labels conflict, in both orders.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let both = |(a, b): (String, String)| [(a.clone(), b.clone()), (b, a)];
        Self { pairs: pairs.into_iter().flat_map(both).collect(), touching_is_enough: false }
    }

    /// Any two uses of one item conflict, whatever they are.
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

/// How a transaction uses an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use<'r> {
    Read,
    Write,
    Labelled(&'r str),
}

/// The items that a strong transaction used, with how; nothing of one that is not strong.
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
