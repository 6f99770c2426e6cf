//! The answers to requests.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue,
};
use hyper::http::response::Builder;
use hyper::{Method, Request, Response, StatusCode};

use super::super::Shared;
use super::facts::Facts;
use super::figures::figures;

/// The time in which the process must answer.
const PATIENCE: Duration = Duration::from_secs(2);

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page loads what this server has, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

const TEXT: &str = "text/plain; charset=utf-8";
const FIGURES: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Answer = Response<Full<Bytes>>;

/// Answers a request.
pub async fn answer(shared: &Arc<Shared>, request: &Request<Incoming>) -> Answer {
    if !is_local(request) {
        let why = "expected a Host header with localhost or an address on loopback\n";
        return text(StatusCode::MISDIRECTED_REQUEST, why);
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "expected GET or HEAD\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match request.uri().path() {
        "/" => body(StatusCode::OK, "text/html; charset=utf-8", PAGE),
        "/page.css" => body(StatusCode::OK, "text/css; charset=utf-8", STYLE),
        "/page.js" => body(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT),
        "/status.json" => with_facts(shared, as_json).await,
        "/metrics" => with_facts(shared, as_figures).await,
        "/live" => with_facts(shared, |_| text(StatusCode::OK, "alive\n")).await,
        "/ready" => with_facts(shared, as_readiness).await,
        other => {
            let other = other.chars().take(64).collect::<String>();
            let why = format!(
                "there is no '{}', expected /, /status.json, /metrics, /live or /ready\n",
                other.escape_default()
            );
            text(StatusCode::NOT_FOUND, why)
        }
    }
}

/// True if the request names this machine, or comes without a name, as HTTP 1.0 permits.
fn is_local(request: &Request<Incoming>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (first, more) = (hosts.next(), hosts.next());
    let Some(host) = first else { return true };
    let is_loopback = |host: &str| {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        name.eq_ignore_ascii_case("localhost")
            || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    };
    more.is_none() && host.to_str().is_ok_and(is_loopback)
}

/// Answers with the facts about the process, or that it does not answer.
async fn with_facts(shared: &Arc<Shared>, answer: impl FnOnce(&Facts) -> Answer) -> Answer {
    let of = shared.clone();
    let asked = tokio::task::spawn_blocking(move || Facts::of(&of));
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(Some(facts))) => answer(&facts),
        Ok(Ok(None)) => text(StatusCode::SERVICE_UNAVAILABLE, "the process has stopped\n"),
        Ok(Err(_)) => text(StatusCode::INTERNAL_SERVER_ERROR, "the state could not be collected\n"),
        Err(_) => {
            let why = format!("the process has not answered within {PATIENCE:?}\n");
            text(StatusCode::SERVICE_UNAVAILABLE, why)
        }
    }
}

fn as_json(facts: &Facts) -> Answer {
    match serde_json::to_string(facts) {
        Ok(json) => body(StatusCode::OK, "application/json", json),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

fn as_figures(facts: &Facts) -> Answer {
    match figures(facts) {
        Ok(figures) => body(StatusCode::OK, FIGURES, figures),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

fn as_readiness(facts: &Facts) -> Answer {
    match facts.why_not_ready() {
        None => text(StatusCode::OK, "ready\n"),
        Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    body(status, TEXT, text)
}

fn body(status: StatusCode, kind: &'static str, bytes: impl Into<Bytes>) -> Answer {
    let head: Builder = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .header(CACHE_CONTROL, "no-store")
        .header(CONTENT_SECURITY_POLICY, POLICY)
        .header("x-content-type-options", "nosniff");
    // These headers are valid.
    head.body(Full::new(bytes.into())).unwrap_or_default()
}
