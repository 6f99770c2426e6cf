//! The suite of adapters over the stores of data centers.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use mingle_geo::DcId;
use mingle_model::Level;
use mingle_runtime::TokioWorld;
use mingle_store::conformance::{self, Factory};
use mingle_store::{BoxFuture, DataStore, StoreSchema};
use mingle_store_mingled::{Cluster, Credentials, MingledConfig, OpenError, Password};
use mingled::process::{Process, Settings};
use mingled::stores::{ProgramListener, ProgramSettings, Stores};
use tempfile::TempDir;

use super::block_on;

/// A data center within this process.
pub struct Place {
    folder: TempDir,
    process: Process,
    listener: ProgramListener,
}

impl Place {
    /// Founds one in a new folder.
    pub fn found(strong_only: &[&str]) -> Self {
        Self::start(TempDir::new().expect("a temporary folder"), 1, strong_only, true)
    }

    /// Founds one with these settings of the listener.
    pub fn guarded(programs: ProgramSettings) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        Self::start_with(folder, 1, &[], true, programs)
    }

    /// Starts one.
    pub fn start(folder: TempDir, cluster: u128, strong_only: &[&str], is_founding: bool) -> Self {
        let programs = ProgramSettings::default();
        Self::start_with(folder, cluster, strong_only, is_founding, programs)
    }

    fn start_with(
        folder: TempDir,
        cluster: u128,
        strong_only: &[&str],
        is_founding: bool,
        programs: ProgramSettings,
    ) -> Self {
        let path = folder.path().join("data");
        let settings = Settings {
            is_founding,
            partition_count: 3,
            strong_only: strong_only.iter().map(|prefix| prefix.as_bytes().to_vec()).collect(),
            ..Settings::new(path, cluster, DcId(0), 1)
        };
        let listener = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        let process = Process::start(settings.clone(), listener()).expect("it starts");
        let stores = Stores::start(&settings, &process).expect("a thread");
        let listener = ProgramListener::start(stores, programs, listener()).expect("a thread");
        Self { folder, process, listener }
    }

    /// Returns the address for programs.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Opens one store.
    pub async fn open(&self, schema: StoreSchema) -> Arc<dyn DataStore> {
        self.try_open(schema, None).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Opens one store, as a user with a password.
    pub async fn try_open(
        &self,
        schema: StoreSchema,
        user: Option<(&str, &str)>,
    ) -> Result<Arc<dyn DataStore>, OpenError> {
        let credentials = user
            .map(|(user, password)| Credentials::new(user, Password::Text(password.to_owned())));
        let config = MingledConfig { credentials, ..MingledConfig::at(self.address().to_string()) };
        let (name, world) = (schema.store.clone(), Arc::new(TokioWorld::new()));
        let cluster = Cluster::open(config, &[schema], world).await?;
        Ok(cluster.store(&name).expect("it was opened"))
    }

    /// Stops it; its folder stays.
    pub fn stop(self) -> TempDir {
        self.listener.stop();
        self.process.stop();
        self.folder
    }
}

struct StoresFactory {
    level: Level,
    /// The data centers of the open stores, by the address of the store.
    places: Mutex<BTreeMap<usize, Place>>,
}

fn address(store: &Arc<dyn DataStore>) -> usize {
    Arc::as_ptr(store).cast::<()>() as usize
}

impl StoresFactory {
    async fn open_at(&self, place: Place, schema: StoreSchema) -> Arc<dyn DataStore> {
        let store = place.open(schema).await;
        let mut places = self.places.lock().expect("no test panics with the lock");
        places.insert(address(&store), place);
        store
    }
}

impl Factory for StoresFactory {
    fn level(&self) -> Level {
        self.level
    }

    fn keeps_indexes(&self) -> bool {
        true
    }

    fn draws_keys(&self) -> bool {
        false
    }

    /// A data center has one copy.
    fn is_apart(&self) -> bool {
        false
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        Box::pin(self.open_at(Place::found(&[]), schema))
    }

    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        let mut places = self.places.lock().expect("no test panics with the lock");
        let place = places.remove(&address(&store)).expect("it is open");
        drop(places);
        drop(store);
        let again = Place::start(place.stop(), 1, &[], false);
        Box::pin(async move { Some(self.open_at(again, schema).await) })
    }
}

fn check(level: Level) {
    let factory = StoresFactory { level, places: Mutex::default() };
    block_on(conformance::run(&factory)).assert_passed();
}

#[test]
fn linearizable() {
    check(Level::Linearizable);
}

#[test]
fn snapshot() {
    check(Level::Snapshot);
}

#[test]
fn causal() {
    check(Level::Causal);
}

#[test]
fn eventual() {
    check(Level::Eventual);
}
