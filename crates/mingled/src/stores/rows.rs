//! The rows with a store's declarations, as one item of the cluster.
//!
//! They are read and written by strong transactions, so programs that connect to different data centers
//! agree on them: the ids of kinds and fields are given out once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mingle_geo::types::Map;
use mingle_geo::{Key, Op, Refusal, Update};
use mingle_model::Value;
use mingle_store_embedded::storage::{
    Bytes, Changes, Direction, Snapshot, Storage, StorageError, View, Visit,
};

use crate::process::{CommitError, Session, SessionError};
use crate::server::RUNS_MAX;

type Rows = BTreeMap<Bytes, Bytes>;

/// The rows of one store.
pub struct ItemRows {
    key: Key,
    state: Mutex<State>,
}

struct State {
    session: Session,
    /// The rows that were read last. A commit changes them only if they still stand.
    read: Rows,
}

impl ItemRows {
    /// Returns the rows in this item, a map of bytes to bytes.
    pub fn new(key: Key, session: Session) -> Self {
        Self { key, state: Mutex::new(State { session, read: Rows::new() }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the rows in a strong transaction, which goes on.
    fn read(&self, session: &Session) -> Result<Rows, SessionError> {
        session.begin_strong()?;
        let states = session.read(vec![self.key.clone()])?;
        let map = states.first().and_then(|state| state.as_map());
        let bytes = |value: &Value| match value {
            Value::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        };
        let entries = map.into_iter().flat_map(Map::entries);
        Ok(entries.filter_map(|(key, value)| Some((bytes(key)?, bytes(value)?))).collect())
    }

    /// Reads the rows that no transaction has changed when this one ends: what another data center has answered
    /// before is among them.
    fn read_certified(&self, session: &Session) -> Result<Rows, StorageError> {
        for _ in 0..RUNS_MAX {
            let rows = self.read(session).map_err(StorageError::new)?;
            match session.commit() {
                Ok(_) => return Ok(rows),
                Err(CommitError::Aborted(Refusal::Conflict { .. } | Refusal::Aborted)) => {}
                Err(error) => {
                    let _ = session.leave_unanswered();
                    return Err(StorageError::new(error));
                }
            }
        }
        Err(StorageError::new(format!(
            "reads of its declarations conflicted {RUNS_MAX} times: open it again"
        )))
    }

    fn write(&self, state: &mut State, changes: &Changes) -> Result<(), StorageError> {
        let update = |(key, row): (&Bytes, &Option<Bytes>)| {
            let place = Value::Bytes(key.clone());
            let op = match row {
                Some(row) => Op::Put(place, Value::Bytes(row.clone())),
                None => Op::Delete(place),
            };
            Update { key: self.key.clone(), op, id: None }
        };
        for _ in 0..RUNS_MAX {
            let session = &state.session;
            if self.read(session).map_err(StorageError::new)? != state.read {
                // It may have been given up already.
                let _ = session.rollback();
                let changed =
                    "another program declares objects of it at the same time: open it again";
                return Err(StorageError::new(changed));
            }
            match session.commit_with(changes.iter().map(update).collect()) {
                Ok(_) => {
                    for (key, row) in changes {
                        match row {
                            Some(row) => _ = state.read.insert(key.clone(), row.clone()),
                            None => _ = state.read.remove(key),
                        }
                    }
                    return Ok(());
                }
                Err(CommitError::Aborted(Refusal::Conflict { .. } | Refusal::Aborted)) => {}
                Err(error) => {
                    let _ = session.leave_unanswered();
                    return Err(StorageError::new(error));
                }
            }
        }
        Err(StorageError::new(format!(
            "its declarations conflicted {RUNS_MAX} times: open it again"
        )))
    }
}

impl Storage for ItemRows {
    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        let mut state = self.lock();
        let rows = self.read_certified(&state.session);
        // It may have ended already.
        let _ = state.session.rollback();
        let rows = rows?;
        state.read.clone_from(&rows);
        Ok(Box::new(RowsView(rows)))
    }

    fn commit(&self, changes: Changes) -> Result<(), StorageError> {
        self.write(&mut self.lock(), &changes)
    }

    fn is_durable(&self) -> bool {
        true
    }
}

/// The rows at one moment.
struct RowsView(Rows);

impl View for RowsView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        Ok(self.0.get(key).cloned())
    }

    fn range(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), StorageError> {
        let fits = |key: &[u8]| key >= lower && upper.is_none_or(|upper| key < upper);
        let mut rows: Vec<_> = self.0.iter().filter(|(key, _)| fits(key)).collect();
        if direction == Direction::Backward {
            rows.reverse();
        }
        for (key, row) in rows {
            if !visit(key, row) {
                break;
            }
        }
        Ok(())
    }
}
