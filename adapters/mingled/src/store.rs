//! The stores of a program in a cluster.

use std::sync::Arc;

use mingle_model::{Name, Stamp, TransactionId};
use mingle_store::{
    BoxFuture, Capabilities, DataStore, EngineId, Outcome, Session, StoreError, Transaction, United,
};

use crate::cluster::Cluster;
use crate::transaction::{MingledTransaction, opening};
use crate::united::UnitedTransaction;

/// A store in a cluster.
pub struct MingledStore {
    cluster: Arc<Cluster>,
    number: u16,
}

impl Cluster {
    /// Returns a store of the program; none if it is not in the cluster.
    pub fn store(self: &Arc<Self>, name: &str) -> Option<Arc<MingledStore>> {
        let number = self.number(name)?;
        Some(Arc::new(MingledStore { cluster: Arc::clone(self), number }))
    }
}

impl DataStore for MingledStore {
    fn capabilities(&self) -> &Capabilities {
        self.cluster.capabilities(self.number)
    }

    fn place(&self, replica: Option<&Name>) -> Option<String> {
        Some(self.cluster.address(self.cluster.place(replica)).to_owned())
    }

    fn engine(&self) -> Option<EngineId> {
        (self.cluster.stores.len() > 1).then_some(self.cluster.id)
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        let begun = self.check_replica(session).map(|()| {
            let opening = opening(self.number, &self.session(session), false);
            let at = (self.number, self.cluster.place(session.replica.as_ref()));
            let begun = MingledTransaction::new(Arc::clone(&self.cluster), at, opening);
            Box::new(begun) as Box<dyn Transaction>
        });
        Box::pin(std::future::ready(begun))
    }

    fn begin_united<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn United>, StoreError>> {
        let begun = self.check_replica(session).map(|()| {
            let opening = opening(self.number, &self.session(session), true);
            let at = (self.number, self.cluster.place(session.replica.as_ref()));
            let begun = UnitedTransaction::new(Arc::clone(&self.cluster), at, opening);
            Box::new(begun) as Box<dyn United>
        });
        Box::pin(std::future::ready(begun))
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(self.cluster.outcome(self.number, id))
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(self.cluster.everywhere(self.number))
    }

    fn departed(&self) -> Vec<Name> {
        self.cluster.departed().into_iter().collect()
    }

    fn kept(&self, seen: &Stamp) -> Stamp {
        self.cluster.kept(seen)
    }
}

impl MingledStore {
    /// Returns the session as the data center knows it: a single copy has no name here.
    fn session(&self, session: &Session) -> Session {
        let replica = session.replica.clone().filter(|_| !self.capabilities().replicas.is_empty());
        Session { replica, ..session.clone() }
    }

    /// Refuses a session that stays at a replica which the store has not.
    fn check_replica(&self, session: &Session) -> Result<(), StoreError> {
        let known = &self.capabilities().replicas;
        let is_unknown = |replica: &&Name| !known.is_empty() && !known.contains(replica);
        let unknown = session.replica.as_ref().filter(is_unknown);
        let Some(replica) = unknown else { return Ok(()) };
        let names: Vec<&str> = known.iter().map(|name| &**name).collect();
        let reason = format!("it has no data center {replica}; it has {}", names.join(", "));
        Err(StoreError::Refused { store: self.capabilities().store.clone(), reason })
    }
}
