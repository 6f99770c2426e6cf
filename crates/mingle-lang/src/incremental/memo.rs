//! What is known of transactions, kept so that it holds wherever their items come to stand.

use std::collections::HashMap;

use mingle_model::Name;

use super::closure::Key;
use crate::diagnostic::Diagnostic;
use crate::syntax::Span;

/// A diagnostic, its places relative to items.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    diagnostic: Diagnostic,
    /// For each of its spans the item, as a place in the list of those that count.
    items: Vec<usize>,
}

impl Placed {
    /// None if it speaks of a place outside these items.
    pub(super) fn new(mut diagnostic: Diagnostic, items: &[Span]) -> Option<Self> {
        let mut places = Vec::new();
        for span in diagnostic.spans_mut() {
            let place = items.iter().position(|item| item.contains(*span))?;
            let start = items[place].start;
            *span = Span { start: span.start - start, end: span.end - start };
            places.push(place);
        }
        Some(Self { diagnostic, items: places })
    }

    /// The diagnostic where the items stand now.
    pub(super) fn at(&self, items: &[Span]) -> Diagnostic {
        let mut diagnostic = self.diagnostic.clone();
        for (span, place) in diagnostic.spans_mut().zip(&self.items) {
            let start = items[*place].start;
            *span = Span { start: span.start + start, end: span.end + start };
        }
        diagnostic
    }
}

/// What is known of a transaction without mistakes in names and types.
#[derive(Clone, Debug)]
pub(super) struct Memo {
    /// What the checker says of it.
    pub(super) types: Vec<Placed>,
    /// What flow analysis says; none if it was not asked.
    pub(super) flow: Option<Vec<Placed>>,
    /// The objects and stores that it uses.
    pub(super) used: Vec<Name>,
}

/// What is known of all of them, those of versions before included: a program that is broken for
/// the time of typing a line is soon the one from before again.
#[derive(Debug, Default)]
pub(super) struct Memos {
    all: HashMap<Key, (Memo, u64)>,
    version: u64,
}

/// Memos of versions before are dropped when there are more than so many for each item.
const MEMOS_PER_ITEM: usize = 4;

/// But no less than this many are kept.
const MEMOS_MIN: usize = 1_024;

impl Memos {
    /// What is known under a key; with what flow analysis said, if that is asked for.
    pub(super) fn find(&mut self, key: Key, with_flow: bool) -> Option<&Memo> {
        let (memo, used) = self.all.get_mut(&key)?;
        *used = self.version;
        (memo.flow.is_some() || !with_flow).then_some(&*memo)
    }

    pub(super) fn insert(&mut self, key: Key, memo: Memo) {
        self.all.insert(key, (memo, self.version));
    }

    /// Begins the next version, of so many items.
    pub(super) fn next_version(&mut self, items: usize) {
        self.version += 1;
        if self.all.len() > MEMOS_MIN.max(MEMOS_PER_ITEM * items) {
            let mut ages: Vec<u64> = self.all.values().map(|(_, used)| *used).collect();
            let middle = ages.len() / 2;
            let (_, oldest, _) = ages.select_nth_unstable(middle);
            let oldest = *oldest;
            self.all.retain(|_, (_, used)| *used >= oldest);
        }
    }
}
