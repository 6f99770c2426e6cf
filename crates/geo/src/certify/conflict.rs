//! The conflict relation of strong transactions (UniStore §3: applications declare it).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::key::Key;

/// A name for a use of an item, for which conflicts are declared, for example `withdraw`.
pub type Label = Arc<str>;

/// The kind of access to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Access {
    /// It is read.
    Read,
    /// It is written, and possibly read.
    Write,
}

/// The property of a touch that decides whether it conflicts with another touch of the same item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// The label of a labelled touch.
    Labelled(Label),
    /// The access of an unlabelled touch.
    Plain(Access),
}

/// An item that a transaction uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// The item.
    pub key: Key,
    /// The kind of access.
    pub access: Access,
    /// The label, if conflicts are declared for it.
    pub label: Option<Label>,
}

impl Touch {
    /// Creates a touch without a label.
    pub fn new(key: Key, access: Access) -> Self {
        Self { key, access, label: None }
    }

    pub(super) fn class(&self) -> Class {
        match &self.label {
            Some(label) => Class::Labelled(label.clone()),
            None => Class::Plain(self.access),
        }
    }
}

/// Pairs of labels that conflict on the same item.
///
/// Two labelled touches of an item conflict if their pair is declared. If one or both have no
/// label, they conflict if at least one writes, as without any labels; a labelled touch counts as a
/// write there.
///
/// # Examples
///
/// ```
/// use mingle_geo::certify::{Access, Conflicts, Touch};
/// use mingle_geo::{Key, Kind};
///
/// let conflicts = Conflicts::new([("withdraw", "withdraw")]);
/// let account = Key::new(Kind::Counter, "account:7");
/// let labelled = |label: &str| Touch {
///     label: Some(label.into()),
///     ..Touch::new(account.clone(), Access::Write)
/// };
/// assert!(conflicts.between(&labelled("withdraw"), &labelled("withdraw")));
/// assert!(!conflicts.between(&labelled("withdraw"), &labelled("deposit")));
/// assert!(conflicts.between(&labelled("deposit"), &Touch::new(account.clone(), Access::Read)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflicts {
    /// Each pair in both orders.
    pairs: BTreeSet<(Label, Label)>,
    touching_is_enough: bool,
}

impl Conflicts {
    /// Creates the relation in which exactly these pairs of labels conflict.
    pub fn new<A: Into<Label>, B: Into<Label>>(pairs: impl IntoIterator<Item = (A, B)>) -> Self {
        let mut both = BTreeSet::new();
        for (a, b) in pairs {
            let (a, b) = (a.into(), b.into());
            both.insert((a.clone(), b.clone()));
            both.insert((b, a));
        }
        Self { pairs: both, touching_is_enough: false }
    }

    /// Returns the relation in which any two transactions that touch a common item conflict
    /// (`RedBlue` of the paper's evaluation, §8).
    pub fn all() -> Self {
        Self { pairs: BTreeSet::new(), touching_is_enough: true }
    }

    /// Returns the labels that are in a pair, in order.
    pub fn labels(&self) -> impl Iterator<Item = &Label> {
        let first = self.pairs.iter().map(|(label, _)| label);
        first.collect::<BTreeSet<_>>().into_iter()
    }

    /// Returns the pairs of labels that conflict, each in both orders.
    pub fn pairs(&self) -> impl Iterator<Item = &(Label, Label)> {
        self.pairs.iter()
    }

    /// True if two touches conflict.
    pub fn between(&self, a: &Touch, b: &Touch) -> bool {
        a.key == b.key && self.of_classes(&a.class(), &b.class())
    }

    pub(super) fn of_classes(&self, a: &Class, b: &Class) -> bool {
        let writes = |class: &Class| *class != Class::Plain(Access::Read);
        match (a, b) {
            _ if self.touching_is_enough => true,
            (Class::Labelled(a), Class::Labelled(b)) => {
                self.pairs.contains(&(a.clone(), b.clone()))
            }
            (a, b) => writes(a) || writes(b),
        }
    }
}
