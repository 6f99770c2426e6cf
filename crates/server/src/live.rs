//! Watching a running call: its phases as server-sent events, and its answer as the last event.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use mingle::{Event, Watcher};
use serde_json::{Map, Value as Json, json};
use tokio::sync::mpsc;

use crate::app::App;
use crate::calls::{Answer, Ready, run};
use crate::limits::EVENTS_WAITING_MAX;

/// Runs a call and streams its events.
pub(crate) fn stream(app: Arc<App>, ready: Ready) -> Response {
    let (sender, receiver) = mpsc::channel(EVENTS_WAITING_MAX);
    let begin = Instant::now();
    let events = sender.clone();
    let watcher = Watcher::new(move |event| {
        let (name, mut members) = members(event);
        members.insert("at_ms".to_owned(), milliseconds(begin.elapsed()));
        // A client that does not keep up misses some events.
        let _ = events.try_send(text(name, Json::Object(members)));
    });
    tokio::spawn(async move {
        let answer = run(&app, ready, Some(watcher)).await;
        // Fails if the client no longer listens.
        let _ = sender.send(text("answer", last(answer, begin))).await;
    });
    let events = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|event| (Ok::<_, Infallible>(event), receiver))
    });
    let mut response = Response::new(Body::from_stream(events));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn text(name: &str, data: impl std::fmt::Display) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

fn milliseconds(time: std::time::Duration) -> Json {
    (time.as_micros() as f64 / 1_000.0).into()
}

/// Returns the answer as an event: its status, its session and its body.
fn last(answer: Answer, begin: Instant) -> String {
    let (status, body) = match answer.body {
        Ok(body) => (200, body),
        Err(problem) => (problem.code().status(), problem.to_json().to_string()),
    };
    let head = json!({
        "status": status,
        "session": answer.session,
        "repeated": answer.is_repeated,
        "at_ms": milliseconds(begin.elapsed()),
    });
    let head = head.to_string();
    // The body is JSON already, and may be large.
    let open = head.strip_suffix('}').unwrap_or(&head);
    format!("{open},\"body\":{body}}}")
}

fn members(event: Event) -> (&'static str, Map<String, Json>) {
    let (name, members) = match event {
        Event::Began { phase, store } => {
            ("began", json!({ "phase": phase, "store": store.as_deref() }))
        }
        Event::Waits { phase, transactions } => {
            let ids: Vec<String> = transactions.iter().map(ToString::to_string).collect();
            ("waits", json!({ "phase": phase, "transactions": ids }))
        }
        Event::Retries { phase, attempts, reason } => {
            ("retries", json!({ "phase": phase, "attempts": attempts, "reason": reason }))
        }
        Event::Committed { phase, report } => (
            "committed",
            json!({
                "phase": phase,
                "store": report.store.as_deref(),
                "attempts": report.attempts,
                "round_trips": report.round_trips,
                "recorded": report.recorded,
                "took_ms": milliseconds(report.time),
                "waited_ms": milliseconds(report.waited),
                "was_done": report.was_done,
            }),
        ),
        Event::StartsOver => ("starts-over", json!({})),
    };
    match members {
        Json::Object(members) => (name, members),
        _ => (name, Map::new()),
    }
}
