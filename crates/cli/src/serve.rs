//! `mingle serve`: serves a program over HTTP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mingle::{Database, SessionKey};
use mingle_server::config::random_session_key;
use mingle_server::server::ServerError;
use mingle_server::{Config, Server, Tokens, WorkerBounds, limits, tls};

use crate::exit::{Exit, Failure};
use crate::files;
use crate::held::Sign;
use crate::log::{Log, Spans};
use crate::open::{Place, block_on, open_to_stay};
use crate::output::{Color, print};
use crate::rest::{A_MOMENT, wait_for_rest};

/// The rule by which calls are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum How {
    /// By how long calls of the same transaction take.
    Latency,
    /// By the count of all alone.
    Count,
}

/// Let others call a program, over HTTP.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle serve groups.mingle                      on this machine, at http://127.0.0.1:8080
  mingle serve groups.mingle --listen 127.0.0.1:0 at a port that is free
  mingle serve groups.mingle --listen 0.0.0.0:443 --tokens tokens.toml \\
      --tls-cert cert.pem --tls-key key.pem --session-key session.key

It prints `listening on URL` once it does. `URL/` is a page to try the program on, `URL/openapi.json`
says what can be called. SIGTERM and SIGINT end it: what runs is finished first.

A file of tokens says who may do what; it holds the SHA-256 of each token:
  [[tokens]]
  name = \"till\"
  sha256 = \"…\"                    # printf %s \"$TOKEN\" | sha256sum
  transactions = [\"buy\"]          # or [\"*\"]
  objects = [\"Item\"]
  worker = [\"stock\"]              # stores at which it may use the worker
  programs = [\"…\"]               # programs that the worker runs for it, by SHA-256 [default: all]
  principals = { till = [\"buy\"] } # callers whose calls it may bring to the worker [default: all]")]
pub struct Args {
    /// The program.
    file: String,

    /// Where to listen.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// Who may do what [default: everybody on this machine everything].
    #[arg(long, value_name = "FILE")]
    tokens: Option<String>,

    /// Listen for other machines although there are no tokens: everybody may do everything.
    #[arg(long, conflicts_with = "tokens")]
    open: bool,

    /// Run phases for clients elsewhere, beside the stores of this program.
    #[arg(long)]
    worker: bool,

    /// Instructions of one phase that runs for somebody elsewhere.
    #[arg(long, value_name = "N", requires = "worker", default_value_t = limits::WORKER_STEPS_MAX)]
    worker_steps: u64,

    /// Bytes of values in one such phase.
    #[arg(long, value_name = "BYTES", requires = "worker", default_value_t = limits::WORKER_MEMORY_BYTES_MAX)]
    worker_memory: usize,

    /// The certificate, and those that vouch for it, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The key of the certificate, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// 32 bytes that sign the sessions of clients, the same at all servers of one program
    /// [default: random ones, so that sessions end with the process].
    #[arg(long, value_name = "FILE")]
    session_key: Option<PathBuf>,

    /// Bytes of a request's body.
    #[arg(long, value_name = "BYTES", default_value_t = limits::BODY_BYTES_MAX)]
    max_body: usize,

    /// Bytes of memory for the bodies of all requests, and the arguments decoded from them; requests
    /// beyond are told to come again.
    #[arg(long, value_name = "BYTES", default_value_t = limits::BODY_MEMORY_MAX)]
    max_body_memory: usize,

    /// Calls that run at a time; others are told to come again.
    #[arg(long, value_name = "N", default_value_t = limits::CONCURRENT_MAX)]
    max_concurrent: usize,

    /// How calls are admitted: by how long calls of the same transaction take, or by the count of all alone.
    #[arg(long, value_name = "HOW", default_value = "latency")]
    admission: How,

    /// The longest deadline that a caller may ask for, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = milliseconds(limits::DEADLINE_MAX))]
    deadline_max: u64,

    /// How long calls may go on once the server is told to end, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = milliseconds(limits::SHUTDOWN_AFTER))]
    shutdown_after: u64,

    /// Send traces and metrics to an OpenTelemetry collector: its address, http://HOST:PORT, to which /v1/traces
    /// and /v1/metrics are added.
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,

    #[command(flatten)]
    log: Log,

    #[command(flatten)]
    place: Place,
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    let mut telemetry = Telemetry::start(args)?;
    args.log.start(color, telemetry.spans.take())?;
    block_on(async {
        let stop = stop_signal()?;
        let opened = open_to_stay(&args.file, &args.place, color).await?;
        let database = Arc::new(opened.database);
        let config = config(args, &database, opened.session.replica())?;
        let at_most = config.shutdown_after.max(A_MOMENT);
        let server = Server::bind(database.clone(), args.listen, config).await.map_err(failure)?;
        #[cfg(feature = "otlp")]
        let _metrics = telemetry.metrics(&server)?;
        let _sign = Sign::put(&opened.data, &server.url());
        tracing::info!(url = server.url(), program = args.file, "listening");
        print(&format!("listening on {}\n", server.url()));
        if !server.run(stop).await {
            tracing::warn!("some calls had not ended in time");
        }
        tracing::info!("the last call has been answered");
        Ok(wait_for_rest(&database, at_most).await)
    })
}

/// The export of traces and metrics, if there is one.
struct Telemetry {
    /// The layer that receives spans.
    spans: Option<Spans>,
    #[cfg(feature = "otlp")]
    exporter: Option<Exporter>,
}

/// The collector, and the guard that sends the last spans.
#[cfg(feature = "otlp")]
struct Exporter {
    otlp: mingle_server::otlp::Otlp,
    _traces: mingle_server::otlp::Traces,
}

impl Telemetry {
    #[cfg(not(feature = "otlp"))]
    #[allow(clippy::unnecessary_wraps)]
    fn start(_args: &Args) -> Result<Self, Failure> {
        Ok(Self { spans: None })
    }

    #[cfg(feature = "otlp")]
    fn start(args: &Args) -> Result<Self, Failure> {
        use tracing_subscriber::Layer as _;
        let Some(url) = args.otlp.as_ref().filter(|url| !url.is_empty()) else {
            return Ok(Self { spans: None, exporter: None });
        };
        let otlp = mingle_server::otlp::Otlp::new(url, &files::stem(&args.file))
            .map_err(|error| Failure::usage(format!("--otlp: {error}")))?;
        let (layer, traces) = otlp.traces();
        Ok(Self { spans: Some(layer.boxed()), exporter: Some(Exporter { otlp, _traces: traces }) })
    }

    /// Starts to send the metrics of a server.
    #[cfg(feature = "otlp")]
    fn metrics(&self, server: &Server) -> Result<Option<mingle_server::otlp::Metrics>, Failure> {
        let started = self.exporter.as_ref().map(|it| it.otlp.metrics(server.figures()));
        started.transpose().map_err(|error| Failure {
            message: format!("cannot start to send metrics: {error}"),
            exit: Exit::Usage,
        })
    }
}

/// Returns the failure of the command for a server that cannot start.
pub fn failure(error: ServerError) -> Failure {
    match &error {
        ServerError::Config(config) => {
            Failure::usage(format!("{config}; give --tokens, or --open if that is meant"))
        }
        ServerError::Listen(..) => Failure::usage(error.to_string()),
    }
}

fn config(
    args: &Args,
    database: &Database,
    replica: Option<mingle_model::Name>,
) -> Result<Config, Failure> {
    let tokens = args.tokens.as_ref().map(|file| {
        let text = files::read(file)?;
        Tokens::parse(&text, database.program())
            .map_err(|error| Failure::usage(format!("{file}: {error}")))
    });
    let tls = args.tls_cert.as_ref().zip(args.tls_key.as_ref()).map(|(certificate, key)| {
        tls::load(certificate, key).map_err(|error| Failure::usage(error.to_string()))
    });
    let session_key = match &args.session_key {
        Some(file) => session_key(file)?,
        None => {
            tracing::info!("without --session-key, sessions end with this process");
            random_session_key()
        }
    };
    let worker = args.worker.then(|| WorkerBounds {
        steps_max: args.worker_steps,
        memory_bytes_max: args.worker_memory,
        ..WorkerBounds::default()
    });
    Ok(Config {
        name: files::stem(&args.file),
        tokens: tokens.transpose()?,
        is_open: args.open,
        worker,
        tls: tls.transpose()?,
        session_key,
        replica,
        body_bytes_max: args.max_body,
        body_memory_max: args.max_body_memory,
        concurrent_max: args.max_concurrent,
        is_adaptive: matches!(args.admission, How::Latency),
        deadline_max: Duration::from_millis(args.deadline_max.max(1)),
        shutdown_after: Duration::from_millis(args.shutdown_after),
        ..Config::default()
    })
}

fn session_key(file: &Path) -> Result<SessionKey, Failure> {
    let shown = file.to_string_lossy();
    let bytes = std::fs::read(file)
        .map_err(|error| Failure::usage(format!("cannot read {shown}: {error}")))?;
    let found = bytes.len();
    let bytes = bytes.try_into().map_err(|_| {
        Failure::usage(format!("{shown} holds {found} bytes, and a session key is 32 bytes"))
    })?;
    Ok(SessionKey::new(bytes))
}

/// Returns a future that is ready once the process is told to end. The signal handlers are set up
/// at once.
pub fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let fail = |error| Failure {
            message: format!("cannot listen for signals: {error}"),
            exit: Exit::Usage,
        };
        let mut terminate = signal(SignalKind::terminate()).map_err(fail)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(fail)?;
        Ok(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        // If the handler cannot be set up, this future never ends: the system ends the process.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    })
}
