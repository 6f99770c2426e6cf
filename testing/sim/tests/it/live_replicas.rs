//! The promises with causal stores over two PostgreSQL servers: behind proxies that lose answers
//! and cut connections, also between the servers, and with servers killed during transactions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mingle::TokioWorld;
use mingle_model::random::Random;
use mingle_proxy::{Proxy, Rates};
use mingle_services::{Engine, Options, Server};
use mingle_sim::workload::calls::Store;
use mingle_sim::workload::live::{LiveStores, judge_live, schema_of};
use mingle_sim::workload::setup::Plan;
use mingle_store::World;
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use mingle_store_postgres::{PostgresConfig, ReplicatedPostgres};

/// The names of the replicas at which clients stay.
const NAMES: [&str; 2] = ["r1", "r2"];

/// A server, the clients' proxy to it, and the other server's proxy to it.
struct Site {
    server: Server,
    clients: Proxy,
    link: Proxy,
}

impl Site {
    async fn start(seed: u64) -> Option<Self> {
        let settings = [
            ("wal_level", "logical"),
            ("wal_retrieve_retry_interval", "200ms"),
            ("max_logical_replication_workers", "16"),
            ("max_worker_processes", "24"),
        ];
        let options = settings
            .into_iter()
            .fold(Options::default(), |all, (name, value)| all.setting(name, value));
        let server = mingle_services::private_with(Engine::Postgres, options).await?;
        let address = server.addresses()[0];
        let clients = Proxy::start(address, seed).await.expect("a port can be had");
        let link = Proxy::start(address, seed + 1).await.expect("a port can be had");
        Some(Self { server, clients, link })
    }

    /// Returns the server's address through a proxy.
    fn through(&self, proxy: &Proxy) -> String {
        let own = self.server.addresses()[0].to_string();
        self.server.url().replace(&own, &proxy.address().to_string())
    }
}

async fn sites(seed: u64) -> Option<[Site; 2]> {
    Some([Site::start(seed).await?, Site::start(seed + 2).await?])
}

/// Creates the stores of a run: the causal ones at servers, the strong ones in this process.
async fn stores(plan: &Plan, sites: &[Site; 2], world: &Arc<dyn World>) -> LiveStores {
    let mut stores = LiveStores { faulty: Vec::new(), bare: Vec::new() };
    for store in [Store::Bank, Store::Shop] {
        let config = EmbeddedConfig::in_memory();
        let store = Embedded::open(config, schema_of(plan, store), world.clone());
        let store = store.unwrap_or_else(|error| panic!("{error}"));
        stores.bare.push(store.clone());
        stores.faulty.push(store);
    }
    for store in [Store::Wall, Store::Feed] {
        let mut config = PostgresConfig::at("");
        config.schema = Some(format!("t{:016x}_{}", plan.setup.seed, store.name()));
        config.connect_timeout = Duration::from_secs(3);
        config.statement_timeout = Duration::from_secs(3);
        config.lock_timeout = Duration::from_secs(1);
        let by_name = |url: fn(&Site) -> String| -> BTreeMap<String, String> {
            NAMES.iter().zip(sites).map(|(name, site)| ((*name).to_owned(), url(site))).collect()
        };
        config.links = by_name(|site| site.through(&site.link));
        for (is_bare, servers) in [
            (true, by_name(|site| site.server.url().to_owned())),
            (false, by_name(|site| site.through(&site.clients))),
        ] {
            let config = PostgresConfig { servers, ..config.clone() };
            let schema = schema_of(plan, store);
            let opened = ReplicatedPostgres::connect(config, schema, world.clone()).await;
            let opened = opened.unwrap_or_else(|error| panic!("{error}"));
            if is_bare { &mut stores.bare } else { &mut stores.faulty }.push(opened);
        }
    }
    stores
}

/// Returns the seed of calls and faults; `MINGLE_SEED` overrides it.
fn seed() -> u64 {
    let Ok(text) = std::env::var("MINGLE_SEED") else { return 1 };
    text.parse().unwrap_or_else(|_| panic!("MINGLE_SEED: expected a number, found {text:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promises_hold_while_ways_between_servers_are_cut() {
    let seed = seed();
    let Some(sites) = sites(seed).await else { return };
    let world: Arc<dyn World> = Arc::new(TokioWorld::new());
    let plan = Plan::live(seed, 25, Duration::from_millis(200));
    let stores = stores(&plan, &sites, &world).await;
    let hang_for = Duration::from_millis(200);
    let set_rates = |rates| sites.iter().for_each(|site| site.clients.set_rates(rates));
    set_rates(Rates { cut_request: 0.01, lose_answer: 0.03, hang: 0.01, hang_for });
    let is_over = AtomicBool::new(false);
    let cutting = async {
        let mut random = Random::new(seed);
        while !is_over.load(Ordering::Acquire) {
            let link = &sites[random.below(2)].link;
            link.down().await;
            link.cut();
            tokio::time::sleep(Duration::from_millis(random.below(600) as u64)).await;
            link.up().await.expect("the port is still ours");
            tokio::time::sleep(Duration::from_millis(random.below(600) as u64)).await;
        }
    };
    let judging = judge_live(&plan, world, stores, async {
        set_rates(Rates::default());
        is_over.store(true, Ordering::Release);
    });
    let ((), verdict) = tokio::join!(cutting, judging);
    let verdict = verdict.unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
    let lost: u64 = sites.iter().map(|site| site.clients.counts().answers_lost).sum();
    println!("seed {seed}: {} took effect, {lost} answers were lost", verdict.transactions);
    assert!(verdict.transactions > 50 && lost > 0, "{verdict:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promises_hold_while_replicas_are_killed_and_restarted() {
    const KILLS: usize = 4;
    let seed = seed();
    let Some(sites) = sites(seed).await else { return };
    let world: Arc<dyn World> = Arc::new(TokioWorld::new());
    let plan = Plan::live(seed, 30, Duration::from_millis(500));
    let stores = stores(&plan, &sites, &world).await;
    let killing = async {
        let mut random = Random::new(seed);
        for number in 0..KILLS {
            tokio::time::sleep(Duration::from_millis(200 + random.below(700) as u64)).await;
            let server = &sites[number % sites.len()].server;
            server.kill9().await.expect("it is ours");
            tokio::time::sleep(Duration::from_millis(random.below(500) as u64)).await;
            server.restart().await.expect("it comes back");
        }
    };
    let judging = judge_live(&plan, world, stores, async {});
    let ((), verdict) = tokio::join!(killing, judging);
    let verdict = verdict.unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
    println!("seed {seed}: {} took effect", verdict.transactions);
    assert!(verdict.transactions > 50, "{verdict:?}");
}
