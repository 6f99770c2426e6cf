//! A store behind a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::Method;
use mingle_model::{Name, Stamp, TransactionId};
use mingle_store::{
    BoxFuture, Capabilities, DataStore, Outcome, Session, StoreError, Transaction, Worker, World,
};

use crate::config::{OpenError, WorkerConfig};
use crate::link::{Failed, Link};
use crate::principals::Principals;
use crate::transaction::WorkerTransaction;
use crate::wire::{Answered, Description, Given, Operation, PROTOCOL, code, decode, encode, hex};

/// A store behind a worker: whole phases run there, all other operations go one by one.
pub struct WorkerStore {
    shared: Arc<Shared>,
}

/// The state that transactions share.
pub(crate) struct Shared {
    link: Link,
    capabilities: Capabilities,
    principals: Option<Principals>,
    answer_within: Duration,
    path: String,
    /// Its address.
    place: String,
    world: Arc<dyn World>,
    /// The latest time of the store's clock that an answer contained.
    time: AtomicU64,
}

impl WorkerStore {
    /// Requests the description of a store from the worker, and checks that a program fits it.
    ///
    /// # Errors
    ///
    /// When the worker cannot be reached, has no such store, or the program does not fit it.
    pub async fn connect(
        config: WorkerConfig,
        store: Name,
        (program, text): ([u8; 32], &str),
        world: Arc<dyn World>,
    ) -> Result<Arc<Self>, OpenError> {
        let link = Link::new(&config);
        let link = link.map_err(|reason| OpenError::Config { store: store.clone(), reason })?;
        let path = format!("/v1/worker/stores/{store}");
        let described = format!("{path}?program={}", hex(&program));
        let mut was_sent = false;
        let answer = loop {
            let asked = link.ask(Method::GET, &described, Vec::new(), config.answer_timeout).await;
            let answer = asked.map_err(|failed| unavailable(&store, failed))?;
            let Some(problem) = answer.problem() else { break answer };
            if problem.code != code::UNKNOWN_PROGRAM || was_sent {
                let reason = problem.detail;
                return Err(OpenError::Refused { store, reason });
            }
            was_sent = true;
            let path = format!("/v1/worker/programs/{}", hex(&program));
            let asked = link.ask(Method::PUT, &path, text.into(), config.answer_timeout).await;
            let answer = asked.map_err(|failed| unavailable(&store, failed))?;
            if let Some(problem) = answer.problem() {
                return Err(OpenError::Refused { store, reason: problem.detail });
            }
        };
        let description: Option<Description> = decode(&answer.body);
        let Some(description) = description.filter(|found| found.protocol == PROTOCOL) else {
            let reason = format!("it does not speak version {PROTOCOL} of the protocol");
            return Err(OpenError::Refused { store, reason });
        };
        let mut capabilities = description.capabilities;
        capabilities.store = store;
        capabilities.may_lose_answers = true;
        capabilities.round_trip = config.round_trip;
        let shared = Shared {
            link,
            capabilities,
            principals: description.principals,
            answer_within: config.answer_timeout,
            path,
            place: config.url.clone(),
            world,
            time: AtomicU64::new(0),
        };
        Ok(Arc::new(Self { shared: Arc::new(shared) }))
    }

    /// Checks that a store can be opened, as far as possible without its worker.
    ///
    /// # Errors
    ///
    /// As [`WorkerStore::connect`].
    pub fn check(config: &WorkerConfig, store: &Name) -> Result<(), OpenError> {
        let link = Link::new(config).map(|_| ());
        link.map_err(|reason| OpenError::Config { store: store.clone(), reason })
    }

    pub(crate) fn link(&self) -> &Link {
        &self.shared.link
    }

    pub(crate) fn path(&self) -> &str {
        &self.shared.path
    }

    pub(crate) fn patience(&self) -> Duration {
        self.shared.answer_within
    }

    pub(crate) fn name(&self) -> &Name {
        &self.shared.capabilities.store
    }

    pub(crate) fn principals(&self) -> Option<&Principals> {
        self.shared.principals.as_ref()
    }

    pub(crate) fn world(&self) -> &Arc<dyn World> {
        &self.shared.world
    }
}

fn unavailable(store: &Name, failed: Failed) -> OpenError {
    OpenError::Unavailable { store: store.clone(), reason: failed.reason() }
}

/// The failure of an operation.
pub(crate) enum Trouble {
    /// The store, or its worker, reports the error.
    Said(StoreError),
    /// No answer came.
    Lost(StoreError),
}

impl Shared {
    /// Sends an operation, and waits for the answer.
    pub(crate) async fn operate(&self, operation: &Operation) -> Result<Given, Trouble> {
        let path = format!("{}/operations", self.path);
        let body = encode(operation);
        let store = || self.capabilities.store.clone();
        let unavailable = |reason: String| StoreError::Unavailable {
            store: store(),
            reason: format!("its worker cannot be reached: {reason}"),
        };
        let answer = match self.link.ask(Method::POST, &path, body, self.answer_within).await {
            Ok(answer) => answer,
            Err(Failed::NotSent(reason)) => return Err(Trouble::Said(unavailable(reason))),
            Err(Failed::Lost(reason)) => return Err(Trouble::Lost(unavailable(reason))),
        };
        if let Some(problem) = answer.problem() {
            return Err(Trouble::Said(match problem.code.as_str() {
                code::OVERLOADED => StoreError::Conflict,
                code::SHUTTING_DOWN => unavailable(problem.detail),
                _ => {
                    let reason = format!("its worker says {}: {}", problem.code, problem.detail);
                    StoreError::Refused { store: store(), reason }
                }
            }));
        }
        let Some(answered) = decode::<Answered>(&answer.body) else {
            return Err(Trouble::Lost(unavailable("its answer makes no sense".into())));
        };
        self.time.fetch_max(answered.time, Ordering::Relaxed);
        answered.result.map_err(Trouble::Said)
    }

    /// Returns the error for an answer that does not fit its request.
    pub(crate) fn mixed_up(&self) -> StoreError {
        let reason = "its worker answers something else than it was asked".to_owned();
        StoreError::Unavailable { store: self.capabilities.store.clone(), reason }
    }

    pub(crate) fn store(&self) -> &Name {
        &self.capabilities.store
    }

    pub(crate) fn number(&self) -> u128 {
        u128::from(self.world.random()) << 64 | u128::from(self.world.random())
    }

    pub(crate) fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.world.spawn(task);
    }
}

impl Trouble {
    /// Returns the error for a request that can be repeated.
    pub(crate) fn error(self) -> StoreError {
        match self {
            Self::Said(error) | Self::Lost(error) => error,
        }
    }
}

impl DataStore for WorkerStore {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    fn place(&self, _replica: Option<&Name>) -> Option<String> {
        Some(self.shared.place.clone())
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        let known = &self.shared.capabilities.replicas;
        let begun = match &session.replica {
            Some(replica) if !known.is_empty() && !known.contains(replica) => {
                let reason = format!("there is no replica {replica}");
                Err(StoreError::Refused { store: self.name().clone(), reason })
            }
            _ => {
                let transaction: Box<dyn Transaction> =
                    Box::new(WorkerTransaction::new(self.shared.clone(), session.clone()));
                Ok(transaction)
            }
        };
        Box::pin(std::future::ready(begun))
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move {
            match self.shared.operate(&Operation::Outcome(id)).await {
                Ok(Given::Outcome(outcome)) => Ok(outcome),
                Ok(_) => Err(self.shared.mixed_up()),
                Err(trouble) => Err(trouble.error()),
            }
        })
    }

    fn time(&self) -> u64 {
        self.shared.time.load(Ordering::Relaxed)
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(async move {
            match self.shared.operate(&Operation::Everywhere).await {
                Ok(Given::Everywhere(stamp)) => Ok(stamp),
                Ok(_) => Err(self.shared.mixed_up()),
                Err(trouble) => Err(trouble.error()),
            }
        })
    }

    fn worker(&self) -> Option<&dyn Worker> {
        Some(self)
    }
}
