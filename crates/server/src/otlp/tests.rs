//! A server whose telemetry goes to a collector on loopback, which decodes it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use mingle::{Binding, Database};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::{Config, Server};

/// A collector that answers each request with the same status, and returns paths and bodies.
struct Collector {
    address: std::net::SocketAddr,
    taken: Receiver<(String, Vec<u8>)>,
    thread: JoinHandle<()>,
}

impl Collector {
    fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has one");
        let (take, taken) = channel();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (path, body) = answer(stream.expect("it is open"), status);
                let is_last = path == "/end";
                if is_last || take.send((path, body)).is_err() {
                    return;
                }
            }
        });
        Self { address, taken, thread }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends the thread. Returns the bodies by path.
    fn end(self) -> BTreeMap<String, Vec<Vec<u8>>> {
        let endpoint = Endpoint::parse(&self.url()).expect("it is one");
        let _ = endpoint.post("/end", &[]);
        self.thread.join().expect("it ends");
        let mut bodies: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for (path, body) in self.taken {
            bodies.entry(path).or_default().push(body);
        }
        bodies
    }
}

/// Reads a request and answers it. Returns its path and its body.
fn answer(mut stream: TcpStream, status: &str) -> (String, Vec<u8>) {
    let (mut read, mut byte) = (Vec::new(), [0]);
    while !read.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("the head is whole");
        read.push(byte[0]);
    }
    let head = String::from_utf8(read).expect("it is text");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length = length.and_then(|text| text.parse().ok()).expect("it has a length");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("the body is whole");
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).expect("it takes the answer");
    let path = head.split(' ').nth(1).expect("it has a path");
    (path.to_owned(), body)
}

const TEXT: &str = "store stock: linearizable; store feed: causal;
    object Item in stock { key name: string; count: int; }
    object Customer in feed { key name: string; items: log<string>; }
    transaction buy(item: ref Item, by: ref Customer) {
        item.count -= 1;
        by.items.append(\"secret\");
    }";

/// Serves a program, calls it once, and lets both exporters end.
fn call_once(otlp: &Otlp) {
    call_with(otlp, "");
}

/// Does the same with further headers, each with the end of its line.
fn call_with(otlp: &Otlp, headers: &str) {
    let (layer, traces) = otlp.traces();
    let subscriber = tracing_subscriber::registry().with(layer);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    tracing::subscriber::with_default(subscriber, || {
        runtime.expect("it starts").block_on(async {
            let program = mingle::compile(TEXT).expect("it is sound");
            let database = Database::open(program, &Binding::default(), None).await;
            let database = Arc::new(database.expect("it opens"));
            let address = "127.0.0.1:0".parse().expect("it is one");
            let server = Server::bind(database.clone(), address, Config::default()).await;
            let server = server.expect("it listens");
            let address = server.address();
            let metrics = otlp.metrics(server.figures()).expect("a thread starts");
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let served = tokio::spawn(server.run(async {
                let _ = stopped.await;
            }));
            let body = "{\"item\":\"tea\",\"by\":\"ana\"}";
            let request = format!(
                "POST /v1/transactions/buy HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{headers}\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let mut stream = tokio::net::TcpStream::connect(address).await.expect("it accepts");
            stream.write_all(request.as_bytes()).await.expect("it takes the call");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("it answers");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            stop.send(()).expect("it runs");
            assert!(served.await.expect("it ends"));
            tokio::task::spawn_blocking(move || drop(metrics)).await.expect("they are sent");
        });
    });
    drop(traces);
}

fn attribute<'a>(all: &'a [KeyValue], key: &str) -> &'a str {
    let found = all.iter().find(|attribute| attribute.key == key);
    match found.and_then(|found| found.value.as_ref()?.value.as_ref()) {
        Some(Any::StringValue(text)) => text,
        other => panic!("{key} is {other:?} among {all:?}"),
    }
}

/// Returns the spans that a collector was sent.
fn spans_of(collector: Collector) -> Vec<Span> {
    let bodies = collector.end();
    let mut spans: Vec<Span> = Vec::new();
    for body in bodies.get("/v1/traces").into_iter().flatten() {
        assert!(!body.windows(6).any(|bytes| bytes == b"secret"), "no values are sent");
        let request = ExportTraceServiceRequest::decode(&**body).expect("it is one");
        for resource in request.resource_spans {
            let attributes = &resource.resource.as_ref().expect("there is one").attributes;
            assert_eq!(attribute(attributes, "service.name"), "shop");
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    spans
}

#[test]
fn a_call_belongs_to_the_trace_of_its_caller() {
    let (trace, parent) =
        (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128, 0xb7ad_6b71_6920_3331_u64);
    let header =
        |sampled: u8| format!("traceparent: 00-{trace:032x}-{parent:016x}-{sampled:02x}\r\n");
    let collector = Collector::start("200 OK");
    let otlp = Otlp::new(&collector.url(), "shop").expect("it is an endpoint");
    call_with(&otlp, &header(1));
    let spans = spans_of(collector);
    let calls: Vec<_> = spans.iter().filter(|span| span.name == "transaction").collect();
    let [call] = calls[..] else { panic!("{calls:?}") };
    let http = spans.iter().find(|span| span.name == "http").expect("the request has one");
    assert_eq!(http.trace_id, trace.to_be_bytes());
    assert_eq!(http.parent_span_id, parent.to_be_bytes());
    assert_eq!((&call.trace_id, &call.parent_span_id), (&http.trace_id, &http.span_id));
    let phases = spans.iter().filter(|span| span.parent_span_id == call.span_id);
    assert_eq!(phases.filter(|span| span.trace_id == call.trace_id).count(), 2);
    // A caller that does not sample its trace has no use for a part of it.
    let collector = Collector::start("200 OK");
    let otlp = Otlp::new(&collector.url(), "shop").expect("it is an endpoint");
    call_with(&otlp, &header(0));
    let spans = spans_of(collector);
    assert!(spans.iter().all(|span| span.trace_id != trace.to_be_bytes()), "{spans:?}");
}

#[test]
fn a_call_is_a_trace_with_spans_for_its_phases_and_requests() {
    let collector = Collector::start("200 OK");
    let otlp = Otlp::new(&collector.url(), "shop").expect("it is an endpoint");
    call_once(&otlp);
    let spans = spans_of(collector);
    let call = spans.iter().find(|span| span.name == "transaction").expect("the call has one");
    assert_eq!(attribute(&call.attributes, "name"), "buy");
    assert_eq!(call.parent_span_id, [0_u8; 0], "it is the root");
    let below = |parent: &Span, name: &str| {
        let is_below = |span: &&Span| {
            span.trace_id == parent.trace_id && span.parent_span_id == parent.span_id
        };
        let found = spans.iter().filter(|span| span.name == name).filter(is_below);
        found.collect::<Vec<_>>()
    };
    let phases = below(call, "phase");
    let stores: Vec<&str> =
        phases.iter().map(|span| attribute(&span.attributes, "store")).collect();
    assert_eq!(stores, ["stock", "feed"]);
    for phase in phases {
        let store = attribute(&phase.attributes, "store");
        let requests = below(phase, "request");
        assert!(requests.iter().all(|it| attribute(&it.attributes, "store") == store));
        let kinds: Vec<&str> =
            requests.iter().map(|span| attribute(&span.attributes, "request")).collect();
        assert!(kinds.contains(&"commit"), "{store}: {kinds:?}");
        assert!(phase.start_time_unix_nano <= requests[0].start_time_unix_nano);
    }
}

#[test]
fn the_figures_are_sent_as_metrics() {
    let collector = Collector::start("202 Accepted");
    let otlp = Otlp::new(&format!("{}/otlp/", collector.url()), "shop").expect("it is an endpoint");
    call_once(&otlp);
    let bodies = collector.end();
    let last = bodies["/otlp/v1/metrics"].last().expect("they are sent at the end");
    let request = ExportMetricsServiceRequest::decode(&**last).expect("it is one");
    let resource = &request.resource_metrics[0];
    let attributes = &resource.resource.as_ref().expect("there is one").attributes;
    assert_eq!(attribute(attributes, "service.name"), "shop");
    let metrics = &resource.scope_metrics[0].metrics;
    let named = |name: &str| {
        let found = metrics.iter().find(|metric| metric.name == name);
        found.unwrap_or_else(|| panic!("{name} is missing"))
    };
    let calls = named("mingle_calls");
    assert!(!calls.description.is_empty());
    let Some(Data::Sum(sum)) = &calls.data else { panic!("{calls:?}") };
    assert!(sum.is_monotonic);
    let point = &sum.data_points[0];
    assert_eq!(attribute(&point.attributes, "transaction"), "buy");
    assert_eq!(attribute(&point.attributes, "outcome"), "ok");
    assert_eq!(point.value, Some(Value::AsDouble(1.0)));
    assert!(point.start_time_unix_nano <= point.time_unix_nano);
    let seconds = named("mingle_call_seconds");
    let Some(Data::Histogram(histogram)) = &seconds.data else { panic!("{seconds:?}") };
    assert_eq!((histogram.data_points[0].count, &*seconds.unit), (1, "s"));
    let Some(Data::Gauge(open)) = &named("mingle_witness_rows").data else { panic!("no gauge") };
    let stores = open.data_points.iter().map(|point| attribute(&point.attributes, "store"));
    assert_eq!(stores.collect::<std::collections::BTreeSet<_>>(), ["feed", "stock"].into());
}

#[test]
fn a_collector_that_refuses_or_is_away_fails_no_call() {
    let refusing = Collector::start("503 Service Unavailable");
    let otlp = Otlp::new(&refusing.url(), "shop").expect("it is an endpoint");
    let error = otlp.endpoint.post("/v1/traces", &[]).expect_err("it refuses");
    assert!(error.contains("503") && error.contains("/v1/traces"), "{error}");
    call_once(&otlp);
    let url = refusing.url();
    refusing.end();
    let otlp = Otlp::new(&url, "shop").expect("it is an endpoint");
    otlp.endpoint.post("/v1/traces", &[]).expect_err("it is away");
    call_once(&otlp);
}
