//! Agreement on the log with a library (omnipaxos: Sequence Paxos with ballot leader election), and
//! the precautions that it needs.
//!
//! - It writes synchronously, and a leader counts its own vote at once. So the caller sends its
//!   messages and uses its decisions only after its writes are on disk.
//! - A proposal to a leader that dies is lost, so its proposer proposes it again.
//! - Both ends must be told of a connection that was lost and stands again.
//! - Version 0.2.4 merges a delta of decided entries with the receiver's state up to the *later*
//!   index: [`without_delta`] splits such deltas before the library sees them.
//! - Version 0.2.4 makes a replica wait forever if it promised a ballot of its own and crashed
//!   before others heard of it: a replica that is shut out for long becomes leader
//!   ([`is_outranked`]).
//!
//! - A configuration ends with an entry of the log, after which entries have no effect, and not
//!   with the library's `StopSign`: version 0.2.4 counts a `StopSign` twice if a new leader updates
//!   a follower that has accepted it, and then neither replica takes it for decided.
//!
//! Each message names its configuration; messages of another configuration are ignored. Each
//! configuration has its own instance of the library, on a log that begins where the previous one
//! ended. None of its members has voted in it before ([`configuration`](super::configuration)).
//!
//! With one data center there is no agreement: an appended entry is decided.
//!
//! A follower need not wait until its leader reports the chosen entries
//! ([`learner`](super::learner)).

use std::fmt;

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::messages::Message as PaxosMessage;
use omnipaxos::messages::ballot_leader_election::HeartbeatMsg;
use omnipaxos::messages::sequence_paxos::{PaxosMsg, Promise};
use omnipaxos::storage::SnapshotType;
use omnipaxos::{ClusterConfig, OmniPaxos, ServerConfig};

use super::certifier::Certifier;
use super::configuration::{Base, Configuration, dc_of};
use super::entry::Entry;
use super::group::GroupConfig;
use super::learner::Learner;
use super::mirror::{GroupRecord, Kept, Mirror};
use crate::codec::{Reader, VERSION, put_value};
use crate::flaw::{Flaw, Planted};
use crate::timestamp::DcId;

/// The number of elections after which a replica that is shut out becomes leader itself.
const SHUT_OUT_ELECTIONS: u64 = 3;

/// A replica's part in agreeing on the log.
pub struct Consensus {
    dc: DcId,
    incarnation: u32,
    /// True for an incarnation that never wrote anything: it may join a configuration.
    is_new: bool,
    server: ServerConfig,
    /// `None` if there is a single data center, or this replica is not a member.
    paxos: Option<Box<OmniPaxos<Entry, Mirror>>>,
    is_alone: bool,
    configuration: Configuration,
    /// A later incarnation has taken its place.
    is_replaced: bool,
    /// A data center that sent a message of a newer configuration.
    newer: Option<DcId>,
    ticks: u64,
    mirror: Mirror,
    learner: Learner,
    planted: Planted,
    /// True if a leader has a lower ballot than this replica has promised, with the number of
    /// ticks.
    is_shut_out: bool,
    shut_out_ticks: u64,
}

impl fmt::Debug for Consensus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consensus")
            .field("dc", &self.dc)
            .field("log", &self.mirror)
            .finish_non_exhaustive()
    }
}

impl Consensus {
    /// Restores the part of a replica that wrote these records.
    ///
    /// # Errors
    ///
    /// The settings that the library does not accept.
    pub fn restore<'a>(
        config: &GroupConfig,
        records: impl IntoIterator<Item = &'a GroupRecord>,
    ) -> Result<Self, String> {
        let founding = Configuration::founding(config.dc_count);
        let mirror = Mirror::new(Certifier::new(config.certifier.clone()), founding);
        for record in records {
            mirror.replay(record);
        }
        let (is_alone, planted) = (config.dc_count < 2, config.certifier.planted);
        let may_found = config.is_new && config.incarnation == 0;
        if may_found || is_alone || planted.is(Flaw::EmptyDiskVotes) {
            mirror.found();
        }
        let mut consensus = Self {
            dc: config.dc,
            incarnation: config.incarnation,
            is_new: config.is_new,
            server: server(config),
            paxos: None,
            is_alone,
            configuration: Configuration::default(),
            is_replaced: false,
            newer: None,
            ticks: 0,
            mirror,
            learner: Learner::new(0, Vec::new()),
            planted,
            is_shut_out: false,
            shut_out_ticks: 0,
        };
        consensus.join()?;
        Ok(consensus)
    }

    /// Joins the configuration to which the log belongs, if this replica is a member.
    fn join(&mut self) -> Result<(), String> {
        self.configuration = self.mirror.configuration();
        (self.newer, self.is_shut_out, self.shut_out_ticks) = (None, false, 0);
        self.paxos = None;
        let configuration = &self.configuration;
        let (own, nodes) = (configuration.node(self.dc), configuration.nodes());
        self.learner = Learner::new(own, nodes.clone());
        if self.is_alone || !self.is_member() {
            return Ok(());
        }
        let configuration_id = configuration.id();
        let cluster = ClusterConfig { configuration_id, nodes, flexible_quorum: None };
        let server = ServerConfig { pid: own, ..self.server.clone() };
        let paxos = cluster.build_for_server(server, self.mirror.clone());
        self.paxos = Some(Box::new(paxos.map_err(|error| error.to_string())?));
        Ok(())
    }

    /// Begins a configuration, on a log that starts from this base.
    pub fn begin(&mut self, configuration: Configuration, base: Base) {
        self.mirror.begin(configuration, base);
        self.join().expect("the settings were accepted before, and the configuration is sound");
    }

    /// Returns this replica's configuration, or the last one before it was replaced.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// True if this replica votes in the configuration.
    pub fn is_member(&self) -> bool {
        let listed = self.configuration.incarnation(self.dc);
        let is_impostor = listed.is_some() && self.planted.is(Flaw::EmptyDiskVotes);
        !self.is_replaced && (listed == Some(self.incarnation) || is_impostor)
    }

    /// True if a later incarnation of its data center has taken its place.
    pub fn is_replaced(&self) -> bool {
        let listed = self.configuration.incarnation(self.dc);
        self.is_replaced || listed.is_some_and(|listed| listed > self.incarnation)
    }

    /// Records that a later incarnation has taken its place.
    pub fn replaced(&mut self) {
        self.is_replaced = true;
        self.paxos = None;
    }

    /// True if this replica may join a configuration that names it as a member. It may not if it
    /// may have voted there and forgotten it.
    pub fn may_begin(&self) -> bool {
        self.configuration.id() > 0 || self.is_new
    }

    /// Returns the written log.
    pub fn log(&self) -> &Mirror {
        &self.mirror
    }

    /// Returns the leader, and true if this replica's log is in sync with it.
    pub fn leader(&self) -> Option<(DcId, bool)> {
        if self.is_alone {
            return Some((self.dc, true));
        }
        let (node, follows) = self.paxos.as_ref()?.get_current_leader()?;
        Some((dc_of(node), follows))
    }

    /// Appends an entry, if this replica leads. Returns false if the library's log has ended, which
    /// never happens.
    pub fn append(&mut self, entry: Entry) -> bool {
        let is_leader = self.leader() == Some((self.dc, true));
        match &mut self.paxos {
            Some(paxos) if is_leader => paxos.append(entry).is_ok(),
            Some(_) => true,
            None if self.is_alone => {
                self.mirror.append_alone(entry);
                true
            }
            None => true,
        }
    }

    /// Handles a message from a data center. Returns false if the message is invalid.
    pub fn handle(&mut self, from: DcId, bytes: &[u8]) -> bool {
        let mut reader = Reader::new(bytes, VERSION);
        let Ok(configuration) = reader.value::<u32>() else { return false };
        if configuration != self.configuration.id() {
            if configuration > self.configuration.id() && !self.is_alone {
                self.newer = Some(from);
            }
            return !self.is_alone;
        }
        // A replica that has left a configuration is silent; other replicas' messages in the next
        // configuration are for its successor.
        let Some(paxos) = &mut self.paxos else { return !self.is_alone };
        let decoded = reader.value::<PaxosMessage<Entry>>();
        let (Ok(message), true) = (decoded, reader.is_empty()) else { return false };
        let (own, sender) = (self.configuration.node(self.dc), self.configuration.node(from));
        if message.get_sender() != sender {
            return false;
        }
        if let Some((ballot, index)) = accepted(&message) {
            self.learner.accepted(sender, ballot, index);
        }
        if message.get_receiver() != own {
            // It is a copy of a message to the leader.
            return accepted(&message).is_some();
        }
        self.is_shut_out |= is_outranked(&message, paxos.get_promise());
        let decided = paxos.get_decided_idx();
        let must_merge = self.planted.is(Flaw::DeltaMerged);
        let message = if must_merge { message } else { without_delta(message, decided) };
        paxos.handle_incoming(message);
        true
    }

    /// Returns the messages to send, with their destinations.
    pub fn take_outgoing(&mut self) -> Vec<(DcId, Vec<u8>)> {
        let Some(paxos) = &mut self.paxos else { return Vec::new() };
        let mut messages = Vec::new();
        let (id, own) = (self.configuration.id(), self.configuration.node(self.dc));
        paxos.take_outgoing_messages(&mut messages);
        let mut outgoing = Vec::with_capacity(messages.len());
        for message in &messages {
            let mut bytes = Vec::new();
            put_value(&mut bytes, &(id, message));
            if let Some((ballot, index)) = accepted(message) {
                self.learner.accepted(own, ballot, index);
                for peer in self.learner.copied_to(ballot) {
                    outgoing.push((dc_of(peer), bytes.clone()));
                }
            }
            outgoing.push((dc_of(message.get_receiver()), bytes));
        }
        outgoing
    }

    /// Handles a lost connection to a data center that is up again.
    pub fn reconnected(&mut self, dc: DcId) {
        if let Some(paxos) = self.paxos.as_mut().filter(|_| dc != self.dc) {
            paxos.reconnected(self.configuration.node(dc));
        }
    }

    /// Advances the library's clock.
    pub fn tick(&mut self) {
        self.ticks += 1;
        let Some(paxos) = &mut self.paxos else { return };
        paxos.tick();
        self.shut_out_ticks = match paxos.get_current_leader() {
            Some((_, false)) if self.is_shut_out => self.shut_out_ticks + 1,
            _ => 0,
        };
        if self.shut_out_ticks > SHUT_OUT_ELECTIONS * self.server.election_tick_timeout {
            paxos.try_become_leader();
            self.shut_out_ticks = 0;
        }
        self.is_shut_out &= self.shut_out_ticks > 0;
    }

    /// Returns a data center to ask for the group's state, if the group seems to have moved on. It
    /// repeats after a while.
    pub fn take_ask(&mut self) -> Option<DcId> {
        let is_time = self.ticks.is_multiple_of(self.server.election_tick_timeout.max(1));
        if !is_time || self.is_replaced() || !self.may_begin() {
            return None;
        }
        self.newer.take()
    }

    /// Returns the index up to which the entries of this replica are decided.
    pub fn decided_index(&self) -> usize {
        let Some(paxos) = &self.paxos else { return self.mirror.decided() };
        let chosen = self.learner.chosen(self.planted.is(Flaw::ChosenWithoutMajority));
        paxos.get_decided_idx().max(chosen)
    }

    /// Replaces the entries below an index, which are decided, by a state.
    pub fn compact(&mut self, index: usize, state: &Certifier) {
        match &mut self.paxos {
            // It refuses an index that is already compacted.
            Some(paxos) => drop(paxos.snapshot(Some(index), true)),
            None if self.is_alone => self.mirror.compact_alone(index, state.clone()),
            None => {}
        }
    }
}

/// Returns the sender's accepted ballot and index, if the message reports them.
fn accepted(message: &PaxosMessage<Entry>) -> Option<(Ballot, usize)> {
    let PaxosMessage::SequencePaxos(inner) = message else { return None };
    match &inner.msg {
        PaxosMsg::Accepted(accepted) => Some((accepted.n, accepted.accepted_idx)),
        _ => None,
    }
}

/// Returns the library's settings, without the node number.
fn server(config: &GroupConfig) -> ServerConfig {
    ServerConfig {
        election_tick_timeout: config.election_ticks,
        resend_message_tick_timeout: config.election_ticks,
        // Messages are not held back for batching.
        batch_size: 1,
        flush_batch_tick_timeout: 1,
        buffer_size: 64,
        leader_priority: config.priority,
        ..ServerConfig::default()
    }
}

/// True if a replica leads with a lower ballot than this replica has promised. Either the leader's
/// own message shows it, or a reply of a follower that is content with it, since that follower
/// hears of no higher ballot.
fn is_outranked(message: &PaxosMessage<Entry>, promise: Ballot) -> bool {
    match message {
        PaxosMessage::SequencePaxos(inner) => {
            matches!(&inner.msg, PaxosMsg::Prepare(prepare) if prepare.n < promise)
        }
        PaxosMessage::BLE(inner) => {
            matches!(&inner.msg, HeartbeatMsg::Reply(reply) if reply.happy && reply.leader < promise)
        }
    }
}

/// Replaces a delta of decided entries in a synchronization message by the entries themselves: the
/// library's merge would lose entries that the receiver lacks.
fn without_delta(mut message: PaxosMessage<Entry>, decided: usize) -> PaxosMessage<Entry> {
    let PaxosMessage::SequencePaxos(inner) = &mut message else { return message };
    let sync = match &mut inner.msg {
        PaxosMsg::AcceptSync(accept) => &mut accept.log_sync,
        PaxosMsg::Promise(Promise { log_sync: Some(sync), .. }) => sync,
        _ => return message,
    };
    if let Some(SnapshotType::Delta(Kept::Entries(entries))) = &mut sync.decided_snapshot {
        let first = sync.sync_idx.saturating_sub(entries.len());
        let known = decided.saturating_sub(first).min(entries.len());
        let mut suffix = entries.split_off(known);
        suffix.append(&mut sync.suffix);
        sync.suffix = suffix;
        sync.sync_idx = first + known;
        sync.decided_snapshot = None;
    }
    message
}
