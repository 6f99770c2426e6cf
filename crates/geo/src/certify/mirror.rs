//! An in-memory mirror of the consensus library's storage. The library writes synchronously; its
//! writes are taken from here and put on disk before any of its messages leaves.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::storage::{Snapshot, StopSign, Storage, StorageOp, StorageResult};
use serde::{Deserialize, Serialize};

use super::certifier::Certifier;
use super::configuration::{Base, Configuration};
use super::entry::Entry;

/// A set of writes that reach the disk together or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord(Vec<Op>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Op {
    /// Replaces the log from this index on by these entries.
    Append(usize, Vec<Entry>),
    Promise(Ballot),
    AcceptedRound(Ballot),
    Decided(usize),
    /// Entries below this index are represented by the state.
    Compacted(usize),
    /// Entries below this index are removed.
    Trim(usize),
    State(Box<Certifier>),
    /// A configuration begins here, with an empty log.
    Begin(Configuration, Box<Base>),
}

impl omnipaxos::storage::Entry for Entry {
    type Snapshot = Kept;
}

/// A replacement for the first entries of a log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Kept {
    /// The state that results from them.
    State(Box<Certifier>),
    /// The entries themselves, for a receiver that has the log before them.
    Entries(Vec<Entry>),
}

impl Snapshot<Entry> for Kept {
    fn create(entries: &[Entry]) -> Self {
        Self::Entries(entries.to_vec())
    }

    fn merge(&mut self, delta: Self) {
        match (self, delta) {
            (Self::State(certifier), Self::Entries(entries)) => {
                for entry in &entries {
                    certifier.apply(entry);
                }
            }
            (Self::Entries(known), Self::Entries(entries)) => known.extend(entries),
            (kept, state) => *kept = state,
        }
    }

    fn use_snapshots() -> bool {
        true
    }
}

/// The mirror, shared by the library and the caller that takes out its writes.
#[derive(Clone, Debug)]
pub struct Mirror(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    /// The configuration to which the log belongs.
    configuration: Configuration,
    founding: Configuration,
    /// The beginning of the configuration, unless it is the founding one.
    base: Option<Box<Base>>,
    /// The entries from `compacted` on.
    log: Vec<Entry>,
    compacted: usize,
    /// The state that results from the entries before `compacted`.
    state: Box<Certifier>,
    promise: Option<Ballot>,
    accepted_round: Option<Ballot>,
    decided: usize,
    /// Writes that were not taken yet.
    written: Vec<GroupRecord>,
}

impl Inner {
    fn write(&mut self, record: GroupRecord) {
        self.replay(&record);
        self.written.push(record);
    }

    fn replay(&mut self, record: &GroupRecord) {
        if self.configuration.id() == 0 && !record.0.is_empty() {
            self.configuration.clone_from(&self.founding);
        }
        for op in &record.0 {
            match op {
                Op::Append(from, entries) => {
                    self.log.truncate(from.saturating_sub(self.compacted));
                    self.log.extend(entries.iter().cloned());
                }
                Op::Promise(ballot) => self.promise = Some(*ballot),
                Op::AcceptedRound(ballot) => self.accepted_round = Some(*ballot),
                Op::Decided(index) => self.decided = *index,
                Op::Compacted(index) => self.compacted = *index,
                Op::Trim(index) => {
                    let count = index.saturating_sub(self.compacted).min(self.log.len());
                    self.log.drain(..count);
                }
                Op::State(state) => self.state.clone_from(state),
                Op::Begin(configuration, base) => self.begin(configuration, base),
            }
        }
    }

    fn begin(&mut self, configuration: &Configuration, base: &Base) {
        self.configuration.clone_from(configuration);
        self.log.clear();
        self.compacted = base.index;
        self.state.as_mut().clone_from(&base.certifier);
        (self.promise, self.accepted_round) = (None, None);
        self.decided = base.index;
        self.base = Some(Box::new(base.clone()));
    }

    fn end(&self) -> usize {
        self.compacted + self.log.len()
    }

    fn op(&self, op: StorageOp<Entry>) -> Option<Op> {
        Some(match op {
            StorageOp::AppendEntry(entry) => Op::Append(self.end(), vec![entry]),
            StorageOp::AppendEntries(entries) => Op::Append(self.end(), entries),
            StorageOp::AppendOnPrefix(from, entries) => Op::Append(from, entries),
            StorageOp::SetPromise(ballot) => Op::Promise(ballot),
            StorageOp::SetDecidedIndex(index) => Op::Decided(index),
            StorageOp::SetAcceptedRound(ballot) => Op::AcceptedRound(ballot),
            StorageOp::SetCompactedIdx(index) => Op::Compacted(index),
            StorageOp::Trim(index) => Op::Trim(index),
            StorageOp::SetSnapshot(Some(Kept::State(state))) => Op::State(state),
            // A log always begins with a state, and the end of a configuration is an entry of the
            // log.
            StorageOp::SetSnapshot(_) | StorageOp::SetStopsign(_) => return None,
        })
    }
}

impl Mirror {
    /// Creates the mirror of an empty log with this certifier. The log belongs to the founding
    /// configuration once something is written.
    pub fn new(certifier: Certifier, founding: Configuration) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            configuration: Configuration::default(),
            founding,
            base: None,
            log: Vec::new(),
            compacted: 0,
            state: Box::new(certifier),
            promise: None,
            accepted_round: None,
            decided: 0,
            written: Vec::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a record that was written before a restart.
    pub fn replay(&self, record: &GroupRecord) {
        self.lock().replay(record);
    }

    /// Begins the founding configuration, if nothing was written because the system is new.
    pub fn found(&self) {
        let mut inner = self.lock();
        if inner.configuration.id() == 0 {
            inner.configuration = inner.founding.clone();
        }
    }

    /// Begins a configuration; the previous one's records become useless.
    pub fn begin(&self, configuration: Configuration, base: Base) {
        let ops = vec![Op::Begin(configuration, Box::new(base))];
        self.lock().write(GroupRecord(ops));
    }

    /// Returns the configuration to which the log belongs; its number is 0 if nothing was written.
    pub fn configuration(&self) -> Configuration {
        self.lock().configuration.clone()
    }

    /// Returns the beginning of the configuration, unless it is the founding one.
    pub fn base(&self) -> Option<Box<Base>> {
        self.lock().base.clone()
    }

    /// Takes the writes since the last call.
    pub fn take_written(&self) -> Vec<GroupRecord> {
        std::mem::take(&mut self.lock().written)
    }

    /// Returns one record that replaces all earlier ones.
    pub fn checkpoint(&self) -> GroupRecord {
        let inner = self.lock();
        if inner.configuration.id() == 0 {
            return GroupRecord(Vec::new());
        }
        let base = inner.base.iter();
        let begin = base.map(|base| Op::Begin(inner.configuration.clone(), base.clone()));
        let mut ops: Vec<Op> = begin.collect();
        ops.extend([
            Op::State(inner.state.clone()),
            Op::Compacted(inner.compacted),
            Op::Append(inner.compacted, inner.log.clone()),
            Op::Decided(inner.decided),
        ]);
        ops.extend(inner.promise.map(Op::Promise));
        ops.extend(inner.accepted_round.map(Op::AcceptedRound));
        GroupRecord(ops)
    }

    /// Returns the index below which entries are removed, and the state that they result in.
    pub fn state(&self) -> (usize, Certifier) {
        let inner = self.lock();
        (inner.compacted, (*inner.state).clone())
    }

    /// Returns [`state`](Self::state) for a follower at `index`, if entries after `index` are
    /// already removed.
    pub fn state_beyond(&self, index: usize) -> Option<(usize, Certifier)> {
        let inner = self.lock();
        (inner.compacted > index).then(|| (inner.compacted, (*inner.state).clone()))
    }

    /// Returns the index up to which entries are decided.
    pub fn decided(&self) -> usize {
        self.lock().decided
    }

    /// Returns the number of stored entries.
    pub fn entry_count(&self) -> usize {
        self.lock().log.len()
    }

    /// Returns the decided entries from `index` to `to`, without those already removed.
    pub fn decided_from(&self, index: usize, to: usize) -> Vec<Entry> {
        let inner = self.lock();
        let place = |index: usize| index.saturating_sub(inner.compacted).min(inner.log.len());
        inner.log[place(index)..place(to).max(place(index))].to_vec()
    }

    /// Appends an entry without other members: it is decided once written.
    pub fn append_alone(&self, entry: Entry) -> usize {
        let mut inner = self.lock();
        let end = inner.end();
        inner.write(GroupRecord(vec![Op::Append(end, vec![entry]), Op::Decided(end + 1)]));
        end + 1
    }

    /// Replaces the entries below an index by a state, without other members.
    pub fn compact_alone(&self, index: usize, state: Certifier) {
        let ops = vec![Op::Trim(index), Op::Compacted(index), Op::State(Box::new(state))];
        self.lock().write(GroupRecord(ops));
    }
}

impl Storage<Entry> for Mirror {
    fn write_atomically(&mut self, ops: Vec<StorageOp<Entry>>) -> StorageResult<()> {
        let mut inner = self.lock();
        let ops = ops.into_iter().filter_map(|op| inner.op(op)).collect();
        inner.write(GroupRecord(ops));
        Ok(())
    }

    fn append_entry(&mut self, entry: Entry) -> StorageResult<()> {
        self.append_entries(vec![entry])
    }

    fn append_entries(&mut self, entries: Vec<Entry>) -> StorageResult<()> {
        if !entries.is_empty() {
            let mut inner = self.lock();
            let end = inner.end();
            inner.write(GroupRecord(vec![Op::Append(end, entries)]));
        }
        Ok(())
    }

    fn append_on_prefix(&mut self, from: usize, entries: Vec<Entry>) -> StorageResult<()> {
        self.lock().write(GroupRecord(vec![Op::Append(from, entries)]));
        Ok(())
    }

    fn set_promise(&mut self, ballot: Ballot) -> StorageResult<()> {
        self.lock().write(GroupRecord(vec![Op::Promise(ballot)]));
        Ok(())
    }

    fn set_decided_idx(&mut self, index: usize) -> StorageResult<()> {
        self.lock().write(GroupRecord(vec![Op::Decided(index)]));
        Ok(())
    }

    fn get_decided_idx(&self) -> StorageResult<usize> {
        Ok(self.lock().decided)
    }

    fn set_accepted_round(&mut self, ballot: Ballot) -> StorageResult<()> {
        self.lock().write(GroupRecord(vec![Op::AcceptedRound(ballot)]));
        Ok(())
    }

    fn get_accepted_round(&self) -> StorageResult<Option<Ballot>> {
        Ok(self.lock().accepted_round)
    }

    fn get_entries(&self, from: usize, to: usize) -> StorageResult<Vec<Entry>> {
        let inner = self.lock();
        let whole = from
            .checked_sub(inner.compacted)
            .zip(to.checked_sub(inner.compacted))
            .and_then(|(from, to)| inner.log.get(from..to));
        Ok(whole.map_or_else(Vec::new, <[Entry]>::to_vec))
    }

    fn get_log_len(&self) -> StorageResult<usize> {
        Ok(self.lock().log.len())
    }

    fn get_suffix(&self, from: usize) -> StorageResult<Vec<Entry>> {
        let inner = self.lock();
        let suffix = from.checked_sub(inner.compacted).and_then(|from| inner.log.get(from..));
        Ok(suffix.map_or_else(Vec::new, <[Entry]>::to_vec))
    }

    fn get_promise(&self) -> StorageResult<Option<Ballot>> {
        Ok(self.lock().promise)
    }

    fn set_stopsign(&mut self, _: Option<StopSign>) -> StorageResult<()> {
        Ok(())
    }

    fn get_stopsign(&self) -> StorageResult<Option<StopSign>> {
        Ok(None)
    }

    fn trim(&mut self, index: usize) -> StorageResult<()> {
        self.lock().write(GroupRecord(vec![Op::Trim(index)]));
        Ok(())
    }

    fn set_compacted_idx(&mut self, index: usize) -> StorageResult<()> {
        self.lock().write(GroupRecord(vec![Op::Compacted(index)]));
        Ok(())
    }

    fn get_compacted_idx(&self) -> StorageResult<usize> {
        Ok(self.lock().compacted)
    }

    fn set_snapshot(&mut self, snapshot: Option<Kept>) -> StorageResult<()> {
        if let Some(Kept::State(state)) = snapshot {
            self.lock().write(GroupRecord(vec![Op::State(state)]));
        }
        Ok(())
    }

    fn get_snapshot(&self) -> StorageResult<Option<Kept>> {
        Ok(Some(Kept::State(self.lock().state.clone())))
    }
}
