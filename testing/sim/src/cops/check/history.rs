//! The record as a history of the checkers.
//!
//! A call is a transaction of its actor's session. A batch over several rows is several operations that
//! know nothing of each other: the first one stays in the actor's session, and each other one has a session
//! of its own. That session begins with reads of the operations on which the batch depends, and the
//! actor's continues with a read of what the batch has written:
//!
//! ```text
//!   the actor            … read x5 │ write a7 │ read b8 │ …
//!   the batch's row b      read x5 │ write b8
//! ```

use std::collections::BTreeMap;

use mingle_checker::{History, Interval, Kind, Operation, Outcome, Transaction};
use mingle_cops::clock::Timestamp;
use mingle_model::{Level, Name};

use super::past::Past;
use crate::cops::record::{Accepted, Call, Record};

/// The sessions of a batch's rows have numbers from this on.
const ROWS: i64 = 1 << 48;

/// The keys that transactions read or write, with their versions.
type Keys = Vec<(Kind, u32, Timestamp)>;

struct Sessions {
    store: Name,
    transactions: Vec<Transaction>,
}

impl Sessions {
    /// Adds the transaction of a call.
    fn call(&mut self, session: i64, call: &Call, keys: Keys) {
        let outcome = if call.end_us.is_some() { Outcome::Committed } else { Outcome::Unknown };
        let interval = call.end_us.map(|end| Interval { begin: call.begin_us, end });
        self.add(session, (outcome, interval), keys);
    }

    /// Adds a read of a key of an operation.
    fn read(&mut self, session: i64, key: Option<u32>, ts: Timestamp) {
        let keys = key.map(|key| (Kind::Read, key, ts)).into_iter().collect();
        self.add(session, (Outcome::Committed, None), keys);
    }

    fn add(&mut self, session: i64, of: (Outcome, Option<Interval>), keys: Keys) {
        if keys.is_empty() {
            return;
        }
        let (outcome, interval) = of;
        let operation = |(kind, key, ts): (Kind, u32, Timestamp)| {
            let (key, store, level) = (i64::from(key), self.store.clone(), Level::Causal);
            let version = (kind == Kind::Write).then_some(ts.bits());
            Operation { kind, key, value: ts.bits() as i64, store, level, version }
        };
        let operations = keys.into_iter().map(operation).collect();
        let (id, commit, is_final) = (self.transactions.len() as i64, None, false);
        self.transactions.push(Transaction {
            id,
            session,
            outcome,
            interval,
            commit,
            is_final,
            operations,
        });
    }
}

/// Returns the history of a record.
///
/// # Errors
///
/// If an answer names an operation that there is not.
pub(super) fn of(record: &Record, past: &Past) -> Result<History, String> {
    let mut sessions = Sessions { store: "cops".into(), transactions: Vec::new() };
    let mut of_call: BTreeMap<usize, Vec<&Accepted>> = BTreeMap::new();
    let mut written: BTreeMap<Timestamp, u32> = BTreeMap::new();
    for accepted in &record.accepted {
        of_call.entry(accepted.call).or_default().push(accepted);
        written.extend(record.keys(accepted).map(|key| (accepted.ts, key)));
    }
    let writes = |accepted: &Accepted| -> Keys {
        record.keys(accepted).map(|key| (Kind::Write, key, accepted.ts)).collect()
    };
    for (index, call) in record.calls.iter().enumerate() {
        let session = i64::from(call.dc) << 32 | i64::from(call.actor);
        let newest = |versions: &Vec<Timestamp>| versions.iter().max().copied().unwrap_or_default();
        let reads = call.reads.iter().map(|read| (Kind::Read, read.key, newest(&read.versions)));
        let accepted = of_call.remove(&index).unwrap_or_default();
        let (first, others) = accepted
            .split_first()
            .map_or((None, &[][..]), |(first, others)| (Some(*first), others));
        sessions.call(session, call, reads.chain(first.into_iter().flat_map(writes)).collect());
        for other in others {
            // In the order of timestamps, which extends causality, no read is older than one before.
            let own = ROWS + sessions.transactions.len() as i64;
            for below in past.of_call(index) {
                sessions.read(own, written.get(&below).copied(), below);
            }
            sessions.call(own, call, writes(other));
            if call.end_us.is_some() {
                sessions.read(session, record.keys(other).next(), other.ts);
            }
        }
    }
    History::new(sessions.transactions).map_err(|malformed| malformed.message)
}
