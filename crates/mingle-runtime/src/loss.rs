//! What was lost with a replica that was given up, and how one goes on without it.
//!
//! A session that has seen some of it is refused until somebody accepts the loss for it. A transaction
//! that has committed at some store already is finished with what is left.

use std::collections::BTreeMap;

use mingle_model::{Name, Stamp};

use crate::runtime::Runtime;
use crate::session::Session;
use crate::transaction::Execution;

/// What a session had seen of a store, and nobody will see again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The store.
    pub store: Name,
    /// Of which replicas, and up to where it had seen them.
    pub seen: Stamp,
    /// Up to where they can still be seen.
    pub kept: Stamp,
}

impl Runtime {
    /// What a session has seen that was lost with replicas that were given up. Its calls are refused
    /// where they would need that.
    pub fn losses(&self, session: &Session) -> Vec<Loss> {
        let worklist = session.worklist();
        let losses = (0..self.stores.len()).filter_map(|store| {
            let name = self.stamped(store);
            let all = worklist.seen_at(name);
            let left = self.stores[store].kept(&all);
            let lost: Vec<&Name> = all
                .iter()
                .map(|(name, _)| name)
                .filter(|name| left.of(name) < all.of(name))
                .collect();
            let of =
                |stamp: &Stamp| lost.iter().map(|name| ((*name).clone(), stamp.of(name))).collect();
            let loss = Loss { store: name.clone(), seen: of(&all), kept: of(&left) };
            (!lost.is_empty()).then_some(loss)
        });
        let by_store: BTreeMap<Name, Loss> =
            losses.map(|loss| (loss.store.clone(), loss)).collect();
        by_store.into_values().collect()
    }

    /// Lets a session go on without what was lost with replicas that were given up; says what that is.
    /// Nothing is done again.
    pub fn accept_losses(&self, session: &Session) -> Vec<Loss> {
        let losses = self.losses(session);
        for store in 0..self.stores.len() {
            let name = self.stamped(store);
            let seen = session.worklist().seen_at(name);
            session.accept_loss(name, &self.stores[store].kept(&seen));
        }
        losses
    }

    /// What a replica must have seen before it serves a phase.
    pub(crate) fn after(
        &self,
        execution: &Execution,
        store: usize,
        fixed: Option<&Stamp>,
    ) -> Stamp {
        let mut after = execution.worklist.seen_at(self.stamped(store));
        if let Some(fixed) = fixed {
            after.join(fixed);
        }
        if execution.begun.is_some() { self.stores[store].kept(&after) } else { after }
    }
}
