//! A server that follows a script, for answers that a real server rarely gives.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The time limit of each step, after which a test fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// The reply to a request.
pub enum Reply {
    /// An answer: status, session token, and body.
    Answer(u16, Option<&'static str>, &'static str),
    /// As [`Reply::Answer`], after this number of requests has arrived.
    After(usize, u16, Option<&'static str>, &'static str),
    /// The connection is closed.
    Close,
    /// No reply, for as long as the client waits.
    Silence,
}

/// A request of a client.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method and path.
    pub line: String,
    /// Headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<Request>>,
    changed: Condvar,
}

/// The stub server; dropping it ends the server.
pub struct Stub {
    address: SocketAddr,
    seen: Arc<Seen>,
    is_over: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Stub {
    /// Answers the requests in the order of their arrival.
    pub fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let (seen, is_over) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
        let shared = (Arc::new(replies), seen.clone(), is_over.clone());
        let listener = thread::spawn(move || {
            let (replies, seen, is_over) = shared;
            let mut connections = Vec::new();
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                let (replies, seen) = (replies.clone(), seen.clone());
                let stream = stream.expect("a connection");
                connections.push(thread::spawn(move || serve(&stream, &replies, &seen)));
            }
            for connection in connections {
                connection.join().expect("the connection went well");
            }
        });
        Self { address, seen, is_over, listener: Some(listener) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.seen.requests.lock().expect("no thread has failed").clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // The server checks for its end when a client connects.
        TcpStream::connect(self.address).ok();
        if let Some(listener) = self.listener.take() {
            let ended = listener.join();
            assert!(ended.is_ok() || thread::panicking(), "a connection failed");
        }
    }
}

/// Answers one request, and closes the connection.
fn serve(stream: &TcpStream, replies: &[Reply], seen: &Seen) {
    stream.set_read_timeout(Some(PATIENCE)).expect("a deadline can be set");
    let Some(request) = read(&mut BufReader::new(stream)) else { return };
    let index = {
        let mut requests = seen.requests.lock().expect("no thread has failed");
        requests.push(request);
        seen.changed.notify_all();
        requests.len() - 1
    };
    let reply = replies.get(index).unwrap_or(&Reply::Answer(500, None, "more than expected"));
    match reply {
        Reply::Answer(status, session, body) => answer(stream, *status, *session, body),
        Reply::After(count, status, session, body) => {
            let requests = seen.requests.lock().expect("no thread has failed");
            let wait = seen.changed.wait_timeout_while(requests, PATIENCE, |it| it.len() < *count);
            drop(wait.expect("no thread has failed"));
            answer(stream, *status, *session, body);
        }
        Reply::Close => {}
        // Waits until the client closes the connection.
        Reply::Silence => drop((&*stream).read(&mut [0])),
    }
}

fn read(stream: &mut impl BufRead) -> Option<Request> {
    let mut first = String::new();
    stream.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let line = first.rsplit_once(' ')?.0.to_owned();
    Some(Request { line, headers, body: String::from_utf8(body).ok()? })
}

fn answer(mut stream: &TcpStream, status: u16, session: Option<&str>, body: &str) {
    let session = session.map(|token| format!("Mingle-Session: {token}\r\n")).unwrap_or_default();
    let kind = if status == 200 { "application/json" } else { "application/problem+json" };
    let head = format!(
        "HTTP/1.1 {status} Something\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         {session}Connection: close\r\n\r\n",
        body.len()
    );
    // The client may have closed the connection.
    stream.write_all(format!("{head}{body}").as_bytes()).ok();
}
