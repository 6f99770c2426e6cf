//! Single requests to a store, in transactions of clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mingle_runtime::Beside;
use mingle_store::{Commit, StoreError, Transaction};
use mingle_store_worker::wire::{Given, Opening, Operation};

use crate::limits::{WORKER_OPEN_FOR, WORKER_OPEN_MAX};
use crate::problem::Problem;

/// The client, the store, and the transaction's number.
type Key = (String, String, u128);

/// The time of the transaction's last request, and the transaction.
type Held = (Instant, Box<dyn Transaction>);

/// Transactions that clients have begun.
#[derive(Default)]
pub(super) struct Open {
    held: Mutex<HashMap<Key, Held>>,
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends transactions that have been idle for too long.
    pub(super) fn sweep(&self) {
        self.lock().retain(|_, (used, _)| used.elapsed() < WORKER_OPEN_FOR);
    }

    /// Runs a request.
    pub(super) async fn run(
        &self,
        (who, store): (&str, &str),
        site: &Arc<Beside>,
        operation: Operation,
    ) -> Result<Result<Given, StoreError>, Problem> {
        let key = |number| (who.to_owned(), store.to_owned(), number);
        Ok(match operation {
            Operation::Read { transaction, reads, is_last } => {
                let key = key(transaction.number);
                let mut held = match self.take(&key, site, &transaction).await? {
                    Ok(held) => held,
                    Err(error) => return Ok(Err(error)),
                };
                if is_last {
                    let answers = held.read_last(&reads).await;
                    match answers {
                        Ok(answers) => held
                            .commit(Commit::default())
                            .await
                            .map(|committed| Given::Ended(answers, committed)),
                        Err(error) => Err(error),
                    }
                } else {
                    let answers = held.read(&reads).await.map(Given::Answers);
                    self.put(key, held);
                    answers
                }
            }
            Operation::Flush { transaction, writes } => {
                let key = key(transaction.number);
                let mut held = match self.take(&key, site, &transaction).await? {
                    Ok(held) => held,
                    Err(error) => return Ok(Err(error)),
                };
                let flushed = held.flush(writes).await.map(|()| Given::Nothing);
                self.put(key, held);
                flushed
            }
            Operation::Commit { transaction, commit } => {
                match self.take(&key(transaction.number), site, &transaction).await? {
                    Ok(held) => held.commit(commit).await.map(Given::Committed),
                    Err(error) => Err(error),
                }
            }
            Operation::Drop { number } => {
                let dropped = self.lock().remove(&key(number));
                drop(dropped);
                Ok(Given::Nothing)
            }
            Operation::Outcome(id) => site.store().outcome(id).await.map(Given::Outcome),
            Operation::Everywhere => site.store().everywhere().await.map(Given::Everywhere),
        })
    }

    /// Takes the transaction out of the map, so that no other request reaches it meanwhile.
    async fn take(
        &self,
        key: &Key,
        site: &Arc<Beside>,
        opening: &Opening,
    ) -> Result<Result<Box<dyn Transaction>, StoreError>, Problem> {
        if opening.is_open {
            let held = self.lock().remove(key).map(|(_, held)| held);
            // It was idle for too long, or the worker has restarted: its snapshot is gone.
            return Ok(held.ok_or(StoreError::Conflict));
        }
        if self.lock().len() >= WORKER_OPEN_MAX {
            return Err(Problem::overloaded());
        }
        Ok(site.store().begin(&opening.session).await)
    }

    fn put(&self, key: Key, held: Box<dyn Transaction>) {
        self.lock().insert(key, (Instant::now(), held));
    }
}
