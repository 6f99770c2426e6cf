//! Outcomes of transactions, by (session, sequence). With them, a repeated commit request whose
//! answer was lost has no second effect, and a late PREPARE finds that its transaction was refused.

use std::collections::BTreeMap;

use mingle_model::{Origin, TransactionId};

use crate::record::{Decided, Remembered};
use crate::timestamp::{DcId, Timestamp};
use crate::tx::Outcome;
use crate::vector::Vector;

/// The remembered outcomes.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    sessions: BTreeMap<Origin, Session>,
    /// Transactions that began at or before this time are no longer accepted.
    floor_us: u64,
    /// For each data center: up to this timestamp, transactions may have unknown outcomes here,
    /// because they came by state transfer.
    blind: Vector,
}

#[derive(Clone, Debug, Default)]
struct Session {
    /// The session has the answers to its transactions below this sequence; they are not accepted
    /// again.
    answered: u64,
    /// The latest begin time among this session's transactions seen here.
    begun_us: u64,
    /// Sorted by sequence. There are usually one or two.
    ended: Vec<Ended>,
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    sequence: u64,
    begun_us: u64,
    outcome: Outcome,
}

impl Session {
    fn insert(&mut self, ended: Ended) {
        self.begun_us = self.begun_us.max(ended.begun_us);
        match self.ended.binary_search_by_key(&ended.sequence, |ended| ended.sequence) {
            Ok(place) => self.ended[place] = ended,
            Err(place) => {
                if self.ended.len() < FEW {
                    self.ended.reserve_exact(1);
                }
                self.ended.insert(place, ended);
            }
        }
    }
}

/// The bytes of memory of one session, and of one outcome.
pub const SESSION_BYTES: usize = size_of::<Session>();
pub const ENDED_BYTES: usize = size_of::<Ended>();

/// Up to this many outcomes of a session are stored without spare capacity.
const FEW: usize = 4;

impl Outcomes {
    /// Returns the outcome of a transaction, if it is remembered.
    pub fn get(&self, id: &TransactionId) -> Option<Outcome> {
        let session = self.sessions.get(&id.origin)?;
        let place = session.ended.binary_search_by_key(&id.sequence, |ended| ended.sequence);
        place.ok().map(|place| session.ended[place].outcome)
    }

    /// True if a transaction without a remembered outcome must no longer be accepted.
    pub fn is_past(&self, id: &TransactionId, begun_us: u64) -> bool {
        let session = self.sessions.get(&id.origin);
        begun_us <= self.floor_us || session.is_some_and(|session| id.sequence < session.answered)
    }

    /// Remembers the outcome of a transaction.
    pub fn insert(&mut self, id: TransactionId, begun_us: u64, outcome: Outcome) {
        let session = self.sessions.entry(id.origin).or_default();
        session.insert(Ended { sequence: id.sequence, begun_us, outcome });
    }

    /// Remembers a commit from another data center. The session that committed it had moved on to
    /// this transaction, so it knows the outcomes of its earlier ones.
    pub fn insert_remote(
        &mut self,
        id: TransactionId,
        begun_us: u64,
        outcome: Outcome,
        own: DcId,
        stable: Timestamp,
    ) {
        let session = self.sessions.entry(id.origin).or_default();
        session.ended.retain(|ended| {
            ended.sequence >= id.sequence || !is_forgettable(&ended.outcome, own, stable)
        });
        session.insert(Ended { sequence: id.sequence, begun_us, outcome });
    }

    /// Records that a session knows the outcomes of its transactions below `answered`, and forgets
    /// those outcomes. A commit of this data center is kept until `stable`, the own entry of
    /// `stableVec`, has reached it: until then a prepared participant may ask for it.
    pub fn answered(
        &mut self,
        origin: Origin,
        answered: u64,
        begun_us: u64,
        own: DcId,
        stable: Timestamp,
    ) {
        let session = self.sessions.entry(origin).or_default();
        session.begun_us = session.begun_us.max(begun_us);
        if answered > session.answered {
            session.answered = answered;
            session.ended.retain(|ended| {
                ended.sequence >= answered || !is_forgettable(&ended.outcome, own, stable)
            });
        }
    }

    /// Raises the floor on the age of transactions and forgets the outcomes below it; see
    /// [`answered`](Self::answered) about `stable`.
    pub fn raise_floor(&mut self, floor_us: u64, own: DcId, stable: Timestamp) {
        self.floor_us = self.floor_us.max(floor_us);
        let floor_us = self.floor_us;
        self.sessions.retain(|_, session| {
            session.ended.retain(|ended| {
                ended.begun_us > floor_us || !is_forgettable(&ended.outcome, own, stable)
            });
            // No transaction that began after the floor has a sequence below `answered`.
            session.begun_us > floor_us || !session.ended.is_empty()
        });
    }

    /// Returns the age floor: transactions that began at or before it (microseconds since 1970) are
    /// refused.
    pub fn floor_us(&self) -> u64 {
        self.floor_us
    }

    /// Returns everything that is remembered.
    pub fn remembered(&self) -> Remembered {
        let ended = self.sessions.iter().flat_map(|(origin, session)| {
            session.ended.iter().map(|ended| Decided {
                id: TransactionId { origin: *origin, sequence: ended.sequence },
                begun_us: ended.begun_us,
                outcome: ended.outcome,
            })
        });
        let answered = self.sessions.iter();
        let answered =
            answered.map(|(origin, session)| (*origin, session.answered, session.begun_us));
        Remembered { ended: ended.collect(), answered: answered.collect() }
    }

    /// Replaces the contents by `remembered`, which was saved before a restart.
    pub fn restore(&mut self, remembered: Remembered) {
        self.sessions.clear();
        for (origin, answered, begun_us) in remembered.answered {
            let session = self.sessions.entry(origin).or_default();
            session.answered = session.answered.max(answered);
            session.begun_us = session.begun_us.max(begun_us);
        }
        for Decided { id, begun_us, outcome } in remembered.ended {
            self.insert(id, begun_us, outcome);
        }
    }

    /// Forgets a transaction that was cut off with its origin, as if it had never existed.
    pub fn forget(&mut self, id: &TransactionId) {
        if let Some(session) = self.sessions.get_mut(&id.origin) {
            session.ended.retain(|ended| ended.sequence != id.sequence);
        }
    }

    /// Records that a state transfer to `at` brought transactions beyond `known` without their
    /// outcomes.
    pub fn raise_blind(&mut self, known: &Vector, at: &Vector) {
        for (dc, to) in at.iter().filter(|(dc, to)| *to > known[*dc]) {
            self.blind[dc] = self.blind[dc].max(to);
        }
    }

    /// Returns the vector up to which transactions may have come without their outcomes.
    pub fn blind(&self) -> Vector {
        self.blind
    }

    /// Sets [`blind`](Self::blind) to the value stored on disk.
    pub fn set_blind(&mut self, to: Vector) {
        self.blind = to;
    }

    /// Returns the number of remembered outcomes.
    pub fn count(&self) -> usize {
        self.sessions.values().map(|session| session.ended.len()).sum()
    }
}

fn is_forgettable(outcome: &Outcome, own: DcId, stable: Timestamp) -> bool {
    match outcome {
        Outcome::Committed(commit_vec) => commit_vec[own] <= stable,
        Outcome::Aborted => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: DcId = DcId(0);

    #[test]
    fn a_commit_is_remembered_until_all_partitions_have_decided_it() {
        let id = TransactionId { origin: Origin(1), sequence: 1 };
        let commit_vec = Vector::ZERO.with(OWN, Timestamp(50));
        let mut outcomes = Outcomes::default();
        outcomes.insert(id, 10, Outcome::Committed(commit_vec));
        outcomes.raise_floor(20, OWN, Timestamp(49));
        outcomes.answered(id.origin, 2, 30, OWN, Timestamp(49));
        assert_eq!(outcomes.get(&id), Some(Outcome::Committed(commit_vec)));
        outcomes.raise_floor(21, OWN, Timestamp(50));
        assert_eq!(outcomes.get(&id), None);
        assert!(outcomes.is_past(&id, 10) && outcomes.is_past(&id, 40));
    }

    #[test]
    fn a_refusal_is_remembered_until_the_floor_refuses_in_its_place() {
        let id = TransactionId { origin: Origin(1), sequence: 1 };
        let mut outcomes = Outcomes::default();
        outcomes.insert(id, 10, Outcome::Aborted);
        outcomes.raise_floor(9, OWN, Timestamp::ZERO);
        assert_eq!(outcomes.get(&id), Some(Outcome::Aborted));
        outcomes.raise_floor(10, OWN, Timestamp::ZERO);
        assert_eq!(outcomes.get(&id), None);
        assert!(outcomes.is_past(&id, 10) && !outcomes.is_past(&id, 11));
    }
}
