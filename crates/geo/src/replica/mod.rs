//! The replica of one partition in one data center (UniStore, Algorithms 1 and 2).
//!
//! This is a state machine: [`Replica::handle`] takes an input and returns the actions for the
//! shell. Names are the paper's.
//!
//! # An input, step by step
//!
//! 1. [`Replica::handle`] gets the time and one [`Input`]. A message must come from the replica that
//!    it names, or an alarm is raised. One of another epoch is turned away (`members`).
//! 2. The handler of the message changes the state in memory. It stages log records, messages that
//!    wait for them, and messages that may leave at once.
//! 3. The records and the waiting messages become one [`Output::Persist`]. If the clock has reached
//!    its ceiling, a new ceiling is the first record.
//! 4. The shell writes the records, sends the messages, and reports [`Input::Persisted`].
//!
//! Three vectors say how far a transaction has come. Each entry is a timestamp of one origin:
//!
//! | vector | the transactions up to it are | file |
//! | --- | --- | --- |
//! | `known_vec` | at this replica | `replicate`, `deliver`, `transfer` |
//! | `stable_vec` | at all partitions of this data center | `uniform` |
//! | `uniform_vec` | at `f + 1` data centers, this one included | `uniform` |
//!
//! The docs of the crate follow one transaction through them.
//!
//! # Departures
//!
//! - **Durability.** Every vector, and every message that depends on a written record, is sent
//!   after all earlier records are on disk: [`Output::Persist`] is drained in order. A read is
//!   answered at once unless its snapshot contains a commit that is still on its way to the disk.
//! - **1:2-3, 1:19-20, 1:37-38** are left out: vectors from outside never raise `uniform_vec`. A
//!   snapshot above `known_vec` in another data center's entry is refused (`read`).
//! - **1:6**: causal snapshots take `stable_vec[d]`, not `uniform_vec[d]`.
//! - **1:21, 1:43**: instead of waiting, the clock moves; only a prepared transaction below the
//!   snapshot makes a reader wait (`read`).
//! - **1:26-48**: the session is the coordinator; a transaction of one partition needs no
//!   preparation (`commit`), and participants decide without their coordinator (`resolve`).
//! - **2:1-18**: replication names intervals (`replicate`), so links may lose and reorder.
//! - **2:19-22**: forwarding begins by lag (`forward`); beyond a bound, state is transferred
//!   (`transfer`).
//! - **3:1-3 and certification** are elsewhere; their deliveries arrive as [`Input::Deliver`]
//!   (3:4-8).

mod attach;
mod commit;
mod delay;
mod deliver;
mod fold;
mod forward;
mod hold;
mod inspect;
mod members;
mod prepare;
mod read;
mod replicate;
mod resolve;
mod restore;
mod tick;
mod transfer;
mod uniform;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mingle_model::TransactionId;

use crate::clock::Clock;
use crate::committed::Committed;
use crate::config::Config;
use crate::counters::Counters;
use crate::error::{ConfigError, Refusal};
use crate::flaw::Flaw;
use crate::floors::Floors;
use crate::members::Members;
use crate::message::{Address, Admit, Envelope, Fence, Handout, Message};
use crate::oplog::OpLog;
use crate::outcomes::Outcomes;
use crate::record::{Alarm, Output, Persist, Record, Vectors};
use crate::timestamp::{DcId, Now, PartitionId, Timestamp};
use crate::vector::Vector;

pub use delay::{Delay, DelayedBy, folding, uniformity};
pub use deliver::Delivery;
use forward::Lag;
pub use hold::HeldPart;
use prepare::Prepared;

/// An event that the shell reports to a replica.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A message arrived.
    Message {
        /// The sender; the shell guarantees that it is correct.
        from: Address,
        /// The content.
        message: Message,
    },
    /// It is time for periodic work; see [`Replica::tick_in_ms`].
    Tick,
    /// Everything up to the [`Persist`] of this index is on disk.
    Persisted {
        /// Its index.
        index: u64,
    },
    /// The connection to the sibling in this data center was lost and is up again; messages in
    /// flight are lost. Both ends are told. Only the group uses this.
    Reconnected {
        /// The sibling's data center.
        dc: DcId,
    },
    /// The certification service delivers strong transactions (DELIVER_UPDATES, 3:4).
    Deliver(Delivery),
    /// The group has decided the members of the system.
    Members(Members),
}

/// The replica of one partition in one data center.
///
/// # Examples
///
/// ```
/// use mingle_geo::message::{Message, Read, Snapshot};
/// use mingle_geo::{Address, Config, DcId, Input, Key, Kind, Now, Output, PartitionId, Replica};
/// use mingle_geo::Vector;
///
/// let mut replica = Replica::new(Config::new(DcId(0), 1, PartitionId(0), 1)).expect("settings");
/// let now = Now { wall_us: 1_000_000, mono_us: 0 };
/// let keys = vec![Key::new(Kind::Counter, "visits")];
/// let snapshot = Snapshot::AtLeast(Vector::ZERO);
/// let message = Message::Read(Read { incarnation: 0, request: 1, snapshot, keys });
/// let mut out = Vec::new();
/// replica.handle(now, Input::Message { from: Address::Client(9), message }, &mut out);
/// // The first thing written is the clock's ceiling; the answer goes out after it.
/// let Some(Output::Persist(persist)) = out.first() else { panic!("{out:?}") };
/// assert_eq!(persist.then[0].to, Address::Client(9));
/// ```
#[derive(Clone, Debug)]
pub struct Replica {
    config: Config,
    members: Members,
    clock: Clock,
    known_vec: Vector,
    stable_vec: Vector,
    uniform_vec: Vector,
    /// What the other partitions of this data center know to be uniform.
    uniform_told: Vector,
    /// The number of announcements until the next one that tells what is uniform.
    until_told: u8,
    /// By partition: the announcements of the replicas of this data center.
    local_matrix: Vec<LocalRow>,
    /// By data center: its `stableVec`.
    stable_matrix: Vec<Vector>,
    /// By data center: its replica's `knownVec`.
    global_matrix: Vec<Vector>,
    op_log: OpLog,
    prepared_causal: BTreeMap<TransactionId, Prepared>,
    /// The timestamps of `prepared_causal`.
    prepared_at: BTreeSet<Timestamp>,
    /// Transactions that other data centers may still need, by origin.
    committed_causal: Vec<Committed>,
    outcomes: Outcomes,
    op_floors: Floors,
    /// By data center: the timestamp up to which this data center's transactions were sent to it.
    sent: Vec<Timestamp>,
    /// By origin: the time of the last request for its missing transactions.
    asked_us: Vec<u64>,
    /// By data center, then origin: the lag.
    lags: Vec<Vec<Lag>>,
    waiting: read::Waiting,
    attaching: attach::Waiting,
    pins: fold::Pins,
    transfer: transfer::Transfers,
    disk: Disk,
    staged: Staged,
    counters: Counters,
}

/// The announcements of one replica of this data center.
#[derive(Clone, Copy, Debug, Default)]
struct LocalRow {
    known_vec: Vector,
    snapshot_floor: Vector,
    /// The epoch of its last announcement.
    epoch: u32,
}

/// The writes that are on their way to the disk.
#[derive(Clone, Debug, Default)]
struct Disk {
    /// The index of the last [`Persist`].
    index: u64,
    /// All writes up to this index are on disk.
    durable: u64,
    /// Commits that are not on disk, with their indices.
    commits: VecDeque<(u64, Timestamp)>,
    /// Announced values of `known_vec`, with the indices of their writes and their epochs.
    announced: VecDeque<(u64, u32, Vector)>,
    /// The last written vectors, with their epoch.
    vectors: Vectors,
    epoch: u32,
    /// The clock's ceiling that is on disk.
    ceiling: Timestamp,
    /// Ceilings on their way to the disk, with their indices.
    ceilings: VecDeque<(u64, Timestamp)>,
}

/// The outputs of the current input.
#[derive(Clone, Debug, Default)]
struct Staged {
    sends: Vec<Envelope>,
    records: Vec<Record>,
    then: Vec<Envelope>,
    alarms: Vec<Alarm>,
}

impl Replica {
    /// Creates a replica without data.
    ///
    /// # Errors
    ///
    /// The setting that is out of bounds.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let dcs = usize::from(config.dc_count);
        Ok(Self {
            members: Members::default(),
            clock: Clock::new(config.partition, Timestamp::ZERO),
            known_vec: Vector::ZERO,
            stable_vec: Vector::ZERO,
            uniform_vec: Vector::ZERO,
            uniform_told: Vector::ZERO,
            until_told: 0,
            local_matrix: vec![LocalRow::default(); usize::from(config.partition_count)],
            stable_matrix: vec![Vector::ZERO; dcs],
            global_matrix: vec![Vector::ZERO; dcs],
            op_log: OpLog::new(config.planted),
            prepared_causal: BTreeMap::new(),
            prepared_at: BTreeSet::new(),
            committed_causal: vec![Committed::default(); dcs],
            outcomes: Outcomes::default(),
            op_floors: Floors::default(),
            sent: vec![Timestamp::ZERO; dcs],
            asked_us: vec![0; dcs],
            lags: vec![vec![Lag::default(); dcs]; dcs],
            waiting: read::Waiting::default(),
            attaching: attach::Waiting::default(),
            pins: fold::Pins::default(),
            transfer: transfer::Transfers::default(),
            disk: Disk::default(),
            staged: Staged::default(),
            counters: Counters::default(),
            config,
        })
    }

    /// Handles one input. The resulting actions are appended to `out`, in the order to perform
    /// them.
    pub fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Message { from, message } => self.on_message(now, from, message),
            Input::Tick => self.on_tick(now),
            Input::Persisted { index } => self.on_persisted(now, index),
            Input::Reconnected { .. } => {}
            Input::Deliver(delivery) => self.on_deliver(now, delivery),
            Input::Members(members) => self.on_members(now, members),
        }
        self.flush(now, out);
    }

    fn on_message(&mut self, now: Now, from: Address, message: Message) {
        if let Address::Replica(dc, partition) = from
            && (dc.0 >= self.config.dc_count || partition.0 >= self.config.partition_count)
        {
            return self.alarm(Alarm::Malformed("the sender is of no known replica"));
        }
        let claimed = message.claimed_sender(self.config.dc, self.config.partition);
        if claimed.is_some_and(|claimed| claimed != from) {
            return self.alarm(Alarm::Malformed("the sender is not who it says"));
        }
        if self.is_over() || self.is_too_early(from) || !self.is_of_this_epoch(from, &message) {
            return self.turn_away(now, from, message);
        }
        match message {
            Message::Read(read) => self.on_read(now, from, read),
            Message::CommitOne(commit) => self.on_commit_one(now, from, commit),
            Message::Prepare(prepare) => self.on_prepare(now, from, prepare),
            Message::Commit(commit) => self.on_commit(now, commit),
            Message::Abort(abort) => self.on_abort(now, abort),
            Message::OutcomeQuery(query) => self.on_outcome_query(from, &query),
            Message::Barrier(barrier) => self.on_barrier(now, from, barrier),
            Message::Attach(attach) => self.on_attach(now, from, attach),
            Message::RaiseFloor(raise) => self.on_raise_floor(now, from, raise),
            Message::StatusQuery(query) => self.on_status_query(from, query),
            Message::StatusReply(reply) => self.on_status_reply(now, reply),
            Message::KnownVecLocal(known) => self.on_known_vec_local(now, known),
            Message::SiblingVecs(vecs) => self.on_sibling_vecs(now, vecs),
            Message::UniformVecLocal(told) => self.on_uniform_vec_local(now, &told),
            Message::Replicate(replicate) => self.on_replicate(now, replicate),
            Message::Ask(ask) => self.on_ask(now, ask),
            Message::Behind(behind) => self.on_behind(now, behind),
            Message::TransferPull(pull) => self.on_transfer_pull(now, pull),
            Message::TransferPart(part) => self.on_transfer_part(now, part),
            Message::Members(members) if matches!(from, Address::Replica(..)) => {
                self.on_members(now, members);
            }
            Message::Members(_) => self.alarm(Alarm::Malformed("a client says who belongs to it")),
            Message::Fence(Fence { request, dc, incarnation })
            | Message::Admit(Admit { request, dc, incarnation }) => {
                self.refuse_change(from, request, Refusal::NotMember { dc, incarnation });
            }
            Message::ReadReply(_)
            | Message::PrepareAck(_)
            | Message::OutcomeReply(_)
            | Message::BarrierReply(_)
            | Message::AttachReply(_)
            | Message::MembersReply(_)
            | Message::FloorRaised(_) => {
                self.alarm(Alarm::Malformed("an answer came to a replica"));
            }
            Message::Group(_) | Message::Serve(_) | Message::Held(_) => {
                self.alarm(Alarm::Malformed("a replica without a group is to certify"));
            }
        }
    }

    fn on_persisted(&mut self, now: Now, index: u64) {
        let disk = &mut self.disk;
        disk.durable = disk.durable.max(index.min(disk.index));
        while disk.commits.front().is_some_and(|(at, _)| *at <= disk.durable) {
            disk.commits.pop_front();
        }
        while let Some((_, ceiling)) = disk.ceilings.pop_front_if(|(at, _)| *at <= disk.durable) {
            disk.ceiling = ceiling;
        }
        let mut has_announced = false;
        while let Some((at, epoch, known_vec)) = disk.announced.front().copied()
            && at <= disk.durable
        {
            disk.announced.pop_front();
            let row = &mut self.local_matrix[usize::from(self.config.partition.0)];
            row.known_vec.join(&known_vec);
            row.epoch = row.epoch.max(epoch);
            has_announced = true;
        }
        if has_announced {
            self.recompute_stable(now);
        }
    }

    /// Sends a message after all records so far, including this input's, are on disk.
    fn send(&mut self, to: Address, message: Message) {
        self.staged.then.push(Envelope { to, message });
    }

    /// Sends an acknowledgement, like [`send`](Self::send).
    fn acknowledge(&mut self, to: Address, message: Message) {
        if self.makes(Flaw::AckBeforeDisk) {
            self.send_now(to, message);
        } else {
            self.send(to, message);
        }
    }

    /// Sends at once. Only for messages that depend on no record still on its way to the disk.
    fn send_now(&mut self, to: Address, message: Message) {
        self.staged.sends.push(Envelope { to, message });
    }

    fn write(&mut self, record: Record) {
        self.staged.records.push(record);
    }

    fn alarm(&mut self, alarm: Alarm) {
        self.staged.alarms.push(alarm);
    }

    /// Returns the index that this input's records will have.
    fn next_index(&self) -> u64 {
        self.disk.index + 1
    }

    fn flush(&mut self, now: Now, out: &mut Vec<Output>) {
        let staged = &mut self.staged;
        let ahead_us = self.config.clock_ceiling_ms * 1_000;
        if let Some(ceiling) = self.clock.raise_ceiling(now.wall_us, ahead_us) {
            // The ceiling comes first: a crash during a write may leave only its beginning.
            staged.records.insert(0, Record::ClockCeiling(ceiling));
            self.disk.ceilings.push_back((self.disk.index + 1, ceiling));
        }
        if self.clock.last() >= self.disk.ceiling {
            // An immediate message may depend on the clock's current value, which a restart would
            // not know.
            staged.then.append(&mut staged.sends);
        }
        out.extend(staged.alarms.drain(..).map(Output::Alarm));
        out.extend(staged.sends.drain(..).map(Output::Send));
        let must_wait = self.disk.durable < self.disk.index;
        if !staged.records.is_empty() || must_wait && !staged.then.is_empty() {
            self.disk.index += 1;
            out.push(Output::Persist(Persist {
                index: self.disk.index,
                records: std::mem::take(&mut staged.records),
                then: std::mem::take(&mut staged.then),
            }));
        } else {
            out.extend(staged.then.drain(..).map(Output::Send));
        }
    }

    fn handout(&self) -> Handout {
        let mut uniform_vec = self.uniform_vec;
        if self.makes(Flaw::RemoteWhenStable) {
            uniform_vec.join(&self.stable_vec);
        }
        let (stable_vec, epoch) = (self.stable_vec, self.members.epoch());
        Handout { stable_vec, uniform_vec, epoch, incarnation: self.config.incarnation }
    }

    /// True if this mistake is planted.
    fn makes(&self, flaw: Flaw) -> bool {
        self.config.planted.is(flaw)
    }

    /// Returns a timestamp for a transaction with this snapshot, above every announced timestamp
    /// and every entry of the snapshot.
    fn next_timestamp(&mut self, now: Now, snap_vec: &Vector) -> Timestamp {
        let (partition, highest) = (self.config.partition, snap_vec.highest());
        if self.makes(Flaw::EqualTimestamps) {
            let given = self.committed_causal[usize::from(self.config.dc.0)].last();
            if let Some(given) = given.filter(|given| *given > highest) {
                return given;
            }
        }
        if self.makes(Flaw::PrepareBelowAnnounced) {
            return Clock::new(partition, Timestamp::ZERO).next(now.wall_us, highest);
        }
        let unmerged = self.makes(Flaw::UnmergedClocks);
        self.clock.next(now.wall_us, if unmerged { snap_vec[self.config.dc] } else { highest })
    }

    /// Returns the highest accepted timestamp: `clock_ahead_ms_max` ahead of the machine's clock,
    /// or the current value of this replica's clock if that is higher.
    fn highest_accepted(&self, now: Now) -> Timestamp {
        let ahead_us = self.config.clock_ahead_ms_max.saturating_mul(1_000);
        let most = Timestamp::new(now.wall_us.saturating_add(ahead_us), PartitionId(0));
        most.max(self.clock.last())
    }

    /// Updates `known_vec[d]` (2:2-3).
    fn recompute_known(&mut self, now: Now) {
        if self.is_coming_up() {
            return;
        }
        let known = match self.prepared_at.first() {
            None => self.clock.announce(now.wall_us),
            Some(_) if self.makes(Flaw::KnownPastPrepared) => self.clock.announce(now.wall_us),
            Some(first) => first.before(),
        };
        let own = self.config.dc;
        self.known_vec[own] = self.known_vec[own].max(known);
    }

    fn sibling(&self, dc: DcId) -> Address {
        Address::Replica(dc, self.config.partition)
    }

    fn peer(&self, partition: PartitionId) -> Address {
        Address::Replica(self.config.dc, partition)
    }
}
