//! A replica's part in the group of its partition. The group is the partition's replicas in all
//! data centers; it agrees on the log that a [`Certifier`] follows.
//!
//! Messages and decisions wait here until the writes of the consensus are on disk
//! ([`consensus`](super::consensus)). Proposals go to the leader, and are repeated after a while
//! until the log has them, so one that is lost with a leader does no harm.
//!
//! Any replica can finish a transaction that a coordinator began. The leader of each participant
//! asks the others for their votes, and participants without a vote first refuse the transaction
//! ([`resolve`](super::resolve)).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use mingle_model::TransactionId;

use super::answer::Followed;
use super::certifier::{Certifier, CertifierConfig};
use super::consensus::Consensus;
use super::entry::{Decision, Entry, Proposal, Vote};
use super::members::Membership;
use super::message::{GroupEnvelope, GroupInput, GroupMessage, GroupOutput};
use super::mirror::GroupRecord;
use super::resolve::Resolving;
use crate::flaw::Flaw;
use crate::message::Address;
use crate::record::Alarm;
use crate::timestamp::{DcId, Now, PartitionId, Timestamp};

/// The identity of a group's part, and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// The data center.
    pub dc: DcId,
    /// The number of data centers.
    pub dc_count: u8,
    /// The number of times that the data center has lost its disks.
    pub incarnation: u32,
    /// True if this incarnation has never written anything, so that its disk is rightly empty. A
    /// replica whose disk was emptied has forgotten its votes, and may never vote again.
    pub is_new: bool,
    /// The settings that all replicas of the partition share.
    pub certifier: CertifierConfig,
    /// The interval of the library's ticks; it must be longer than a round trip between data
    /// centers.
    pub tick_ms: u64,
    /// A leader that is silent for this many ticks is replaced.
    pub election_ticks: u64,
    /// Among several possible leaders, the one with the highest priority wins.
    pub priority: u32,
    /// An entry that is not in the log after this time is proposed again.
    pub retry_ms: u64,
    /// A transaction that is undecided for longer is finished without its coordinator.
    pub resolve_after_ms: u64,
    /// Timestamps more than this ahead of the machine's clock are refused.
    pub clock_ahead_ms_max: u64,
    /// The number of entries kept one by one for lagging replicas.
    pub keep_entries: usize,
    /// The minimum interval of log entries that advance the log for commits elsewhere
    /// ([`Entry::Advance`]). With 0 there is one per message, which under load is most of the log.
    pub advance_every_ms: u64,
}

impl GroupConfig {
    /// Returns the usual settings.
    pub fn new(dc: DcId, dc_count: u8, certifier: CertifierConfig) -> Self {
        Self {
            dc,
            dc_count,
            incarnation: 0,
            is_new: true,
            certifier,
            tick_ms: 250,
            election_ticks: 2,
            priority: 0,
            retry_ms: 500,
            resolve_after_ms: 1_000,
            clock_ahead_ms_max: 5_000,
            keep_entries: 10_000,
            advance_every_ms: 0,
        }
    }
}

/// A kind of entry that this replica wants in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wanted {
    /// A vote.
    Vote(TransactionId, u64),
    /// An outcome.
    Outcome(TransactionId, u64),
    Advance,
    /// The fencing of a data center's incarnation.
    Fence(DcId, u32),
    /// This data center's report on that incarnation.
    Frozen(DcId, u32),
    /// The admission of that incarnation.
    Admit(DcId, u32),
}

/// A replica's part in its group.
#[derive(Debug)]
pub struct Group {
    pub(super) config: GroupConfig,
    pub(super) consensus: Consensus,
    pub(super) certifier: Certifier,
    /// The certifier has followed the log up to here.
    pub(super) applied: usize,
    /// The partition's replica was given the commits up to here.
    delivered: Timestamp,
    stable: Timestamp,
    everywhere: Timestamp,
    uniform: Timestamp,
    /// The wanted entries, with the times of their next proposal.
    pub(super) wanted: BTreeMap<Wanted, (Entry, u64)>,
    /// The addresses that wait for each vote.
    pub(super) asked: BTreeMap<TransactionId, (u64, BTreeSet<Address>)>,
    pub(super) resolving: BTreeMap<TransactionId, Resolving>,
    pub(super) followed: Followed,
    disk_index: u64,
    durable: u64,
    /// Disk indices, with the log indices that are decided once they are on disk.
    pub(super) decided: VecDeque<(u64, usize)>,
    pub(super) membership: Membership,
    tick_at_us: u64,
    /// The timestamp to which the log should advance, and the earliest time for the next proposal.
    advance_to: Timestamp,
    advance_at_us: u64,
    pub(super) sends: Vec<GroupEnvelope>,
    pub(super) then: Vec<GroupEnvelope>,
    pub(super) alarms: Vec<Alarm>,
}

impl Group {
    /// Restores the part of a replica that wrote these records and has delivered strong
    /// transactions up to `delivered`; a new replica has no records.
    ///
    /// # Errors
    ///
    /// The settings that the consensus library does not accept.
    pub fn restore<'a>(
        config: GroupConfig,
        records: impl IntoIterator<Item = &'a GroupRecord>,
        delivered: Timestamp,
    ) -> Result<Self, String> {
        let consensus = Consensus::restore(&config, records)?;
        let (applied, certifier) = consensus.log().state();
        let mut group = Self {
            config,
            consensus,
            certifier,
            applied,
            delivered,
            stable: Timestamp::ZERO,
            everywhere: Timestamp::ZERO,
            uniform: Timestamp::ZERO,
            wanted: BTreeMap::new(),
            asked: BTreeMap::new(),
            resolving: BTreeMap::new(),
            followed: Followed::default(),
            disk_index: 0,
            durable: 0,
            decided: VecDeque::new(),
            membership: Membership::default(),
            tick_at_us: 0,
            advance_to: Timestamp::ZERO,
            advance_at_us: 0,
            sends: Vec::new(),
            then: Vec::new(),
            alarms: Vec::new(),
        };
        group.follow(group.consensus.decided_index());
        Ok(group)
    }

    /// Returns one record that replaces all earlier ones.
    pub fn checkpoint(&self) -> GroupRecord {
        self.consensus.log().checkpoint()
    }

    /// Returns the state that results from its log.
    pub fn certifier(&self) -> &Certifier {
        &self.certifier
    }

    /// Returns the number of log entries that it has followed.
    pub fn applied(&self) -> usize {
        self.applied
    }

    /// Returns the timestamp up to which it has delivered commits.
    pub fn delivered(&self) -> Timestamp {
        self.delivered
    }

    /// True if it leads its group, as far as it knows.
    pub fn is_leader(&self) -> bool {
        self.consensus.leader() == Some((self.config.dc, true))
    }

    /// Records that a state transfer has brought all strong transactions up to `to`.
    pub fn brought_up(&mut self, to: Timestamp) {
        self.delivered = self.delivered.max(to);
    }

    /// Handles one input. The resulting actions are appended to `out`, in the order to perform
    /// them.
    pub fn handle(&mut self, now: Now, input: GroupInput, out: &mut Vec<GroupOutput>) {
        match input {
            GroupInput::Message { from, message } => self.on_message(now, from, message),
            GroupInput::Tick => {
                self.on_tick(now);
                // This delivers after a restart, or after a state transfer.
                self.deliver(out);
            }
            GroupInput::Persisted { index } => {
                self.durable = self.durable.max(index.min(self.disk_index));
            }
            GroupInput::Reconnected { dc } => self.consensus.reconnected(dc),
            GroupInput::Delivered { stable, everywhere, uniform } => {
                self.stable = self.stable.max(stable);
                self.everywhere = self.everywhere.max(everywhere);
                self.uniform = self.uniform.max(uniform);
            }
            GroupInput::Members(entry) => self.on_members(now, entry),
        }
        self.flush(out);
        let mut reached = None;
        while let Some((_, index)) = self.decided.pop_front_if(|(at, _)| *at <= self.durable) {
            reached = Some(index);
        }
        if let Some(index) = reached {
            self.follow(index);
            self.answer();
            self.deliver(out);
            self.compact();
            self.flush(out);
        }
    }

    fn on_message(&mut self, now: Now, from: Address, message: GroupMessage) {
        match message {
            GroupMessage::Certify(proposal) => self.on_certify(now, from, proposal),
            GroupMessage::Voted(voted) => self.on_voted(now, &voted),
            GroupMessage::Decided { id, begun_us, decision } => {
                self.want_decided(now, id, begun_us, decision);
            }
            GroupMessage::Query { id, begun_us, must_refuse } => {
                if self.certifier.vote(&id, begun_us).is_some() || !must_refuse {
                    return self.say_vote(from, id, begun_us);
                }
                if self.makes(Flaw::AbortWithoutRefuse) {
                    return self.say(from, id, Some(Vote::No));
                }
                self.asked.entry(id).or_insert((begun_us, BTreeSet::new())).1.insert(from);
                let entry = Entry::Refuse { id, begun_us };
                self.want(now, Wanted::Vote(id, begun_us), entry);
            }
            GroupMessage::Advance { to } => self.on_advance(now, to),
            GroupMessage::Propose(entries) => self.append(entries),
            GroupMessage::Consensus(bytes) => {
                let is_sound = match from {
                    Address::Replica(dc, _) => self.consensus.handle(dc, &bytes),
                    Address::Client(_) => false,
                };
                if !is_sound {
                    self.alarms.push(Alarm::Malformed("a message of the consensus"));
                }
            }
            GroupMessage::Ask { configuration, incarnation } => {
                self.on_ask(from, configuration, incarnation);
            }
            GroupMessage::Moved(moved) => self.on_moved(from, moved),
        }
    }

    fn on_certify(&mut self, now: Now, from: Address, mut proposal: Proposal) {
        let (id, begun_us) = (proposal.id, proposal.begun_us);
        if self.certifier.vote(&id, begun_us).is_some() {
            return self.say_vote(from, id, begun_us);
        }
        let own = self.config.certifier.partition;
        let is_sound = proposal.participants.contains(&own)
            && proposal.participants.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_sound {
            return self.alarms.push(Alarm::Malformed("participants of a strong transaction"));
        }
        let ahead_us = self.config.clock_ahead_ms_max.saturating_mul(1_000);
        let most_us = now.wall_us.saturating_add(ahead_us).max(self.certifier.last().micros());
        let highest = proposal.snap_vec.highest();
        if highest.micros().max(begun_us) > most_us {
            let (dc, timestamp) = (self.config.dc, highest);
            return self.alarms.push(Alarm::ClockAhead { dc, timestamp });
        }
        proposal.clock = Timestamp::new(now.wall_us, own);
        proposal.stable = self.stable;
        proposal.everywhere = self.everywhere;
        proposal.uniform = self.uniform;
        let entry = Entry::Prepare(Arc::new(proposal));
        if self.makes(Flaw::VoteFromMemory) && self.is_leader() {
            let mut foreseen = self.certifier.clone();
            foreseen.apply(&entry);
            self.say(from, id, foreseen.vote(&id, begun_us));
        }
        self.asked.entry(id).or_insert((begun_us, BTreeSet::new())).1.insert(from);
        self.want(now, Wanted::Vote(id, begun_us), entry);
    }

    fn on_advance(&mut self, now: Now, to: Timestamp) {
        if self.makes(Flaw::AdvanceForgotten) {
            return;
        }
        let ahead_us = self.config.clock_ahead_ms_max.saturating_mul(1_000);
        if to.micros() > now.wall_us.saturating_add(ahead_us) {
            let dc = self.config.dc;
            return self.alarms.push(Alarm::ClockAhead { dc, timestamp: to });
        }
        self.advance_to = self.advance_to.max(to);
        if now.mono_us >= self.advance_at_us {
            self.propose_advance(now);
        }
    }

    fn propose_advance(&mut self, now: Now) {
        let to = self.advance_to;
        self.advance_at_us = now.mono_us.saturating_add(self.config.advance_every_ms * 1_000);
        if let Some((Entry::Advance { to: before }, _)) = self.wanted.get(&Wanted::Advance)
            && *before < to
        {
            self.wanted.remove(&Wanted::Advance);
        }
        self.want(now, Wanted::Advance, Entry::Advance { to });
    }

    pub(super) fn want_decided(
        &mut self,
        now: Now,
        id: TransactionId,
        begun_us: u64,
        decision: Decision,
    ) {
        let entry = Entry::Decide { id, begun_us, decision };
        self.want(now, Wanted::Outcome(id, begun_us), entry);
    }

    /// Proposes an entry until the log has its content, unless it already does.
    pub(super) fn want(&mut self, now: Now, wanted: Wanted, entry: Entry) {
        if self.has(wanted, &entry) || self.wanted.contains_key(&wanted) {
            return;
        }
        let again_us = now.mono_us.saturating_add(self.config.retry_ms * 1_000);
        self.wanted.insert(wanted, (entry.clone(), again_us));
        self.submit(vec![entry]);
    }

    pub(super) fn has(&self, wanted: Wanted, entry: &Entry) -> bool {
        match wanted {
            Wanted::Vote(id, begun_us) => self.certifier.vote(&id, begun_us).is_some(),
            Wanted::Outcome(id, begun_us) => {
                // An undecided transaction is not over, even if it began long ago.
                let certifier = &self.certifier;
                certifier.outcome(&id).is_some() || certifier.is_forgotten(&id, begun_us)
            }
            Wanted::Advance => match entry {
                Entry::Advance { to } => self.certifier.last() >= *to,
                _ => true,
            },
            Wanted::Fence(..) | Wanted::Frozen(..) | Wanted::Admit(..) => {
                self.certifier.membership().has(entry)
            }
        }
    }

    /// Sends entries to the leader, if there is one; lost ones are proposed again.
    fn submit(&mut self, entries: Vec<Entry>) {
        let own = self.config.dc;
        match self.consensus.leader() {
            Some((dc, true)) if dc == own => self.append(entries),
            Some((dc, _)) if dc != own => {
                let to = Address::Replica(dc, self.config.certifier.partition);
                self.sends.push(GroupEnvelope { to, message: GroupMessage::Propose(entries) });
            }
            _ => {}
        }
    }

    /// Appends entries to the log, if this replica leads.
    pub(super) fn append(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            if self.is_stale(&entry) {
                continue;
            }
            if !self.consensus.append(entry) {
                self.alarms.push(Alarm::Malformed("the log of strong transactions has ended"));
            }
        }
    }

    fn on_tick(&mut self, now: Now) {
        if now.mono_us >= self.tick_at_us {
            self.tick_at_us = now.mono_us.saturating_add(self.config.tick_ms * 1_000);
            self.consensus.tick();
            self.ask();
            self.followed.must_look_at_all();
        }
        self.propose_members(now);
        let certifier = &self.certifier;
        let mut again = Vec::new();
        for (entry, again_us) in self.wanted.values_mut() {
            if *again_us <= now.mono_us {
                *again_us = now.mono_us.saturating_add(self.config.retry_ms * 1_000);
                again.push(match entry {
                    // The delivery progress is updated.
                    Entry::Prepare(proposal) => Entry::Prepare(Arc::new(Proposal {
                        stable: self.stable.max(proposal.stable),
                        everywhere: self.everywhere.max(proposal.everywhere),
                        uniform: self.uniform.max(proposal.uniform),
                        ..(**proposal).clone()
                    })),
                    entry => entry.clone(),
                });
            }
        }
        let floor_us = certifier.floor_us();
        let is_held_back = self.advance_to > certifier.last() && self.config.advance_every_ms > 0;
        if is_held_back && now.mono_us >= self.advance_at_us {
            self.propose_advance(now);
        }
        self.asked.retain(|_, (begun_us, _)| *begun_us > floor_us);
        if !again.is_empty() {
            self.submit(again);
        }
        self.resolve(now);
    }

    pub(super) fn makes(&self, flaw: Flaw) -> bool {
        self.config.certifier.planted.is(flaw)
    }

    fn deliver(&mut self, out: &mut Vec<GroupOutput>) {
        match self.certifier.deliver(self.delivered) {
            Ok(Some(delivery)) => {
                self.delivered = delivery.to;
                out.push(GroupOutput::Deliver(delivery));
            }
            Ok(None) => {}
            Err(_) => out.push(GroupOutput::Behind),
        }
    }

    /// Replaces a long log by a state.
    fn compact(&mut self) {
        if self.consensus.log().entry_count() < self.config.keep_entries.saturating_mul(2) {
            return;
        }
        self.consensus.compact(self.applied, &self.certifier);
    }

    pub(super) fn send(&mut self, to: PartitionId, message: GroupMessage) {
        let to = Address::Replica(self.config.dc, to);
        self.sends.push(GroupEnvelope { to, message });
    }

    fn flush(&mut self, out: &mut Vec<GroupOutput>) {
        for (dc, bytes) in self.consensus.take_outgoing() {
            let to = Address::Replica(dc, self.config.certifier.partition);
            self.then.push(GroupEnvelope { to, message: GroupMessage::Consensus(bytes) });
        }
        let mut records = self.consensus.log().take_written();
        if self.makes(Flaw::PersistsReordered) {
            records.reverse();
        }
        let is_hasty = self.makes(Flaw::DecisionBeforeDisk);
        if is_hasty {
            out.extend(self.then.drain(..).map(GroupOutput::Send));
        }
        out.extend(self.alarms.drain(..).map(GroupOutput::Alarm));
        out.extend(self.sends.drain(..).map(GroupOutput::Send));
        let must_wait = self.durable < self.disk_index && !self.then.is_empty();
        if !records.is_empty() || must_wait {
            self.disk_index += 1;
            let then = std::mem::take(&mut self.then);
            out.push(GroupOutput::Persist { index: self.disk_index, records, then });
        } else {
            out.extend(self.then.drain(..).map(GroupOutput::Send));
        }
        let index = self.consensus.decided_index();
        let known = self.decided.back().map_or(self.applied, |(_, index)| *index);
        if index > known {
            let at = if is_hasty { self.durable } else { self.disk_index };
            self.decided.push_back((at, index));
        }
    }
}
