//! Stores of programs in a cluster of several data centers.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use mingle_geo::DcId;
use mingle_model::{Level, Name, Origin, Stamp, TransactionId, Value};
use mingle_proxy::Proxy;
use mingle_runtime::TokioWorld;
use mingle_store::conformance::schema::{COUNT, NUMBER, at, store_schema};
use mingle_store::conformance::{self, Factory};
use mingle_store::{
    BoxFuture, Commit, Data, DataStore, Outcome, Read, Session, StoreError, StoreSchema, Write,
};
use mingle_store_mingled::{Cluster, MingledConfig, OpenError};
use mingled::process::{Process, Settings};
use mingled::stores::{ProgramListener, ProgramSettings, Stores};
use tempfile::TempDir;

use super::block_on;

const COUNT_OF_CENTERS: u8 = 3;

/// The time after which a condition that must come is missed.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// A data center that runs within this process.
pub struct Running {
    pub process: Process,
    listener: ProgramListener,
}

impl Running {
    pub fn stop(self) {
        self.listener.stop();
        self.process.stop();
    }
}

/// Data centers within this process. A proxy stands between each two of them.
pub struct Places {
    folders: TempDir,
    /// By the data center that is dialed and the one that dials.
    links: BTreeMap<(u8, u8), Proxy>,
    pub running: BTreeMap<u8, Running>,
}

impl Places {
    pub async fn found() -> Self {
        let folders = TempDir::new().expect("a temporary folder");
        Self::start(folders, BTreeMap::new(), true).await
    }

    async fn start(folders: TempDir, links: BTreeMap<(u8, u8), Proxy>, is_founding: bool) -> Self {
        let mut places = Self { folders, links, running: BTreeMap::new() };
        for dc in 0..COUNT_OF_CENTERS {
            places.start_one(dc, is_founding, 0, None).await;
        }
        places.connected().await;
        places
    }

    /// Starts a data center, with a listener for programs at an address if one is given.
    pub async fn start_one(
        &mut self,
        dc: u8,
        is_founding: bool,
        incarnation: u32,
        at: Option<SocketAddr>,
    ) {
        let listener = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        let others = listener();
        let own = others.local_addr().expect("it is bound");
        for dials in dc + 1..COUNT_OF_CENTERS {
            match self.links.get(&(dc, dials)) {
                Some(link) => link.set_upstream(own),
                None => {
                    let link = Proxy::start(own, 1).await.expect("a free port");
                    self.links.insert((dc, dials), link);
                }
            }
        }
        let peers = (0..dc).map(|lower| (DcId(lower), self.links[&(lower, dc)].address()));
        let path = self.folders.path().join(format!("d{dc}.{incarnation}"));
        let settings = Settings {
            is_founding,
            incarnation,
            partition_count: 2,
            peers: peers.collect(),
            ..Settings::new(path, 1, DcId(dc), COUNT_OF_CENTERS)
        };
        let process = Process::start(settings.clone(), others).expect("it starts");
        let stores = Stores::start(&settings, &process).expect("a thread");
        let programs = at.map_or_else(listener, |at| TcpListener::bind(at).expect("it is free"));
        let listener =
            ProgramListener::start(stores, ProgramSettings::default(), programs).expect("a thread");
        self.running.insert(dc, Running { process, listener });
    }

    /// Waits until all that run are connected.
    pub async fn connected(&self) {
        let others = self.running.len() - 1;
        let begin = Instant::now();
        let is_connected = |running: &Running| {
            running.process.status().is_some_and(|status| status.connected.len() == others)
        };
        while !self.running.values().all(is_connected) {
            assert!(begin.elapsed() < PATIENCE, "the data centers do not connect");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub fn address(&self, dc: u8) -> SocketAddr {
        self.running[&dc].listener.address()
    }

    pub fn config(&self) -> MingledConfig {
        MingledConfig::of(
            self.running.keys().map(|dc| (format!("d{dc}"), self.address(*dc).to_string())),
        )
    }

    pub async fn open(&self, schema: StoreSchema) -> Arc<dyn DataStore> {
        let (name, world) = (schema.store.clone(), Arc::new(TokioWorld::new()));
        let cluster = Cluster::open(self.config(), &[schema], world).await;
        let cluster = cluster.unwrap_or_else(|error| panic!("{error}"));
        cluster.store(&name).expect("it was opened")
    }

    /// Lets nothing pass between the data centers.
    pub async fn separate(&self) {
        for link in self.links.values() {
            link.down().await;
            link.cut();
        }
    }

    /// Lets everything pass, and waits until all connections are made.
    pub async fn join(&self) {
        for link in self.links.values() {
            link.up().await.expect("the port is kept");
        }
        self.connected().await;
    }

    pub fn stop(self) -> (TempDir, BTreeMap<(u8, u8), Proxy>) {
        self.running.into_values().for_each(Running::stop);
        (self.folders, self.links)
    }
}

/// Returns the stamp of all that the data centers have acknowledged.
async fn acknowledged(store: &dyn DataStore) -> Stamp {
    let mut all = Stamp::default();
    for replica in &store.capabilities().replicas {
        let mut begun = store.begin(&Session::at(replica.clone())).await.expect("it serves");
        begun.read(&[Read::Counter(at("x", COUNT))]).await.expect("it answers");
        all.join(&begun.commit(Commit::default()).await.expect("it only read").stamp);
    }
    all
}

/// Waits until each data center has all that any has acknowledged.
pub async fn arrived(store: &dyn DataStore) {
    let (all, begin) = (acknowledged(store).await, Instant::now());
    while !store.everywhere().await.is_ok_and(|everywhere| everywhere.covers(&all)) {
        assert!(begin.elapsed() < PATIENCE, "{all:?} does not arrive");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// True if commits wait for no other data center.
fn is_weak(level: Level) -> bool {
    matches!(level, Level::Causal | Level::Eventual)
}

/// A store, and its data centers.
type Opened = (Weak<dyn DataStore>, Arc<Places>);

struct SeveralFactory {
    level: Level,
    /// The data centers of the open stores, with the store.
    places: Mutex<Vec<Opened>>,
    steps: AtomicUsize,
}

fn is_same(one: &Weak<dyn DataStore>, other: &dyn DataStore) -> bool {
    std::ptr::addr_eq(one.as_ptr(), std::ptr::from_ref(other))
}

impl SeveralFactory {
    /// Opens a store. A weak one is used while its data centers hear nothing of each other.
    async fn open_at(&self, places: Places, schema: StoreSchema) -> Arc<dyn DataStore> {
        let store = places.open(schema).await;
        // Each data center has read the declarations.
        drop(acknowledged(&*store).await);
        if is_weak(self.level) {
            places.separate().await;
        }
        let mut all = self.places.lock().expect("no test panics with the lock");
        all.push((Arc::downgrade(&store), Arc::new(places)));
        store
    }

    fn places(&self, store: &dyn DataStore) -> Arc<Places> {
        let all = self.places.lock().expect("no test panics with the lock");
        let found = all.iter().find(|(known, _)| is_same(known, store));
        Arc::clone(&found.expect("it is open").1)
    }

    /// Takes the data centers out of the list for which `is_over` holds.
    fn take(&self, is_over: impl Fn(&Weak<dyn DataStore>) -> bool) -> Vec<Places> {
        let mut all = self.places.lock().expect("no test panics with the lock");
        let over: Vec<_> = all.extract_if(.., |(store, _)| is_over(store)).collect();
        drop(all);
        let places = over.into_iter().map(|(_, places)| Arc::into_inner(places));
        places.map(|places| places.expect("no step is under way")).collect()
    }
}

async fn acknowledged_at(store: &dyn DataStore, replica: &Name) -> Stamp {
    let mut begun = store.begin(&Session::at(replica.clone())).await.expect("it serves");
    begun.read(&[Read::Counter(at("x", COUNT))]).await.expect("it answers");
    begun.commit(Commit::default()).await.expect("it only read").stamp
}

impl Factory for SeveralFactory {
    fn level(&self) -> Level {
        self.level
    }

    fn keeps_indexes(&self) -> bool {
        true
    }

    fn draws_keys(&self) -> bool {
        false
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        // Those of earlier tests.
        for places in self.take(|store| store.strong_count() == 0) {
            places.stop();
        }
        Box::pin(async move { self.open_at(Places::found().await, schema).await })
    }

    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        let places = self.take(|known| is_same(known, &*store)).pop().expect("it is open");
        drop(store);
        Box::pin(async move {
            let (folders, links) = places.stop();
            for link in links.values() {
                link.up().await.expect("the port is kept");
            }
            let again = Places::start(folders, links, false).await;
            Some(self.open_at(again, schema).await)
        })
    }

    fn deliver<'a>(&'a self, store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let places = self.places(store);
            places.join().await;
            arrived(store).await;
            if is_weak(self.level) {
                places.separate().await;
            }
        })
    }

    fn step<'a>(&'a self, store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.steps.fetch_add(1, Ordering::Relaxed) % 8 == 3 {
                self.deliver(store).await;
            }
        })
    }
}

fn check(level: Level) {
    let factory = SeveralFactory { level, places: Mutex::default(), steps: AtomicUsize::new(0) };
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

async fn write(store: &dyn DataStore, session: &Session, writes: Vec<Write>) -> Stamp {
    let begun = store.begin(session).await.expect("it serves");
    let committed = begun.commit(Commit { writes, ..Commit::default() }).await;
    committed.expect("it commits").stamp
}

async fn number(store: &dyn DataStore, session: &Session) -> Result<Data, StoreError> {
    let mut begun = store.begin(session).await?;
    let answers = begun.read(&[Read::Register(at("x", NUMBER))]).await?;
    Ok(answers[0].data.clone())
}

fn seven() -> Vec<Write> {
    vec![Write::Assign(at("x", NUMBER), Value::Int(7))]
}

#[test]
fn a_session_that_moves_waits_for_what_it_has_seen() {
    block_on(async {
        let places = Places::found().await;
        let store = places.open(store_schema(Level::Causal)).await;
        let names: Vec<&str> = store.capabilities().replicas.iter().map(|name| &**name).collect();
        assert_eq!(names, ["d0", "d1", "d2"]);
        for dc in ["d0", "d1", "d2"] {
            let found = number(&*store, &Session::at(dc)).await;
            assert_eq!(found, Ok(Data::Register(None)), "{dc}");
            assert!(store.place(Some(&dc.into())).is_some_and(|place| place.contains("127.0.0.1")));
        }
        places.separate().await;
        let after = write(&*store, &Session::at("d0"), seven()).await;
        let moved = Session { after, ..Session::at("d1") };
        let behind = number(&*store, &moved).await;
        let expected =
            StoreError::Behind { store: store.capabilities().store.clone(), replica: "d1".into() };
        assert_eq!(behind, Err(expected));
        assert_eq!(number(&*store, &Session::at("d1")).await, Ok(Data::Register(None)));
        places.join().await;
        let begin = Instant::now();
        let found = loop {
            match number(&*store, &moved).await {
                Err(StoreError::Behind { .. }) => assert!(begin.elapsed() < PATIENCE),
                found => break found,
            }
        };
        assert_eq!(found, Ok(Data::Register(Some(Value::Int(7)))));
        places.stop();
    });
}

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(9), sequence }
}

async fn commit_as(
    store: &dyn DataStore,
    dc: &str,
    sequence: u64,
) -> Result<mingle_store::Committed, StoreError> {
    let begun = store.begin(&Session::at(dc)).await?;
    begun.commit(Commit { id: Some(id(sequence)), writes: seven(), ..Commit::default() }).await
}

#[test]
fn an_outcome_is_that_of_all_data_centers() {
    block_on(async {
        let mut places = Places::found().await;
        let store = places.open(store_schema(Level::Causal)).await;
        drop(acknowledged(&*store).await);
        places.separate().await;
        // One that only its own data center knows.
        commit_as(&*store, "d1", 1).await.expect("it commits");
        assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Committed));
        // The others have noted that it has not taken effect there; that does not count, now or later.
        assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Committed));
        // One that was said not to have taken effect does so at no data center.
        assert_eq!(store.outcome(id(2)).await, Ok(Outcome::NotCommitted));
        for dc in ["d0", "d1", "d2"] {
            let refused = commit_as(&*store, dc, 2).await;
            assert!(matches!(&refused, Err(StoreError::Refused { .. })), "{dc}: {refused:?}");
        }
        places.join().await;
        arrived(&*store).await;
        assert_eq!(store.outcome(id(2)).await, Ok(Outcome::NotCommitted));
        // While one does not answer, nothing is known of a commit that the others have not.
        places.running.remove(&2).expect("it runs").stop();
        assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Committed), "d0 has it by now");
        assert_eq!(store.outcome(id(3)).await, Ok(Outcome::Unknown));
        let refused = commit_as(&*store, "d0", 3).await;
        assert!(matches!(&refused, Err(StoreError::Refused { .. })), "{refused:?}");
        let away = number(&*store, &Session::at("d2")).await;
        let Err(StoreError::Unavailable { reason, .. }) = &away else { panic!("{away:?}") };
        assert!(reason.contains("its data center d2 at 127.0.0.1:"), "{reason}");
        store.everywhere().await.expect_err("d2 does not answer");
        places.stop();
    });
}

#[test]
fn a_data_center_that_was_given_up_is_not_asked() {
    block_on(async {
        let mut places = Places::found().await;
        let store = places.open(store_schema(Level::Causal)).await;
        commit_as(&*store, "d2", 1).await.expect("it commits");
        let seen = acknowledged_at(&*store, &"d2".into()).await;
        arrived(&*store).await;
        places.separate().await;
        // Lost with its data center: the others never hear of it.
        let lost = write(&*store, &Session::at("d2"), seven()).await;
        let address = places.address(2);
        places.running.remove(&2).expect("it runs").stop();
        places.join().await;
        places.running[&0].process.fence(DcId(2), false).expect("the others agree");
        let begin = Instant::now();
        while store.everywhere().await.is_err() {
            assert!(begin.elapsed() < PATIENCE, "d2 is awaited");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(store.departed(), ["d2".into()] as [Name; 1]);
        assert_eq!(store.kept(&seen), seen, "all of it had arrived");
        assert_ne!(store.kept(&lost), lost);
        assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Committed));
        assert_eq!(store.outcome(id(2)).await, Ok(Outcome::NotCommitted));
        let refused = number(&*store, &Session { after: lost.clone(), ..Session::at("d0") }).await;
        let Err(StoreError::Refused { reason, .. }) = &refused else { panic!("{refused:?}") };
        assert!(reason.contains("d2 was given up"), "{reason}");
        let left = Session { after: store.kept(&lost), ..Session::at("d0") };
        number(&*store, &left).await.expect("the rest is there");

        // It comes back as another incarnation, which has copied the notes of the others.
        let incarnation = places.running[&0].process.admit(DcId(2)).expect("the others agree");
        places.start_one(2, true, incarnation, Some(address)).await;
        places.connected().await;
        let begin = Instant::now();
        while number(&*store, &Session::at("d2")).await.is_err()
            || store.everywhere().await.is_err()
        {
            assert!(begin.elapsed() < PATIENCE, "d2 does not serve");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert!(store.departed().is_empty(), "{:?}", store.departed());
        assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Committed));
        let refused = commit_as(&*store, "d2", 2).await;
        assert!(matches!(&refused, Err(StoreError::Refused { .. })), "{refused:?}");
        commit_as(&*store, "d2", 4).await.expect("it commits");
        places.stop();
    });
}

/// Opens a store, and returns the error.
async fn refusal(config: MingledConfig) -> OpenError {
    let schema = store_schema(Level::Causal);
    let opened = Cluster::open(config, &[schema], Arc::new(TokioWorld::new())).await;
    opened.map(|_| ()).expect_err("it is refused")
}

#[test]
fn bindings_that_do_not_name_the_data_centers_are_refused() {
    block_on(async {
        let places = Places::found().await;
        let one = MingledConfig::at(places.address(0).to_string());
        let error = refusal(one).await.to_string();
        let expected = "its cluster has 3 data centers: instead of `address`, give the address of each, \
                        `servers = { d0 = \"HOST:PORT\", d1 = \"HOST:PORT\", d2 = \"HOST:PORT\" }`";
        assert!(error.contains(expected), "{error}");
        let of = |names: &[(&str, u8)]| {
            MingledConfig::of(
                names.iter().map(|(name, dc)| (*name, places.address(*dc).to_string())),
            )
        };
        let error = refusal(of(&[("d0", 0), ("d1", 1)])).await.to_string();
        let expected = "`servers` names d0, d1, and the data centers of its cluster are d0, d1, d2";
        assert!(error.contains(expected), "{error}");
        let swapped = of(&[("d0", 0), ("d1", 2), ("d2", 1)]);
        let schema = store_schema(Level::Causal);
        let name = schema.store.clone();
        let opened = Cluster::open(swapped, &[schema], Arc::new(TokioWorld::new())).await;
        let store =
            opened.unwrap_or_else(|error| panic!("{error}")).store(&name).expect("it is there");
        let wrong = number(&*store, &Session::at("d1")).await;
        let Err(StoreError::Unavailable { reason, .. }) = &wrong else { panic!("{wrong:?}") };
        let expected = "it is data center d2, and the binding calls it d1";
        assert!(reason.contains(expected), "{reason}");
        places.stop();
    });
}
