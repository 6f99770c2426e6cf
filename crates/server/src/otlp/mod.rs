//! Export of traces and metrics to an OpenTelemetry collector, with OTLP over HTTP in its binary form. Behind
//! the feature `otlp`, and only if an endpoint is given.
//!
//! A call is a trace: the span `transaction`, below it a span `phase` for each store that it visits, and below
//! that a span `request` for each request to the store. If the headers of a request name a trace of the
//! caller's (`traceparent`), it has a span `http` there, above the transaction. Requests of clean-up and sweeps are traces of their
//! own. No span has arguments, results or keys. Spans are sent in batches by a thread of the SDK, whose queue
//! drops spans if the collector is too slow. Sampling follows `OTEL_TRACES_SAMPLER`.
//!
//! The metrics are those of `/metrics`, sent by a thread every 10 seconds, and at the end.
//!
//! The endpoint has the scheme `http`. A collector elsewhere is reached through one on this machine, which
//! encrypts and repeats, as OpenTelemetry recommends.
//!
//! # Examples
//!
//! ```
//! use mingle_server::otlp::Otlp;
//! use tracing_subscriber::layer::SubscriberExt as _;
//!
//! let otlp = Otlp::new("http://127.0.0.1:4318", "shop").unwrap();
//! let (layer, traces) = otlp.traces();
//! let subscriber = tracing_subscriber::registry().with(layer);
//! tracing::subscriber::with_default(subscriber, || {
//!     // Spans of this program go to the collector.
//! });
//! // The rest is sent when this is dropped.
//! drop(traces);
//!
//! let error = Otlp::new("https://collector.example", "shop").unwrap_err();
//! assert!(error.to_string().contains("http://HOST:PORT"));
//! ```

mod caller;
mod figures;
mod post;
mod spans;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prost::Message as _;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

pub(crate) use caller::within_the_callers_trace;
use post::Endpoint;
use spans::Spans;

/// The interval at which metrics are sent.
const METRICS_EVERY: Duration = Duration::from_secs(10);

/// An OpenTelemetry collector, and the name of this service there.
#[derive(Clone, Debug)]
pub struct Otlp {
    endpoint: Endpoint,
    resource: Resource,
}

/// The error for an endpoint that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpError(String);

impl fmt::Display for OtlpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OtlpError {}

/// Sends the spans that are left when it is dropped.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

/// A thread that sends metrics. When this is dropped, it sends them once more and ends.
#[derive(Debug)]
pub struct Metrics {
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Otlp {
    /// Creates an exporter for the collector at an endpoint such as `http://127.0.0.1:4318`, to which
    /// `/v1/traces` and `/v1/metrics` are added. `service` is the value of `service.name`, unless
    /// `OTEL_SERVICE_NAME` is set. Sends nothing yet.
    ///
    /// # Errors
    ///
    /// If the endpoint is not of the form `http://HOST:PORT/PATH`.
    pub fn new(endpoint: &str, service: &str) -> Result<Self, OtlpError> {
        let endpoint = Endpoint::parse(endpoint).map_err(OtlpError)?;
        let named = std::env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
        let service = named.unwrap_or_else(|| service.to_owned());
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource =
            Resource::builder().with_service_name(service).with_attribute(version).build();
        Ok(Self { endpoint, resource })
    }

    /// Returns a layer that sends the spans of Mingle, and a guard that sends the rest of them.
    pub fn traces<S>(&self) -> (impl Layer<S> + Send + Sync + use<S>, Traces)
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let exporter = Spans::new(self.endpoint.clone(), &self.resource);
        let provider = SdkTracerProvider::builder()
            .with_resource(self.resource.clone())
            .with_batch_exporter(exporter)
            .build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("mingle"));
        let own = Targets::new().with_target("mingle", LevelFilter::DEBUG);
        (layer.with_filter(own), Traces(provider))
    }

    /// Starts to send metrics. `text` returns them in the OpenMetrics text format, as
    /// [`Server::figures`](crate::Server::figures) does.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub fn metrics(
        &self,
        text: impl Fn() -> String + Send + 'static,
    ) -> Result<Metrics, std::io::Error> {
        let (stop, stopped) = channel::<()>();
        let (endpoint, resource) = (self.endpoint.clone(), self.resource.clone());
        let began = nanoseconds();
        let run = move || {
            let mut is_failing = false;
            loop {
                let is_last = stopped.recv_timeout(METRICS_EVERY) != Err(RecvTimeoutError::Timeout);
                let request = figures::request(&text(), &resource, began, nanoseconds());
                let sent = endpoint.post("/v1/metrics", &request.encode_to_vec());
                note(&sent, "metrics", &mut is_failing);
                if is_last {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("otlp metrics".to_owned()).spawn(run)?;
        Ok(Metrics { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        // Errors have been logged by the exporter.
        let _ = self.0.shutdown();
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Logs the first of several failures, and the end of them.
fn note(sent: &Result<(), String>, signal: &str, is_failing: &mut bool) {
    match sent {
        Err(error) if !std::mem::replace(is_failing, true) => {
            tracing::warn!(%error, signal, "the collector does not take telemetry");
        }
        Ok(()) if std::mem::replace(is_failing, false) => {
            tracing::info!(signal, "the collector takes telemetry again");
        }
        _ => {}
    }
}

/// Returns the time since 1970 in nanoseconds.
fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
