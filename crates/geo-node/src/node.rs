//! The partitions of one process.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use mingle_geo::certify::{GroupConfig, GroupMessage};
use mingle_geo::flaw::{Flaw, Planted};
use mingle_geo::wire::{Parcel, put_parcel};
use mingle_geo::{
    Address, Alarm, Config, DcId, Envelope, Input, Message, Output, PartitionId, Persist, Record,
    StrongReplica,
};

use super::journal::{put_entry, take_entry};
use super::outside::{Outgoing, Outside};

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

/// A partition of this process.
#[derive(Debug)]
struct Hosted {
    replica: StrongReplica,
    /// The time of its next tick, on the monotonic clock.
    tick_us: u64,
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
    /// A planted mistake; see [`flaw`](mingle_geo::flaw).
    planted: Planted,
    /// Inputs of partitions of this process by partitions of this process.
    local: VecDeque<(PartitionId, Input)>,
    alarms: Vec<(PartitionId, Alarm)>,
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
            hosted.insert(partition, Hosted { replica, tick_us: 0 });
        }
        Ok(Self {
            dc,
            limits,
            hosted,
            staged: VecDeque::new(),
            syncing: 0,
            planted,
            local: VecDeque::new(),
            alarms: Vec::new(),
            outputs: Vec::new(),
        })
    }

    /// Returns a partition's replica, if this process has it.
    pub fn replica(&self, partition: PartitionId) -> Option<&StrongReplica> {
        self.hosted.get(&partition).map(|hosted| &hosted.replica)
    }

    /// Returns all replicas.
    pub fn replicas(&self) -> impl Iterator<Item = &StrongReplica> {
        self.hosted.values().map(|hosted| &hosted.replica)
    }

    /// Handles a message for a partition of this process; it is dropped if the partition is not here.
    /// The transport guarantees that the source is correct.
    pub fn receive(&mut self, parcel: Parcel, outside: &mut impl Outside) {
        let Parcel { from, to, message } = parcel;
        if let Address::Replica(dc, partition) = to
            && dc == self.dc
        {
            self.input(partition, Input::Message { from, message }, outside);
            self.settle(outside);
        }
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
                hosted.tick_us = now_us.saturating_add(hosted.replica.tick_in_ms() * 1_000);
            }
        }
        self.settle(outside);
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
        let Persist { index, records, then } = persist;
        for record in &records {
            outside.append(&put_entry(partition, record));
        }
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
