//! Remembered results for transactions, valid wherever their items move in the text.

use std::collections::HashMap;

use mingle_model::Name;

use super::closure::Key;
use crate::diagnostic::Diagnostic;
use crate::syntax::Span;

/// A diagnostic whose places are relative to items.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    diagnostic: Diagnostic,
    /// For each of its spans, the item as an index into the list of relevant items.
    items: Vec<usize>,
}

impl Placed {
    /// Makes the diagnostic relative; none if it mentions a place outside these items.
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

    /// Returns the diagnostic at the items' current places.
    pub(super) fn at(&self, items: &[Span]) -> Diagnostic {
        let mut diagnostic = self.diagnostic.clone();
        for (span, place) in diagnostic.spans_mut().zip(&self.items) {
            let start = items[*place].start;
            *span = Span { start: span.start + start, end: span.end + start };
        }
        diagnostic
    }
}

/// The results for a transaction without mistakes in names and types.
#[derive(Clone, Debug)]
pub(super) struct Memo {
    /// The diagnostics of the checker.
    pub(super) types: Vec<Placed>,
    /// The diagnostics of flow analysis; none if it did not run.
    pub(super) flow: Option<Vec<Placed>>,
    /// The objects and stores that it uses.
    pub(super) used: Vec<Name>,
}

/// The results for all transactions, including those of earlier versions: a program that is broken
/// while a line is being typed soon equals an earlier version again.
#[derive(Debug, Default)]
pub(super) struct Memos {
    all: HashMap<Key, (Memo, u64)>,
    version: u64,
}

/// Above this number of results per item, results of earlier versions are dropped.
const MEMOS_PER_ITEM: usize = 4;

/// The number of results that are always kept.
const MEMOS_MIN: usize = 1_024;

impl Memos {
    /// Returns the result for a key; if `with_flow`, only one that includes flow analysis.
    pub(super) fn find(&mut self, key: Key, with_flow: bool) -> Option<&Memo> {
        let (memo, used) = self.all.get_mut(&key)?;
        *used = self.version;
        (memo.flow.is_some() || !with_flow).then_some(&*memo)
    }

    pub(super) fn insert(&mut self, key: Key, memo: Memo) {
        self.all.insert(key, (memo, self.version));
    }

    /// Begins the next version, with this number of items.
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
