//! Strong transactions: the commit protocol of a linearizable store.
//!
//! A transaction runs on a snapshot of its data center and is certified: of two that conflict, one
//! has seen the other. It uses everything that it read or wrote ([`super::touch`]), the records of
//! its guards, the witness rows that it must know, and the note of its id: so all of these still
//! hold when it commits, at whichever data center they were changed. A transaction that only reads
//! is certified too.
//!
//! If a conflicting transaction committed in between, but all answers are the same on a newer
//! snapshot, the transaction is certified again on that one. So blind writes and guards wait
//! instead of failing, and so do transactions that only read, if they mark their last read.
//!
//! The note of an id is written with the commit's writes. A helper that asks for the outcome and
//! finds no note writes the opposite note, as a strong transaction: of the two, one comes first.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mingle_geo::certify::Touch;
use mingle_geo::{DcId, Key, Op, Refusal, Update, Vector};
use mingle_model::{Ref, Stamp, TransactionId, Value, Version};
use mingle_store::{Answer, Commit, Committed, Data, Outcome, Read, StoreError, Write};

use super::build::build;
use super::client::{Done, Trouble};
use super::fetch::{Fetch, Found};
use super::name::{self, Thing};
use super::store::Shared;
use super::touch::{Use, Uses};
use super::transaction::GeoTransaction;
use super::{answer, judge};
use crate::builtin::Question;
use crate::writing;

/// Longest time that a transaction waits until it sees the one that it conflicted with.
const CONFLICT_WAIT_MAX: Duration = Duration::from_secs(2);

/// Maximal number of certifications of one transaction.
pub(super) const TRIES_MAX: usize = 8;

impl GeoTransaction {
    /// Notes an answer, to be compared on a newer snapshot.
    pub(super) fn note_given(&mut self, question: Question, answer: &(Data, u64)) {
        if self.is_certified() {
            let answer = self.own.is_empty().then(|| answer.clone());
            self.given.push((question, answer));
        }
    }

    /// Answers the last reads and commits. The client has no answer yet, so values that changed in
    /// between are read again.
    pub(super) async fn answer_last(&mut self, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        if !self.flushed.is_empty() {
            return self.answers(reads).await;
        }
        for _ in 0..TRIES_MAX {
            let (given, uses) = (self.given.len(), self.uses.clone());
            let answers = self.answers(reads).await?;
            match self.decide(&Commit::default(), Vec::new()).await? {
                Ok(_) => {
                    self.uses = Uses::default();
                    return Ok(answers);
                }
                Err(until) => {
                    self.given.truncate(given);
                    self.uses = uses;
                    self.renew(&until).await?;
                }
            }
        }
        Err(StoreError::Conflict)
    }

    /// Commits, if nothing that the transaction used has changed.
    pub(super) async fn certify(mut self, mut commit: Commit) -> Result<Committed, StoreError> {
        self.prepare(std::mem::take(&mut commit.writes))?;
        let shared = Arc::clone(&self.shared);
        commit.writes = self.flushed.clone();
        let fits = writing::check_size(&commit.writes);
        fits.map_err(|why| shared.core.refused(why))?;
        if commit.is_empty() && self.uses.is_empty() {
            if shared.has_stamps() {
                self.settle().await?;
            }
            return Ok(Committed { version: Version(self.seen), stamp: self.stamp() });
        }
        self.forget_own().await?;
        for _ in 0..TRIES_MAX {
            let updates = self.updates(&commit).await?;
            match self.decide(&commit, updates).await? {
                Ok(_) if commit.writes.is_empty() => {
                    return Ok(Committed { version: Version(self.seen), stamp: self.stamp() });
                }
                Ok(commit_vec) => return Ok(shared.strongly_committed(&commit_vec)),
                Err(until) => self.renew(&until).await?,
            }
        }
        Err(StoreError::Conflict)
    }

    /// Asks again, without the transaction's own writes, the questions that were answered with
    /// them.
    pub(super) async fn forget_own(&mut self) -> Result<(), StoreError> {
        self.settle().await?.take_back();
        self.own.clear();
        for place in 0..self.given.len() {
            if self.given[place].1.is_none() {
                let question = self.given[place].0.clone();
                self.given[place].1 = Some(self.ask(question).await?);
            }
        }
        Ok(())
    }

    /// Continues on a snapshot that covers `until`, if all answers are the same there.
    pub(super) async fn renew(&mut self, until: &Vector) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        // Its session would go on asking for updates that may not arrive.
        self.client = None;
        if !shared.catch_up(self.dc, until, CONFLICT_WAIT_MAX).await {
            return Err(StoreError::Conflict);
        }
        self.is_answered_alike().await
    }

    /// Checks that all earlier answers are the same on the current snapshot.
    pub(super) async fn is_answered_alike(&mut self) -> Result<(), StoreError> {
        for place in 0..self.given.len() {
            let (question, before) = self.given[place].clone();
            if Some(self.ask(question).await?) != before {
                return Err(StoreError::Conflict);
            }
        }
        Ok(())
    }

    /// Returns the updates of its writes, judged by the current state of its data center.
    pub(super) async fn updates(&mut self, commit: &Commit) -> Result<Vec<Update>, StoreError> {
        if commit.is_empty() && commit.id.is_none() {
            return Ok(Vec::new());
        }
        let shared = Arc::clone(&self.shared);
        self.judge(commit).await?;
        let present = self.present(commit).await?;
        self.use_headers(&commit.writes).await?;
        let left = self.left().await?;
        let built = build(&shared.core.layout, &commit.writes, None, &left, &present);
        let mut updates = built.map_err(|why| shared.core.refused(why))?;
        shared.check_count(&updates)?;
        self.uses.write(&updates);
        if let Some(id) = commit.id {
            self.uses.add(name::outcome(id), Use::Write);
            updates.push(note(id, true));
        }
        Ok(updates)
    }

    /// Rejects a commit early by the current state of its data center; notes all items that it
    /// uses.
    async fn judge(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let layout = &shared.core.layout;
        let refused = |why| shared.core.refused(why);
        let mut fetch = Fetch::default();
        judge::fetch(layout, commit, &mut fetch).map_err(refused)?;
        if let Some(id) = commit.id {
            fetch.add(name::outcome(id));
        }
        for key in fetch.keys() {
            self.uses.add(key, Use::Read);
        }
        if commit.id.is_some() {
            // It need not be certified: what removes a note shows the number on the same snapshots.
            fetch.add(name::gone());
        }
        if fetch.keys().is_empty() {
            return Ok(());
        }
        // The conditions are judged by a state that has at least the transaction's snapshot: all that
        // changes them later is found by certification.
        let snapshot = self.settle().await?.past();
        for _ in 0..TRIES_MAX {
            let mut fresh = shared.client(self.dc, &self.after).await?;
            let reached = fresh.reach(&snapshot).await;
            reached.map_err(|trouble| shared.trouble(trouble, None))?;
            let begun = fresh.begin_strong();
            begun.map_err(|trouble| shared.trouble(trouble, None))?;
            let found = shared.read(&mut fresh, fetch.clone()).await?;
            let Some(objection) = shared.objection(commit, &found) else {
                shared.give_back(fresh);
                return Ok(());
            };
            // The obstacle seen here may be gone at another data center.
            let mut uses = Uses::default();
            fetch.keys().into_iter().for_each(|key| uses.add(key, Use::Read));
            let certified = fresh.certify(uses.touches(), Vec::new()).await;
            match shared.decided(self.dc, certified, &Commit::default())? {
                Ok(_) => return Err(objection),
                Err(until) => shared.catch_up(self.dc, &until, CONFLICT_WAIT_MAX).await,
            };
        }
        Err(StoreError::Conflict)
    }

    /// Returns the presences of the existing objects that a commit writes: these presences are not
    /// written, so that writes of two fields do not conflict.
    pub(super) async fn present(&mut self, commit: &Commit) -> Result<BTreeSet<Key>, StoreError> {
        let shared = Arc::clone(&self.shared);
        let objects: BTreeSet<&Ref> = commit.writes.iter().filter_map(Write::object).collect();
        let mut fetch = Fetch::default();
        for object in objects {
            let thing = Thing::of(&shared.core.layout, Some(object));
            fetch.add(thing.map_err(|why| shared.core.refused(why))?.presence());
        }
        let keys = fetch.keys();
        let found = self.read(fetch).await?;
        for key in &keys {
            self.uses.add(key.clone(), Use::Read);
        }
        Ok(keys.into_iter().filter(|key| answer::exists(found.get(key))).collect())
    }

    /// Certifies the transaction: returns its commit vector, or the vector that it would have had
    /// to see.
    pub(super) async fn decide(
        &mut self,
        commit: &Commit,
        updates: Vec<Update>,
    ) -> Result<Result<Vector, Vector>, StoreError> {
        let shared = Arc::clone(&self.shared);
        shared.check_quorum(self.dc)?;
        let touches = self.touches(&updates);
        let client = self.settle().await?;
        if touches.is_empty() && updates.is_empty() {
            return Ok(Ok(client.past()));
        }
        let certified = client.certify(touches, updates).await;
        let decided = shared.decided(self.dc, certified, commit)?;
        self.note_conflict(decided.is_err());
        Ok(decided)
    }

    /// Returns the touches for certification with these updates.
    pub(super) fn touches(&self, updates: &[Update]) -> Vec<Touch> {
        let relation = self.shared.relation.as_ref().zip(self.transaction.as_ref());
        let mut touches = match relation.map(|(relation, transaction)| relation.role(transaction)) {
            Some(role) => role.touches(self.uses.clone(), updates),
            None => self.uses.clone().touches(),
        };
        if self.shared.is_mixed() {
            touches.retain(|touch| !name::is_row(&touch.key));
        }
        touches
    }

    /// Counts a transaction that had not seen a conflicting one.
    pub(super) fn note_conflict(&self, is_conflict: bool) {
        if let Some(transaction) = self.transaction.as_ref().filter(|_| is_conflict) {
            self.shared.engine.note_conflict(transaction);
        }
    }
}

impl Shared {
    /// Returns the result of a transaction with this commit vector.
    pub(super) fn strongly_committed(&self, commit_vec: &Vector) -> Committed {
        let (timestamp, origin) = (commit_vec[DcId::STRONG], DcId::STRONG);
        let version = mingle_geo::Version { timestamp, origin, index: 0 };
        Committed { version: Version(version.digest()), stamp: self.stamp(commit_vec) }
    }

    /// Converts the result of certification: the commit vector, or the vector that the transaction
    /// would have had to see.
    pub(super) fn decided(
        &self,
        dc: DcId,
        certified: Result<Done, Trouble>,
        commit: &Commit,
    ) -> Result<Result<Vector, Vector>, StoreError> {
        match certified {
            Ok(done) => {
                if !self.is_mixed() {
                    self.committed(dc, &done.commit_vec);
                }
                Ok(Ok(done.commit_vec))
            }
            Err(Trouble::Refused(Refusal::Conflict { until })) => Ok(Err(until)),
            Err(Trouble::Unknown(..)) if commit.writes.is_empty() => {
                self.check_quorum(dc)?;
                Err(self.core.unavailable("it was not answered in time".into()))
            }
            Err(trouble) => Err(self.trouble(trouble, commit.id)),
        }
    }

    /// Returns the reason why a commit must not take effect; none if it may.
    fn objection(&self, commit: &Commit, found: &Found) -> Option<StoreError> {
        let noted = |id| answer::outcome(found.get(&name::outcome(id)));
        match commit.id.map(|id| (id, noted(id))) {
            Some((_, Some(true))) => Some(StoreError::Conflict),
            Some((id, Some(false))) => Some(self.core.barred(id)),
            Some((id, None)) if self.is_found_gone(found, id) => Some(self.core.barred(id)),
            _ => judge::object(&self.core.layout, commit, found),
        }
    }

    /// Returns the outcome of a commit of a strong store. If no note of the commit is found, the
    /// commit is barred, unless it comes first.
    pub(super) async fn ask_strong(&self, id: TransactionId) -> Result<Outcome, StoreError> {
        for _ in 0..TRIES_MAX {
            let dc = self.net.with(|inner| {
                let running = inner.running();
                let first = running.iter().find(|dc| inner.lacking(**dc).is_none());
                first.or(running.first()).copied().unwrap_or(DcId(0))
            });
            self.check_quorum(dc)?;
            let mut client = self.client_of(dc, &Stamp::default(), true).await?;
            let trouble = |trouble| self.trouble(trouble, Some(id));
            client.begin_strong().map_err(trouble)?;
            let keys = vec![name::outcome(id), name::gone()];
            let states = client.read(keys).await.map_err(trouble)?;
            if let Some(has_committed) = answer::outcome(&states[0]) {
                if has_committed && self.is_mixed() {
                    self.arrive_everywhere(&client.past()).await;
                } else if has_committed {
                    // The asking helper continues from it, at any data center.
                    self.committed_everywhere(&client.past());
                }
                self.give_back(client);
                let outcome =
                    if has_committed { Outcome::Committed } else { Outcome::NotCommitted };
                return Ok(outcome);
            }
            if self.is_gone(&states[1], id) {
                self.give_back(client);
                return Ok(Outcome::Unknown);
            }
            let mut uses = Uses::default();
            uses.add(name::outcome(id), Use::Write);
            match client.certify(uses.touches(), vec![note(id, false)]).await {
                Ok(done) => {
                    if !self.is_mixed() {
                        self.committed(dc, &done.commit_vec);
                    }
                    self.give_back(client);
                    return Ok(Outcome::NotCommitted);
                }
                Err(Trouble::Refused(Refusal::Conflict { until })) => {
                    self.catch_up(dc, &until, CONFLICT_WAIT_MAX).await;
                }
                Err(Trouble::Refused(Refusal::Aborted)) => {}
                Err(Trouble::Unknown(..)) => return Ok(Outcome::Unknown),
                Err(other) => return Err(trouble(other)),
            }
        }
        Ok(Outcome::Unknown)
    }
}

/// Returns the update that notes if the commit of this id took effect.
pub(super) fn note(id: TransactionId, has_committed: bool) -> Update {
    let op = Op::Write(Value::Bool(has_committed));
    Update { key: name::outcome(id), op, id: None }
}
