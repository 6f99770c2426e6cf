//! One thread: some partitions with their replicas at all data centers, and some clients.
//!
//! Messages within the thread are queued, those to other threads leave in batches, and those to
//! other data centers in frames. A round handles the available messages, then commits as a group.

mod clients;
mod commit;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use mingle_geo::record::Install;
use mingle_geo::session::SessionOutput;
use mingle_geo::vector::DCS_MAX;
use mingle_geo::{
    Address, Alarm, DcId, Envelope, Input, Key, Message, Now, Output, PartitionId, Persist, Record,
    Replica, State, Vector,
};

use super::client::{Client, Done};
use super::link::Link;
use super::site::{Parcel, Shared, histogram};

/// The start of the clocks, in microseconds since 1970.
const EPOCH_US: u64 = 1_700_000_000_000_000;

/// The maximum number of messages that a round handles before it commits.
const ROUND: usize = 512;

/// The interval at which sessions are checked for overdue messages, and stopped clients for
/// permission to continue, in microseconds.
const OVERDUE_US: u64 = 50_000;

/// The time after the last work of any replica for which its data center ticks as if all had work,
/// in microseconds.
const BUSY_US: u64 = 100_000;

/// The interval at which a writer checks that all readers have seen its write.
const UNREADY_US: u64 = 1_000;

/// The maximum rest of a thread.
const REST_US: u64 = 50_000;

/// A replica with the records under way to its disk.
struct Node {
    replica: Replica,
    dc: u8,
    partition: u16,
    /// The time of the last tick.
    ticked_us: u64,
    pending: Vec<Persist>,
}

/// The records that were handed to a log together.
struct Batch {
    ticket: u64,
    persists: Vec<(usize, Persist)>,
}

/// The counts of a thread besides its clients' transactions.
#[derive(Debug, Default)]
struct Tally {
    reads: u64,
    waited: u64,
    refused: u64,
    alarms: u64,
    log_bytes: u64,
    transfers: [u64; DCS_MAX],
}

/// One thread of the benchmark.
pub struct Worker {
    shared: Arc<Shared>,
    index: usize,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    /// The pausing clients, ordered by the time at which they continue.
    pausing: BinaryHeap<Reverse<(u64, usize)>>,
    /// The clients that may not continue.
    stopped: Vec<usize>,
    queue: VecDeque<(Address, Envelope)>,
    outboxes: Vec<Parcel>,
    taken: Parcel,
    /// The links by data center, from then to.
    links: Vec<Link>,
    /// The bytes to be written, by data center.
    buffers: Vec<Vec<u8>>,
    batches: Vec<VecDeque<Batch>>,
    ticket: u64,
    outputs: Vec<Output>,
    session_outputs: Vec<SessionOutput>,
    overdue_us: u64,
    now: Now,
    /// The state of each data center's writes.
    done: Vec<Done>,
    tally: Tally,
    latencies_us: Histogram<u64>,
}

/// Builds the initial contents of a replica.
fn filled(states: &[(Key, Arc<State>)]) -> Install {
    let (at, known_vec, cut) = (Vector::ZERO, Vector::ZERO, Vector::ZERO);
    let (suffix, forward) = (Vec::new(), Vec::new());
    Install { at, states: states.to_vec(), suffix, known_vec, cut, forward }
}

impl Worker {
    pub fn new(shared: Arc<Shared>, index: usize) -> Result<Self, String> {
        let plan = &shared.plan;
        let (dcs, threads) = (plan.dcs, plan.threads);
        let mut nodes = Vec::new();
        for dc in 0..dcs {
            for partition in (0..plan.partitions).filter(|p| plan.thread_of(*p) == index) {
                let records = [Record::Install(filled(&shared.filling[usize::from(partition)]))];
                let replica = Replica::restore(plan.config(dc, partition), records);
                let replica = replica.map_err(|error| error.to_string())?;
                nodes.push(Node { replica, dc, partition, ticked_us: 0, pending: Vec::new() });
            }
        }
        let mut worker = Self {
            index,
            nodes,
            clients: Vec::new(),
            pausing: BinaryHeap::new(),
            stopped: Vec::new(),
            queue: VecDeque::new(),
            outboxes: vec![Vec::new(); threads],
            taken: Vec::new(),
            links: (0..dcs * dcs).map(|_| Link::default()).collect(),
            buffers: vec![Vec::new(); dcs.into()],
            batches: (0..dcs).map(|_| VecDeque::new()).collect(),
            ticket: 0,
            outputs: Vec::new(),
            session_outputs: Vec::new(),
            overdue_us: 0,
            now: Now::default(),
            done: vec![Done::default(); dcs.into()],
            tally: Tally::default(),
            latencies_us: histogram(),
            shared,
        };
        worker.add_clients();
        Ok(worker)
    }

    /// Works until the block is over.
    pub fn run(mut self) -> Self {
        while self.shared.threads.get().is_none() {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        while !self.shared.is_over.load(Ordering::Acquire) {
            self.read_clock();
            self.take_inbox();
            self.arrive();
            self.tick();
            self.wake_clients();
            let is_busy = self.handle_queue();
            self.commit();
            self.send();
            self.publish();
            if !is_busy && self.queue.is_empty() {
                self.rest();
            }
        }
        self
    }

    /// Returns the number of items whose states differ between this thread's replicas at different
    /// data centers; 0 once nothing has been written for a while.
    pub fn differing(&self) -> usize {
        let firsts = self.nodes.iter().filter(|node| node.dc == 0);
        let differing = firsts.map(|first| {
            let others = self.nodes.iter();
            let others: Vec<&Replica> = others
                .filter(|node| node.partition == first.partition && node.dc != 0)
                .map(|node| &node.replica)
                .collect();
            let same = |key: &&Key| {
                let state = first.replica.inspect(key, &first.replica.known_vec());
                others.iter().all(|other| other.inspect(key, &other.known_vec()) == state)
            };
            first.replica.keys().filter(|key| !same(key)).count()
        });
        differing.sum()
    }

    fn read_clock(&mut self) {
        let ahead_us = self.shared.ahead_us.load(Ordering::Relaxed);
        let mono_us = self.shared.started.elapsed().as_micros() as u64 + ahead_us;
        self.now = Now { wall_us: EPOCH_US + mono_us, mono_us };
    }

    fn runs(&self, dc: u8) -> bool {
        self.shared.runs[usize::from(dc)].load(Ordering::Relaxed)
    }

    fn take_inbox(&mut self) {
        {
            let mut inbox = self.shared.inboxes[self.index].lock().expect("no thread panics");
            std::mem::swap(&mut *inbox, &mut self.taken);
        }
        self.queue.extend(self.taken.drain(..));
    }

    /// Takes the messages that have arrived from other data centers.
    fn arrive(&mut self) {
        let dcs = self.shared.plan.dcs;
        for from in 0..dcs {
            for to in (0..dcs).filter(|to| *to != from) {
                let link = &mut self.links[usize::from(from * dcs + to)];
                let queue = &mut self.queue;
                link.arrive(self.now.mono_us, |partition, message| {
                    let of = |dc| Address::Replica(DcId(dc), partition);
                    queue.push_back((of(from), Envelope { to: of(to), message }));
                });
            }
        }
    }

    fn tick(&mut self) {
        let mut has_ticked = false;
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if self.tick_us(node) <= self.now.mono_us && self.runs(node.dc) {
                self.input(index, Input::Tick);
                self.nodes[index].ticked_us = self.now.mono_us;
                has_ticked = true;
            }
        }
        if has_ticked {
            self.publish_known();
        }
        if self.overdue_us <= self.now.mono_us {
            self.overdue_us = self.now.mono_us + OVERDUE_US;
            self.wake_overdue();
        }
    }

    /// Returns the time of a replica's next tick. A partition's writes become visible when all have
    /// ticked, so the replicas of a data center tick at the same interval.
    fn tick_us(&self, node: &Node) -> u64 {
        let busy_until_us = &self.shared.busy_until_us[usize::from(node.dc)];
        let config = node.replica.config();
        let in_ms = if node.replica.tick_in_ms() == config.tick_ms {
            busy_until_us.store(self.now.mono_us + BUSY_US, Ordering::Relaxed);
            config.tick_ms
        } else if busy_until_us.load(Ordering::Relaxed) > self.now.mono_us {
            config.tick_ms
        } else {
            config.tick_idle_ms
        };
        node.ticked_us + in_ms * 1_000
    }

    /// Publishes the progress of the thread's replicas.
    fn publish_known(&self) {
        for dc in 0..self.shared.plan.dcs {
            let nodes = self.nodes.iter().filter(|node| node.dc == dc);
            let others = || (0..self.shared.plan.dcs).filter(|other| *other != dc);
            let known = nodes.flat_map(|node| {
                let known_vec = node.replica.known_vec();
                others().map(move |other| known_vec[DcId(other)].micros())
            });
            let known_us = known.min().unwrap_or(0).saturating_sub(EPOCH_US);
            let counts = &self.shared.counts[self.index];
            counts.known_us[usize::from(dc)].store(known_us, Ordering::Relaxed);
        }
    }

    /// Handles queued messages up to a bound; true if there were any.
    fn handle_queue(&mut self) -> bool {
        let count = self.queue.len().min(ROUND);
        for _ in 0..count {
            let Some((from, envelope)) = self.queue.pop_front() else { break };
            match envelope.to {
                Address::Client(number) => {
                    let index = number as usize / self.shared.plan.threads;
                    let session = &mut self.clients[index].session;
                    session.handle(self.now, from, envelope.message, &mut self.session_outputs);
                    self.perform(index);
                }
                Address::Replica(dc, partition) if self.runs(dc.0) => {
                    let index = self.node_of(dc.0, partition.0);
                    let message = envelope.message;
                    let is_read = matches!(message, Message::Read(_));
                    let waiting = self.nodes[index].replica.waiting_count();
                    self.input(index, Input::Message { from, message });
                    if is_read {
                        let waits = self.nodes[index].replica.waiting_count() > waiting;
                        self.tally.reads += 1;
                        self.tally.waited += u64::from(waits);
                    }
                }
                Address::Replica(..) => {}
            }
        }
        count > 0
    }

    fn node_of(&self, dc: u8, partition: u16) -> usize {
        let plan = &self.shared.plan;
        let each = self.nodes.len() / usize::from(plan.dcs);
        usize::from(dc) * each + usize::from(partition) / plan.threads
    }

    fn input(&mut self, index: usize, input: Input) {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.nodes[index].replica.handle(self.now, input, &mut outputs);
        let node = &mut self.nodes[index];
        let (dc, address) = (node.dc, Address::Replica(DcId(node.dc), PartitionId(node.partition)));
        for output in outputs.drain(..) {
            match output {
                Output::Send(envelope) => self.route(address, envelope),
                Output::Persist(persist) => self.nodes[index].pending.push(persist),
                Output::Alarm(Alarm::Transfer { is_complete: true, .. }) => {
                    self.tally.transfers[usize::from(dc)] += 1;
                }
                Output::Alarm(Alarm::Malformed(_) | Alarm::ClockAhead { .. }) => {
                    self.tally.alarms += 1;
                }
                Output::Alarm(_) => {}
            }
        }
        self.outputs = outputs;
    }

    /// Routes a message to its receiver.
    fn route(&mut self, from: Address, envelope: Envelope) {
        let plan = &self.shared.plan;
        let thread = match (from, envelope.to) {
            (Address::Replica(from, _), Address::Replica(to, partition)) if from != to => {
                let link = &mut self.links[usize::from(from.0 * plan.dcs + to.0)];
                return link.add(partition, &envelope.message);
            }
            (_, Address::Replica(_, partition)) => plan.thread_of(partition.0),
            (_, Address::Client(number)) => number as usize % plan.threads,
        };
        if let Message::ReadReply(reply) = &envelope.message {
            self.tally.refused += u64::from(reply.result.is_err());
        }
        if thread == self.index {
            self.queue.push_back((from, envelope));
        } else {
            self.outboxes[thread].push((from, envelope));
        }
    }

    /// Sends frames and batches.
    fn send(&mut self) {
        let plan = &self.shared.plan;
        let dcs = plan.dcs;
        for from in 0..dcs {
            for to in (0..dcs).filter(|to| *to != from) {
                let is_up = self.runs(from) && self.runs(to);
                let due_us = self.now.mono_us + plan.distance.one_way_us(from, to);
                let link = &mut self.links[usize::from(from * dcs + to)];
                if is_up {
                    link.seal(due_us);
                } else {
                    link.cut();
                }
            }
        }
        let threads = self.shared.threads.get().expect("it was waited for");
        for (thread, outbox) in self.outboxes.iter_mut().enumerate() {
            if !outbox.is_empty() {
                let mut inbox = self.shared.inboxes[thread].lock().expect("no thread panics");
                inbox.append(outbox);
                drop(inbox);
                threads[thread].unpark();
            }
        }
    }

    /// Rests until work is due or arrives.
    fn rest(&self) {
        let ticks =
            self.nodes.iter().filter(|node| self.runs(node.dc)).map(|node| self.tick_us(node));
        let frames = self.links.iter().filter_map(Link::due_us);
        let pauses = self.pausing.peek().map(|Reverse((due_us, _))| *due_us);
        let due_us = ticks.chain(frames).chain(pauses).min().unwrap_or(u64::MAX);
        let rest_us = due_us.saturating_sub(self.now.mono_us).min(REST_US);
        if rest_us > 0 {
            std::thread::park_timeout(Duration::from_micros(rest_us));
        }
    }

    /// Publishes the counts to the other threads.
    fn publish(&self) {
        let counts = &self.shared.counts[self.index];
        let put = |count: &AtomicU64, value: u64| count.store(value, Ordering::Relaxed);
        for (dc, done) in self.done.iter().enumerate() {
            put(&counts.transactions[dc], done.transactions);
            put(&counts.transfers[dc], self.tally.transfers[dc]);
        }
        put(&counts.writes, self.done.iter().map(|done| done.writes).sum());
        put(&counts.failed, self.done.iter().map(|done| done.failed).sum());
        let running = (self.clients.len() - self.stopped.len()) as u64;
        counts.running.store(running, Ordering::Release);
        put(&counts.reads, self.tally.reads);
        put(&counts.waited, self.tally.waited);
        put(&counts.refused, self.tally.refused);
        put(&counts.alarms, self.tally.alarms);
        put(&counts.log_bytes, self.tally.log_bytes);
        put(&counts.link_bytes, self.links.iter().map(|link| link.bytes).sum());
        put(&counts.link_frames, self.links.iter().map(|link| link.frames).sum());
    }
}
