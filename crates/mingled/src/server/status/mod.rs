//! The state of a data center over HTTP, for operators and for programs that watch it.
//!
//! | path | answer |
//! | --- | --- |
//! | `/` | a page with all of it, which renews itself each second |
//! | `/status.json` | the same facts as JSON |
//! | `/metrics` | figures for Prometheus, in the OpenMetrics text format |
//! | `/live` | 200 while the process runs and answers, otherwise 503 with the reason |
//! | `/ready` | 200 while clients are served, otherwise 503 with the reason |
//!
//! Nothing can be changed here. The page is for the machine itself: a request whose `Host` is not
//! on loopback is refused, so that a page of another origin cannot read it under a name of its own.

mod answer;
mod facts;
mod figures;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, watch};

use super::{Server, Shared};

/// The maximum number of connections; others wait.
const CONNECTIONS_MAX: usize = 32;

/// The time in which the head of a request must be complete.
const HEAD: Duration = Duration::from_secs(10);

/// The time after which the server ends a connection, also one that its client still uses.
const CONNECTION: Duration = Duration::from_mins(1);

/// The pause of the listener after an error, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// A running status page.
///
/// # Examples
///
/// ```
/// use std::io::{Read as _, Write as _};
/// use std::net::{TcpListener, TcpStream};
/// use std::sync::Arc;
///
/// use mingle_geo::DcId;
/// use mingled::process::{Process, Settings};
/// use mingled::server::{self, Server, StatusPage};
///
/// let folder = tempfile::tempdir()?;
/// let settings = Settings {
///     is_founding: true,
///     ..Settings::new(folder.path().join("data"), 1, DcId(0), 1)
/// };
/// let clients = server::Settings::new(&settings);
/// let process = Process::start(settings, TcpListener::bind("127.0.0.1:0")?)?;
/// let server = Server::start(clients, Arc::new(process), TcpListener::bind("127.0.0.1:0")?)?;
/// let page = StatusPage::start(&server, TcpListener::bind("127.0.0.1:0")?)?;
///
/// let mut stream = TcpStream::connect(page.address())?;
/// stream.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
/// let mut answer = String::new();
/// stream.read_to_string(&mut answer)?;
/// assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
/// page.stop();
/// server.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StatusPage {
    address: SocketAddr,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl StatusPage {
    /// Starts to answer requests about a server, until it is stopped or dropped.
    ///
    /// # Errors
    ///
    /// If the operating system gives no thread, or the listener cannot be used.
    pub fn start(of: &Server, listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let shared = of.shared.clone();
        let (end, ending) = watch::channel(false);
        let serve = move || runtime.block_on(accept_all(&shared, &listener, ending));
        let thread = Some(Builder::new().name("status".into()).spawn(serve)?);
        Ok(Self { address, end, thread })
    }

    /// Returns the address at which it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections, and waits for the end of the thread.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.end.send_replace(true);
        // A panic was printed where it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for StatusPage {
    fn drop(&mut self) {
        self.end();
    }
}

async fn accept_all(
    shared: &Arc<Shared>,
    listener: &tokio::net::TcpListener,
    mut ending: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            // The sender lives until the thread has ended.
            _ = ending.wait_for(|is_over| *is_over) => return,
            next = next => next,
        };
        match accepted {
            Ok((stream, _)) => {
                let (shared, mut ending) = (shared.clone(), ending.clone());
                tokio::spawn(async move {
                    let _place = place;
                    tokio::select! {
                        _ = ending.wait_for(|is_over| *is_over) => {}
                        () = serve(shared, stream) => {}
                    }
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// Answers the requests of a connection.
async fn serve(shared: Arc<Shared>, stream: tokio::net::TcpStream) {
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer::answer(&shared, &request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    // The client may have closed the connection, or sent no HTTP: hyper has answered that.
    let _ = tokio::time::timeout(CONNECTION, connection).await;
}
