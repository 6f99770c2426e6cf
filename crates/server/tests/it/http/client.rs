//! A server for one test, and a client that can send any bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mingle::{Binding, Database, TokioWorld};
use mingle_server::{Config, Server};
use mingle_store::DataStore;
use serde_json::Value as Json;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A program with two stores; none of its parts is fast or slow by itself.
pub const TEXT: &str = "store stock: linearizable; store feed: causal;
    /// What is sold.
    object Item in stock {
        /// Its name.
        key name: string;
        /// How many there are.
        count: int;
        tags: set<string>;
        prices: map<int, float>;
    }
    object Inbox in feed { key owner: string; lines: log<string>; }
    object Slot in stock { key number: int; note: option<option<int>>; }
    /// One line of an order.
    struct Line { item: ref Item, count: int, note: option<string> }
    /// Puts items on the shelf.
    ///
    /// Any number of them.
    transaction add(item: ref Item, count: int) -> int {
        item.count += count;
        item.tags.insert(\"new\");
        return item.count;
    }
    /// Sells items, and tells whoever bought them.
    transaction buy(item: ref Item, count: int, buyer: ref Inbox) -> int {
        require count > 0 else \"a count is positive\" as count;
        require item.count >= count else \"sold out\" as sold_out;
        item.count -= count;
        buyer.lines.append(\"bought\");
        return item.count;
    }
    transaction order(lines: list<Line>) -> int {
        for line in lines { line.item.count -= line.count; }
        return lines.size();
    }
    transaction tell(buyer: ref Inbox, text: string) { buyer.lines.append(text); }
    transaction read(of: ref Inbox) -> list<string> { return of.lines.to_list(); }
    transaction count(item: ref Item) -> int { return item.count; }
    transaction echo(a: int, b: option<int>, c: float, d: bytes, e: time) -> list<string> {
        return [string(a), string(c)];
    }
    transaction ping() -> string { return \"pong\"; }
    transaction slot(of: ref Slot) { of.note = some(none); }
    ";

/// A server that is stopped with the test.
pub struct Served {
    pub address: SocketAddr,
    runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<bool>>,
    pub database: Arc<Database>,
}

impl Served {
    pub fn new() -> Self {
        Self::with(TEXT, "", |_| {})
    }

    pub fn with(text: &str, binding: &str, change: impl FnOnce(&mut Config)) -> Self {
        Self::around(text, binding, change, |_, store| store)
    }

    /// Serves the program with a layer around each store, such as faults.
    pub fn around(
        text: &str,
        binding: &str,
        change: impl FnOnce(&mut Config),
        wrap: impl FnMut(&str, Arc<dyn DataStore>) -> Arc<dyn DataStore>,
    ) -> Self {
        let runtime = Runtime::new().expect("a runtime starts");
        let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}"));
        let mut binding = Binding::parse(binding).expect("the test's binding is right");
        // The other stores are in this process too.
        for store in &program.checked.stores {
            binding.stores.entry(store.name.to_string()).or_default();
        }
        let mut config = Config::default();
        change(&mut config);
        let (database, server) = runtime.block_on(async {
            let world = Arc::new(TokioWorld::new());
            let opened = Database::open_wrapped(program, &binding, None, world, wrap).await;
            let database = Arc::new(opened.expect("stores open"));
            (database.clone(), bind(database, config).await)
        });
        Self::serving(runtime, database, server)
    }

    /// Serves a program over stores in a folder.
    pub fn in_folder(text: &str, folder: &Path, change: impl FnOnce(&mut Config)) -> Self {
        let runtime = Runtime::new().expect("a runtime starts");
        let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}"));
        let mut config = Config::default();
        change(&mut config);
        let (database, server) = runtime.block_on(async {
            let opened = Database::open(program, &Binding::default(), Some(folder)).await;
            let database = Arc::new(opened.expect("stores open"));
            (database.clone(), bind(database, config).await)
        });
        Self::serving(runtime, database, server)
    }

    /// Starts another server over the same stores.
    pub fn beside(&self, change: impl FnOnce(&mut Config)) -> Self {
        Self::over(|| self.database.clone(), change)
    }

    /// A server of a database that is made where the server runs.
    pub fn over(
        database: impl FnOnce() -> Arc<Database>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let runtime = Runtime::new().expect("a runtime starts");
        let mut config = Config::default();
        change(&mut config);
        let (database, server) = runtime.block_on(async {
            let database = database();
            (database.clone(), bind(database, config).await)
        });
        Self::serving(runtime, database, server)
    }

    fn serving(runtime: Runtime, database: Arc<Database>, server: Server) -> Self {
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let served = runtime.spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self { address, runtime, stop: Some(stop), task: Some(served), database }
    }

    /// Tells the server to stop, without waiting for its end.
    pub fn tell_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops the server; returns true if all calls ended in time.
    pub fn stop(&mut self) -> bool {
        self.tell_to_stop();
        let served = self.task.take().expect("it is stopped once");
        self.runtime.block_on(served).expect("it does not panic")
    }

    /// Opens a connection; a read that takes longer than half a minute fails.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).expect("it is no zero");
        stream.set_write_timeout(patience).expect("it is no zero");
        stream
    }

    /// Sends bytes on a new connection, and returns all bytes that the server sends until it
    /// closes.
    pub fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // A server may answer and close before it has received everything.
        let _ = stream.write_all(bytes);
        read_all(&mut stream)
    }

    pub fn send(&self, request: &Request) -> Answer {
        Answer::parse(&self.raw(&request.bytes()))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(&Request::get(path))
    }

    pub fn call(&self, transaction: &str, body: &Json) -> Answer {
        self.send(&Request::call(transaction, body))
    }

    /// Returns the result of a call that must succeed.
    pub fn ok(&self, transaction: &str, body: &Json) -> Json {
        let answer = self.call(transaction, body);
        assert_eq!(answer.status, 200, "{transaction}: {}", answer.body);
        answer.json()["result"].clone()
    }

    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

async fn bind(database: Arc<Database>, config: Config) -> Server {
    let address = "127.0.0.1:0".parse().expect("it is an address");
    Server::bind(database, address, config).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Sends a call that reports its phases, and reads until the first phase has begun: then the call
/// runs.
pub fn begin(stream: &mut (impl Read + Write), call: Request) -> String {
    let call = call.header("accept", "text/event-stream");
    stream.write_all(&call.bytes()).expect("it listens");
    let mut told = String::new();
    while !told.contains("event: began") {
        let mut bytes = [0; 1_000];
        let count = stream.read(&mut bytes).expect("it tells of its phases");
        assert!(count > 0, "it has ended: {told}");
        told.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    told
}

/// Reads all bytes until the server closes; a reset of the connection ends the input too.
pub fn read_all(stream: &mut impl Read) -> String {
    let mut all = Vec::new();
    let mut buffer = [0; 8_192];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => all.extend(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => {
                panic!("after {:?}: {error}", String::from_utf8_lossy(&all))
            }
        }
    }
    String::from_utf8(all).expect("answers are UTF-8")
}

/// A request.
#[derive(Clone)]
pub struct Request {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub fn new(method: &str, path: &str) -> Self {
        let line = format!("{method} {path} HTTP/1.1");
        let headers = [("host", "localhost"), ("connection", "close")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { line, headers: headers.to_vec(), body: Vec::new() }
    }

    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub fn call(transaction: &str, body: &Json) -> Self {
        Self::new("POST", &format!("/v1/transactions/{transaction}"))
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.header("content-length", &length)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend(&self.body);
        bytes
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// Parses the only answer in `text`.
    pub fn parse(text: &str) -> Self {
        let (answer, rest) = Self::first(text);
        assert_eq!(rest, "", "there is more than one answer");
        answer
    }

    /// Parses the first answer, and returns it with the text that follows it.
    pub fn first(text: &str) -> (Self, &str) {
        let (head, rest) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
        let status = status.parse().unwrap_or_else(|_| panic!("no status: {head:?}"));
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers: Vec<_> =
            headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        let mut answer = Self { status, headers, body: String::new() };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunked(rest);
            return (answer, "");
        }
        let length = answer.header("content-length").map_or(rest.len(), |length| {
            length.parse().unwrap_or_else(|_| panic!("{length:?} is no length"))
        });
        let (body, rest) = rest.split_at(length);
        body.clone_into(&mut answer.body);
        (answer, rest)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn session(&self) -> &str {
        self.header("mingle-session").expect("an answer has a session")
    }

    pub fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// Returns the code of a problem, which must be well formed.
    pub fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let json = self.json();
        let code = json["code"].as_str().expect("a problem has a code");
        assert_eq!(json["type"], format!("urn:mingle:problem:{code}"));
        assert_eq!(json["status"], self.status);
        assert!(json["title"].is_string() && json["detail"].is_string(), "{json}");
        assert!(json["retryable"].is_boolean(), "{json}");
        code.to_owned()
    }

    pub fn detail(&self) -> String {
        self.json()["detail"].as_str().expect("a problem has a detail").to_owned()
    }
}

fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk has a size");
        body.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").expect("a chunk ends");
        if size == 0 {
            break;
        }
    }
    body
}
