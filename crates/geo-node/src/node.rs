//! The partitions of one process.

mod copy;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use mingle_geo::certify::{GroupConfig, GroupMessage};
use mingle_geo::derive::Derive;
use mingle_geo::flaw::{Flaw, Planted};
use mingle_geo::wire::{Parcel, put_parcel};
use mingle_geo::{
    Address, Alarm, Config, DcId, Envelope, Input, Message, Output, PartitionId, Persist, Record,
    StrongReplica, Timestamp,
};

use super::journal::{put_entry, take_entry};
use super::outside::{Outgoing, Outside};

pub use copy::{CopyError, Copying, HOLD_MS};

/// The settings of one partition.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The settings of the replica.
    pub config: Config,
    /// The settings of its part in the group.
    pub group: GroupConfig,
}

/// The bounds of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The journal is replaced by a checkpoint once it has this many entries and all are safe.
    pub checkpoint_after: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { checkpoint_after: 100_000 }
    }
}

/// The reason why a node cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// An entry of the journal cannot be read.
    Entry {
        /// Its number, from 0.
        number: usize,
        /// The reason.
        why: String,
    },
    /// An entry belongs to a partition that this process does not have.
    NotHere {
        /// Its number, from 0.
        number: usize,
        /// The partition.
        partition: PartitionId,
    },
    /// The core rejects the settings of a partition.
    Settings {
        /// The partition.
        partition: PartitionId,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry { number, why } => {
                write!(f, "entry {number} of the journal cannot be read: {why}")
            }
            Self::NotHere { number, partition } => write!(
                f,
                "entry {number} of the journal belongs to partition {}, which this process does not \
                 have",
                partition.0
            ),
            Self::Settings { partition, why } => {
                write!(f, "the settings of partition {} are not accepted: {why}", partition.0)
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// The error for a journal that lacks records which were safe: another data center knows more of
/// this one than its own partition does. It happens if the last file of a journal is lost, or if an old
/// copy of it is restored. The process must stop: it would give out timestamps a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outdated {
    /// The partition.
    pub partition: PartitionId,
    /// The data center that knows more.
    pub by: DcId,
    /// It knows this data center's transactions up to here.
    pub found: Timestamp,
    /// The partition's journal has them up to here.
    pub expected: Timestamp,
}

impl fmt::Display for Outdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, by, found, expected } = self;
        write!(
            f,
            "the journal has lost records: {by} knows this data center's partition {} up to {found}, and \
             the journal has it up to {expected}. Give up this data center, and admit it again",
            partition.0
        )
    }
}

impl std::error::Error for Outdated {}

/// A partition of this process.
#[derive(Debug)]
struct Hosted {
    replica: StrongReplica,
    /// The time of its next tick, on the monotonic clock.
    tick_us: u64,
    /// The time of its last tick.
    ticked_us: u64,
    /// Its own time when it was restored: it had announced no later one. `None` if it takes its state
    /// from another data center.
    restored: Option<Timestamp>,
    /// Its first own time above that one.
    resumed: Option<Timestamp>,
}

impl Hosted {
    fn new(dc: DcId, replica: StrongReplica) -> Self {
        let core = replica.replica();
        let restored = (!core.is_coming_up()).then(|| core.known_vec()[dc]);
        Self { replica, tick_us: 0, ticked_us: 0, restored, resumed: None }
    }
}

/// A request of a partition whose records are in the journal and may not be safe yet.
#[derive(Debug)]
struct Staged {
    partition: PartitionId,
    index: u64,
    then: Vec<Envelope>,
}

/// The shell of one process; see the [crate](crate).
#[derive(Debug)]
pub struct Node {
    dc: DcId,
    limits: Limits,
    hosted: BTreeMap<PartitionId, Hosted>,
    /// The requests whose records wait to be safe; the running sync covers the first `syncing`.
    staged: VecDeque<Staged>,
    syncing: usize,
    /// The number of requests whose records were appended, and of those whose records are safe.
    appended: u64,
    safe: u64,
    /// The clients that get their acknowledgements before the records are safe.
    hasty: BTreeSet<u64>,
    /// A planted mistake; see [`flaw`](mingle_geo::flaw).
    planted: Planted,
    /// Inputs of partitions of this process by partitions of this process.
    local: VecDeque<(PartitionId, Input)>,
    alarms: Vec<(PartitionId, Alarm)>,
    outdated: Option<Outdated>,
    outputs: Vec<Output>,
}

impl Node {
    /// Restores the node whose journal has these entries; a new one has none.
    ///
    /// # Errors
    ///
    /// If an entry cannot be read or belongs to another process, or if the core rejects the settings.
    pub fn restore<'a>(
        dc: DcId,
        limits: Limits,
        setups: impl IntoIterator<Item = Setup>,
        entries: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, OpenError> {
        let setups = setups.into_iter().map(|setup| (setup.config.partition, setup));
        let mut logs: BTreeMap<PartitionId, (Setup, Vec<Record>)> =
            setups.map(|(partition, setup)| (partition, (setup, Vec::new()))).collect();
        for (number, entry) in entries.into_iter().enumerate() {
            let (partition, record) = take_entry(entry)
                .map_err(|error| OpenError::Entry { number, why: error.to_string() })?;
            let Some((_, log)) = logs.get_mut(&partition) else {
                return Err(OpenError::NotHere { number, partition });
            };
            log.push(record);
        }
        let (mut hosted, mut planted) = (BTreeMap::new(), Planted::default());
        for (partition, (Setup { config, group }, log)) in logs {
            planted = config.planted;
            let replica = StrongReplica::restore(config, group, log)
                .map_err(|why| OpenError::Settings { partition, why })?;
            hosted.insert(partition, Hosted::new(dc, replica));
        }
        Ok(Self {
            dc,
            limits,
            hosted,
            staged: VecDeque::new(),
            syncing: 0,
            appended: 0,
            safe: 0,
            hasty: BTreeSet::new(),
            planted,
            local: VecDeque::new(),
            alarms: Vec::new(),
            outdated: None,
            outputs: Vec::new(),
        })
    }

    /// Returns a partition's replica, if this process has it.
    pub fn replica(&self, partition: PartitionId) -> Option<&StrongReplica> {
        self.hosted.get(&partition).map(|hosted| &hosted.replica)
    }

    /// Lets all partitions keep an index from now on; see [`mingle_geo::derive`].
    pub fn derive(&mut self, by: &Arc<dyn Derive>) {
        for hosted in self.hosted.values_mut() {
            hosted.replica.derive(by);
        }
    }

    /// Returns all replicas.
    pub fn replicas(&self) -> impl Iterator<Item = &StrongReplica> + Clone {
        self.hosted.values().map(|hosted| &hosted.replica)
    }

    /// Handles a message for a partition of this process; it is dropped if the partition is not here.
    /// The transport guarantees that the source is correct.
    pub fn receive(&mut self, parcel: Parcel, outside: &mut impl Outside) {
        let Parcel { from, to, message } = parcel;
        if let Address::Replica(dc, partition) = to
            && dc == self.dc
        {
            if let Message::SiblingVecs(vecs) = &message {
                self.compare(partition, vecs.dc, vecs.known_vec[self.dc]);
            }
            self.input(partition, Input::Message { from, message }, outside);
            self.settle(outside);
        }
    }

    /// Notes a sibling that knows more of this data center than its journal. A vector leaves only after
    /// its records are synced, so with a whole journal a sibling knows a time up to the restored one,
    /// or one that was announced since then: never one between these, and none in the future.
    fn compare(&mut self, partition: PartitionId, by: DcId, found: Timestamp) {
        let Some(hosted) = self.hosted.get(&partition) else { return };
        let core = hosted.replica.replica();
        let Some(expected) = hosted.restored.filter(|restored| found > *restored) else { return };
        let own = core.known_vec()[self.dc];
        let is_announced = hosted.resumed.is_some_and(|first| (first..=own).contains(&found));
        // A planted mistake is to be found by its effects.
        if !is_announced && !core.is_over() && self.planted == Planted::default() {
            self.outdated.get_or_insert(Outdated { partition, by, found, expected });
        }
    }

    /// Returns the first message of a connection: the times up to which this process knows the data
    /// center at the other end.
    pub fn greeting(&self, dc: DcId) -> Vec<u8> {
        let known = self.hosted.iter().flat_map(|(partition, hosted)| {
            let known = hosted.replica.replica().known_vec()[dc].0.to_le_bytes();
            partition.0.to_le_bytes().into_iter().chain(known)
        });
        known.collect()
    }

    /// Compares the greeting of a data center with the journal ([`outdated`](Self::outdated)). A driver
    /// sends nothing to the data center before, so that a process with an old journal does no harm.
    ///
    /// # Errors
    ///
    /// If the bytes are no greeting.
    pub fn greeted(&mut self, by: DcId, greeting: &[u8]) -> Result<(), &'static str> {
        let (known, []) = greeting.as_chunks::<10>() else {
            return Err("a greeting has ten bytes for each partition");
        };
        for [low, high, time @ ..] in known {
            let partition = PartitionId(u16::from_le_bytes([*low, *high]));
            self.compare(partition, by, Timestamp(u64::from_le_bytes(*time)));
        }
        Ok(())
    }

    /// Returns the evidence that the journal lacks records, if there is any.
    pub fn outdated(&self) -> Option<Outdated> {
        self.outdated
    }

    /// Handles the return of a lost connection to a data center: messages on it are lost, and both
    /// ends are told.
    pub fn reconnected(&mut self, dc: DcId, outside: &mut impl Outside) {
        for partition in self.hosted.keys().copied().collect::<Vec<_>>() {
            self.input(partition, Input::Reconnected { dc }, outside);
        }
        self.settle(outside);
    }

    /// Ticks the partitions whose time has come.
    pub fn tick(&mut self, outside: &mut impl Outside) {
        let now_us = outside.now().mono_us;
        let due = self.hosted.iter().filter(|(_, hosted)| hosted.tick_us <= now_us);
        for partition in due.map(|(partition, _)| *partition).collect::<Vec<_>>() {
            self.input(partition, Input::Tick, outside);
            if let Some(hosted) = self.hosted.get_mut(&partition) {
                hosted.ticked_us = now_us;
                hosted.tick_us = now_us.saturating_add(hosted.replica.tick_in_ms() * 1_000);
            }
        }
        self.settle(outside);
    }

    /// Brings the next tick of each partition forward to at most this time, in microseconds, after its
    /// last one.
    pub fn hurry(&mut self, every_us: u64) {
        for hosted in self.hosted.values_mut() {
            hosted.tick_us = hosted.tick_us.min(hosted.ticked_us.saturating_add(every_us));
        }
    }

    /// Returns the time of the next tick, on the monotonic clock; none without partitions.
    pub fn tick_at_us(&self) -> Option<u64> {
        self.hosted.values().map(|hosted| hosted.tick_us).min()
    }

    /// Handles the end of a sync: the entries that had been appended when it began are safe.
    pub fn synced(&mut self, outside: &mut impl Outside) {
        let mut count = std::mem::take(&mut self.syncing);
        if self.planted.is(Flaw::SyncReleasesLater) {
            count = self.staged.len();
        }
        self.safe += count as u64;
        let mut ended: Vec<(PartitionId, u64)> = Vec::new();
        for Staged { partition, index, then } in self.staged.drain(..count).collect::<Vec<_>>() {
            for envelope in then {
                self.send(partition, envelope, outside);
            }
            ended.retain(|(of, _)| *of != partition);
            ended.push((partition, index));
        }
        if self.staged.is_empty() && outside.length() >= self.limits.checkpoint_after {
            outside.replace(self.checkpoint());
        }
        for (partition, index) in ended {
            self.input(partition, Input::Persisted { index }, outside);
        }
        self.settle(outside);
    }

    /// Lets a client of this process have the acknowledgements of its causal commits before their
    /// records are safe, or ends that. Such a commit is lost if the process is killed before the sync.
    /// Nothing else leaves early: not to other data centers, and no vote on a strong transaction.
    pub fn answer_early(&mut self, client: u64, is_early: bool) {
        if is_early {
            self.hasty.insert(client);
        } else {
            self.hasty.remove(&client);
        }
    }

    /// Returns the number of requests whose records were appended to the journal.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// Returns the number of requests, from the first on, whose records are safe.
    pub fn safe(&self) -> u64 {
        self.safe
    }

    /// Takes the alarms for the operator.
    pub fn take_alarms(&mut self) -> Vec<(PartitionId, Alarm)> {
        std::mem::take(&mut self.alarms)
    }

    /// Returns the entries of a journal that restores this node.
    fn checkpoint(&self) -> Vec<Vec<u8>> {
        let records = self.hosted.iter().flat_map(|(partition, hosted)| {
            let records = hosted.replica.checkpoint();
            records.into_iter().map(|record| put_entry(*partition, &record))
        });
        records.collect()
    }

    /// Gives an input to a partition, and performs its outputs.
    fn input(&mut self, partition: PartitionId, input: Input, outside: &mut impl Outside) {
        let Some(hosted) = self.hosted.get_mut(&partition) else { return };
        let mut outputs = std::mem::take(&mut self.outputs);
        hosted.replica.handle(outside.now(), input, &mut outputs);
        if hosted.resumed.is_none() {
            let own = hosted.replica.replica().known_vec()[self.dc];
            hosted.resumed = hosted.restored.filter(|restored| own > *restored).map(|_| own);
        }
        for output in outputs.drain(..) {
            match output {
                Output::Send(envelope) => self.send(partition, envelope, outside),
                Output::Persist(persist) => self.stage(partition, persist, outside),
                Output::Alarm(alarm) => self.alarms.push((partition, alarm)),
            }
        }
        self.outputs = outputs;
    }

    /// Appends records, whose messages wait for the next sync.
    fn stage(&mut self, partition: PartitionId, persist: Persist, outside: &mut impl Outside) {
        let Persist { index, records, mut then } = persist;
        for record in &records {
            outside.append(&put_entry(partition, record));
        }
        if !self.hasty.is_empty() {
            let early = then.extract_if(.., |envelope| is_early(&self.hasty, envelope));
            for envelope in early.collect::<Vec<_>>() {
                self.send(partition, envelope, outside);
            }
        }
        self.appended += 1;
        self.staged.push_back(Staged { partition, index, then });
        self.sync(outside);
    }

    /// Begins a sync, unless one is under way or nothing waits for it.
    fn sync(&mut self, outside: &mut impl Outside) {
        if self.syncing == 0 && !self.staged.is_empty() {
            self.syncing = self.staged.len();
            outside.sync();
        }
    }

    fn send(&mut self, from: PartitionId, envelope: Envelope, outside: &mut impl Outside) {
        let (from, Envelope { to, message }) = (Address::Replica(self.dc, from), envelope);
        if let Address::Replica(dc, partition) = to
            && dc == self.dc
            && self.hosted.contains_key(&partition)
        {
            return self.local.push_back((partition, Input::Message { from, message }));
        }
        let is_ordered = matches!(message, Message::Group(GroupMessage::Consensus(_)));
        let mut frame = Vec::new();
        put_parcel(&mut frame, from, to, &message);
        outside.send(Outgoing { to, is_ordered, frame });
    }

    /// Delivers the messages between the partitions of this process.
    fn settle(&mut self, outside: &mut impl Outside) {
        while let Some((partition, input)) = self.local.pop_front() {
            self.input(partition, input, outside);
        }
        self.sync(outside);
    }
}

/// True if a message is the acknowledgement of a causal commit to a client that does not wait for the
/// disk.
fn is_early(hasty: &BTreeSet<u64>, envelope: &Envelope) -> bool {
    let Address::Client(client) = envelope.to else { return false };
    let is_acknowledgement =
        matches!(envelope.message, Message::OutcomeReply(_) | Message::PrepareAck(_));
    is_acknowledgement && hasty.contains(&client)
}
