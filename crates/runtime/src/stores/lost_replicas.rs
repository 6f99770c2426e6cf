//! Data lost with a replica that was given up, and the ways to go on without it.
//!
//! A session that has seen lost data is refused until the loss is accepted for it. A transaction
//! that has committed at some store already is finished with the data that is left.

use std::collections::BTreeMap;

use mingle_model::{Name, Stamp};

use crate::api::session::Session;
use crate::stores::Stores;

/// Data of a store that a session had seen, and that is lost for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The store.
    pub store: Name,
    /// The replicas, each with the point up to which the session had seen it.
    pub seen: Stamp,
    /// The points up to which they can still be seen.
    pub kept: Stamp,
}

impl Stores {
    /// Returns the data that a session has seen and that was lost with replicas that were given up.
    /// Its calls are refused if they would need this data.
    pub(crate) fn losses(&self, session: &Session) -> Vec<Loss> {
        let wait_set = session.worklist();
        let losses = (0..self.all.len()).filter_map(|store| {
            let name = self.stamped(store);
            let all = wait_set.seen_at(name);
            let left = self.all[store].kept(&all);
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

    /// Lets a session go on without the data that was lost with replicas that were given up, and
    /// returns the losses. No lost write is repeated.
    pub(crate) fn accept_losses(&self, session: &Session) -> Vec<Loss> {
        let losses = self.losses(session);
        for store in 0..self.all.len() {
            let name = self.stamped(store);
            let seen = session.worklist().seen_at(name);
            session.accept_loss(name, &self.all[store].kept(&seen));
        }
        losses
    }
}
