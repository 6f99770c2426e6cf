//! A bounded set of connections, which transactions use one after another.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, FutureExt, select};
use mingle_store::World;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::PostgresConfig;
use crate::connect::Connector;
use crate::error::Wrong;
use crate::limits::GRACE;
use crate::session::{Connection, Step, StepResult};

/// The connections of one store.
pub struct Pool {
    connector: Connector,
    #[expect(clippy::vec_box, reason = "each is moved for every transaction, and large")]
    idle: Mutex<Vec<Box<Connection>>>,
    permits: Arc<Semaphore>,
    size: usize,
    connect_timeout: Duration,
    answer_timeout: Duration,
    world: Arc<dyn World>,
}

/// Returns the output of a future, or none if it takes longer than `limit`.
pub async fn within<T>(
    world: &dyn World,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(future), world.sleep(limit)).await {
        Either::Left((found, _)) => Some(found),
        Either::Right(_) => None,
    }
}

impl Pool {
    /// Creates a pool without connections.
    pub fn new(connector: Connector, config: &PostgresConfig, world: Arc<dyn World>) -> Arc<Self> {
        Arc::new(Self {
            connector,
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(config.pool)),
            size: config.pool,
            connect_timeout: config.connect_timeout,
            answer_timeout: config.statement_timeout + GRACE,
            world,
        })
    }

    /// Returns the world.
    pub fn world(&self) -> &Arc<dyn World> {
        &self.world
    }

    /// Returns the server's address.
    pub fn place(&self) -> String {
        self.connector.place()
    }

    /// Returns the maximum time to wait for an answer.
    pub fn answer_timeout(&self) -> Duration {
        self.answer_timeout
    }

    /// Leases a connection, which returns to the pool when the lease is dropped.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    pub async fn lease(self: &Arc<Self>) -> Result<Lease, String> {
        let permit = self.permit().await?;
        let connection = match self.take_idle() {
            Some(connection) => connection,
            // This future is large and seldom needed.
            None => Box::new(Box::pin(self.connect()).await?),
        };
        Ok(Lease {
            connection: Some(connection),
            permit: Some(permit),
            pool: Arc::clone(self),
            is_dirty: false,
        })
    }

    /// Acquires the right to a connection. It is usually free at once, so no timer is needed.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, String> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let acquiring = Arc::clone(&self.permits).acquire_owned();
        let acquired = within(&*self.world, self.connect_timeout, acquiring).await;
        let (size, waited) = (self.size, self.connect_timeout);
        acquired
            .ok_or_else(|| format!("all {size} connections were in use for {waited:?}"))?
            .map_err(|_| "the store is closed".to_owned())
    }

    fn take_idle(&self) -> Option<Box<Connection>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    /// Returns the numbers of idle connections and of connections that may still be leased.
    pub fn idle_and_free(&self) -> (usize, usize) {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).len();
        (idle, self.permits.available_permits())
    }

    async fn connect(&self) -> Result<Connection, String> {
        let connecting = self.connector.connect(&self.world);
        let connected = within(&*self.world, self.connect_timeout, connecting).await;
        connected.ok_or_else(|| format!("no connection within {:?}", self.connect_timeout))?
    }

    fn put_back(&self, connection: Box<Connection>) {
        if connection.is_known_closed() || connection.is_full() || connection.is_attended() {
            return;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

/// A connection that one transaction uses for a while.
pub struct Lease {
    /// Some until it is dropped.
    connection: Option<Box<Connection>>,
    permit: Option<OwnedSemaphorePermit>,
    pool: Arc<Pool>,
    is_dirty: bool,
}

impl Lease {
    /// Returns the connection.
    pub fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until the lease is dropped")
    }

    /// Marks the connection as possibly inside a transaction.
    pub fn soil(&mut self) {
        self.is_dirty = true;
    }

    /// Marks the connection as outside any transaction, with no answer pending.
    pub fn clean(&mut self) {
        self.is_dirty = false;
    }

    /// Ends a transaction after a failed statement; the server has skipped the statements behind
    /// it. The caller does not wait for the answer: the server answers later requests after it.
    fn roll_back(&mut self) {
        // One turn sends the request; otherwise it is sent before the next request.
        let _ = self.connection().say("ROLLBACK").now_or_never();
        self.clean();
    }

    /// Records the answers to all steps of a transaction, or to all its remaining steps. If a step
    /// before the last has failed, the server has skipped the end of the transaction.
    pub fn settle(&mut self, results: &[StepResult]) {
        let Some((_, before)) = results.split_last() else { return };
        if results.iter().any(|result| matches!(result, Err(Wrong::Lost(_)))) {
            return;
        }
        if before.iter().any(Result::is_err) {
            self.roll_back();
        } else {
            self.clean();
        }
    }

    /// Ends a transaction that has written nothing and whose answers have all arrived. The caller
    /// does not wait: the next user of the connection is answered afterwards.
    pub fn abandon(mut self) {
        let Some(connection) = self.connection.take() else { return };
        // One turn sends the request.
        let said = connection.say("ROLLBACK").now_or_never();
        if said.is_none() {
            self.pool.put_back(connection);
        }
    }

    /// Runs prepared steps in one round trip; none if no answer comes in time.
    pub async fn run(&self, steps: &[Step]) -> Option<Vec<StepResult>> {
        let limit = self.pool.answer_timeout;
        within(&*self.pool.world, limit, self.connection().run(steps)).await
    }

    /// Like [`Lease::run`], with independent steps.
    pub async fn run_each(&self, steps: &[Step]) -> Option<Vec<StepResult>> {
        let limit = self.pool.answer_timeout;
        within(&*self.pool.world, limit, self.connection().run_each(steps)).await
    }

    /// Prepares steps; none if no answer comes in time.
    pub async fn prepare(&self, steps: &[Step]) -> Option<Result<(), Wrong>> {
        if self.connection().is_prepared(steps) {
            return Some(Ok(()));
        }
        let limit = self.pool.answer_timeout;
        within(&*self.pool.world, limit, self.connection().prepare(steps)).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (Some(connection), permit) = (self.connection.take(), self.permit.take()) else {
            return;
        };
        let pool = Arc::clone(&self.pool);
        if !self.is_dirty {
            pool.put_back(connection);
            return;
        }
        if connection.is_closed() {
            return;
        }
        // The caller does not wait for this. The server answers earlier requests first; after a
        // commit there is nothing to roll back, and the `ROLLBACK` does no harm.
        let world = Arc::clone(&pool.world);
        world.spawn(Box::pin(async move {
            let rollback = connection.say("ROLLBACK");
            let limit = pool.answer_timeout;
            let ended = within(&*pool.world, limit, rollback).await;
            if let Some(Ok(())) = ended {
                pool.put_back(connection);
            }
            drop(permit);
        }));
    }
}
