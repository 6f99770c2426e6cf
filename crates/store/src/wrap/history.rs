//! Records the reads and writes of every transaction, as plain data.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mingle_model::{Name, Stamp, TransactionId};

use crate::listing::{Listed, Listing};
use crate::operation::{Answer, Read, Write};
use crate::store::{
    Capabilities, Commit, Committed, DataStore, Outcome, Session, StoreError, Transaction,
};
use crate::world::{BoxFuture, World};

/// One call, recorded when it has ended.
#[derive(Clone, Debug)]
pub struct Event {
    /// The store.
    pub store: Name,
    /// The transaction's number at this recorder, from 1; 0 for calls
    /// outside of any transaction.
    pub transaction: u64,
    /// The session of the transaction.
    pub session: Session,
    /// When it was called, by [`World::elapsed`].
    pub start: Duration,
    /// When it was answered.
    pub end: Duration,
    /// The call.
    pub call: EventCall,
}

/// A call and its answer.
#[derive(Clone, Debug)]
pub enum EventCall {
    /// The transaction began.
    Begin(Result<(), StoreError>),
    /// It read: each answer has the version that was read.
    Read(Vec<Read>, Result<Vec<Answer>, StoreError>),
    /// It wrote ahead of its commit.
    Flush(Vec<Write>, Result<(), StoreError>),
    /// It committed, or tried to.
    Commit {
        /// The id of the commit.
        id: Option<TransactionId>,
        /// The writes that were not flushed.
        writes: Vec<Write>,
        /// The result; a commit with [`StoreError::Unknown`] may have taken effect.
        result: Result<Committed, StoreError>,
    },
    /// It was dropped without a commit, or its caller went away during it.
    Dropped,
    /// A query for an outcome.
    Outcome(TransactionId, Result<Outcome, StoreError>),
    /// A query for the stamp that every replica has seen.
    Everywhere(Result<Stamp, StoreError>),
}

/// A receiver of events, in the order in which they end.
pub trait Sink: Send + Sync {
    /// Records one more event.
    fn record(&self, event: Event);
}

/// A sink that keeps all events in memory.
#[derive(Debug, Default)]
pub struct Recording {
    events: Mutex<Vec<Event>>,
}

impl Recording {
    /// The events so far, in order.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for Recording {
    fn record(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

/// A store whose calls are recorded.
pub struct RecordedStore {
    inner: Arc<dyn DataStore>,
    recorder: Recorder,
    transactions: AtomicU64,
}

#[derive(Clone)]
struct Recorder {
    store: Name,
    sink: Arc<dyn Sink>,
    world: Arc<dyn World>,
}

impl Recorder {
    fn record(&self, transaction: u64, session: &Session, start: Duration, call: EventCall) {
        self.sink.record(Event {
            store: self.store.clone(),
            transaction,
            session: session.clone(),
            start,
            end: self.world.elapsed(),
            call,
        });
    }
}

impl RecordedStore {
    /// Records calls of `inner` to `sink`.
    pub fn new(inner: Arc<dyn DataStore>, sink: Arc<dyn Sink>, world: Arc<dyn World>) -> Arc<Self> {
        let store = inner.capabilities().store.clone();
        Arc::new(Self {
            inner,
            recorder: Recorder { store, sink, world },
            transactions: AtomicU64::new(0),
        })
    }
}

impl DataStore for RecordedStore {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.health()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let number = self.transactions.fetch_add(1, Ordering::Relaxed) + 1;
            let start = self.recorder.world.elapsed();
            let begun = self.inner.begin(session).await;
            let call = EventCall::Begin(begun.as_ref().map(|_| ()).map_err(Clone::clone));
            self.recorder.record(number, session, start, call);
            let transaction: Box<dyn Transaction> = Box::new(Recorded {
                inner: Some(begun?),
                open: Open {
                    recorder: self.recorder.clone(),
                    number,
                    session: session.clone(),
                    is_over: false,
                },
            });
            Ok(transaction)
        })
    }

    fn list<'a>(
        &'a self,
        session: &'a Session,
        listing: &'a Listing,
    ) -> BoxFuture<'a, Result<Listed, StoreError>> {
        self.inner.list(session, listing)
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move {
            let start = self.recorder.world.elapsed();
            let outcome = self.inner.outcome(id).await;
            let call = EventCall::Outcome(id, outcome.clone());
            self.recorder.record(0, &Session::default(), start, call);
            outcome
        })
    }

    fn time(&self) -> u64 {
        self.inner.time()
    }

    fn place(&self, replica: Option<&Name>) -> Option<String> {
        self.inner.place(replica)
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(async move {
            let start = self.recorder.world.elapsed();
            let everywhere = self.inner.everywhere().await;
            let call = EventCall::Everywhere(everywhere.clone());
            self.recorder.record(0, &Session::default(), start, call);
            everywhere
        })
    }

    fn departed(&self) -> Vec<Name> {
        self.inner.departed()
    }

    fn kept(&self, seen: &Stamp) -> Stamp {
        self.inner.kept(seen)
    }
}

struct Recorded {
    /// `None` once it commits.
    inner: Option<Box<dyn Transaction>>,
    open: Open,
}

/// A guard that records that a transaction was dropped, unless it has ended.
struct Open {
    recorder: Recorder,
    number: u64,
    session: Session,
    is_over: bool,
}

impl Open {
    fn now(&self) -> Duration {
        self.recorder.world.elapsed()
    }

    fn record(&self, start: Duration, call: EventCall) {
        self.recorder.record(self.number, &self.session, start, call);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_over {
            self.record(self.now(), EventCall::Dropped);
        }
    }
}

const OPEN: &str = "a transaction is there until it commits, which takes it away";

impl Recorded {
    async fn recorded_read(
        &mut self,
        reads: &[Read],
        is_last: bool,
    ) -> Result<Vec<Answer>, StoreError> {
        let start = self.open.now();
        let inner = self.inner.as_mut().expect(OPEN);
        let answers = if is_last { inner.read_last(reads) } else { inner.read(reads) }.await;
        let call = EventCall::Read(reads.to_vec(), answers.clone());
        self.open.record(start, call);
        answers
    }
}

impl Transaction for Recorded {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.recorded_read(reads, false))
    }

    fn read_last<'a>(
        &'a mut self,
        reads: &'a [Read],
    ) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.recorded_read(reads, true))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let start = self.open.now();
            let flushed = self.inner.as_mut().expect(OPEN).flush(writes.clone()).await;
            self.open.record(start, EventCall::Flush(writes, flushed.clone()));
            flushed
        })
    }

    fn commit(
        mut self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            let start = self.open.now();
            let (id, writes) = (commit.id, commit.writes.clone());
            let result = self.inner.take().expect(OPEN).commit(commit).await;
            let call = EventCall::Commit { id, writes, result: result.clone() };
            self.open.is_over = true;
            self.open.record(start, call);
            result
        })
    }
}
