//! The outcome of a commit with an id.
//!
//! Each id has one row. Its commit inserts the row, or the first process that asks for the outcome
//! does; the id is then barred. Old rows are removed. For each origin a mark records the id up to
//! which rows are gone. Ids up to the mark without a row have an unknown outcome, and none of them
//! can take effect.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mingle_model::{Origin, TransactionId};
use mingle_store::Outcome;

use crate::encoding::transaction;
use crate::layout::Layout;
use crate::limits::{AGEING_MAX, AGEING_STEPS, PURGE_EVERY};
use crate::session::Step;
use crate::wire::{Param, Row, boolean};

/// Bars an id that has no row, and returns its row; none if the id is too old to tell.
pub fn ask(layout: &Layout, id: TransactionId) -> [Step; 2] {
    let (outcomes, gone) = (layout.system("outcomes"), layout.system("outcomes_gone"));
    let bar = format!(
        "INSERT INTO {outcomes} (transaction, is_committed) SELECT $1::bytea, false \
         WHERE NOT EXISTS (SELECT FROM {gone} WHERE origin = substring($1::bytea FOR 16) \
         AND transaction >= $1::bytea) ON CONFLICT DO NOTHING"
    );
    let id = vec![Param::Bytes(transaction(id))];
    [Step::new(bar, id.clone()), look(layout, id)]
}

fn look(layout: &Layout, id: Vec<Param>) -> Step {
    let outcomes = layout.system("outcomes");
    Step::new(format!("SELECT is_committed FROM {outcomes} WHERE transaction = $1::bytea"), id)
}

/// Looks up the row of an id.
pub fn find(layout: &Layout, id: TransactionId) -> Step {
    look(layout, vec![Param::Bytes(transaction(id))])
}

/// Decodes the row.
pub fn read(rows: &[Row]) -> Outcome {
    match rows.first() {
        None => Outcome::Unknown,
        Some(row) if boolean(row, 0) => Outcome::Committed,
        Some(_) => Outcome::NotCommitted,
    }
}

/// Removes the old rows of an origin up to an id, at or below its floor.
pub fn forget(layout: &Layout, last: TransactionId, keep: &str) -> Step {
    let first = TransactionId { sequence: 0, ..last };
    let sql = remove(layout, "transaction >= $2::bytea AND transaction <= $3::bytea AND");
    let params = vec![
        Param::Text(keep.to_owned()),
        Param::Bytes(transaction(first)),
        Param::Bytes(transaction(last)),
    ];
    Step::new(sql, params)
}

/// Removes all old rows.
pub fn purge(layout: &Layout, keep: &str) -> Step {
    Step::new(remove(layout, ""), vec![Param::Text(keep.to_owned())])
}

fn remove(layout: &Layout, condition: &str) -> String {
    let (outcomes, gone) = (layout.system("outcomes"), layout.system("outcomes_gone"));
    format!(
        "WITH removed AS (DELETE FROM {outcomes} WHERE {condition} \
         at < clock_timestamp() - $1::text::interval RETURNING transaction) \
         INSERT INTO {gone} AS g (origin, transaction) \
         SELECT DISTINCT ON (substring(transaction FOR 16)) \
         substring(transaction FOR 16), transaction FROM removed \
         ORDER BY substring(transaction FOR 16), transaction DESC \
         ON CONFLICT (origin) DO UPDATE SET transaction = greatest(g.transaction, \
         excluded.transaction), at = clock_timestamp()"
    )
}

/// The outcomes that are old by now, as far as this process knows. It avoids repeated searches for
/// outcomes that are not old yet.
pub struct Ageing {
    keep: Duration,
    inner: Mutex<Aged>,
}

#[derive(Default)]
struct Aged {
    /// Raised floors with the time of raising, the oldest first.
    floors: BTreeMap<Origin, VecDeque<(Duration, TransactionId)>>,
    /// Commits since all old outcomes were removed, and the time of that removal.
    commits: u64,
    purged: Option<Duration>,
}

impl Ageing {
    /// Creates the record for outcomes that are kept for `keep`.
    pub fn new(keep: Duration) -> Self {
        Self { keep, inner: Mutex::default() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Aged> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a floor was raised to this id at `now`. Returns the id up to which old outcomes
    /// are to be removed, if any. The first call of an origin returns `last` itself, because this
    /// process does not know the floors before its start.
    pub fn raised(&self, last: TransactionId, now: Duration) -> Option<TransactionId> {
        let mut inner = self.lock();
        if inner.floors.len() >= AGEING_MAX {
            inner.floors.clear();
        }
        let floors = inner.floors.entry(last.origin).or_default();
        let mut old = floors.is_empty().then_some(last);
        while let Some((_, floor)) = floors.pop_front_if(|(at, _)| *at + self.keep <= now) {
            old = Some(floor);
        }
        if floors.back().is_none_or(|(at, _)| *at + self.keep / AGEING_STEPS <= now) {
            floors.push_back((now, last));
        }
        old
    }

    /// Counts a commit; returns true if all old outcomes are to be removed now.
    pub fn is_purge_due(&self, now: Duration) -> bool {
        let mut inner = self.lock();
        inner.commits += 1;
        let is_late = inner.purged.is_none_or(|at| at + self.keep / AGEING_STEPS <= now);
        let is_due = inner.commits >= PURGE_EVERY && is_late;
        if is_due {
            (inner.commits, inner.purged) = (0, Some(now));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Duration = Duration::from_mins(10);

    fn id(origin: u128, sequence: u64) -> TransactionId {
        TransactionId { origin: Origin(origin), sequence }
    }

    #[test]
    fn what_is_not_old_is_not_looked_at_again() {
        let ageing = Ageing::new(KEEP);
        let second = Duration::from_secs(1);
        assert_eq!(ageing.raised(id(1, 10), second), Some(id(1, 10)), "who knows what was before");
        for number in 2..600 {
            let last = id(1, u64::from(number) * 10);
            assert_eq!(ageing.raised(last, second * number), None, "{number}");
        }
        let count = ageing.lock().floors[&Origin(1)].len();
        assert!(count <= AGEING_STEPS as usize, "{count} floors are remembered");
        assert_eq!(ageing.raised(id(1, 6_000), KEEP + second), Some(id(1, 10)));
        let found = ageing.raised(id(1, 7_000), KEEP + 100 * second);
        let found = found.expect("some of it is old").sequence;
        assert!(
            (800..=1_000).contains(&found),
            "up to {found}, which was raised 100 s after the start"
        );
        assert_eq!(ageing.raised(id(2, 5), second), Some(id(2, 5)), "another origin");
    }

    #[test]
    fn after_a_pause_all_that_was_raised_before_it_is_old() {
        let ageing = Ageing::new(KEEP);
        ageing.raised(id(1, 10), Duration::ZERO);
        ageing.raised(id(1, 20), KEEP / 2);
        assert_eq!(ageing.raised(id(1, 30), 3 * KEEP), Some(id(1, 20)));
        assert_eq!(ageing.raised(id(1, 40), 4 * KEEP), Some(id(1, 30)));
    }

    #[test]
    fn old_outcomes_are_removed_after_many_commits_and_some_time() {
        let ageing = Ageing::new(KEEP);
        let due = |now| (0..2 * PURGE_EVERY).filter(|_| ageing.is_purge_due(now)).count();
        assert_eq!(due(Duration::ZERO), 1);
        assert_eq!(due(Duration::from_secs(1)), 0, "that was not long ago");
        assert_eq!(due(KEEP), 1);
    }
}
