//! Opening the disk again after a failure: all data centers restart from the contents of their
//! logs.

use std::sync::Arc;

use mingle_store::StoreError;

use super::disk;
use super::store::Shared;
use crate::core::Core;
use crate::mending::{Mend, serve};
use crate::storage::StorageError;

impl Shared {
    /// Makes sure that the store serves. The data centers that several stores share are on the disk
    /// of the first of these stores.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], with the reason.
    pub(super) async fn serve(&self) -> Result<(), StoreError> {
        for member in self.engine.members() {
            if member.core.is_broken() {
                serve(&member).await?;
            }
        }
        self.core.check()
    }
}

impl Mend for Shared {
    fn core(&self) -> &Core {
        &self.core
    }

    fn reopen(&self) -> Result<(), StorageError> {
        let own = self.own.as_ref().filter(|_| self.space.prefix().is_empty());
        let Some(own) = own else {
            // The logs belong to another store, or to the data centers elsewhere.
            return self.core.reopen(|_| Ok(()));
        };
        self.core.reopen(|view| {
            own.reload(view)?;
            for member in self.engine.members() {
                member.drop_idle();
                member.fates.reopen();
            }
            let signal = own.with(|inner| inner.with_disk(|disk, _| Arc::clone(&disk.signal)));
            if let Some(signal) = signal {
                disk::start(own, &self.core, signal);
            }
            Ok(())
        })
    }
}
