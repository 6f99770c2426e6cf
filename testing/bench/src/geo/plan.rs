//! The plan of a block: the numbers of all parts, and the distances.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mingle_geo::types::item::ItemOp;
use mingle_geo::{
    Cause, Config, DcId, Key, Kind, Op, PartitionId, State, Timestamp, Vector, Version,
};
use mingle_model::Value;

/// The point at which a commit is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Once its batch is encoded, in memory.
    Memory,
    /// Once its batch is in its data center's file, synced.
    File,
}

/// The distances of the data centers: one-way delays in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// Side by side.
    None,
    /// Virginia, California and Frankfurt, as in UniStore's evaluation (§8).
    Continents,
}

impl Distance {
    pub fn title(self) -> &'static str {
        match self {
            Self::None => "side by side",
            Self::Continents => "three continents",
        }
    }

    /// Returns half of the round trip: 61 ms is the paper's, the others are usual between these
    /// regions.
    pub fn one_way_us(self, from: u8, to: u8) -> u64 {
        match (self, from.min(to), from.max(to)) {
            (Self::None, ..) => 0,
            (Self::Continents, 0, 1) => 30_500,
            (Self::Continents, 0, 2) => 44_500,
            (Self::Continents, ..) => 73_000,
        }
    }
}

/// The plan of a block.
#[derive(Clone, Debug)]
pub struct Plan {
    pub dcs: u8,
    pub partitions: u16,
    pub threads: usize,
    /// The number of clients at each data center, each a session with one transaction at a time.
    pub clients: usize,
    /// The think time of a client between two transactions.
    pub think: Duration,
    /// The total number of keys.
    pub keys: usize,
    /// The size of a value in bytes.
    pub value_bytes: usize,
    /// Transactions that write, in percent.
    pub writes_percent: usize,
    /// The number of keys that such a transaction writes.
    pub writes: usize,
    /// Pairs of a writer and a reader at each data center that measure visibility.
    pub probes: usize,
    /// True if remote transactions become visible once uniform; otherwise once stable.
    pub is_uniform: bool,
    /// True if keys are items of any type; otherwise they are registers.
    pub has_items: bool,
    /// True if the sessions of a data center begin above what any of them has acknowledged.
    pub has_floors: bool,
    pub disk: Disk,
    pub distance: Distance,
    /// The bytes kept of each origin for data centers that lag; `None` for the default.
    pub forward_bytes_max: Option<usize>,
    /// The directory of the logs.
    pub logs: PathBuf,
    /// The time for which a snapshot can be read: short, so that folding starts within seconds.
    pub transaction_ms_max: u64,
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            dcs: 3,
            partitions: 4,
            threads: 2,
            clients: 64,
            think: Duration::ZERO,
            keys: 100_000,
            value_bytes: 64,
            writes_percent: 10,
            writes: 1,
            probes: 0,
            is_uniform: true,
            has_items: false,
            has_floors: false,
            disk: Disk::Memory,
            distance: Distance::None,
            forward_bytes_max: None,
            transaction_ms_max: 1_000,
            logs: PathBuf::from("target"),
            seed: 1,
        }
    }
}

impl Plan {
    /// Returns the settings of one replica.
    pub fn config(&self, dc: u8, partition: u16) -> Config {
        let mut config = Config::new(DcId(dc), self.dcs, PartitionId(partition), self.partitions);
        if !self.is_uniform {
            config.f = 0;
        }
        config.transaction_ms_max = self.transaction_ms_max;
        config.outcome_ms_max = self.transaction_ms_max * 6;
        if let Some(bytes) = self.forward_bytes_max {
            config.forward_bytes_max = bytes;
        }
        config
    }

    /// Returns the thread of a partition and its replicas at all data centers.
    pub fn thread_of(&self, partition: u16) -> usize {
        usize::from(partition) % self.threads
    }

    fn kind(&self) -> Kind {
        if self.has_items { Kind::Item } else { Kind::Register }
    }

    /// Returns the key of this number.
    pub fn key(&self, index: usize) -> Key {
        Key::new(self.kind(), format!("key:{index}"))
    }

    /// Returns the operation that writes a value.
    pub fn write(&self, value: Value) -> Op {
        if self.has_items { Op::Item(ItemOp::Set(value)) } else { Op::Write(value) }
    }

    /// Returns for each partition the initial states of these keys.
    pub fn filling(&self, keys: &[Key]) -> Vec<Vec<(Key, Arc<State>)>> {
        let mut filling = vec![Vec::new(); usize::from(self.partitions)];
        let version = Version { timestamp: Timestamp::ZERO, origin: DcId(0), index: 0 };
        let cause = Cause { version, seen: Vector::ZERO };
        for key in keys {
            let value = Value::Bytes(vec![0; self.value_bytes].into());
            let mut state = State::new(self.kind());
            state.apply(&cause, &self.write(value), None);
            let of = &mut filling[usize::from(key.partition(self.partitions).0)];
            of.push((key.clone(), Arc::new(state)));
        }
        filling
    }
}
