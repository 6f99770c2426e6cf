//! Outcomes of commits: queries, and notes written with the commits.
//!
//! While this process lives, it knows all commits that went through it. A store on disk also has an
//! item for each id, which is replicated together with the commit's writes.
//!
//! Where the other data centers are processes of their own, each answers for itself: the commit has arrived here, or
//! it has not, and none of this id will take effect here from now on. The latter is noted in an item that this data
//! center alone writes ([`name::bar`]), beside the item of the outcome, so that the two never merge. The program asks
//! all data centers. A data center that says *committed* is right, also where others have barred the commit. If all
//! have barred it, it has not taken effect and never will. So no data center need wait for another one, and an answer
//! that the program does not get leaves a bar that is true by itself.
//!
//! A data center that was given up is not asked: the others have the data that is kept of it, with the outcomes. If it
//! is admitted again, it begins with a copy of their data, so it sees their bars. Therefore a bar of any data center
//! refuses a commit, and the program makes sure that the others still left it out after their answers.

use mingle_geo::{DcId, Key, Op, Outcome as Ended, Update};
use mingle_model::{TransactionId, Value};
use mingle_store::{Committed, Outcome, StoreError};

use super::client::Client;
use super::cluster::Phase;
use super::fate::Fate;
use super::fetch::{Fetch, Found};
use super::store::Shared;
use super::{answer, name};

impl Shared {
    fn is_kept(&self) -> bool {
        self.core.storage.is_durable()
    }

    /// True if commits leave notes of their outcomes: where they outlast the process, and where
    /// certification decides on some of them.
    pub(super) fn has_notes(&self) -> bool {
        self.is_kept() || self.is_mixed()
    }

    /// Adds the items that hold the outcome of a commit.
    pub fn fetch_outcome(&self, id: Option<TransactionId>, fetch: &mut Fetch) {
        if let Some(id) = id.filter(|_| self.has_notes()) {
            fetch.add(name::outcome(id));
            fetch.add(name::gone());
            self.bars(id).for_each(|bar| fetch.add(bar));
        }
    }

    /// Returns the items that say that no commit of an id takes effect at a data center, where the others are processes
    /// of their own.
    fn bars(&self, id: TransactionId) -> impl Iterator<Item = Key> {
        let count = self.here().map_or(0, |_| self.config.datacenters.len() as u8);
        (0..count).map(move |dc| name::bar(id, DcId(dc)))
    }

    /// Refuses a commit if a helper was told that it did not take effect.
    pub fn check_outcome(
        &self,
        id: Option<TransactionId>,
        found: &Found,
    ) -> Result<(), StoreError> {
        let Some(id) = id.filter(|_| self.has_notes()) else { return Ok(()) };
        let is_barred = || self.bars(id).any(|bar| answer::outcome(found.get(&bar)).is_some());
        match answer::outcome(found.get(&name::outcome(id))) {
            Some(false) => Err(self.core.barred(id)),
            None if is_barred() || self.is_found_gone(found, id) => Err(self.core.barred(id)),
            _ => Ok(()),
        }
    }

    /// Notes with a commit that it took effect.
    pub fn add_outcome(&self, id: Option<TransactionId>, updates: &mut Vec<Update>) {
        if let Some(id) = id.filter(|_| self.has_notes()) {
            let (key, op) = (name::outcome(id), Op::Write(Value::Bool(true)));
            updates.push(Update { key, op, id: None });
        }
    }

    /// Notes how a commit ended.
    pub fn note_end(
        &self,
        id: TransactionId,
        ended: &Result<Committed, StoreError>,
        client: Option<&Client>,
    ) {
        let fate = match ended {
            Ok(_) => Some(Fate::Committed),
            Err(StoreError::Unknown { .. }) if self.fates.get(id) == Some(Fate::Certifying) => {
                Some(Fate::Certifying)
            }
            Err(StoreError::Unknown { .. }) => client
                .and_then(|client| {
                    Some(Fate::Lost(client.dc(), client.incarnation(), client.committing()?))
                })
                .or(Some(Fate::Running)),
            Err(_) => None,
        };
        self.fates.end(id, fate, self.core.world.elapsed());
    }

    /// Returns the outcome of a commit. A commit of which nothing is known is barred first, so that
    /// the answer stays true.
    pub async fn outcome(&self, id: TransactionId) -> Result<Outcome, StoreError> {
        if self.is_strong() {
            return self.ask_strong(id).await;
        }
        let outcome = match self.fates.get(id) {
            Some(Fate::Committed) => Outcome::Committed,
            // Where this data center answers for itself, the commit of another one may have arrived since.
            Some(Fate::Barred) if self.here().is_none() => Outcome::NotCommitted,
            Some(Fate::Running) => Outcome::Unknown,
            Some(Fate::Certifying) => self.ask_strong(id).await?,
            Some(Fate::Lost(dc, incarnation, number)) => {
                let is_cut_off = self.net.with(|inner| inner.cut(dc, incarnation)).is_some();
                match is_cut_off {
                    false => self.after_loss(dc, number),
                    // The other data centers hold the remaining data, including the note of the
                    // outcome.
                    true if self.is_kept() => self.kept_outcome(id).await?,
                    true => self.net.with(|inner| inner.ended_elsewhere(dc, &number)),
                }
            }
            None if !self.is_kept() && self.fates.is_forgotten(id) => Outcome::Unknown,
            None | Some(Fate::Barred) => {
                self.end(id, Outcome::NotCommitted);
                let kept = if self.is_kept() {
                    self.kept_outcome(id).await
                } else {
                    Ok(Outcome::NotCommitted)
                };
                kept.inspect_err(|_| self.fates.forget(id))?
            }
        };
        self.end(id, outcome);
        Ok(outcome)
    }

    fn end(&self, id: TransactionId, outcome: Outcome) {
        let fate = match outcome {
            Outcome::Committed => Fate::Committed,
            Outcome::NotCommitted => Fate::Barred,
            Outcome::Unknown => return,
        };
        self.fates.end(id, Some(fate), self.core.world.elapsed());
    }

    /// Returns the outcome of a commit whose data center stopped before it answered.
    fn after_loss(&self, dc: DcId, number: TransactionId) -> Outcome {
        self.net.with(|inner| match inner.ended(dc, &number) {
            _ if !inner.is_up(dc) => Outcome::Unknown,
            (Some(Ended::Committed(_)), _) => Outcome::Committed,
            (Some(Ended::Aborted), _) | (None, false) => Outcome::NotCommitted,
            (None, true) => Outcome::Unknown,
        })
    }

    /// Returns the outcome of a commit of an earlier process; if nothing is known of it, every data
    /// center notes that it must not take effect.
    async fn kept_outcome(&self, id: TransactionId) -> Result<Outcome, StoreError> {
        if let Some(dc) = self.here() {
            return self.outcome_here(dc, id).await;
        }
        let count = self.config.datacenters.len() as u8;
        let mut lacking = Vec::new();
        let all = (0..count).map(DcId);
        // A data center that was given up is not asked: data that only it had are lost.
        let alive = all.filter(|dc| self.net.with(|inner| inner.phase(*dc)) != Phase::GivenUp);
        for dc in alive {
            let mut client = self.client(dc, &mingle_model::Stamp::default()).await?;
            let mut last = self.last(dc);
            // Data kept from data centers that were given up may include the note.
            last.join(&self.net.with(|inner| inner.cuts()));
            let trouble = |trouble| self.trouble(trouble, Some(id));
            client.reach(&last).await.map_err(trouble)?;
            let keys = vec![name::outcome(id), name::gone()];
            let states = client.read(keys).await.map_err(trouble)?;
            match answer::outcome(&states[0]) {
                None if self.is_gone(&states[1], id) => {
                    self.give_back(client);
                    return Ok(Outcome::Unknown);
                }
                Some(true) => {
                    if self.is_mixed() {
                        self.arrive_everywhere(&client.past()).await;
                    }
                    self.give_back(client);
                    return Ok(Outcome::Committed);
                }
                Some(false) => self.give_back(client),
                None => lacking.push(client),
            }
        }
        // A strong transaction of an earlier process may be on its way still.
        if self.is_mixed() {
            let asked = self.ask_strong(id).await?;
            if asked != Outcome::NotCommitted {
                return Ok(asked);
            }
        }
        for mut client in lacking {
            let (key, op) = (name::outcome(id), Op::Write(Value::Bool(false)));
            let written = client.write(vec![Update { key, op, id: None }]);
            written.map_err(|trouble| self.trouble(trouble, Some(id)))?;
            let done = client.commit().await.map_err(|trouble| self.trouble(trouble, Some(id)))?;
            self.committed_by(&client, &done.commit_vec);
            self.give_back(client);
        }
        Ok(Outcome::NotCommitted)
    }

    /// Returns the outcome of a commit as far as the data center here can tell, after which none of this id takes
    /// effect here.
    async fn outcome_here(&self, dc: DcId, id: TransactionId) -> Result<Outcome, StoreError> {
        let mut client = self.client(dc, &mingle_model::Stamp::default()).await?;
        let mut last = self.last(dc);
        last.join(&self.net.with(|inner| inner.cuts()));
        let trouble = |trouble| self.trouble(trouble, Some(id));
        client.reach(&last).await.map_err(trouble)?;
        let keys = vec![name::outcome(id), name::bar(id, dc), name::gone()];
        let states = client.read(keys).await.map_err(trouble)?;
        let outcome = match (answer::outcome(&states[0]), answer::outcome(&states[1])) {
            (Some(true), _) => Outcome::Committed,
            (_, Some(_)) => Outcome::NotCommitted,
            _ if self.is_gone(&states[2], id) => Outcome::Unknown,
            _ => {
                let (key, op) = (name::bar(id, dc), Op::Write(Value::Bool(false)));
                client.write(vec![Update { key, op, id: None }]).map_err(trouble)?;
                let done = client.commit().await.map_err(trouble)?;
                self.committed_by(&client, &done.commit_vec);
                Outcome::NotCommitted
            }
        };
        self.give_back(client);
        Ok(outcome)
    }
}
