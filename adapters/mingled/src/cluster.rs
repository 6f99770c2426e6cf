//! A program's connection to a data center.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::Name;
use mingle_store::{Capabilities, EngineId, StoreError, StoreSchema, World};

use crate::config::{MingledConfig, OpenError};
use crate::link::{Connection, Failed, Link};
use crate::schema::{declared, digest};
use crate::wire::{Answered, Given, Program, Request, framed};

/// The first id of engines in clusters; engines in this process have lower ones.
const FIRST_ENGINE: u64 = 1 << 63;

/// A program's connection to a data center of a cluster.
pub struct Cluster {
    pub(crate) link: Arc<Link>,
    /// Names and capabilities of its stores, in the order of their numbers.
    pub(crate) stores: Vec<Capabilities>,
    pub(crate) id: EngineId,
    world: Arc<dyn World>,
}

impl Cluster {
    /// Connects to a data center, and opens all stores of a program that are in its cluster.
    ///
    /// # Errors
    ///
    /// When the data center cannot be reached, or refuses the stores: it has other declarations of an
    /// object, or does not support a store.
    pub async fn open(
        config: MingledConfig,
        schemas: &[StoreSchema],
        world: Arc<dyn World>,
    ) -> Result<Arc<Self>, OpenError> {
        static NEXT: AtomicU64 = AtomicU64::new(FIRST_ENGINE);
        let program: Program = schemas.iter().map(declared).collect();
        let frame = framed(&program);
        let digest = digest(&frame[4..]);
        let address = config.address.clone();
        let round_trip = config.round_trip;
        let link = Arc::new(Link::new(config, (frame, digest)));
        let mut stores = link.open().await?;
        let is_same = stores.len() == schemas.len()
            && stores.iter().zip(schemas).all(|(found, schema)| found.store == schema.store);
        if !is_same {
            let reason = "it has opened other stores than those that it was asked for".into();
            return Err(OpenError::Refused { address, reason });
        }
        for store in &mut stores {
            store.may_lose_answers = true;
            store.round_trip = round_trip;
            if store.replicas.len() == 1 {
                // A single copy needs no name.
                store.replicas.clear();
            }
        }
        let id = EngineId(NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Arc::new(Self { link, stores, id, world }))
    }

    /// Connects to a data center without opening stores, and returns the number of its cluster.
    ///
    /// # Errors
    ///
    /// When the data center cannot be reached, or is of another cluster than the configuration says.
    pub async fn probe(config: MingledConfig) -> Result<u128, OpenError> {
        Link::new(config, (Vec::new(), [0; 32])).probe().await
    }

    pub(crate) fn number(&self, name: &str) -> Option<u16> {
        let place = self.stores.iter().position(|store| *store.store == *name)?;
        u16::try_from(place).ok()
    }

    pub(crate) fn capabilities(&self, number: u16) -> &Capabilities {
        &self.stores[usize::from(number)]
    }

    pub(crate) fn name(&self, number: u16) -> Name {
        self.capabilities(number).store.clone()
    }

    pub(crate) fn unavailable(&self, number: u16, reason: &str) -> StoreError {
        let address = &self.link.config().address;
        let reason = format!("its data center at {address} cannot be reached: {reason}");
        StoreError::Unavailable { store: self.name(number), reason }
    }

    /// Returns the error for an answer that does not fit its request.
    pub(crate) fn mixed_up(&self, number: u16) -> StoreError {
        self.unavailable(number, "it answers something else than it was asked")
    }

    pub(crate) async fn connect(&self, number: u16) -> Result<Connection, StoreError> {
        self.link.connect().await.map_err(|reason| self.unavailable(number, &reason))
    }

    /// Sends a request outside of transactions.
    pub(crate) async fn ask(&self, number: u16, request: &Request) -> Result<Given, StoreError> {
        let connection = self.connect(number).await?;
        let asked = connection.ask::<Answered>(request).await;
        let (connection, answered) =
            asked.map_err(|failed: Failed| self.unavailable(number, &failed.reason()))?;
        connection.keep();
        answered
    }

    /// Ends a transaction that a caller has dropped.
    pub(crate) fn end(&self, connection: Connection) {
        self.world.spawn(Box::pin(async move { connection.tell(&Request::Drop).await }));
    }
}
