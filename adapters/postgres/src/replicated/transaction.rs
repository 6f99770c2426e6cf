//! Transactions at one server. Reads come from one snapshot of the server. Flushed writes are kept
//! in this process: their rows would block updates that arrive from other servers.

use std::sync::Arc;

use mingle_model::{Stamp, Version};
use mingle_store::overlay::Overlay;
use mingle_store::{
    Answer, BoxFuture, Commit, Committed, Data, Read, StoreError, Transaction, Write,
};

use super::answer::Rows;
use super::commit;
use super::reading::Plan;
use super::store::Core;
use super::vector::Vector;
use super::writes::Writes;
use crate::error::Failure;
use crate::pool::Lease;
use crate::session::Step;
use crate::wire::{Row, ints};

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A transaction.
pub struct ReplicatedTransaction {
    pub(super) core: Arc<Core>,
    /// The index of its server.
    pub(super) server: usize,
    /// The updates that the server must have seen first.
    pub(super) after: Vector,
    /// Its connection, and the vector of its snapshot, once it has them.
    pub(super) open: Option<(Lease, Vector)>,
    /// The reason why it can do nothing more; set while a call waits, in case the call is dropped.
    pub(super) broken: Option<StoreError>,
    overlay: Overlay,
    pub(super) flushed: Vec<Write>,
    /// The newest version that was read.
    pub(super) seen: u64,
}

impl ReplicatedTransaction {
    /// Creates a transaction that has not done anything yet.
    pub fn new(core: &Arc<Core>, server: usize, after: Vector) -> Self {
        Self {
            core: Arc::clone(core),
            server,
            after,
            open: None,
            broken: None,
            overlay: Overlay::default(),
            flushed: Vec::new(),
            seen: 0,
        }
    }

    /// Leases a connection on which these steps are prepared.
    pub(super) async fn lease(&self, steps: &[Step]) -> Result<Lease, StoreError> {
        let leased = self.core.servers[self.server].pool.lease().await;
        let lease = leased.map_err(|why| self.core.unavailable(self.server, &why))?;
        self.prepare(&lease, steps).await?;
        Ok(lease)
    }

    /// Prepares steps on a connection.
    pub(super) async fn prepare(&self, lease: &Lease, steps: &[Step]) -> Result<(), StoreError> {
        match lease.prepare(steps).await {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                Err(Failure::of(&error, &self.core.layout).before_commit(&self.core.store))
            }
            None => Err(self.core.unavailable(self.server, "no answer in time")),
        }
    }

    /// Sends steps in the snapshot that it has or that they begin, and returns the rows of each.
    async fn send(&mut self, steps: Vec<Step>) -> Result<Vec<Vec<Row>>, StoreError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        self.broken = Some(self.core.unavailable(self.server, "a call was given up"));
        let sent = self.try_send(steps).await;
        self.broken = match &sent {
            // No transaction was begun.
            Ok(_) | Err(StoreError::Behind { .. }) => None,
            Err(error) => Some(error.clone()),
        };
        if sent.is_err() {
            self.open = None;
        }
        sent
    }

    async fn try_send(&mut self, mut steps: Vec<Step>) -> Result<Vec<Vec<Row>>, StoreError> {
        if let Some((lease, _)) = &self.open {
            self.prepare(lease, &steps).await?;
            return self.run(lease, &steps).await;
        }
        let sql = format!("SELECT vector FROM {}", self.core.layout.system("state"));
        steps.splice(0..0, [Step::control(BEGIN), Step::new(sql, Vec::new())]);
        let mut lease = self.lease(&steps).await?;
        lease.soil();
        let mut rows = self.run(&lease, &steps).await?;
        let vector = Vector(rows[1].first().map(|row| ints(row, 0)).unwrap_or_default());
        if !vector.covers(&self.after) {
            return Err(self.core.behind(self.server));
        }
        self.open = Some((lease, vector));
        Ok(rows.split_off(2))
    }

    async fn run(&self, lease: &Lease, steps: &[Step]) -> Result<Vec<Vec<Row>>, StoreError> {
        let Some(results) = lease.run(steps).await else {
            return Err(self.core.unavailable(self.server, "no answer in time"));
        };
        let rows = results.into_iter().map(|result| {
            result.map_err(|error| {
                let failure = Failure::of(&error, &self.core.layout);
                if matches!(failure, Failure::Stale(_)) {
                    lease.connection().forget();
                }
                failure.before_commit(&self.core.store)
            })
        });
        rows.collect()
    }

    async fn read_now(&mut self, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let core = Arc::clone(&self.core);
        let refused = |why: String| core.refused(why);
        // A read that does not fit is refused even if the server is not asked.
        Plan::new(&core.layout, reads).map_err(refused)?;
        if reads.is_empty() {
            return Ok(Vec::new());
        }
        let bases: Vec<Option<Read>> = reads.iter().map(|read| self.overlay.base(read)).collect();
        let asked: Vec<Read> = bases.iter().flatten().cloned().collect();
        let mut plan = Plan::new(&core.layout, &asked).map_err(refused)?;
        plan.add_witnesses_of(reads);
        let results = self.send(plan.steps.clone()).await?;
        let rows = Rows::new(&plan, &results).map_err(refused)?;
        let mut answers = Vec::with_capacity(reads.len());
        let mut next = 0;
        for (read, base) in reads.iter().zip(&bases) {
            let mut found = None;
            if base.is_some() {
                let (data, version) = rows.find(next).map_err(refused)?;
                self.seen = self.seen.max(version.0);
                found = Some((data, version));
                next += 1;
            }
            let (data, version) = self.overlay.answer(read, found);
            let mut witnesses = Vec::new();
            if let Some(object) = read.object() {
                witnesses = self.overlay.rows(Some(object), rows.witnesses(Some(object)));
                witnesses.extend(self.overlay.rows(None, rows.witnesses(None)));
            }
            debug_assert!(!matches!(data, Data::Result(_)), "there are no queries here");
            answers.push(Answer { data, version, witnesses });
        }
        Ok(answers)
    }

    async fn flush_now(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        Writes::new(&self.core.layout, writes.iter()).map_err(|why| self.core.refused(why))?;
        if self.open.is_none() {
            self.send(Vec::new()).await?;
        } else if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let version = self.core.next_tentative();
        for write in &writes {
            self.overlay.write(&self.core.layout.schema, write, version);
        }
        self.flushed.extend(writes);
        Ok(())
    }

    /// Ends a transaction that has written nothing. A reader at a server has nothing to wait for.
    pub(super) async fn end(mut self) -> Result<Committed, StoreError> {
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        let version = Version(self.seen);
        if !self.core.is_counted {
            if let Some((lease, _)) = self.open.take() {
                lease.abandon();
            }
            return Ok(Committed { version, stamp: Stamp::default() });
        }
        if self.open.is_none() {
            self.send(Vec::new()).await?;
        }
        let Some((lease, vector)) = self.open.take() else {
            return Err(self.core.unavailable(self.server, "it has no snapshot"));
        };
        lease.abandon();
        Ok(Committed { version, stamp: self.core.stamp(&vector) })
    }
}

impl Transaction for ReplicatedTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.read_now(reads))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.flush_now(writes))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(commit::commit(*self, commit))
    }
}
