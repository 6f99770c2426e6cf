//! A data center: its replicas, and the reason why it cannot serve, if there is one.

use std::sync::Arc;

use mingle_geo::derive::Derive;
use mingle_geo::{Config, DcId, PartitionId, Record, Vector};
use mingle_model::Name;

use super::node::Node;
use crate::geo::config::GeoConfig;
use crate::geo::disk::Disk;
use crate::storage::{StorageError, View};

/// A data center.
pub struct Site {
    pub name: Name,
    pub is_up: bool,
    /// Number of times it started anew: the incarnation of its replicas.
    pub incarnation: u32,
    /// The reason why its data are gone, if they are: this incarnation never starts again.
    pub lost: Option<String>,
    pub replicas: Vec<Node>,
    /// After a restart, no client begins here before all of this is visible.
    pub ready: Vector,
}

impl Site {
    /// Restores a data center from its logs; without a disk, creates a new one.
    ///
    /// # Errors
    ///
    /// The setting of the core that is out of bounds, or the fault of the storage.
    pub fn open(
        dc: DcId,
        config: &GeoConfig,
        disk: Option<(&mut Disk, &dyn View)>,
    ) -> Result<Self, StorageError> {
        let mut site = Self::new(dc, config, 0, &[])?;
        let Some((disk, view)) = disk else { return Ok(site) };
        site.incarnation = Disk::incarnation(dc, view)?;
        // In a new store no log exists. If any log exists, a missing one was lost.
        let must_have_log = Disk::has_any(view)?;
        for partition in (0..config.partitions).map(PartitionId) {
            let own = settings(dc, partition, config, site.incarnation);
            let records = match disk.load((dc, partition), view)? {
                Ok(records) if records.is_empty() && must_have_log => {
                    site.lost.get_or_insert(format!("its partition {} has no log", partition.0));
                    records
                }
                Ok(records) => records,
                Err(why) => {
                    site.lost.get_or_insert(why);
                    Vec::new()
                }
            };
            let is_new = !must_have_log || !records.is_empty();
            let node = Node::new(own, config, records, is_new).map_err(StorageError::new)?;
            site.replicas[usize::from(partition.0)] = node;
        }
        site.is_up = site.lost.is_none();
        for replica in &site.replicas {
            site.ready.join(&replica.uniform_vec().with(dc, replica.known_vec()[dc]));
        }
        Ok(site)
    }

    /// Creates an incarnation of a data center that has only these records.
    ///
    /// # Errors
    ///
    /// The setting of the core that is out of bounds.
    pub fn new(
        dc: DcId,
        config: &GeoConfig,
        incarnation: u32,
        records: &[Record],
    ) -> Result<Self, StorageError> {
        let replicas = (0..config.partitions).map(PartitionId).map(|partition| {
            let own = settings(dc, partition, config, incarnation);
            Node::new(own, config, records.to_vec(), true).map_err(StorageError::new)
        });
        Ok(Self {
            name: config.datacenters[usize::from(dc.0)].clone(),
            is_up: true,
            incarnation,
            lost: None,
            replicas: replicas.collect::<Result<_, _>>()?,
            ready: Vector::ZERO,
        })
    }

    /// Lets all its replicas keep an index.
    pub fn derive(&mut self, by: &Arc<dyn Derive>) {
        for replica in &mut self.replicas {
            replica.derive(by);
        }
    }

    /// Returns the number of partitions whose replicas have copied the data of the others and are
    /// members.
    pub fn come_up(&self) -> u16 {
        let up = self.replicas.iter().filter(|replica| replica.is_member());
        up.count() as u16
    }
}

fn settings(dc: DcId, partition: PartitionId, config: &GeoConfig, incarnation: u32) -> Config {
    let count = config.datacenters.len() as u8;
    let own = Config::new(dc, count, partition, config.partitions);
    Config { f: config.f.unwrap_or(own.f), incarnation, ..own }
}
