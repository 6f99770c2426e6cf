//! A store transaction that a request may hold longer than the phase waits for its answer.
//!
//! A read `by` a bound goes on without the answer of the store's own level once the bound is over. The
//! request still holds the phase's transaction then. If the transaction was used before, the next use
//! waits for the request; if not, the next use begins another transaction.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::{Stamp, Version};
use mingle_store::{
    Answer, BoxFuture, Commit, Committed, DataStore, Read, Session as StoreSession, StoreError,
    Transaction, World, Write,
};

use crate::execute::preflight::{Question, invisible};

/// The pauses between two requests to a replica that lags: each is twice as long as the one before.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// The answers of a store.
pub(crate) type Answers = Result<Vec<Answer>, StoreError>;

/// A request at the store's own level, with its transaction.
pub(crate) type Reading = BoxFuture<'static, (Option<Box<dyn Transaction>>, Answers)>;

/// A store transaction that a request which came too late may still hold.
#[derive(Clone)]
pub(crate) struct Lent(Arc<Mutex<Held>>);

struct Held {
    open: Option<Box<dyn Transaction>>,
    /// The request that holds the transaction.
    reading: Option<Reading>,
    /// True if the transaction must go on: it has read or written, or is the host's.
    is_used: bool,
    site: Arc<dyn DataStore>,
    session: StoreSession,
}

impl Lent {
    pub(crate) fn of(
        open: Box<dyn Transaction>,
        site: Arc<dyn DataStore>,
        session: StoreSession,
        is_used: bool,
    ) -> Self {
        let held = Held { open: Some(open), reading: None, is_used, site, session };
        Self(Arc::new(Mutex::new(held)))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the transaction, once no request holds it. One that was not used is begun anew.
    async fn take(&self) -> Result<Box<dyn Transaction>, StoreError> {
        let (open, reading) = {
            let mut held = self.held();
            (held.open.take(), held.reading.take())
        };
        if let Some(open) = open {
            return Ok(open);
        }
        if let Some(reading) = reading {
            let (open, answers) = reading.await;
            answers?;
            if let Some(open) = open {
                return Ok(open);
            }
        }
        let (site, session) = {
            let held = self.held();
            (held.site.clone(), held.session.clone())
        };
        site.begin(&session).await
    }

    pub(crate) fn give_back(&self, open: Box<dyn Transaction>) {
        let mut held = self.held();
        (held.open, held.is_used) = (Some(open), true);
    }

    /// Leaves a request that still holds the transaction. It is given back if nothing needs that transaction
    /// again: the next use begins another.
    pub(crate) fn leave(&self, reading: Reading) -> Option<Reading> {
        let mut held = self.held();
        if !held.is_used {
            return Some(reading);
        }
        held.reading = Some(reading);
        None
    }

    /// True if the phase rests on the transaction.
    pub(crate) fn is_used(&self) -> bool {
        self.held().is_used
    }

    /// Asks the questions of an attempt and these reads at the store's own level. If the replica lacks data
    /// that the session has seen, both are asked again in another transaction, up to a time by the clock
    /// of `again`.
    pub(crate) fn ask(
        &self,
        questions: Vec<(Read, Question)>,
        reads: Vec<Read>,
        at_once: usize,
        again: Option<(Arc<dyn World>, Duration)>,
    ) -> Reading {
        let lent = self.clone();
        Box::pin(async move {
            let all: Vec<Read> =
                questions.iter().map(|(read, _)| read).chain(&reads).cloned().collect();
            let mut pause = PAUSE_MIN;
            loop {
                let mut open = match lent.take().await {
                    Ok(open) => open,
                    Err(error) => return (None, Err(error)),
                };
                let answers = read_all(&mut *open, &all, at_once).await;
                let lags = match &answers {
                    Ok(found) => !invisible(&questions, found).is_empty(),
                    Err(error) => matches!(error, StoreError::Behind { .. }),
                };
                match &again {
                    Some((world, until)) if lags && world.elapsed() < *until => {
                        drop(open);
                        world.sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                    }
                    _ => return (Some(open), answers),
                }
            }
        })
    }
}

/// Answers reads in as many round trips as the store needs.
pub(crate) async fn read_all(
    transaction: &mut dyn Transaction,
    reads: &[Read],
    at_once: usize,
) -> Answers {
    let mut answers = Vec::with_capacity(reads.len());
    for part in reads.chunks(at_once.max(1)) {
        answers.extend(transaction.read(part).await?);
    }
    Ok(answers)
}

impl Transaction for Lent {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Answers> {
        Box::pin(async move {
            let mut open = self.take().await?;
            let answers = open.read(reads).await;
            self.give_back(open);
            answers
        })
    }

    fn read_last<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Answers> {
        Box::pin(async move {
            let mut open = self.take().await?;
            let answers = open.read_last(reads).await;
            self.give_back(open);
            answers
        })
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let mut open = self.take().await?;
            let flushed = open.flush(writes).await;
            self.give_back(open);
            flushed
        })
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            if commit.is_empty() && !self.is_used() {
                // All answers were weaker ones: nothing rests on the store's own level, which may have to be
                // waited for.
                return Ok(Committed { version: Version(0), stamp: Stamp::default() });
            }
            self.take().await?.commit(commit).await
        })
    }
}
