//! Stores of Mingle's programs in a cluster.
//!
//! What stands in Mingle's embedded engine above the core runs here, inside the data center: the items of
//! objects, guards and witness rows judged where commits take turns, outcomes, sessions. It uses the
//! process through [`Process::cluster`]. The items have kinds of their own, so clients of Redis, whose items
//! all have the kind [`Item`](mingle_geo::Kind::Item), neither see nor change them.
//!
//! - `world`: clock, timers and tasks of the stores.
//! - `rows`: the declarations of a store, as an item of the cluster.
//! - `listener`: connections of programs; `sign_in`: their users and rights; `connection`: the beginning of each, and
//!   `conversation`: its requests.

mod connection;
mod conversation;
mod listener;
mod rows;
mod sign_in;
mod world;

use std::fmt;
use std::io;
use std::sync::Arc;

use mingle_geo::DcId;
use mingle_geo::pattern::may_match_from;
use mingle_model::Name;
use mingle_store::{StoreError, StoreSchema};
use mingle_store_embedded::{GeoConfig, GeoStore, Hosted, OpenError};

use crate::process::{Process, Session, Settings};
use rows::ItemRows;

pub use listener::{CONNECTIONS_MAX, PROGRAMS_MAX, ProgramListener};
pub use sign_in::{ProgramSettings, REQUEST_WITHIN, SIGN_IN_WITHIN, STRANGERS_MAX};
pub use world::ProcessWorld;

/// The number of times that stores are opened before an error of their declarations is reported.
const OPENS_MAX: usize = 3;

/// The reason why the stores of a program are not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoresError {
    /// The cluster cannot have these stores.
    Refused(String),
    /// A store cannot be opened.
    Open(OpenError),
    /// The writers of a store do not use its indexes yet.
    Indexes(StoreError),
}

impl fmt::Display for StoresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Open(why) => why.fmt(f),
            Self::Indexes(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for StoresError {}

/// The stores of all programs at a data center.
pub struct Stores {
    world: Arc<ProcessWorld>,
    hosted: Hosted,
    /// Opens the sessions that read and write declarations.
    sessions: Box<dyn Fn() -> Session + Send + Sync>,
    cluster: u128,
    dc: DcId,
    strong_only: Vec<Vec<u8>>,
}

impl Stores {
    /// Starts stores over a process with these settings.
    ///
    /// # Errors
    ///
    /// If the operating system gives no thread.
    pub fn start(settings: &Settings, process: &Process) -> io::Result<Self> {
        let world = Arc::new(ProcessWorld::start()?);
        let cluster = process.cluster(world.clone());
        let names = (0..settings.dc_count).map(|dc| DcId(dc).to_string());
        let config = GeoConfig::new(names).with_partitions(settings.partition_count);
        Ok(Self {
            world,
            hosted: Hosted::new(cluster, config),
            sessions: process.sessions(),
            cluster: settings.cluster,
            dc: settings.dc,
            strong_only: settings.strong_only.clone(),
        })
    }

    /// Returns the world in which the stores run.
    pub fn world(&self) -> &Arc<ProcessWorld> {
        &self.world
    }

    /// Returns the number of the cluster.
    pub fn cluster(&self) -> u128 {
        self.cluster
    }

    /// Returns the data center.
    pub fn datacenter(&self) -> DcId {
        self.dc
    }

    /// Opens the stores of a program, which are one engine.
    ///
    /// # Errors
    ///
    /// If only strong transactions may write their items; if a declaration differs from the one that the
    /// cluster has, or cannot be read: that needs a majority of the data centers. If other programs go on without the
    /// indexes of this one.
    pub fn open(&self, schemas: Vec<StoreSchema>) -> Result<Vec<Arc<GeoStore>>, StoresError> {
        let mut opened = self.open_once(schemas.clone());
        for _ in 1..OPENS_MAX {
            // Another data center may have noted declarations at the same time.
            if !matches!(opened, Err(StoresError::Open(OpenError::Storage { .. }))) {
                break;
            }
            opened = self.open_once(schemas.clone());
        }
        let opened = opened?;
        for store in &opened {
            self.world.wait_for(store.settle_indexes()).map_err(StoresError::Indexes)?;
        }
        Ok(opened)
    }

    fn open_once(&self, schemas: Vec<StoreSchema>) -> Result<Vec<Arc<GeoStore>>, StoresError> {
        let mut stores = Vec::new();
        for schema in schemas {
            self.check_free(&schema.store)?;
            let rows = ItemRows::new(Hosted::declarations(&schema.store), (self.sessions)());
            stores.push((schema, Box::new(rows) as _));
        }
        self.hosted.open(stores).map_err(StoresError::Open)
    }

    /// Checks that causal transactions may write the items of a store.
    fn check_free(&self, store: &Name) -> Result<(), StoresError> {
        let own = Hosted::prefix(store);
        let overlaps = |pattern: &&Vec<u8>| may_match_from(pattern, &own);
        let Some(pattern) = self.strong_only.iter().find(overlaps) else { return Ok(()) };
        Err(StoresError::Refused(format!(
            "only strong transactions may write names that match '{}', and names of store {store} do",
            pattern.escape_ascii()
        )))
    }
}
