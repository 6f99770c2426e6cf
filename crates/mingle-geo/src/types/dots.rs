//! What stands in an item, each with the mark of the operation that put it there.

use serde::{Deserialize, Serialize};

use super::ids::Ids;
use super::{Cause, Mark, OpId};

/// What a transaction had seen of an item.
pub struct Seen<'a> {
    pub cause: &'a Cause,
    pub ids: &'a Ids,
}

impl Seen<'_> {
    /// Whether it saw what stands under this mark and id.
    pub fn observes(&self, mark: &Mark, id: Option<&OpId>) -> bool {
        self.cause.observes(mark) || id.is_some_and(|id| self.ids.observed(id, self.cause))
    }
}

/// One thing that stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dot<T> {
    pub mark: Mark,
    pub id: Option<Box<OpId>>,
    pub value: T,
}

/// Things that stand beside each other since their operations did not see each other, in the order
/// of their versions. Mostly there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dots<T>(Vec<Dot<T>>);

impl<T> Default for Dots<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Dots<T> {
    /// Takes away what was seen.
    pub fn displace(&mut self, seen: &Seen<'_>) {
        self.0.retain(|dot| !seen.observes(&dot.mark, dot.id.as_deref()));
    }

    pub fn place(&mut self, mark: Mark, id: Option<&OpId>, value: T) {
        let place = self.0.partition_point(|dot| dot.mark.version < mark.version);
        // Mostly it is the only one: no room for more.
        if self.0.is_empty() {
            self.0.reserve_exact(1);
        }
        self.0.insert(place, Dot { mark, id: id.copied().map(Box::new), value });
    }

    /// Lowers the version of what stands under `id`, if it still does.
    pub fn restamp(&mut self, id: &OpId, mark: Mark) {
        if let Some(place) = self.0.iter().position(|dot| dot.id.as_deref() == Some(id)) {
            let dot = &mut self.0[place];
            if mark.version < dot.mark.version {
                dot.mark = mark;
                self.0.sort_unstable_by_key(|dot| dot.mark.version);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one of the highest version.
    pub fn last(&self) -> Option<&Dot<T>> {
        self.0.last()
    }

    /// The ids under which they stand.
    pub fn ids(&self) -> impl Iterator<Item = &OpId> {
        self.0.iter().filter_map(|dot| dot.id.as_deref())
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Dot<T>> + ExactSizeIterator {
        self.0.iter()
    }
}
