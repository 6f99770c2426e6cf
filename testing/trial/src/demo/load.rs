//! The clients, and the writes that were acknowledged to them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::LOST;
use crate::client::{Client, Reply};

/// The time after which a client gives up a reply.
const PATIENCE: Duration = Duration::from_secs(12);

/// The pause of a causal client between two writes: the load is to leave the processor time for the rest.
const CAUSAL_PAUSE: Duration = Duration::from_millis(2);

/// The pause of a strong client.
const STRONG_PAUSE: Duration = Duration::from_millis(30);

/// The pause after an error.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// A client that adds to a counter of its own.
#[derive(Clone, Debug)]
pub struct Counter {
    /// The name of the counter.
    pub name: String,
    /// True if its additions were acknowledged once they survive the loss of a data center.
    pub is_uniform: bool,
    /// The number of acknowledged additions.
    pub done: u64,
    /// The number of additions whose reply is missing.
    pub unknown: u64,
}

/// All that was acknowledged.
#[derive(Debug, Default)]
pub struct Counts {
    pub counters: Vec<Counter>,
    /// The numbers that strong clients took, with the times.
    pub numbers: Vec<(i64, Instant)>,
    /// The number of strong commands whose outcome is unknown.
    pub unknown: u64,
    /// The number of clients that continued elsewhere with a token.
    pub moved: u64,
}

/// Locks data that is valid after every statement.
fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clients that run.
#[derive(Debug)]
pub struct Load {
    counts: Arc<Mutex<Counts>>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// One client, in a thread of its own.
struct Worker {
    counts: Arc<Mutex<Counts>>,
    is_over: Arc<AtomicBool>,
    /// The data centers, the own one first.
    addresses: Vec<SocketAddr>,
    place: usize,
    client: Option<Client>,
    /// A token of the session's last writes.
    token: Option<String>,
    is_uniform: bool,
}

impl Load {
    /// Starts the clients.
    pub fn begin(addresses: &[SocketAddr]) -> Self {
        let mut load =
            Self { counts: Arc::default(), is_over: Arc::default(), threads: Vec::new() };
        for dc in 0..addresses.len() {
            let mut own = addresses.to_vec();
            own.rotate_left(dc);
            // A client of d2 that waits for its disk alone shows the loss by a cut.
            let kinds: &[bool] = if dc == LOST { &[true, true, false] } else { &[false, false] };
            for (number, is_uniform) in kinds.iter().enumerate() {
                let worker = load.worker(&own, *is_uniform);
                let mut counts = lock(&load.counts);
                let (name, index) = (format!("adds:d{dc}:{number}"), counts.counters.len());
                let is_uniform = *is_uniform;
                counts.counters.push(Counter { name, is_uniform, done: 0, unknown: 0 });
                drop(counts);
                load.threads.push(std::thread::spawn(move || worker.add(index)));
            }
            let worker = load.worker(&own, false);
            load.threads.push(std::thread::spawn(move || worker.take()));
        }
        load
    }

    fn worker(&self, addresses: &[SocketAddr], is_uniform: bool) -> Worker {
        Worker {
            counts: self.counts.clone(),
            is_over: self.is_over.clone(),
            addresses: addresses.to_vec(),
            place: 0,
            client: None,
            token: None,
            is_uniform,
        }
    }

    /// Returns the numbers so far in a sentence.
    pub fn shown(&self) -> String {
        let counts = lock(&self.counts);
        let added: u64 = counts.counters.iter().map(|counter| counter.done).sum();
        format!("{added} causal writes and {} strong ones are acknowledged", counts.numbers.len())
    }

    /// Waits for the first strong commit after this time; returns how much later it was.
    pub fn first_strong_after(
        &self,
        since: Instant,
        patience: Duration,
    ) -> Result<Duration, String> {
        loop {
            let counts = lock(&self.counts);
            let later = counts.numbers.iter().rev().take_while(|(_, at)| *at > since).last();
            if let Some((_, at)) = later {
                return Ok(at.duration_since(since));
            }
            drop(counts);
            if since.elapsed() > patience {
                return Err(format!("no strong commit within {patience:?}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the clients, and returns the acknowledged writes.
    pub fn end(mut self) -> Counts {
        self.is_over.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A panic was printed where it happened.
            let _ = thread.join();
        }
        std::mem::take(&mut *lock(&self.counts))
    }
}

impl Worker {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Adds to a counter until the end.
    fn add(mut self, index: usize) {
        let line = format!("INCR {}", lock(&self.counts).counters[index].name);
        let mut count = 0_u32;
        while !self.is_over() {
            match self.ask(&line) {
                Some(Ok(Reply::Integer(_))) => lock(&self.counts).counters[index].done += 1,
                // The error says that nothing was written.
                Some(Ok(Reply::Error(error))) if error.ends_with("nothing was written") => {
                    self.give_up();
                }
                Some(_) => {
                    lock(&self.counts).counters[index].unknown += 1;
                    self.give_up();
                }
                None => self.give_up(),
            }
            count += 1;
            if self.is_uniform && count.is_multiple_of(16) {
                self.take_token();
            }
            std::thread::sleep(CAUSAL_PAUSE);
        }
    }

    /// Takes numbers until the end.
    fn take(mut self) {
        while !self.is_over() {
            match self.ask("INCR strong:number") {
                Some(Ok(Reply::Integer(number))) => {
                    lock(&self.counts).numbers.push((number, Instant::now()));
                }
                Some(Ok(Reply::Error(error))) if error.ends_with("nothing was written") => {}
                Some(_) => {
                    lock(&self.counts).unknown += 1;
                    self.give_up();
                }
                None => self.give_up(),
            }
            std::thread::sleep(STRONG_PAUSE);
        }
    }

    /// Asks; `None` if there is no connection, so that nothing was sent.
    fn ask(&mut self, line: &str) -> Option<std::io::Result<Reply>> {
        if self.client.is_none() {
            self.client = self.connect();
        }
        self.client.as_mut().map(|client| client.ask(line))
    }

    /// Connects to the present data center, and continues there with the token.
    fn connect(&mut self) -> Option<Client> {
        let mut client = Client::connect(self.addresses[self.place], PATIENCE).ok()?;
        if self.is_uniform {
            client.ask("SESSION DURABLE uniform").ok()?;
        }
        if let Some(token) = self.token.take() {
            match client.ask(&format!("SESSION ATTACH {token}")) {
                Ok(Reply::Simple(_)) => lock(&self.counts).moved += 1,
                Ok(reply) if reply.is_error("LOST") || reply.is_error("EXPIRED") => {}
                _ => {
                    self.token = Some(token);
                    return None;
                }
            }
        }
        Some(client)
    }

    fn take_token(&mut self) {
        if let Some(Ok(Reply::Bulk(token))) = self.ask("SESSION TOKEN") {
            self.token = Some(token);
        }
    }

    /// Leaves the connection; the next one is to the next data center.
    fn give_up(&mut self) {
        self.client = None;
        self.place = (self.place + 1) % self.addresses.len();
        std::thread::sleep(ERROR_PAUSE);
    }
}
