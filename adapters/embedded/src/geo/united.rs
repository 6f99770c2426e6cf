//! One strong transaction over several stores of one engine.
//!
//! Its parts read one snapshot through one session of the core, which is passed from part to part.
//! The items that parts of linearizable stores use are certified, as in [`super::strong`], and so are
//! those of causal stores whose list of conflicts names the transaction ([`super::upgraded`]). The
//! updates of other causal parts are sent with the same commit and merge with concurrent updates, as
//! causal updates do. So the transaction takes effect at once or not at all, and no helper is
//! needed to finish it.
//!
//! The witness conditions of a causal part are judged just before, against the state of its data
//! center. Rows that arrive in between are not replaced, so no transaction misses them.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_geo::Update;
use mingle_geo::certify::Touch;
use mingle_model::Name;
use mingle_store::{BoxFuture, Commit, Committed, StoreError, Transaction, United, UnitedCommit};

use super::build::build;
use super::fetch::Fetch;
use super::judge;
use super::strong::TRIES_MAX;
use super::transaction::GeoTransaction;
use crate::writing;

/// A transaction over several stores.
pub struct UnitedTransaction {
    /// The first part belongs to the store at which the transaction was begun.
    parts: Vec<GeoTransaction>,
    /// The part that has the session.
    at: usize,
}

impl UnitedTransaction {
    /// Creates a transaction that begins with this part.
    ///
    /// # Errors
    ///
    /// When its store is not linearizable, or does not share its engine.
    pub fn new(mut first: GeoTransaction) -> Result<Self, StoreError> {
        let shared = &first.shared;
        if !shared.is_strong() || !shared.engine.is_shared() {
            let reason = "a transaction over several stores begins at a linearizable one that shares its engine";
            return Err(shared.core.refused(reason.into()));
        }
        first.is_part = true;
        Ok(Self { parts: vec![first], at: 0 })
    }

    /// Returns the index of a store's part; adds the part if necessary.
    fn place(&mut self, store: &str) -> Result<usize, StoreError> {
        if let Some(place) = self.parts.iter().position(|part| *part.shared.core.store == *store) {
            return Ok(place);
        }
        let first = &self.parts[0];
        let Some(shared) = first.shared.engine.member(store) else {
            let reason = format!("its engine has no store {store}");
            return Err(first.shared.core.refused(reason));
        };
        let mut part =
            GeoTransaction::new(&shared, first.dc, first.after.clone(), first.transaction.clone());
        part.is_part = true;
        self.parts.push(part);
        Ok(self.parts.len() - 1)
    }

    /// Moves the session to the part at this index; the first part takes the snapshot.
    async fn enter(&mut self, place: usize) -> Result<&mut GeoTransaction, StoreError> {
        if self.parts[self.at].client.is_none() {
            self.at = 0;
            self.parts[0].settle().await?;
        }
        if self.at != place {
            let mut client = self.parts[self.at].client.take();
            if let Some(client) = &mut client {
                client.enter(&self.parts[place].shared.space);
            }
            self.parts[place].client = client;
            self.at = place;
        }
        Ok(&mut self.parts[place])
    }

    async fn conclude(mut self, mut commit: UnitedCommit) -> Result<Committed, StoreError> {
        let mut commits: Vec<Commit> = Vec::new();
        for (store, part) in std::mem::take(&mut commit.parts) {
            let place = self.place(&store)?;
            commits.resize_with(self.parts.len(), Commit::default);
            commits[place] = Commit { id: None, operation: None, ..part };
        }
        commits.resize_with(self.parts.len(), Commit::default);
        commits[0].id = commit.id;
        for (part, commit) in self.parts.iter_mut().zip(&mut commits) {
            part.prepare(std::mem::take(&mut commit.writes))?;
            commit.writes.clone_from(&part.flushed);
            let fits = writing::check_size(&commit.writes);
            fits.map_err(|why| part.shared.core.refused(why))?;
        }
        for place in 0..self.parts.len() {
            let part = self.enter(place).await?;
            if part.is_certified() {
                part.forget_own().await?;
            } else {
                part.own.clear();
            }
        }
        self.enter(0).await?.settle().await?.take_back();
        for _ in 0..TRIES_MAX {
            match self.certify(&commits).await? {
                Ok(committed) => return Ok(committed),
                Err(until) => {
                    for place in 0..self.parts.len() {
                        let part = self.enter(place).await?;
                        if part.is_certified() {
                            // The first part takes a new snapshot, the others use the same one.
                            part.renew_if(place == 0, &until).await?;
                        }
                    }
                }
            }
        }
        Err(StoreError::Conflict)
    }

    /// Certifies the commit: returns its result, or the vector that it would have had to see.
    async fn certify(
        &mut self,
        commits: &[Commit],
    ) -> Result<Result<Committed, mingle_geo::Vector>, StoreError> {
        let (mut touches, mut updates): (Vec<Touch>, Vec<Update>) = (Vec::new(), Vec::new());
        for (place, commit) in commits.iter().enumerate() {
            let part = self.enter(place).await?;
            let space = part.shared.space.clone();
            if part.shared.is_strong() {
                let built = part.updates(commit).await?;
                touches.extend(space.touches(part.touches(&built)));
                updates.extend(space.updates(built));
            } else if part.is_certified() {
                let built = part.merging(commit).await?;
                touches.extend(space.touches(part.touches(&built)));
                updates.extend(space.updates(built));
            } else {
                updates.extend(space.updates(part.merged(commit).await?));
            }
        }
        let dc = self.parts[0].dc;
        let first = Arc::clone(&self.parts[0].shared);
        first.check_count(&updates)?;
        let has_writes = !updates.is_empty();
        if touches.is_empty() && !has_writes {
            let part = self.enter(0).await?;
            let version = mingle_model::Version(part.seen);
            return Ok(Ok(Committed { version, stamp: part.stamp() }));
        }
        first.check_quorum(dc)?;
        let certified = self.enter(0).await?.settle().await?.certify_all(touches, updates).await;
        // If an answer was lost, the writes decide how to report that.
        let whole = Commit {
            id: commits[0].id,
            writes: commits.iter().flat_map(|commit| commit.writes.clone()).collect(),
            ..Commit::default()
        };
        let decided = first.decided(dc, certified, &whole)?;
        self.parts[0].note_conflict(decided.is_err());
        Ok(match decided {
            Ok(commit_vec) => {
                for (part, commit) in self.parts.iter().zip(commits) {
                    if part.shared.is_strong() {
                        part.shared.committed(dc, &commit_vec);
                    }
                    part.shared.raise_floors(&commit.writes);
                }
                Ok(first.strongly_committed(&commit_vec))
            }
            Err(until) => Err(until),
        })
    }
}

impl GeoTransaction {
    /// Checks the earlier answers on another snapshot: a new one that covers `until`, or the one
    /// that another part has taken.
    async fn renew_if(
        &mut self,
        takes: bool,
        until: &mingle_geo::Vector,
    ) -> Result<(), StoreError> {
        if takes { self.renew(until).await } else { self.is_answered_alike().await }
    }

    /// Returns the updates of a causal part, judged by the current state of its data center.
    async fn merged(&mut self, commit: &Commit) -> Result<Vec<Update>, StoreError> {
        if commit.is_empty() {
            return Ok(Vec::new());
        }
        let shared = Arc::clone(&self.shared);
        let layout = &shared.core.layout;
        let refused = |why| shared.core.refused(why);
        let mut fetch = Fetch::default();
        judge::fetch(layout, commit, &mut fetch).map_err(refused)?;
        if !fetch.keys().is_empty() {
            let mut fresh = shared.client(self.dc, &self.after).await?;
            let found = shared.read(&mut fresh, fetch).await?;
            shared.give_back(fresh);
            if let Some(objection) = judge::object(layout, commit, &found) {
                return Err(objection);
            }
        }
        let left = self.left().await?;
        let none = BTreeSet::new();
        build(layout, &commit.writes, None, &left, &none).map_err(refused)
    }
}

impl Drop for UnitedTransaction {
    /// The session goes to the store of the first part: its strong transactions may have to wait
    /// for updates that this session has seen.
    fn drop(&mut self) {
        let client = self.parts[self.at].client.take();
        self.parts[0].client = client;
    }
}

impl United for UnitedTransaction {
    fn part<'a>(
        &'a mut self,
        store: &'a Name,
    ) -> BoxFuture<'a, Result<&'a mut dyn Transaction, StoreError>> {
        Box::pin(async move {
            let place = self.place(store)?;
            let part = self.enter(place).await?;
            Ok(part as &mut dyn Transaction)
        })
    }

    fn commit(
        self: Box<Self>,
        commit: UnitedCommit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            let (shared, dc) = (Arc::clone(&self.parts[0].shared), self.parts[0].dc);
            let has_id = commit.id.is_some();
            let committed = self.conclude(commit).await?;
            if has_id {
                shared.sweep_after(dc).await;
            }
            Ok(committed)
        })
    }
}
