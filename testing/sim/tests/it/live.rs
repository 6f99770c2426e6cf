//! The promises over real servers: behind a proxy that loses answers and cuts connections, and with
//! servers killed during transactions.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mingle::TokioWorld;
use mingle_model::random::Random;
use mingle_proxy::{Counts, Proxy, Rates};
use mingle_services::{Engine, Server};
use mingle_sim::workload::calls::Store;
use mingle_sim::workload::live::{LiveStores, judge_live, schema_of};
use mingle_sim::workload::setup::Plan;
use mingle_store::{DataStore, StoreSchema, World};
use mingle_store_cassandra::{Cassandra, CassandraConfig, Consistency};
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use mingle_store_postgres::{Postgres, PostgresConfig};
use mingle_store_redis::{Redis, RedisConfig};

/// A server and its proxy, which injects faults.
struct Site {
    server: Server,
    proxy: Proxy,
}

impl Site {
    async fn start(engine: Engine, seed: u64) -> Option<Self> {
        let server = mingle_services::private(engine).await?;
        let proxy = Proxy::start(server.addresses()[0], seed).await.expect("a port can be had");
        Some(Self { server, proxy })
    }

    /// Returns the server's address as clients get it, with another host and port.
    fn url(&self, address: SocketAddr) -> String {
        self.server.url().replace(&self.server.addresses()[0].to_string(), &address.to_string())
    }

    async fn open(
        &self,
        address: SocketAddr,
        schema: StoreSchema,
        space: &str,
        world: &Arc<dyn World>,
    ) -> Arc<dyn DataStore> {
        let url = self.url(address);
        let store: Arc<dyn DataStore> = match self.server.engine() {
            Engine::Postgres => {
                let mut config = PostgresConfig::at(url);
                config.schema = Some(format!("{space}_{}", schema.store));
                config.connect_timeout = Duration::from_secs(3);
                config.statement_timeout = Duration::from_secs(3);
                config.lock_timeout = Duration::from_secs(1);
                let store = Postgres::connect(config, schema, world.clone()).await;
                store.unwrap_or_else(|error| panic!("{error}"))
            }
            Engine::Redis => {
                let mut config = RedisConfig::at(url);
                config.prefix = Some(format!("{space}:{}:", schema.store));
                config.connect_timeout = Duration::from_secs(3);
                config.answer_timeout = Duration::from_secs(3);
                let store = Redis::connect(config, schema, world.clone()).await;
                store.unwrap_or_else(|error| panic!("{error}"))
            }
            Engine::Cassandra => unreachable!("its test opens its stores itself"),
        };
        store
    }
}

/// Starts PostgreSQL for the bank and Redis for the shop.
async fn sites(seed: u64) -> Option<[Site; 2]> {
    let postgres = Site::start(Engine::Postgres, seed).await?;
    let redis = Site::start(Engine::Redis, seed + 1).await?;
    Some([postgres, redis])
}

/// Kills and restarts the servers in turn, `kills` times in total.
async fn kill_in_turn(sites: &[Site], seed: u64, kills: usize, is_over: &AtomicBool) -> usize {
    let mut random = Random::new(seed);
    for number in 0..kills {
        if is_over.load(Ordering::Acquire) {
            return number;
        }
        tokio::time::sleep(Duration::from_millis(200 + random.below(700) as u64)).await;
        let server = &sites[number % sites.len()].server;
        server.kill9().await.expect("it is ours");
        server.restart().await.expect("it comes back");
    }
    kills
}

/// Creates the stores of a run: the strong ones at servers, the causal ones in this process.
async fn stores(plan: &Plan, sites: &[Site; 2], world: &Arc<dyn World>) -> LiveStores {
    let mut stores = LiveStores { faulty: Vec::new(), bare: Vec::new() };
    for (store, site) in [Store::Bank, Store::Shop].into_iter().zip(sites) {
        let (near, far) = (site.server.addresses()[0], site.proxy.address());
        // Each plan has data of its own.
        let (schema, space) = (schema_of(plan, store), format!("t{:016x}", plan.setup.seed));
        stores.bare.push(site.open(near, schema.clone(), &space, world).await);
        stores.faulty.push(site.open(far, schema, &space, world).await);
    }
    for store in [Store::Wall, Store::Feed] {
        let config = EmbeddedConfig::in_memory()
            .with_replicas(plan.setup.replicas)
            .with_delay(plan.setup.delay, plan.setup.delay / 2);
        let store = Embedded::open(config, schema_of(plan, store), world.clone());
        let store = store.unwrap_or_else(|error| panic!("{error}"));
        stores.bare.push(store.clone());
        stores.faulty.push(store);
    }
    stores
}

/// Returns the seed of calls and faults; `MINGLE_SEED` overrides it.
fn seed() -> u64 {
    number("MINGLE_SEED", 1)
}

fn number(variable: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{variable}: expected a number, found {text:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promises_hold_while_connections_are_cut_and_answers_lost() {
    let seed = seed();
    let Some(sites) = sites(seed).await else { return };
    let world: Arc<dyn World> = Arc::new(TokioWorld::new());
    let plan = Plan::live(seed, 40, Duration::from_millis(200));
    let stores = stores(&plan, &sites, &world).await;
    let hang_for = Duration::from_millis(200);
    let rates = Rates { cut_request: 0.01, lose_answer: 0.03, hang: 0.01, hang_for };
    let set_rates = |rates| sites.iter().for_each(|site| site.proxy.set_rates(rates));
    set_rates(rates);
    let verdict = judge_live(&plan, world, stores, async { set_rates(Rates::default()) }).await;
    let verdict = verdict.unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
    for Site { server, proxy } in &sites {
        let counts = proxy.counts();
        println!("{} took effect; {}: {counts:?}", verdict.transactions, server.engine());
        let Counts { requests_cut, answers_lost, hangs, .. } = counts;
        assert!(requests_cut > 0 && answers_lost > 0 && hangs > 0, "{counts:?}");
    }
    assert!(verdict.transactions > 100, "{verdict:?}");
}

/// The default number of server kills, which `MINGLE_KILLS` overrides; `KILLS_IN_ROUND` is the
/// number in one round, after which clients start again with other data.
const KILLS: u64 = 8;
const KILLS_IN_ROUND: u64 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promises_hold_while_servers_are_killed_and_restarted() {
    let (seed, kills) = (seed(), number("MINGLE_KILLS", KILLS));
    let Some(sites) = sites(seed).await else { return };
    let mut transactions = 0;
    for (round, first) in (0..kills).step_by(KILLS_IN_ROUND as usize).enumerate() {
        let kills = KILLS_IN_ROUND.min(kills - first) as usize;
        transactions += killed_round(&sites, seed + round as u64, kills).await;
    }
    println!("{transactions} took effect, servers were killed {kills} times");
    assert!(transactions > 10 * kills, "{transactions} took effect");
}

/// Runs one round with kills; returns the number of transactions that took effect.
async fn killed_round(sites: &[Site; 2], seed: u64, kills: usize) -> u64 {
    let world: Arc<dyn World> = Arc::new(TokioWorld::new());
    let plan = Plan::live(seed, 10 + 6 * kills, Duration::from_millis(600));
    let stores = stores(&plan, sites, &world).await;
    let is_over = AtomicBool::new(false);
    let mut killed = 0;
    let killing = async { killed = kill_in_turn(sites, seed, kills, &is_over).await };
    let judging = judge_live(&plan, world, stores, async {
        is_over.store(true, Ordering::Release);
    });
    let ((), verdict) = tokio::join!(killing, judging);
    let verdict = verdict.unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
    assert_eq!(killed, kills, "the clients were done too early");
    verdict.transactions
}

/// Three nodes of Cassandra, each behind a proxy; the feed uses two of their data centers.
struct Cluster {
    server: Server,
    proxies: Vec<Proxy>,
}

impl Cluster {
    async fn start(seed: u64) -> Option<Self> {
        let server = mingle_services::private(Engine::Cassandra).await?;
        let mut proxies = Vec::new();
        for (address, seed) in server.addresses().into_iter().zip(seed..) {
            proxies.push(Proxy::start(address, seed).await.expect("a port can be had"));
        }
        Some(Self { server, proxies })
    }

    async fn open(&self, plan: &Plan, is_far: bool, world: &Arc<dyn World>) -> Arc<dyn DataStore> {
        let nodes = self.server.addresses();
        let far: Vec<SocketAddr> = self.proxies.iter().map(Proxy::address).collect();
        let known = if is_far { &far } else { &nodes };
        let known = known.iter().map(SocketAddr::to_string);
        let mut config = CassandraConfig::at(known, ["dc1", "dc2"]);
        config.replicas = Some(vec!["r1".into(), "r2".into()]);
        config.replication = ["dc1", "dc2", "dc3"].map(|name| (name.to_owned(), 1)).into();
        config.area = Some(format!("t{:016x}", plan.setup.seed));
        config.answer_timeout = Duration::from_secs(6);
        config.connect_timeout = Duration::from_secs(3);
        if is_far {
            config.addresses = nodes.into_iter().map(|node| node.ip()).zip(far).collect();
        } else {
            // The final check reads the common state of all replicas.
            config.read_consistency = Consistency::All;
            config.answer_timeout = Duration::from_mins(1);
        }
        let schema = schema_of(plan, Store::Feed);
        let store = Cassandra::connect(config, schema, world.clone()).await;
        store.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn stores(&self, plan: &Plan, world: &Arc<dyn World>) -> LiveStores {
        let mut stores = LiveStores { faulty: Vec::new(), bare: Vec::new() };
        for store in [Store::Bank, Store::Shop, Store::Wall] {
            let replicas = if store.is_causal() { plan.setup.replicas } else { 1 };
            let config = EmbeddedConfig::in_memory()
                .with_replicas(replicas)
                .with_delay(plan.setup.delay, plan.setup.delay / 2);
            let store = Embedded::open(config, schema_of(plan, store), world.clone());
            let store = store.unwrap_or_else(|error| panic!("{error}"));
            stores.bare.push(store.clone());
            stores.faulty.push(store);
        }
        stores.bare.push(self.open(plan, false, world).await);
        stores.faulty.push(self.open(plan, true, world).await);
        stores
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promises_hold_while_connections_to_cassandra_are_cut_and_answers_lost() {
    let seed = seed();
    let Some(cluster) = Cluster::start(seed).await else { return };
    let world: Arc<dyn World> = Arc::new(TokioWorld::new());
    let plan = Plan::live_eventual(seed, 20, Duration::from_millis(400));
    let stores = cluster.stores(&plan, &world).await;
    let hang_for = Duration::from_millis(200);
    let rates = Rates { cut_request: 0.01, lose_answer: 0.015, hang: 0.01, hang_for };
    let set_rates = |rates| cluster.proxies.iter().for_each(|proxy| proxy.set_rates(rates));
    set_rates(rates);
    let verdict = judge_live(&plan, world, stores, async { set_rates(Rates::default()) }).await;
    let verdict = verdict.unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
    let counts: Vec<Counts> = cluster.proxies.iter().map(Proxy::counts).collect();
    println!("{} took effect; {counts:?}", verdict.transactions);
    assert!(counts.iter().any(|counts| counts.answers_lost > 0), "{counts:?}");
    assert!(counts.iter().any(|counts| counts.requests_cut > 0), "{counts:?}");
    assert!(verdict.transactions > 50, "{verdict:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promises_hold_while_nodes_of_cassandra_are_killed_and_restarted() {
    const NODES_KILLED: usize = 3;
    let seed = seed();
    let Some(cluster) = Cluster::start(seed).await else { return };
    let world: Arc<dyn World> = Arc::new(TokioWorld::new());
    let plan = Plan::live_eventual(seed, 40, Duration::from_millis(1_500));
    let stores = cluster.stores(&plan, &world).await;
    let is_over = AtomicBool::new(false);
    let mut killed = 0;
    let killing = async {
        let mut random = Random::new(seed);
        for number in 0..NODES_KILLED {
            if is_over.load(Ordering::Acquire) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500 + random.below(700) as u64)).await;
            cluster.server.kill9_node(number).await.expect("it is ours");
            cluster.server.restart().await.expect("it comes back");
            killed += 1;
        }
    };
    let judging = judge_live(&plan, world, stores, async {
        is_over.store(true, Ordering::Release);
    });
    let ((), verdict) = tokio::join!(killing, judging);
    let verdict = verdict.unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
    println!("{} took effect, nodes were killed {killed} times", verdict.transactions);
    assert!(killed >= 2, "the clients were done after {killed}");
    assert!(verdict.transactions > 50, "{verdict:?}");
}
