//! A worker, a client of it, and a proxy in between.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mingle::{Binding, CallReport, Database, Error, Session, TokioWorld};
use mingle_proxy::Proxy;
use mingle_server::{Config, Server, WorkerBounds};
use mingle_store::DataStore;
use mingle_store::wrap::count::{Counters, CountingStore};
use serde_json::Value as Json;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A bank that is far away, and a feed that is near.
pub const TEXT: &str = "store bank: linearizable; store feed: causal;
    object Node in bank { key k: string; next: ref Node; n: int; }
    object Inbox in feed { key k: string; lines: log<string>; n: int; }
    transaction link(a: ref Node, b: ref Node) { a.next = b; }
    transaction fill(a: ref Node, n: int) { a.n = n; }
    transaction add(a: ref Node, n: int) -> int { a.n += n; return a.n; }
    transaction get(a: ref Node) -> int { return a.n; }
    transaction walk(a: ref Node) -> int {
        return a.next.next.next.next.next.next.next.next.next.next.next.next.next.next.next.next.next.next.next.n;
    }
    transaction pay(from: ref Node, to: ref Node, inbox: ref Inbox, n: int) -> int {
        require from.n >= n else \"too little\" as too_little;
        from.n -= n;
        to.n += n;
        inbox.lines.append(\"paid\");
        inbox.n += n;
        return from.n;
    }
    transaction paid(inbox: ref Inbox) -> int { return inbox.n; }
    transaction spin(a: ref Node) -> int {
        var i = a.n;
        while i < 1000000000 { i = i + 1; }
        return i;
    }
    ";

/// A server with a worker, which is stopped with the test.
pub struct Working {
    pub address: SocketAddr,
    pub database: Arc<Database>,
    pub bank: Arc<Counters>,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<bool>>,
}

/// The stores that a worker stands beside, so that another worker can take its place.
pub async fn beside(text: &str, binding: &str) -> (Arc<Database>, Arc<Counters>) {
    let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}"));
    let binding = Binding::parse(binding).expect("the test's binding is right");
    let mut bank = None;
    let wrap = |name: &str, store: Arc<dyn DataStore>| -> Arc<dyn DataStore> {
        let (counted, counters) = CountingStore::new(store);
        if name == "bank" {
            bank = Some(counters);
        }
        counted
    };
    let world = Arc::new(TokioWorld::new());
    let opened = Database::open_wrapped(program, &binding, None, world, wrap).await;
    let database = opened.unwrap_or_else(|error| panic!("{error}"));
    (Arc::new(database), bank.expect("the program has a bank"))
}

impl Working {
    pub async fn start(
        (database, bank): (Arc<Database>, Arc<Counters>),
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = Config { worker: Some(WorkerBounds::default()), ..Config::default() };
        change(&mut config);
        let address = "127.0.0.1:0".parse().expect("it is an address");
        let server = Server::bind(database.clone(), address, config).await;
        let server = server.unwrap_or_else(|error| panic!("{error}"));
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self { address, database, bank, stop: Some(stop), task: Some(task) }
    }

    /// Ends it, and leaves its stores.
    pub async fn stop(mut self) -> (Arc<Database>, Arc<Counters>) {
        drop(self.stop.take());
        let task = self.task.take().expect("it is stopped once");
        task.await.expect("it does not panic");
        (self.database.clone(), self.bank.clone())
    }
}

/// A worker, and a client that reaches it through a proxy.
pub struct Site {
    pub runtime: Runtime,
    pub working: Option<Working>,
    pub proxy: Proxy,
    pub client: Arc<Database>,
}

impl Site {
    pub fn new() -> Self {
        Self::with(TEXT, TEXT, "", |_| {})
    }

    /// With the program that is served, the client's, and more of the client's binding.
    pub fn with(served: &str, text: &str, binding: &str, change: impl FnOnce(&mut Config)) -> Self {
        Self::try_with(served, text, binding, change).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn try_with(
        served: &str,
        text: &str,
        binding: &str,
        change: impl FnOnce(&mut Config),
    ) -> Result<Self, String> {
        let runtime = Runtime::new().expect("a runtime starts");
        let (working, proxy, client) = runtime.block_on(async {
            let working = Working::start(beside(served, "").await, change).await;
            let proxy = Proxy::start(working.address, 7).await.expect("loopback listens");
            let client = client(text, &proxy, binding).await?;
            Ok::<_, String>((working, proxy, client))
        })?;
        Ok(Self { runtime, working: Some(working), proxy, client })
    }

    pub fn call(&self, transaction: &str, arguments: &[(&str, &str)]) -> Result<CallReport, Error> {
        let arguments = self.client.arguments(transaction, arguments.iter().copied())?;
        let call = self.client.call(transaction, arguments, Session::default());
        self.runtime.block_on(call)
    }

    pub fn report(&self, transaction: &str, arguments: &[(&str, &str)]) -> CallReport {
        self.call(transaction, arguments).unwrap_or_else(|error| panic!("{transaction}: {error}"))
    }

    pub fn ok(&self, transaction: &str, arguments: &[(&str, &str)]) -> Json {
        let report = self.report(transaction, arguments);
        self.client.result_json(transaction, &report)
    }

    pub fn bank(&self) -> &Arc<Counters> {
        &self.working.as_ref().expect("the worker is up").bank
    }

    /// A chain of so many nodes, the last one worth `n`.
    pub fn chain(&self, length: usize, n: i64) {
        for at in 1..length {
            let (a, b) = (format!("n{at}"), format!("n{}", at + 1));
            self.ok("link", &[("a", &a), ("b", &b)]);
        }
        self.ok("fill", &[("a", &format!("n{length}")), ("n", &n.to_string())]);
    }
}

pub async fn client(text: &str, proxy: &Proxy, binding: &str) -> Result<Arc<Database>, String> {
    let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}"));
    let address = proxy.address();
    let binding = format!("[stores.bank]\nworker = \"http://{address}\"\n{binding}");
    let mut binding = Binding::parse(&binding).map_err(|error| error.to_string())?;
    // The other stores are here.
    for store in &program.checked.stores {
        binding.stores.entry(store.name.to_string()).or_default();
    }
    binding.settings.clean_after = Duration::from_millis(5);
    binding.settings.help_after = Duration::from_millis(50);
    let opened = Database::open(program, &binding, None).await;
    opened.map(Arc::new).map_err(|error| error.to_string())
}

/// A client that sends no whole phases, because its stores are wrapped by counters of requests.
pub async fn in_pieces(proxy: &Proxy) -> Database {
    let program = mingle::compile(TEXT).unwrap_or_else(|errors| panic!("{errors}"));
    let binding =
        format!("[stores.bank]\nworker = \"http://{}\"\n[stores.feed]\n", proxy.address());
    let binding = Binding::parse(&binding).expect("the test's binding is right");
    let wrap =
        |_: &str, store: Arc<dyn DataStore>| -> Arc<dyn DataStore> { CountingStore::new(store).0 };
    let world = Arc::new(TokioWorld::new());
    let opened = Database::open_wrapped(program, &binding, None, world, wrap).await;
    opened.unwrap_or_else(|error| panic!("{error}"))
}

/// The time after which a test counts as hanging.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Repeats a check until it holds; panics if it does not hold in time.
pub fn eventually(mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A request of the test's own to the worker: the status, and the body as JSON.
pub fn ask(site: &Site, method: &str, path: &str, body: &[u8]) -> (u16, Json) {
    use std::io::{Read as _, Write as _};
    let address = site.working.as_ref().expect("the worker is up").address;
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("it is no zero");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    stream.write_all(body).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("an answer has a status"), serde_json::from_str(body).unwrap_or_default())
}

/// A name that is unique at a server.
pub fn unique(name: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let drawn = RandomState::new().hash_one(std::process::id());
    format!("{name}_{drawn:016x}_{number}")
}
