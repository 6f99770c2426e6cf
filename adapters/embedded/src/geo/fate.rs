//! Outcomes of commits, kept as long as a helper may ask for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_geo::DcId;
use mingle_model::{Origin, TransactionId};

/// Retention time of a known outcome.
const KEPT_FOR: Duration = Duration::from_mins(10);

/// The outcome of one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The commit is under way.
    Running,
    /// The data center stopped before it answered: its id, its incarnation, and the commit's number
    /// in the core.
    Lost(DcId, u32, TransactionId),
    /// The commit is under way as a strong transaction, or was lost on the way: certification
    /// decides on it.
    Certifying,
    /// The commit took effect.
    Committed,
    /// A helper was told that the commit did not take effect, so it must not take effect later.
    Barred,
}

/// The known outcomes, by transaction id.
#[derive(Default)]
pub struct Fates(Mutex<Known>);

#[derive(Default)]
struct Known {
    fates: BTreeMap<TransactionId, Fate>,
    /// The times at which fates became known, oldest first.
    since: VecDeque<(Duration, TransactionId)>,
    /// Highest forgotten sequence number per origin: up to it, only the entries of `fates` are
    /// known.
    forgotten: BTreeMap<Origin, u64>,
}

impl Fates {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the fate of a commit, if it is known.
    pub fn get(&self, id: TransactionId) -> Option<Fate> {
        self.lock().fates.get(&id).copied()
    }

    /// Marks a commit as under way; returns false if it must not take effect.
    pub fn begin(&self, id: TransactionId, now: Duration) -> bool {
        let mut known = self.lock();
        match known.fates.get(&id) {
            Some(Fate::Barred) => return false,
            // A helper may have been told so before the entry was forgotten.
            None if known.has_forgotten(id) => return false,
            // A later copy does not change the fate of a commit that took effect.
            Some(Fate::Committed | Fate::Certifying | Fate::Lost(..)) => {}
            Some(Fate::Running) | None => known.set(id, Fate::Running, now),
        }
        true
    }

    /// True if the fate may have been known once and was forgotten.
    pub fn is_forgotten(&self, id: TransactionId) -> bool {
        self.lock().has_forgotten(id)
    }

    /// Forgets commits that were under way when the disk was opened again: the disk is asked about
    /// them.
    pub fn reopen(&self) {
        let mut known = self.lock();
        known.fates.retain(|_, fate| matches!(fate, Fate::Committed | Fate::Barred));
    }

    /// Removes a bar: no helper was told after all that the commit did not take effect.
    pub fn forget(&self, id: TransactionId) {
        self.lock().fates.remove(&id);
    }

    /// Notes how a commit ended; `None` if it did not take effect but may do so when retried.
    pub fn end(&self, id: TransactionId, fate: Option<Fate>, now: Duration) {
        let mut known = self.lock();
        match fate {
            Some(fate) => known.set(id, fate, now),
            None => {
                if let Some(Fate::Running | Fate::Certifying) = known.fates.get(&id) {
                    known.fates.remove(&id);
                }
            }
        }
    }

    /// Notes that a commit that is under way is one of a strong transaction.
    pub fn certify(&self, id: TransactionId, now: Duration) {
        let mut known = self.lock();
        if let Some(Fate::Running) = known.fates.get(&id) {
            known.set(id, Fate::Certifying, now);
        }
    }
}

impl Known {
    fn has_forgotten(&self, id: TransactionId) -> bool {
        self.forgotten.get(&id.origin).is_some_and(|up_to| id.sequence <= *up_to)
    }

    fn set(&mut self, id: TransactionId, fate: Fate, now: Duration) {
        if self.fates.insert(id, fate).is_none() {
            self.since.push_back((now, id));
        }
        while let Some((since, oldest)) = self.since.front().copied()
            && since + KEPT_FOR < now
        {
            self.since.pop_front();
            self.fates.remove(&oldest);
            let up_to = self.forgotten.entry(oldest.origin).or_default();
            *up_to = oldest.sequence.max(*up_to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_is_not_taken_for_what_never_was() {
        let id = |sequence| TransactionId { origin: Origin(1), sequence };
        let fates = Fates::default();
        assert!(fates.begin(id(1), Duration::ZERO));
        fates.end(id(1), Some(Fate::Committed), Duration::ZERO);
        fates.end(id(2), Some(Fate::Barred), Duration::from_secs(1));
        assert!(!fates.begin(id(2), Duration::from_secs(2)), "it was said not to be committed");
        assert!(!fates.is_forgotten(id(1)) && fates.get(id(1)) == Some(Fate::Committed));
        fates.end(id(9), Some(Fate::Committed), KEPT_FOR + Duration::from_millis(1));
        assert!(fates.get(id(1)).is_none() && fates.is_forgotten(id(1)));
        assert!(!fates.begin(id(1), KEPT_FOR * 2), "who knows what was said of it");
        assert_eq!(fates.get(id(2)), Some(Fate::Barred));
        assert!(!fates.is_forgotten(id(3)) && fates.get(id(9)) == Some(Fate::Committed));
    }
}
