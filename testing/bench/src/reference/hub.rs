//! Processes over TCP on loopback.
//!
//! A process is a state machine behind a lock. The bytes that a connection brings are handled by the task
//! that reads them: it takes the lock, hands over all whole messages, and writes what results to the
//! connections of their receivers. So a process handles its messages one after the other, and messages
//! that arrive together are answered together.
//!
//! ```text
//!   connection ──► task ──► lock ─► process ─► outbox ──► connections
//!                                                └──────► under way, for a time, to other data centers
//! ```
//!
//! A message is its length, 4 bytes with the lowest first, and its content. A connection to another data
//! center delays its bytes at the sender, in steps of a millisecond.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// The bytes of a message's length.
const LENGTH_BYTES: usize = 4;

/// The maximum length of a message.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The initial size of the buffer of a connection.
const READ_BYTES: usize = 64 << 10;

/// The interval at which delayed bytes leave.
const STEP: Duration = Duration::from_millis(1);

/// The number of steps between two ticks of a process.
const STEPS_PER_TICK: u64 = 5;

/// A state machine that takes and gives messages.
pub trait Process: Send {
    /// Takes a message of another process.
    ///
    /// # Errors
    ///
    /// If no process sends such a message.
    fn take(&mut self, now_us: u64, from: usize, message: &[u8]) -> Result<(), String>;

    /// Does what is due at `now_us`; called every few milliseconds.
    fn tick(&mut self, now_us: u64);

    /// Hands over the messages that have resulted.
    fn drain(&mut self, now_us: u64, outbox: &mut Outbox);

    /// Returns a number that is the same for processes with the same contents; of all servers of a data
    /// center together, by exclusive or.
    fn digest(&self) -> u64 {
        0
    }
}

/// The messages that a process sends, by receiver.
#[derive(Debug, Default)]
pub struct Outbox {
    buffers: Vec<Vec<u8>>,
    filled: Vec<usize>,
}

impl Outbox {
    /// Adds a message, which `put` appends.
    pub fn message(&mut self, to: usize, put: impl FnOnce(&mut Vec<u8>)) {
        let buffer = &mut self.buffers[to];
        if buffer.is_empty() {
            self.filled.push(to);
        }
        let begin = buffer.len();
        buffer.extend([0; LENGTH_BYTES]);
        put(buffer);
        let length = (buffer.len() - begin - LENGTH_BYTES) as u32;
        buffer[begin..begin + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }
}

/// The ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A client and a server.
    Client,
    /// Two servers of a data center.
    Near,
    /// Servers of two data centers.
    Far,
}

/// The end of a connection at a process.
pub struct Peer {
    pub stream: Arc<TcpStream>,
    pub span: Span,
    /// The time that bytes are under way.
    pub delay_us: u64,
    under_way: VecDeque<(u64, Vec<u8>)>,
    /// The bytes that the connection did not take yet.
    rest: Vec<u8>,
    stalled: Arc<Notify>,
}

impl Peer {
    pub fn new(stream: Arc<TcpStream>, span: Span, delay_us: u64) -> Self {
        let (under_way, rest) = (VecDeque::new(), Vec::new());
        Self { stream, span, delay_us, under_way, rest, stalled: Arc::new(Notify::new()) }
    }

    /// Writes bytes, after those that wait already; those that the connection does not take wait.
    fn write(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        if !self.rest.is_empty() {
            self.rest.append(bytes);
            return Ok(());
        }
        let done = written(&self.stream, bytes)?;
        if done < bytes.len() {
            self.rest.extend_from_slice(&bytes[done..]);
            self.stalled.notify_one();
        }
        bytes.clear();
        Ok(())
    }

    /// Writes the bytes that wait.
    fn write_rest(&mut self) -> io::Result<()> {
        let done = written(&self.stream, &self.rest)?;
        self.rest.drain(..done);
        if !self.rest.is_empty() {
            self.stalled.notify_one();
        }
        Ok(())
    }
}

/// Writes as many bytes as the connection takes now; returns their number.
fn written(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match stream.try_write(&bytes[done..]) {
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

struct Inner {
    process: Box<dyn Process>,
    outbox: Outbox,
    peers: Vec<Option<Peer>>,
}

/// A process with its connections.
pub struct Node {
    inner: Mutex<Inner>,
    /// The processor time that it has taken, in nanoseconds, with the system's work for its writes.
    busy_ns: AtomicU64,
}

/// All processes of a system.
pub struct Hub {
    pub nodes: Vec<Node>,
    started: Instant,
    is_over: AtomicBool,
    /// The bytes sent so far over connections of each span.
    pub bytes: [AtomicU64; 3],
    /// The number of messages handled so far.
    pub handled: AtomicU64,
    failure: Mutex<Option<String>>,
}

/// Returns the processor time of this thread in nanoseconds.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process, and its connections by the number of the peer.
pub type Connected = (Box<dyn Process>, Vec<Option<Peer>>);

impl Hub {
    /// Creates the hub of these processes, each with its connections by the number of the peer.
    pub fn new(processes: Vec<Connected>) -> Self {
        let node = |(process, peers): Connected| {
            let buffers = peers.iter().map(|_| Vec::new()).collect();
            let outbox = Outbox { buffers, filled: Vec::new() };
            let inner = Mutex::new(Inner { process, outbox, peers });
            Node { inner, busy_ns: AtomicU64::new(0) }
        };
        Self {
            nodes: processes.into_iter().map(node).collect(),
            started: Instant::now(),
            is_over: AtomicBool::new(false),
            bytes: Default::default(),
            handled: AtomicU64::new(0),
            failure: Mutex::default(),
        }
    }

    /// Starts the tasks of all connections, and the timer; to be called within a runtime.
    pub fn run(self: &Arc<Self>) {
        for node in 0..self.nodes.len() {
            let inner = locked(&self.nodes[node].inner);
            for (from, peer) in inner.peers.iter().enumerate() {
                let Some(peer) = peer else { continue };
                tokio::spawn(read(self.clone(), node, from, peer.stream.clone()));
                let stalled = peer.stalled.clone();
                tokio::spawn(write(self.clone(), node, from, peer.stream.clone(), stalled));
            }
        }
        tokio::spawn(time(self.clone()));
    }

    /// Lets no more failures count: connections end.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Returns the first failure of a process or a connection.
    pub fn failure(&self) -> Option<String> {
        locked(&self.failure).clone()
    }

    /// Returns the processor time of a process so far, in seconds.
    pub fn busy_seconds(&self, node: usize) -> f64 {
        self.nodes[node].busy_ns.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// Returns the digest of a process.
    pub fn digest(&self, node: usize) -> u64 {
        locked(&self.nodes[node].inner).process.digest()
    }

    fn now_us(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    fn fail(&self, why: String) {
        if !self.is_over.load(Ordering::Acquire) {
            locked(&self.failure).get_or_insert(why);
        }
    }

    /// Lets a process work, and sends its messages.
    fn step(&self, node: usize, work: impl FnOnce(&mut Inner, u64) -> Result<(), String>) {
        let of = &self.nodes[node];
        let mut inner = locked(&of.inner);
        let (began_ns, now_us) = (thread_ns(), self.now_us());
        let worked = work(&mut inner, now_us);
        let Inner { process, outbox, peers } = &mut *inner;
        process.drain(now_us, outbox);
        let sent = self.send(outbox, peers, now_us);
        of.busy_ns.fetch_add(thread_ns() - began_ns, Ordering::Relaxed);
        drop(inner);
        if let Err(why) = worked.and(sent) {
            self.fail(format!("process {node}: {why}"));
        }
    }

    fn send(
        &self,
        outbox: &mut Outbox,
        peers: &mut [Option<Peer>],
        now_us: u64,
    ) -> Result<(), String> {
        for to in std::mem::take(&mut outbox.filled) {
            let buffer = &mut outbox.buffers[to];
            let peer = peers[to].as_mut().ok_or_else(|| format!("no connection to {to}"))?;
            self.bytes[peer.span as usize].fetch_add(buffer.len() as u64, Ordering::Relaxed);
            if peer.delay_us > 0 {
                peer.under_way.push_back((now_us + peer.delay_us, std::mem::take(buffer)));
            } else {
                peer.write(buffer).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// Lets the delayed bytes leave that are due.
    fn release(&self, node: usize) {
        let mut inner = locked(&self.nodes[node].inner);
        let now_us = self.now_us();
        for peer in inner.peers.iter_mut().flatten() {
            while peer.under_way.front().is_some_and(|(due_us, _)| *due_us <= now_us) {
                let Some((_, mut bytes)) = peer.under_way.pop_front() else { break };
                if let Err(error) = peer.write(&mut bytes) {
                    self.fail(format!("process {node}: {error}"));
                }
            }
        }
    }
}

/// Reads a connection, and hands its messages to the process.
async fn read(hub: Arc<Hub>, node: usize, from: usize, stream: Arc<TcpStream>) {
    let (mut buffer, mut filled) = (vec![0; READ_BYTES], 0);
    loop {
        if let Err(error) = stream.readable().await {
            return hub.fail(format!("process {node}: {error}"));
        }
        match stream.try_read(&mut buffer[filled..]) {
            Ok(0) => {
                return hub.fail(format!("process {from} has closed its connection to {node}"));
            }
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return hub.fail(format!("process {node}: {error}")),
        }
        let (whole, wanted) = whole(&buffer[..filled]);
        if wanted > MESSAGE_BYTES_MAX {
            return hub.fail(format!("a message of {wanted} bytes, at most {MESSAGE_BYTES_MAX}"));
        }
        if whole > 0 {
            hub.step(node, |inner, now_us| {
                messages(&buffer[..whole]).try_for_each(|message| {
                    hub.handled.fetch_add(1, Ordering::Relaxed);
                    inner.process.take(now_us, from, message)
                })
            });
            buffer.copy_within(whole..filled, 0);
            filled -= whole;
        }
        if wanted > buffer.len() {
            buffer.resize(wanted, 0);
        }
    }
}

/// Returns the bytes of the whole messages in a buffer, and the size of the message after them.
fn whole(bytes: &[u8]) -> (usize, usize) {
    let mut end = 0;
    loop {
        let Some(length) = bytes[end..].first_chunk::<LENGTH_BYTES>() else {
            return (end, LENGTH_BYTES);
        };
        let wanted = LENGTH_BYTES + u32::from_le_bytes(*length) as usize;
        if bytes.len() - end < wanted {
            return (end, wanted);
        }
        end += wanted;
    }
}

/// Returns the contents of whole messages.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
        let (message, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        bytes = rest;
        Some(message)
    })
}

/// Writes the bytes that a connection did not take, once it takes more.
async fn write(
    hub: Arc<Hub>,
    node: usize,
    to: usize,
    stream: Arc<TcpStream>,
    stalled: Arc<Notify>,
) {
    loop {
        stalled.notified().await;
        if stream.writable().await.is_err() {
            return;
        }
        let written = match &mut locked(&hub.nodes[node].inner).peers[to] {
            Some(peer) => peer.write_rest(),
            None => return,
        };
        if let Err(error) = written {
            return hub.fail(format!("process {node}: {error}"));
        }
    }
}

/// Lets delayed bytes leave and processes tick, until the hub is over.
async fn time(hub: Arc<Hub>) {
    let mut steps = tokio::time::interval(STEP);
    steps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for count in 0.. {
        steps.tick().await;
        if hub.is_over.load(Ordering::Acquire) {
            return;
        }
        for node in 0..hub.nodes.len() {
            hub.release(node);
            // Processes tick in turn.
            if (count + node as u64).is_multiple_of(STEPS_PER_TICK) {
                hub.step(node, |inner, now_us| {
                    inner.process.tick(now_us);
                    Ok(())
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_in_any_division_of_their_bytes() {
        let mut outbox = Outbox { buffers: vec![Vec::new()], filled: Vec::new() };
        let sent: Vec<Vec<u8>> = (0..20).map(|length| vec![length; length.into()]).collect();
        for message in &sent {
            outbox.message(0, |out| out.extend(message));
        }
        assert_eq!(outbox.filled, [0]);
        let bytes = &outbox.buffers[0];
        for step in 1..40 {
            let (mut buffer, mut found) = (Vec::new(), Vec::new());
            for piece in bytes.chunks(step) {
                buffer.extend(piece);
                let (end, wanted) = whole(&buffer);
                assert!(buffer.len() - end < wanted, "the message after them is not whole");
                found.extend(messages(&buffer[..end]).map(<[u8]>::to_vec));
                buffer.drain(..end);
            }
            assert_eq!((&found, buffer.len()), (&sent, 0), "pieces of {step} bytes");
        }
    }
}
