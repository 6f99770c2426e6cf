//! Layers between a store and its callers.
//!
//! A [`Layer`] defines in one place its actions around any call. [`Layered`] is a store within a layer,
//! and [`within`] puts a transaction within one. [`history`](super::history) is not a layer: it keeps
//! the answers, each of its own type.

use std::future::Future;
use std::sync::Arc;

use mingle_model::{Name, Stamp, TransactionId};

use super::fault::Call;
use crate::listing::{Listed, Listing};
use crate::operation::{Answer, Read, Write};
use crate::store::{
    Capabilities, Commit, Committed, DataStore, Outcome, Session, StoreError, Transaction,
};
use crate::world::BoxFuture;

/// A call to a store, as a layer meets it.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// [`DataStore::begin`].
    Begin,
    /// [`Transaction::read`], and [`Transaction::read_last`].
    Read(&'a [Read]),
    /// [`Transaction::flush`].
    Flush {
        /// The number of writes.
        writes: usize,
    },
    /// [`Transaction::commit`].
    Commit {
        /// The id of the commit.
        id: Option<TransactionId>,
        /// True if the transaction wrote nothing, flushed or not, and has no guards.
        is_empty: bool,
    },
    /// [`DataStore::outcome`].
    Outcome,
    /// [`DataStore::everywhere`].
    Everywhere,
}

impl Request<'_> {
    /// The kind of the call.
    pub fn call(&self) -> Call {
        match self {
            Self::Begin => Call::Begin,
            Self::Read(_) => Call::Read,
            Self::Flush { .. } => Call::Flush,
            Self::Commit { .. } => Call::Commit,
            Self::Outcome => Call::Outcome,
            Self::Everywhere => Call::Everywhere,
        }
    }

    /// True if it costs no round trip: `begin`, and a commit that is empty.
    pub fn is_free(&self) -> bool {
        matches!(self, Self::Begin | Self::Commit { is_empty: true, .. })
    }
}

/// A call that a layer may make: the store receives it when this function is called, which may be
/// before the future is polled. If it is dropped, the call is not made.
pub type Work<'a, T> = Box<dyn FnOnce() -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a>;

/// A layer between a store and its callers.
///
/// # Examples
///
/// A layer that refuses all writes:
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
///
/// use mingle_store::StoreError;
/// use mingle_store::wrap::layer::{Layer, Request, Work};
///
/// #[derive(Clone)]
/// struct ReadOnly;
///
/// impl Layer for ReadOnly {
///     async fn call<T: Send>(
///         &self,
///         request: Request<'_>,
///         work: Work<'_, T>,
///     ) -> Result<T, StoreError> {
///         match request {
///             Request::Flush { .. } | Request::Commit { is_empty: false, .. } => {
///                 Err(StoreError::Refused { store: "s".into(), reason: "read only".into() })
///             }
///             _ => work().await,
///         }
///     }
/// }
///
/// let call = |request| {
///     let work: Work<'_, ()> = Box::new(|| Box::pin(async { Ok(()) }));
///     pin!(ReadOnly.call(request, work)).poll(&mut Context::from_waker(Waker::noop()))
/// };
/// assert!(matches!(call(Request::Read(&[])), Poll::Ready(Ok(()))));
/// assert!(matches!(call(Request::Flush { writes: 1 }), Poll::Ready(Err(_))));
/// ```
///
/// [`Layered::around`] puts a layer around a store.
pub trait Layer: Clone + Send + Sync + 'static {
    /// Changes the store's capabilities, as callers through the layer see them.
    fn change(&self, _capabilities: &mut Capabilities) {}

    /// Returns the layer for one transaction of this session, including its `begin`.
    fn for_session(&self, _capabilities: &Capabilities, _session: &Session) -> Self {
        self.clone()
    }

    /// Makes a call, or refuses it, or acts before or after it. By default it just makes the call.
    /// For reads and flushes, code before the returned future runs as soon as the transaction makes the
    /// call; for all other calls, when the caller polls its future.
    fn call<T: Send>(
        &self,
        _request: Request<'_>,
        work: Work<'_, T>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        work()
    }

    /// Commits, for layers that do more than [`Layer::call`], for example change the committed
    /// writes. `request` is the [`Request::Commit`].
    fn commit(
        self,
        request: Request<'static>,
        inner: Box<dyn Transaction>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move { self.call(request, Box::new(|| inner.commit(commit))).await })
    }
}

/// A store within a layer.
pub struct Layered<L> {
    inner: Arc<dyn DataStore>,
    capabilities: Capabilities,
    layer: L,
}

impl<L: Layer> Layered<L> {
    /// Puts a layer around a store.
    pub fn around(inner: Arc<dyn DataStore>, layer: L) -> Arc<Self> {
        let mut capabilities = inner.capabilities().clone();
        layer.change(&mut capabilities);
        Arc::new(Self { inner, capabilities, layer })
    }
}

impl<L: Layer> DataStore for Layered<L> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.health()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let layer = self.layer.for_session(&self.capabilities, session);
            let inner = layer.call(Request::Begin, Box::new(|| self.inner.begin(session))).await?;
            Ok(within(inner, layer))
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
        let work = Box::new(move || self.inner.outcome(id));
        Box::pin(async move { self.layer.call(Request::Outcome, work).await })
    }

    fn time(&self) -> u64 {
        self.inner.time()
    }

    fn place(&self, replica: Option<&Name>) -> Option<String> {
        self.inner.place(replica)
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        let work = Box::new(|| self.inner.everywhere());
        Box::pin(async move { self.layer.call(Request::Everywhere, work).await })
    }

    fn departed(&self) -> Vec<Name> {
        self.inner.departed()
    }

    fn kept(&self, seen: &Stamp) -> Stamp {
        self.inner.kept(seen)
    }
}

/// Puts a layer around a transaction that has just begun, for wrappers that are more than a
/// [`Layered`] store.
pub fn within(inner: Box<dyn Transaction>, layer: impl Layer) -> Box<dyn Transaction> {
    Box::new(LayeredTransaction { inner, layer, has_flushed: false })
}

struct LayeredTransaction<L> {
    inner: Box<dyn Transaction>,
    layer: L,
    has_flushed: bool,
}

impl<L: Layer> Transaction for LayeredTransaction<L> {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        let Self { inner, layer, .. } = self;
        Box::pin(layer.call(Request::Read(reads), Box::new(|| inner.read(reads))))
    }

    fn read_last<'a>(
        &'a mut self,
        reads: &'a [Read],
    ) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        let Self { inner, layer, .. } = self;
        Box::pin(layer.call(Request::Read(reads), Box::new(|| inner.read_last(reads))))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        let Self { inner, layer, has_flushed } = self;
        *has_flushed |= !writes.is_empty();
        let request = Request::Flush { writes: writes.len() };
        Box::pin(layer.call(request, Box::new(|| inner.flush(writes))))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let is_empty = commit.is_empty() && !self.has_flushed;
        let request = Request::Commit { id: commit.id, is_empty };
        self.layer.commit(request, self.inner, commit)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll, Waker};

    use mingle_model::{Ref, Value};

    use super::*;
    use crate::operation::Address;

    /// A transaction that accepts all calls.
    struct Nothing;

    impl Transaction for Nothing {
        fn read<'a>(&'a mut self, _: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }

        fn flush(&mut self, _: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
            Box::pin(std::future::ready(Ok(())))
        }

        fn commit(self: Box<Self>, _: Commit) -> BoxFuture<'static, Result<Committed, StoreError>> {
            Box::pin(std::future::ready(Ok(Committed::default())))
        }
    }

    #[derive(Clone, Default)]
    struct Log {
        requests: Arc<Mutex<Vec<String>>>,
    }

    impl Layer for Log {
        async fn call<T: Send>(
            &self,
            request: Request<'_>,
            work: Work<'_, T>,
        ) -> Result<T, StoreError> {
            let free = if request.is_free() { "free " } else { "" };
            let line = format!("{free}{:?}", request.call());
            self.requests.lock().expect("nobody panics with it").push(line);
            work().await
        }
    }

    fn now<T>(call: impl Future<Output = Result<T, StoreError>>) {
        let polled = pin!(call).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Ok(_))), "nothing waits here");
    }

    /// Checks the last request of a layer in a transaction with these numbers of flushed and committed writes.
    #[track_caller]
    fn check(flushed: usize, committed: usize, expected: &str) {
        let object = Ref::new("A", Value::from("x"));
        let write = Write::Add(Address { object, field: 0 }, 1);
        let log = Log::default();
        let mut transaction = within(Box::new(Nothing), log.clone());
        now(transaction.read(&[]));
        now(transaction.flush(vec![write.clone(); flushed]));
        now(transaction.commit(Commit { writes: vec![write; committed], ..Commit::default() }));
        let requests = log.requests.lock().expect("nobody panics with it");
        assert_eq!(*requests, ["Read", "Flush", expected]);
    }

    #[test]
    fn a_commit_is_free_if_nothing_was_written_before_it_either() {
        check(0, 0, "free Commit");
        check(1, 0, "Commit");
        check(0, 1, "Commit");
        check(1, 1, "Commit");
    }
}
