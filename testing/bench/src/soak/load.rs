//! Calls at a fixed rate, even if earlier calls have not been answered.
//!
//! A call goes to its server; while that server does not answer `/healthz`, it goes to the other one, as behind a load
//! balancer. Its latency counts from the moment when it was due.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mingle_model::random::Random;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, sleep_until, timeout};

use super::judge::{Answer, Call, OBJECTS, Sort};
use crate::http::overload::body_of;

/// Calls per second.
pub const RATE: f64 = 50.0;

/// The deadline of each call, and the caller's longest wait for an answer.
const DEADLINE_MS: u64 = 5_000;
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The interval between two probes of a server, and the longest time for its answer.
const PROBE_EVERY: Duration = Duration::from_millis(200);
const PROBE_WITHIN: Duration = Duration::from_secs(1);

/// A call and its outcome.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub call: Call,
    pub answer: Answer,
    /// The problem's code or the connection's error, if the call was not done.
    pub why: Option<String>,
    /// Seconds since the load began.
    pub due: f64,
    pub ended: f64,
}

/// A server as its callers see it.
pub struct Target {
    address: SocketAddr,
    is_up: AtomicBool,
    idle: Mutex<Vec<TcpStream>>,
}

impl Target {
    pub fn new(address: SocketAddr) -> Arc<Self> {
        Arc::new(Self { address, is_up: AtomicBool::new(true), idle: Mutex::default() })
    }

    fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    async fn connect(&self) -> std::io::Result<TcpStream> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(stream) = idle {
            return Ok(stream);
        }
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Sends a request; returns the status and the body of the answer.
    async fn ask(&self, head: &str, body: &str) -> Result<(String, String), String> {
        let mut stream = self.connect().await.map_err(|error| format!("{NOT_SENT}{error}"))?;
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let answer = receive(&mut stream).await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        Ok(answer)
    }

    /// A figure of `/metrics`, summed over its labels.
    pub async fn figure(&self, name: &str) -> Option<f64> {
        let asked = timeout(PROBE_WITHIN, self.ask("GET /metrics", "")).await;
        let (_, text) = asked.ok()?.ok()?;
        let named = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
        });
        let values = named.filter_map(|line| line.split_whitespace().last()?.parse::<f64>().ok());
        Some(values.sum())
    }

    /// Probes the server until the end of the run.
    pub async fn probe(self: Arc<Self>) {
        loop {
            let asked = timeout(PROBE_WITHIN, self.ask("GET /healthz", "")).await;
            let is_up = matches!(asked, Ok(Ok((status, _))) if status == "200");
            if !is_up {
                // These connections belong to a process that has ended.
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            self.is_up.store(is_up, Ordering::Relaxed);
            sleep(PROBE_EVERY).await;
        }
    }
}

/// The prefix of the error of a request that was not sent.
const NOT_SENT: &str = "not sent: ";

/// Receives one whole answer: its status and its body.
async fn receive(stream: &mut TcpStream) -> Result<(String, String), String> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 16_384]);
    loop {
        let count = stream.read(&mut buffer).await.map_err(|error| error.to_string())?;
        if count == 0 {
            return Err("the server closed the connection".into());
        }
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some(body) = body_of(&text) {
            let status = text.split(' ').nth(1).unwrap_or_default().to_owned();
            return Ok((status, body.to_owned()));
        }
    }
}

/// The calls of a run: two in five at PostgreSQL alone, the others at two and at three stores, as far as the run has
/// these stores.
pub fn calls(count: usize, sorts: &[Sort], seed: u64) -> Vec<Call> {
    let mut random = Random::new(seed ^ 0x50a4);
    let mut calls = Vec::with_capacity(count);
    for id in 0..count as i64 {
        let drawn = [Sort::Bank, Sort::Bank, Sort::Two, Sort::Three, *random.pick(sorts)];
        let sort = *random.pick(&drawn);
        let sort = if sorts.contains(&sort) { sort } else { Sort::Bank };
        let from = random.below(OBJECTS);
        let to = (from + 1 + random.below(OBJECTS - 1)) % OBJECTS;
        let (page, amount) = (random.below(OBJECTS) as i64, 1 + random.below(9) as i64);
        calls.push(Call { id, sort, from: from as i64, to: to as i64, page, amount });
    }
    calls
}

/// Makes each call when it is due.
pub async fn run(
    calls: Vec<Call>,
    targets: [Arc<Target>; 2],
    began: Instant,
) -> Result<Vec<Outcome>, String> {
    let mut running = Vec::with_capacity(calls.len());
    for call in calls {
        let due = call.id as f64 / RATE;
        sleep_until((began + Duration::from_secs_f64(due)).into()).await;
        let targets = targets.clone();
        running.push(tokio::spawn(async move {
            let (answer, why) = one(&call, &targets).await;
            Outcome { call, answer, why, due, ended: began.elapsed().as_secs_f64() }
        }));
    }
    let mut outcomes = Vec::with_capacity(running.len());
    for call in running {
        outcomes.push(call.await.map_err(|error| error.to_string())?);
    }
    Ok(outcomes)
}

async fn one(call: &Call, targets: &[Arc<Target>; 2]) -> (Answer, Option<String>) {
    let (name, to) = match call.sort {
        Sort::Bank => ("bank", String::new()),
        Sort::Two => ("two", String::new()),
        Sort::Three => ("three", format!("\"page\":{},", call.page)),
    };
    let head = format!("POST /v1/transactions/{name}?deadline_ms={DEADLINE_MS}");
    let body = format!(
        "{{\"from\":{},\"to\":{},{to}\"amount\":{},\"call\":{}}}",
        call.from, call.to, call.amount, call.id
    );
    let own = (call.id % 2) as usize;
    let own = if targets[own].is_up() { own } else { 1 - own };
    let mut why = String::new();
    for target in [own, 1 - own] {
        match timeout(ANSWER_WITHIN, targets[target].ask(&head, &body)).await {
            Err(_) => return (Answer::Unknown, Some("no answer".into())),
            Ok(Ok((status, body))) => return judged(&status, &body),
            Ok(Err(error)) if error.starts_with(NOT_SENT) => why = error,
            Ok(Err(error)) => return (Answer::Unknown, Some(error)),
        }
    }
    (Answer::Refused, Some(why))
}

/// The outcome of a call, by its answer.
fn judged(status: &str, body: &str) -> (Answer, Option<String>) {
    let told = serde_json::from_str::<serde_json::Value>(body).unwrap_or_default();
    let code = told["code"].as_str().unwrap_or(status);
    let why = format!("{status} {code}");
    match (status, code) {
        ("200", _) => (Answer::Done, None),
        // The call follows by itself at the other stores.
        ("202", _) => (Answer::Done, Some(why)),
        (_, "unknown" | "parked" | "result-gone") => (Answer::Unknown, Some(why)),
        _ => (Answer::Refused, Some(why)),
    }
}
