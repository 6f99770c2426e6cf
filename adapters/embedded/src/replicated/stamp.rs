//! Stamps: the updates that replicas have seen, as carried by sessions.
//!
//! Only causal stores with several replicas use stamps: there, a replica has seen all updates of
//! each origin up to some number.

use std::sync::Arc;

use mingle_model::Stamp;
use mingle_store::StoreError;

use super::context::Context;
use super::engine::Engine;
use crate::storage::{StorageError, View};

impl Engine {
    /// Returns the stamp of a replica with this context.
    pub fn stamp(&self, context: &Context) -> Stamp {
        let counted = (0..).zip(&self.counted);
        counted.map(|(origin, name)| (name.clone(), context.prefix(origin))).collect()
    }

    /// Returns the stamp of a replica in `view`.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn seen(&self, view: &dyn View, replica: u8) -> Result<Stamp, StorageError> {
        if self.counted.is_empty() {
            return Ok(Stamp::default());
        }
        Ok(self.stamp(&self.state(view, replica)?.context))
    }

    /// Refuses to serve a session that has seen more than its replica.
    ///
    /// # Errors
    ///
    /// [`StoreError::Behind`], or when the disk fails.
    pub fn check_seen(
        &self,
        view: &dyn View,
        replica: u8,
        after: &Stamp,
    ) -> Result<(), StoreError> {
        if self.counted.is_empty() || after.is_empty() {
            return Ok(());
        }
        let seen = self.seen(view, replica).map_err(|error| self.core.fail(&error))?;
        if seen.covers(after) {
            return Ok(());
        }
        Err(StoreError::Behind {
            store: self.core.store.clone(),
            replica: self.counted[usize::from(replica)].clone(),
        })
    }

    /// Returns the stamp of all that every replica has seen, after applying all due updates.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub async fn everywhere(self: &Arc<Self>) -> Result<Stamp, StoreError> {
        let mut everywhere: Option<Stamp> = None;
        for (replica, _) in (0..).zip(&self.counted) {
            self.deliver(replica).await?;
            let snapshot = self.core.snapshot()?;
            let seen = self.core.contained(|| {
                self.seen(&*snapshot, replica).map_err(|error| self.core.fail(&error))
            })?;
            match &mut everywhere {
                Some(everywhere) => everywhere.meet(&seen),
                None => everywhere = Some(seen),
            }
        }
        Ok(everywhere.unwrap_or_default())
    }
}
