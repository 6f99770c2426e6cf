//! Stores over data centers that are processes of their own: the upper half of the engine, inside such a
//! process.
//!
//! A process has one [`Hosted`]. Each program that connects opens its stores, with its own declarations;
//! those with one name are one store for all programs: their commits take turns in one gate.
//! All stores of one program are one engine, so a transaction over several of them is one strong
//! transaction.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mingle_geo::Key;
use mingle_geo::certify::Conflicts;
use mingle_model::{Level, Name};
use mingle_store::StoreSchema;

use crate::config::{EmbeddedConfig, OpenError};
use crate::geo::cluster::Cluster;
use crate::geo::{self, Engine, GeoConfig, GeoStore, Lasting, Space};
use crate::open::{Embedded, Rows, is_serializable};
use crate::storage::Storage;

/// The largest number of stores, of all programs, over one cluster.
pub const HOSTED_STORES_MAX: usize = 1_000;

/// The stores of all programs over the data centers of a cluster, at one of them.
pub struct Hosted {
    cluster: Arc<dyn Cluster>,
    config: GeoConfig,
    lasting: Mutex<BTreeMap<Name, Lasting>>,
}

impl Hosted {
    /// Creates the stores over a cluster; the configuration has its data centers and partitions.
    pub fn new(cluster: Arc<dyn Cluster>, config: GeoConfig) -> Self {
        Self { cluster, config, lasting: Mutex::default() }
    }

    /// Returns the conflicts between labels that these stores use. The groups of the cluster must know
    /// them, beside others.
    pub fn conflicts() -> Conflicts {
        geo::conflicts()
    }

    /// Returns the item for the rows with the declarations of a store, a map of bytes to bytes.
    pub fn declarations(store: &Name) -> Key {
        Space::of(store).key(geo::declarations())
    }

    /// Returns the beginning of the names of all items of a store.
    pub fn prefix(store: &Name) -> Vec<u8> {
        Space::of(store).prefix().to_vec()
    }

    /// Opens the stores of a program, each with the rows that hold its declarations.
    ///
    /// # Errors
    ///
    /// When a program changes declarations, an operation does not fit, or there are more than
    /// [`HOSTED_STORES_MAX`] stores, or more indexes than a store has.
    pub fn open(
        &self,
        stores: Vec<(StoreSchema, Box<dyn Storage>)>,
    ) -> Result<Vec<Arc<GeoStore>>, OpenError> {
        let engine = Arc::new(Engine::new());
        let open = |(schema, storage)| self.open_one(&schema, storage, &engine);
        stores.into_iter().map(open).collect()
    }

    fn open_one(
        &self,
        schema: &StoreSchema,
        storage: Box<dyn Storage>,
        engine: &Arc<Engine>,
    ) -> Result<Arc<GeoStore>, OpenError> {
        let is_strong = is_serializable(schema.level);
        let level = if is_strong { schema.level } else { Level::Causal };
        let schema = &StoreSchema { level, ..schema.clone() };
        let geo = GeoConfig { is_strong, ..self.config.clone() };
        let config = EmbeddedConfig::in_memory().with_geo(geo.clone());
        let lasting = self.lasting_of(schema)?;
        let world = Arc::clone(self.cluster.world());
        let form = if is_strong { "certified" } else { "merged" };
        let rows = Rows { storage, form: form.into(), is_shared: true };
        let core = Embedded::core_of(rows, &config, schema, &geo.datacenters, world)?;
        let cluster = Arc::clone(&self.cluster);
        let store = GeoStore::hosted(core, level, geo, (cluster, Arc::clone(engine)), lasting);
        let store = store.map_err(|error| OpenError::Config {
            store: schema.store.clone(),
            reason: error.message,
        })?;
        Ok(Arc::new(store))
    }

    fn lasting_of(&self, schema: &StoreSchema) -> Result<Lasting, OpenError> {
        let mut lasting = self.lasting.lock().unwrap_or_else(PoisonError::into_inner);
        if !lasting.contains_key(&schema.store) && lasting.len() >= HOSTED_STORES_MAX {
            let reason =
                format!("the data center has {HOSTED_STORES_MAX} stores, and takes no more");
            return Err(OpenError::Config { store: schema.store.clone(), reason });
        }
        let new = || Lasting::new(&self.config);
        Ok(lasting.entry(schema.store.clone()).or_insert_with(new).clone())
    }
}
