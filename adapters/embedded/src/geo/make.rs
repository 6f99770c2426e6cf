//! New stores: their data centers, and the state that transactions share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mingle_geo::limits::UPDATES_MAX;
use mingle_geo::{Key, Kind, PartitionId};
use mingle_model::Level;
use mingle_store::{Capabilities, Once};

use super::agreed::Known;
use super::cluster::Cluster;
use super::config::GeoConfig;
use super::fate::Fates;
use super::index::ObjectIndex;
use super::net::Net;
use super::relation::Relation;
use super::site::Site;
use super::space::{Engine, Space};
use super::store::{GeoStore, Shared};
use super::sweep::Sweep;
use super::{disk, driver};
use crate::config::LinkTable;
use crate::core::Core;
use crate::storage::StorageError;

/// The data centers of a store: where they are, and the same again if that is this process.
struct Datacenters {
    net: Arc<dyn Cluster>,
    own: Option<Arc<Net>>,
}

impl Datacenters {
    fn of(own: Arc<Net>) -> Self {
        Self { net: Arc::clone(&own) as Arc<dyn Cluster>, own: Some(own) }
    }
}

/// The state of a store that does not depend on the program that opened it.
#[derive(Clone)]
pub(crate) struct Lasting {
    sites: Arc<[Site]>,
    fates: Arc<Fates>,
    sweep: Arc<Sweep>,
}

impl Lasting {
    /// Creates the state of a store with these data centers.
    pub(crate) fn new(config: &GeoConfig) -> Self {
        let sites = config.datacenters.iter().map(|_| Site::default()).collect();
        Self { sites, fates: Arc::default(), sweep: Arc::default() }
    }
}

impl GeoStore {
    /// Creates the store, with replicas restored from its storage.
    ///
    /// # Errors
    ///
    /// When the disk fails, or its contents are no store.
    pub(crate) fn new(
        core: Core,
        level: Level,
        config: &GeoConfig,
        links: Option<LinkTable>,
    ) -> Result<Self, StorageError> {
        let storage = core.storage.is_durable().then_some(&*core.storage);
        let net = Arc::new(Net::new(config, links, Arc::clone(&core.world), storage)?);
        let core = Arc::new(core);
        driver::start(&net);
        let signal = net.with(|inner| inner.with_disk(|disk, _| Arc::clone(&disk.signal)));
        if let Some(signal) = signal {
            disk::start(&net, &core, signal);
        }
        let datacenters = Datacenters::of(net);
        let engine = Arc::new(Engine::new());
        Self::over(core, level, config.clone(), (datacenters, engine, Space::first()), None)
    }

    /// Adds another store to the engine of this one: with the same data centers, and its own items.
    ///
    /// # Errors
    ///
    /// As [`GeoStore::new`].
    pub(crate) fn beside(
        &self,
        core: Core,
        level: Level,
        config: &GeoConfig,
    ) -> Result<Self, StorageError> {
        let space = Space::of(&core.store);
        let (net, own) = (Arc::clone(&self.shared.net), self.shared.own.clone());
        let engine = Arc::clone(&self.shared.engine);
        let place = (Datacenters { net, own }, engine, space);
        Self::over(Arc::new(core), level, config.clone(), place, None)
    }

    /// Creates a store over data centers that run elsewhere. Its state outlasts it: other stores of
    /// the same name, for other programs, have the same.
    ///
    /// # Errors
    ///
    /// As [`GeoStore::new`].
    pub(crate) fn hosted(
        core: Core,
        level: Level,
        config: GeoConfig,
        (net, engine): (Arc<dyn Cluster>, Arc<Engine>),
        lasting: Lasting,
    ) -> Result<Self, StorageError> {
        let space = Space::of(&core.store);
        let place = (Datacenters { net, own: None }, engine, space);
        Self::over(Arc::new(core), level, config, place, Some(lasting))
    }

    fn over(
        core: Arc<Core>,
        level: Level,
        config: GeoConfig,
        (Datacenters { net, own }, engine, space): (Datacenters, Arc<Engine>, Space),
        lasting: Option<Lasting>,
    ) -> Result<Self, StorageError> {
        let pairs = config.conflicts.as_ref();
        let relation = pairs.map(|pairs| Relation::keep(&*core.storage, pairs)).transpose()?;
        let capabilities = Capabilities {
            store: core.store.clone(),
            level,
            atomic_commit: true,
            serializable: config.is_strong && relation.is_none(),
            once: if config.is_strong { Once::Serial } else { Once::ById },
            // An answer is lost when its data center stops first.
            may_lose_answers: true,
            floor_suffices: false,
            replicas: config.datacenters.clone(),
            weaker_answers: Capabilities::weaker_than(level, config.datacenters.len()),
            operations_per_round_trip: UPDATES_MAX,
            round_trip: Duration::ZERO,
        };
        let Lasting { sites, fates, sweep } = lasting.unwrap_or_else(|| Lasting::new(&config));
        for index in ObjectIndex::all(&space, &core.layout) {
            net.with(|inner| inner.derive(index));
        }
        let probes = probes(config.partitions);
        let indexes = Known::of(&core.layout);
        let shared = Shared {
            core,
            net,
            own,
            fates,
            sweep,
            config,
            space,
            probes,
            relation,
            indexes,
            engine,
            sites,
        };
        let shared = Arc::new(shared);
        shared.engine.add(&shared);
        Ok(Self { shared, capabilities })
    }
}

/// Returns the key of an item of each partition; no item has one of these names. The part in braces decides the
/// partition, in the space of any store.
fn probes(partitions: u16) -> Vec<Key> {
    let mut open: BTreeSet<PartitionId> = (0..partitions).map(PartitionId).collect();
    let named = (0_u64..).map(|number| Key::new(Kind::Register, format!("y{{{number}}}")));
    let mut probes = Vec::new();
    for key in named {
        if open.remove(&key.partition(partitions)) {
            probes.push(key);
        }
        if open.is_empty() {
            break;
        }
    }
    probes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::space::Space;

    #[test]
    fn each_partition_has_one_probe_in_any_space() {
        for partitions in [1, 2, 7, 64] {
            for space in [Space::first(), Space::of(&"feed".into())] {
                let keys = probes(partitions).into_iter().map(|key| space.key(key));
                let found: BTreeSet<PartitionId> =
                    keys.map(|key| key.partition(partitions)).collect();
                assert_eq!(found.len(), usize::from(partitions), "{space:?}");
            }
        }
    }
}
