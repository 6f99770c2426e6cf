//! Connections, from the first to the last.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mingle::Database;
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::config::{Config, ConfigError};
use crate::heads::{Heads, Refusal};
use crate::limits::{ACCEPT_PAUSE, HANDSHAKE_WITHIN, HEAD_BYTES_MAX, KEYS_KEPT, KEYS_SWEPT_EVERY};
use crate::patient::Patient;
use crate::router::router;

/// The maximum size of a head for hyper: somewhat more than the server's own bound, so that hyper
/// finds no head too large that was let through to it.
const HYPER_BYTES_MAX: usize = HEAD_BYTES_MAX + (64 << 10);

/// A server that listens, and serves once it is [run](Self::run).
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
}

/// The reason why a server cannot listen.
#[derive(Debug)]
pub enum ServerError {
    /// The configuration is not allowed.
    Config(ConfigError),
    /// The server cannot listen at the address.
    Listen(SocketAddr, io::Error),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Listen(address, error) => write!(f, "cannot listen at {address}: {error}"),
        }
    }
}

impl std::error::Error for ServerError {}

/// The state that connections share.
struct Connections {
    router: Router,
    tls: Option<TlsAcceptor>,
    stopping: watch::Receiver<bool>,
    app: Arc<App>,
}

impl Server {
    /// Listens at an address; port 0 means any free port.
    ///
    /// # Errors
    ///
    /// When the server cannot listen at the address, or must not.
    pub async fn bind(
        database: Arc<Database>,
        address: SocketAddr,
        config: Config,
    ) -> Result<Self, ServerError> {
        config.may_listen(address).map_err(ServerError::Config)?;
        let fail = |error| ServerError::Listen(address, error);
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        Ok(Self { listener, address, app: Arc::new(App::new(database, config)) })
    }

    /// Returns the address at which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a function that returns the metrics of the server, in the OpenMetrics text format of
    /// `/metrics`.
    pub fn figures(&self) -> impl Fn() -> String + Send + Sync + use<> {
        let app = self.app.clone();
        move || app.metrics.text(&app.database, app.admission.as_ref())
    }

    /// Returns the URL at which a client finds the server.
    pub fn url(&self) -> String {
        let scheme = if self.app.config.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until `stop` is ready. Then the server begins nothing new, and running calls have
    /// [`Config::shutdown_after`] to end; returns true if all of them did. The database finishes
    /// the transactions that have committed at a store by then: see [`Database::settle`].
    pub async fn run(self, stop: impl Future<Output = ()>) -> bool {
        let Self { listener, app, .. } = self;
        let (told, stopping) = watch::channel(false);
        let places = Arc::new(Semaphore::new(app.config.connections_max));
        let shared = Arc::new(Connections {
            router: router(app.clone()),
            tls: app.config.tls.clone().map(TlsAcceptor::from),
            stopping,
            app: app.clone(),
        });
        let mut open = JoinSet::new();
        let sweep = tokio::spawn(forget_keys(app.database.clone()));
        let work = app.work.clone().map(|work| tokio::spawn(work.sweep()));
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                accepted = accept(&listener, &places) => {
                    if let Some((stream, place)) = accepted {
                        open.spawn(serve(shared.clone(), stream, place));
                    }
                }
                Some(_) = open.join_next() => {}
                () = &mut stop => break,
            }
        }
        drop(listener);
        sweep.abort();
        work.inspect(tokio::task::JoinHandle::abort);
        app.stop();
        // Fails if the last connection is closed already: then no receiver is left.
        let _ = told.send(true);
        let all = async { while open.join_next().await.is_some() {} };
        let have_ended = tokio::time::timeout(app.config.shutdown_after, all).await.is_ok();
        open.shutdown().await;
        have_ended
    }
}

/// Accepts the next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            tracing::warn!(%error, "a connection was not accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// A connection's place, counted until it is dropped, on every path.
struct Open {
    _place: OwnedSemaphorePermit,
    count: Gauge,
}

impl Open {
    fn new(place: OwnedSemaphorePermit, count: &Gauge) -> Self {
        count.inc();
        Self { _place: place, count: count.clone() }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.count.dec();
    }
}

/// Serves one connection.
async fn serve(shared: Arc<Connections>, stream: TcpStream, place: OwnedSemaphorePermit) {
    let _open = Open::new(place, &shared.app.metrics.connections);
    // Answers are small and complete; waiting for more to send would only delay them.
    let _ = stream.set_nodelay(true);
    let within = shared.app.config.write_within;
    match &shared.tls {
        Some(tls) => {
            let accepted = tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await;
            if let Ok(Ok(stream)) = accepted {
                speak(&shared, Patient::new(stream, within)).await;
            }
        }
        None => speak(&shared, Patient::new(stream, within)).await,
    }
}

async fn speak<S>(shared: &Connections, stream: Patient<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(shared.app.config.head_within)
        .max_buf_size(HYPER_BYTES_MAX)
        // A client that has sent its last request may still wait for the answer.
        .half_close(true)
        .pipeline_flush(true);
    let refusal = Refusal::default();
    let stream = Heads::new(stream, refusal.clone(), shared.app.budget.hold());
    let router = TowerToHyperService::new(shared.router.clone());
    let service = service_fn(move |mut request| {
        refusal.attach(&mut request);
        router.call(request)
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut stopping = shared.stopping.clone();
    let told = async { stopping.wait_for(|stopping| *stopping).await.is_ok() };
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _ = told => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// Periodically removes the records of calls under their keys, once they are old enough.
async fn forget_keys(database: Arc<Database>) {
    loop {
        tokio::time::sleep(KEYS_SWEPT_EVERY).await;
        forget_keys_once(&database, KEYS_KEPT).await;
    }
}

async fn forget_keys_once(database: &Database, age: Duration) {
    if let Err(error) = database.runtime().forget_keys(age).await {
        tracing::warn!(%error, "old idempotency keys are not removed yet");
    }
}
