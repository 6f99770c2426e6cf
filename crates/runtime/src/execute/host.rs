//! The application's own transaction, in which the first writing phase of a call may run.

use std::sync::Arc;

use mingle_model::TransactionId;
use mingle_store::DataStore;

use crate::execute::commit::PhaseCommit;
use crate::execute::execution::Execution;

/// The application's transaction, until it is known to have committed.
pub(crate) struct HostTransaction {
    /// The index of its store.
    pub(crate) store: usize,
    /// The store whose transactions are parts of the application's transaction.
    pub(crate) place: Arc<dyn DataStore>,
    /// The phase that takes effect with it, once the phase has run.
    pub(crate) held: Option<Box<HeldCommit>>,
}

/// A commit that takes effect with the application's transaction.
pub(crate) struct HeldCommit {
    pub(crate) phase_commit: PhaseCommit,
    /// The id under which to ask the store for its outcome.
    pub(crate) id: Option<TransactionId>,
}

impl Execution {
    /// Runs its first writing phase in the application's own transaction.
    pub(crate) fn host_in(&mut self, host: HostTransaction) {
        if let Some(caller) = self.caller_mut() {
            caller.host = Some(host);
        }
    }

    pub(crate) fn host_mut(&mut self) -> Option<&mut HostTransaction> {
        self.caller_mut()?.host.as_mut()
    }

    pub(crate) fn take_host(&mut self) -> Option<HostTransaction> {
        self.caller_mut()?.host.take()
    }

    /// The place, if a phase at this store is a part of the application's transaction.
    pub(crate) fn hosted_at(&self, store: usize) -> Option<&Arc<dyn DataStore>> {
        let host = self.host().filter(|host| host.store == store && !self.has_written());
        host.map(|host| &host.place)
    }

    /// True if a commit takes effect with the application's transaction.
    pub(crate) fn hosts(&self, phase_commit: &PhaseCommit) -> bool {
        phase_commit.is_decisive && self.hosted_at(phase_commit.visit.store).is_some()
    }

    /// True if the call takes effect with this phase, even if it writes nothing: no effect elsewhere may follow
    /// unless the application commits.
    pub(crate) fn decides_in_host(&self, index: usize) -> bool {
        self.host().is_some() && !self.has_written() && self.call.plan.first_write == Some(index)
    }
}
