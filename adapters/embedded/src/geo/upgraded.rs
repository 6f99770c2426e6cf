//! Strong transactions of a causal store: those that its list of conflicts names (`UniStore` §3 and
//! §6: causal and strong transactions over the same data).
//!
//! A transaction in no pair commits in its own data center, waits for no other, and never conflicts.
//! A transaction in a pair is *upgraded*: it runs on a uniform snapshot (of data that survive) and is
//! certified, so of two of a pair that conflict, one has seen the other.
//!
//! ```text
//! conflicts = [["withdraw", "withdraw"]]
//!
//! oslo   deposit(20) ──────────────────────────► there at once, in rome 40 ms later
//! oslo   withdraw(15): balance 20 ── certify ──► committed: 5 left
//! rome   withdraw(15): balance 20 ── certify ──► conflict; again on 5: refused, too low
//! ```
//!
//! **Why no account is overdrawn.** Take the withdrawals of an account in the order of
//! certification. Each has seen all earlier ones. The deposits that it has not seen only add to
//! the balance. So the balance after any set of transactions that holds a withdrawal, and with it all
//! that the withdrawal has seen, is at least what the withdrawal has left: never below zero. The
//! argument needs two facts about the program. No unlisted pair breaks the rule, which is the author's
//! part, as for a linearizable store. And writes that are in no order come to the same in each,
//! which `mingle` checks.
//!
//! **What is certified** beside the items of listed pairs: the note of the commit's id and the
//! records of its guards. The runtime's commits that must come before or after such a transaction
//! are certified too, though no transaction of the program has their name: the fence of a process
//! that is taken for dead, and the exclusion of a transaction that must not commit any more. Without
//! that, a strong transaction could still be on its way while another process looks for it and does
//! not find it. Witness rows are judged in the data center, as those of causal transactions, and are
//! not certified: a row that arrives meanwhile stays, and the next transaction meets it.
//!
//! **Waiting.** A causal transaction never waits for a strong one. A client is answered once all
//! sessions of its data center see its strong transaction, so the floor of the process (see
//! [`mingle_geo::session::Floor`]) need not name it. If it does not arrive in time, since the data
//! center was cut off in between, the client is answered, and only its own session has to wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mingle_geo::{DcId, Update, Vector};
use mingle_model::{Name, Version};
use mingle_store::{Commit, Committed, RecordKind, StoreError, Write};

use super::build::build;
use super::fetch::Fetch;
use super::store::Shared;
use super::strong::{TRIES_MAX, note};
use super::touch::Use;
use super::transaction::GeoTransaction;
use super::{judge, name};
use crate::writing;

/// Longest time that the answer of a strong transaction waits until it has arrived in its data center.
const ARRIVAL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Interval at which a strong transaction that waits to arrive looks again.
const ARRIVAL_STEP: Duration = Duration::from_millis(1);

impl Shared {
    /// True if its transactions are causal, but for those that the list of conflicts names.
    pub(super) fn is_mixed(&self) -> bool {
        !self.is_strong() && self.relation.is_some()
    }

    /// Returns the vector of the commits in the current incarnation of a data center with which a strong
    /// transaction could conflict.
    pub(super) fn last_certified(&self, dc: DcId) -> Vector {
        let last = self.last(dc);
        if self.is_mixed() { Vector::ZERO.with(DcId::STRONG, last[DcId::STRONG]) } else { last }
    }

    /// True if a transaction of this name is in a pair of the list of conflicts.
    pub(super) fn lists(&self, transaction: Option<&Name>) -> bool {
        let listed = self.relation.as_ref().zip(transaction);
        listed.is_some_and(|(relation, transaction)| relation.lists(transaction))
    }

    /// Waits until every new session of a data center sees a strong transaction, unless that takes too
    /// long.
    async fn arrive(&self, dc: DcId, commit_vec: &Vector) {
        let world = &self.core.world;
        let begin = world.elapsed();
        loop {
            let (is_up, visible) = self.net.with(|inner| (inner.is_up(dc), inner.visible(dc)));
            let is_late = world.elapsed().saturating_sub(begin) >= ARRIVAL_WAIT_MAX;
            if !is_up || is_late || visible.covers(commit_vec) {
                return;
            }
            self.net.with(|inner| inner.stay_busy());
            world.sleep(ARRIVAL_STEP).await;
        }
    }

    /// Does the same for all data centers that run.
    pub(super) async fn arrive_everywhere(&self, commit_vec: &Vector) {
        let running = self.net.with(|inner| inner.running());
        for dc in running {
            self.arrive(dc, commit_vec).await;
        }
    }
}

impl GeoTransaction {
    /// True if the transaction is upgraded with this commit.
    pub(super) fn is_upgraded_by(&mut self, commit: &Commit) -> bool {
        let excludes = |write: &Write| {
            let decisive = [RecordKind::Fence, RecordKind::Witness];
            matches!(write, Write::Record(key, _) if decisive.contains(&key.kind))
        };
        let is_system = self.transaction.is_none() && self.shared.is_mixed();
        if is_system && !self.is_upgraded && commit.writes.iter().any(excludes) {
            // It decides on nothing but its guards, which are judged anew.
            self.client = None;
            self.given.clear();
            self.is_upgraded = true;
        }
        self.is_upgraded && self.is_certified()
    }

    /// Commits, if no transaction that conflicts by the list has changed what it used.
    pub(super) async fn certify_upgraded(
        mut self,
        mut commit: Commit,
    ) -> Result<Committed, StoreError> {
        self.prepare(std::mem::take(&mut commit.writes))?;
        let shared = Arc::clone(&self.shared);
        commit.writes = self.flushed.clone();
        let fits = writing::check_size(&commit.writes);
        fits.map_err(|why| shared.core.refused(why))?;
        if commit.is_empty() && self.uses.is_empty() {
            self.settle().await?;
            return Ok(Committed { version: Version(self.seen), stamp: self.stamp() });
        }
        if let Some(id) = commit.id {
            let now = shared.core.world.elapsed();
            if !shared.fates.begin(id, now) {
                return Err(shared.core.barred(id));
            }
            shared.fates.certify(id, now);
        }
        let committed = self.certify_again(&commit).await;
        if let Some(id) = commit.id {
            shared.note_end(id, &committed, self.client.as_ref());
        }
        committed
    }

    async fn certify_again(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        self.forget_own().await?;
        for _ in 0..TRIES_MAX {
            let uses = self.uses.clone();
            let updates = self.merging(commit).await?;
            match self.decide(commit, updates).await? {
                Ok(commit_vec) => return self.upgraded(commit, &commit_vec).await,
                Err(until) => {
                    self.uses = uses;
                    self.renew(&until).await?;
                }
            }
        }
        Err(StoreError::Conflict)
    }

    /// Returns the updates of its writes, judged by the current state of its data center; notes the
    /// items that they use.
    pub(super) async fn merging(&mut self, commit: &Commit) -> Result<Vec<Update>, StoreError> {
        if commit.is_empty() && commit.id.is_none() {
            return Ok(Vec::new());
        }
        let shared = Arc::clone(&self.shared);
        let refused = |why| shared.core.refused(why);
        let layout = &shared.core.layout;
        let mut fetch = Fetch::default();
        judge::fetch(layout, commit, &mut fetch).map_err(refused)?;
        shared.fetch_outcome(commit.id, &mut fetch);
        let keys = fetch.keys();
        if !keys.is_empty() {
            let mut fresh = shared.client_of(self.dc, &self.after, false).await?;
            let reached = fresh.reach(&shared.last(self.dc)).await;
            reached.map_err(|trouble| shared.trouble(trouble, None))?;
            let found = shared.read(&mut fresh, fetch).await?;
            shared.give_back(fresh);
            if let Some(objection) = judge::object(layout, commit, &found) {
                return Err(objection);
            }
            shared.check_outcome(commit.id, &found)?;
        }
        for key in keys.into_iter().filter(|key| *key != name::gone()) {
            self.uses.add(key, Use::Read);
        }
        let present = self.present(commit).await?;
        self.use_headers(&commit.writes).await?;
        let left = self.left().await?;
        let none = BTreeSet::new();
        let mut updates =
            build(layout, &commit.writes, commit.operation, &left, &none).map_err(refused)?;
        shared.check_count(&updates)?;
        // An object that is there stays there: two that write different fields of it do not conflict.
        let changes: Vec<Update> =
            updates.iter().filter(|update| !present.contains(&update.key)).cloned().collect();
        self.uses.write(&changes);
        if let Some(id) = commit.id {
            self.uses.add(name::outcome(id), Use::Write);
            updates.push(note(id, true));
        }
        Ok(updates)
    }

    /// Ends a transaction that is committed: its client may be answered.
    async fn upgraded(
        &mut self,
        commit: &Commit,
        commit_vec: &Vector,
    ) -> Result<Committed, StoreError> {
        let shared = Arc::clone(&self.shared);
        shared.raise_floors(&commit.writes);
        if commit.writes.is_empty() {
            return Ok(Committed { version: Version(self.seen), stamp: self.stamp() });
        }
        shared.arrive(self.dc, commit_vec).await;
        let client = self.settle().await?;
        let stamp = shared.stamp_of(commit_vec, client);
        Ok(Committed { stamp, ..shared.strongly_committed(commit_vec) })
    }
}
