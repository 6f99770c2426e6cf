//! Agreement on the log: a kept library (omnipaxos: Sequence Paxos with ballot leader election), and
//! what has to be minded about it.
//!
//! - It writes synchronously, and a leader counts its own vote at once. Whoever uses this sends what
//!   it says, and acts on what it decides, only after what it wrote is on disk.
//! - What is proposed to a leader that dies is lost: who wants something in the log proposes it again.
//! - Both ends must be told of a connection that was lost and stands again.
//! - Version 0.2.4 merges a delta of decided entries with what the receiver has up to the *later*
//!   index: [`without_delta`] takes such deltas apart before it sees them.
//! - Version 0.2.4 lets a replica wait for ever that promised itself to lead and crashed before others
//!   heard of it: one that is shut out for long leads ([`is_outranked`]).
//!
//! - A configuration ends by an entry of the log, which has no effect beyond that, not by the library's
//!   `StopSign`: version 0.2.4 counts that twice where a new leader brings up one that has accepted it,
//!   and then neither takes it for decided.
//!
//! What is said names the configuration in which it is; what is said in another is not heeded. Each has
//! its own instance of the library, on a log that begins where the one before has ended, and with
//! members of which none has voted in it before ([`configuration`](super::configuration)).
//!
//! One data center has nobody to agree with: what it appends is decided.
//!
//! A follower need not wait until its leader tells it what is chosen ([`learner`](super::learner)).

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
use crate::flaw::{Flaw, Planted};
use crate::timestamp::DcId;

/// A replica that is shut out for so many elections leads itself.
const SHUT_OUT_ELECTIONS: u64 = 3;

/// A replica's part in agreeing on the log.
pub struct Consensus {
    dc: DcId,
    incarnation: u32,
    /// As long as it knows of no configuration: it may become part of one.
    is_new: bool,
    server: ServerConfig,
    /// None if there is nobody to agree with, or this replica is not one of them.
    paxos: Option<Box<OmniPaxos<Entry, Mirror>>>,
    is_alone: bool,
    configuration: Configuration,
    /// A later incarnation has taken its place.
    is_replaced: bool,
    /// Who has spoken in a newer configuration.
    newer: Option<DcId>,
    ticks: u64,
    mirror: Mirror,
    learner: Learner,
    planted: Planted,
    /// Somebody leads whose ballot is below what this replica has promised, for so many ticks.
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
    /// The part of a replica that wrote these records.
    ///
    /// # Errors
    ///
    /// What the library does not accept about the settings.
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

    /// Takes part in the configuration to which the log belongs, if it is for this replica.
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

    /// A configuration begins, on a log of which this comes before.
    pub fn begin(&mut self, configuration: Configuration, base: Base) {
        self.mirror.begin(configuration, base);
        self.join().expect("the settings were accepted before, and the configuration is sound");
    }

    /// The configuration in which this replica is, or that it has left.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Whether this replica votes in it.
    pub fn is_member(&self) -> bool {
        let listed = self.configuration.incarnation(self.dc);
        let is_impostor = listed.is_some() && self.planted.is(Flaw::EmptyDiskVotes);
        !self.is_replaced && (listed == Some(self.incarnation) || is_impostor)
    }

    /// Whether a later incarnation of its data center has taken its place.
    pub fn is_replaced(&self) -> bool {
        let listed = self.configuration.incarnation(self.dc);
        self.is_replaced || listed.is_some_and(|listed| listed > self.incarnation)
    }

    /// It hears that a later incarnation has taken its place.
    pub fn replaced(&mut self) {
        self.is_replaced = true;
        self.paxos = None;
    }

    /// Whether this replica may begin in a configuration of which it is told, and that has it as a
    /// member: not if it may have voted there, and has forgotten.
    pub fn may_begin(&self) -> bool {
        self.configuration.id() > 0 || self.is_new
    }

    /// What was written, and is read.
    pub fn log(&self) -> &Mirror {
        &self.mirror
    }

    /// Who leads, and whether this replica's log follows.
    pub fn leader(&self) -> Option<(DcId, bool)> {
        if self.is_alone {
            return Some((self.dc, true));
        }
        let (node, follows) = self.paxos.as_ref()?.get_current_leader()?;
        Some((dc_of(node), follows))
    }

    /// Appends an entry, if this replica leads; false if the log has ended, which it never does.
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

    /// Handles a message from a data center; false if it is none of theirs.
    pub fn handle(&mut self, from: DcId, bytes: &[u8]) -> bool {
        let decoded: Result<(u32, &[u8]), _> = postcard::take_from_bytes(bytes);
        let Ok((configuration, bytes)) = decoded else { return false };
        if configuration != self.configuration.id() {
            if configuration > self.configuration.id() && !self.is_alone {
                self.newer = Some(from);
            }
            return !self.is_alone;
        }
        // One that has left says nothing; what others say in the configuration after that is for its
        // successor.
        let Some(paxos) = &mut self.paxos else { return !self.is_alone };
        let decoded: Result<PaxosMessage<Entry>, _> = postcard::from_bytes(bytes);
        let Ok(message) = decoded else { return false };
        let (own, sender) = (self.configuration.node(self.dc), self.configuration.node(from));
        if message.get_sender() != sender {
            return false;
        }
        if let Some((ballot, index)) = accepted(&message) {
            self.learner.accepted(sender, ballot, index);
        }
        if message.get_receiver() != own {
            // A copy of what the leader is told.
            return accepted(&message).is_some();
        }
        self.is_shut_out |= is_outranked(&message, paxos.get_promise());
        let decided = paxos.get_decided_idx();
        let must_merge = self.planted.is(Flaw::DeltaMerged);
        let message = if must_merge { message } else { without_delta(message, decided) };
        paxos.handle_incoming(message);
        true
    }

    /// The messages to send, with where they go.
    pub fn take_outgoing(&mut self) -> Vec<(DcId, Vec<u8>)> {
        let Some(paxos) = &mut self.paxos else { return Vec::new() };
        let mut messages = Vec::new();
        let (id, own) = (self.configuration.id(), self.configuration.node(self.dc));
        paxos.take_outgoing_messages(&mut messages);
        let mut outgoing = Vec::with_capacity(messages.len());
        for message in &messages {
            let bytes = postcard::to_stdvec(&(id, message)).expect("a message has a form");
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

    /// The connection to a data center was lost and stands again.
    pub fn reconnected(&mut self, dc: DcId) {
        if let Some(paxos) = self.paxos.as_mut().filter(|_| dc != self.dc) {
            paxos.reconnected(self.configuration.node(dc));
        }
    }

    /// Time passed.
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

    /// Whom to ask what has become of the group, if it seems to have gone on elsewhere: after a while
    /// again.
    pub fn take_ask(&mut self) -> Option<DcId> {
        let is_time = self.ticks.is_multiple_of(self.server.election_tick_timeout.max(1));
        if !is_time || self.is_replaced() || !self.may_begin() {
            return None;
        }
        self.newer.take()
    }

    /// Up to which index entries are decided, of those that this replica has.
    pub fn decided_index(&self) -> usize {
        let Some(paxos) = &self.paxos else { return self.mirror.decided() };
        let chosen = self.learner.chosen(self.planted.is(Flaw::ChosenWithoutMajority));
        paxos.get_decided_idx().max(chosen)
    }

    /// Puts a state in the place of the entries below an index, which are decided.
    pub fn compact(&mut self, index: usize, state: &Certifier) {
        match &mut self.paxos {
            // It refuses what it has compacted already.
            Some(paxos) => drop(paxos.snapshot(Some(index), true)),
            None if self.is_alone => self.mirror.compact_alone(index, state.clone()),
            None => {}
        }
    }
}

/// What its sender has accepted, if that is what the message says.
fn accepted(message: &PaxosMessage<Entry>) -> Option<(Ballot, usize)> {
    let PaxosMessage::SequencePaxos(inner) = message else { return None };
    match &inner.msg {
        PaxosMsg::Accepted(accepted) => Some((accepted.n, accepted.accepted_idx)),
        _ => None,
    }
}

/// The library's settings, but for the number.
fn server(config: &GroupConfig) -> ServerConfig {
    ServerConfig {
        election_tick_timeout: config.election_ticks,
        resend_message_tick_timeout: config.election_ticks,
        // Nothing is held back to be sent with something else.
        batch_size: 1,
        flush_batch_tick_timeout: 1,
        buffer_size: 64,
        leader_priority: config.priority,
        ..ServerConfig::default()
    }
}

/// Whether somebody leads with a ballot below what this replica has promised: it says so itself, or
/// those that are content with it do, since it hears of no higher one and answers none.
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

/// The same, where a log is brought up by what was decided between two indices, with these entries
/// in full: merged as the library does it, entries that the receiver lacks would be lost.
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
