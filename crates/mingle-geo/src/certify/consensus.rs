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
//! One data center has nobody to agree with: what it appends is decided.
//!
//! A follower need not wait until its leader tells it what is chosen ([`learner`](super::learner)).

use std::fmt;

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::messages::Message as PaxosMessage;
use omnipaxos::messages::ballot_leader_election::HeartbeatMsg;
use omnipaxos::messages::sequence_paxos::{PaxosMsg, Promise};
use omnipaxos::storage::SnapshotType;
use omnipaxos::util::NodeId;
use omnipaxos::{ClusterConfig, OmniPaxos, ServerConfig};

use super::certifier::Certifier;
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
    /// None if there is nobody to agree with.
    paxos: Option<OmniPaxos<Entry, Mirror>>,
    mirror: Mirror,
    learner: Learner,
    election_ticks: u64,
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
        let mirror = Mirror::new(Certifier::new(config.certifier.clone()));
        for record in records {
            mirror.replay(record);
        }
        let paxos = match config.dc_count {
            0 | 1 => None,
            _ => Some(join(config, mirror.clone())?),
        };
        Ok(Self {
            dc: config.dc,
            paxos,
            mirror,
            learner: Learner::new(node(config.dc), config.dc_count),
            election_ticks: config.election_ticks,
            planted: config.certifier.planted,
            is_shut_out: false,
            shut_out_ticks: 0,
        })
    }

    /// What was written, and is read.
    pub fn log(&self) -> &Mirror {
        &self.mirror
    }

    /// Who leads, and whether this replica's log follows.
    pub fn leader(&self) -> Option<(DcId, bool)> {
        let Some(paxos) = &self.paxos else { return Some((self.dc, true)) };
        let (node, follows) = paxos.get_current_leader()?;
        Some((DcId(u8::try_from(node.checked_sub(1)?).ok()?), follows))
    }

    /// Appends an entry, if this replica leads; false if the log has ended, which it never does.
    pub fn append(&mut self, entry: Entry) -> bool {
        let is_leader = self.leader() == Some((self.dc, true));
        match &mut self.paxos {
            Some(paxos) if is_leader => paxos.append(entry).is_ok(),
            Some(_) => true,
            None => {
                self.mirror.append_alone(entry);
                true
            }
        }
    }

    /// Handles a message from a data center; false if it is none of theirs.
    pub fn handle(&mut self, from: DcId, bytes: &[u8]) -> bool {
        let Some(paxos) = &mut self.paxos else { return false };
        let decoded: Result<PaxosMessage<Entry>, _> = postcard::from_bytes(bytes);
        let Ok(message) = decoded else { return false };
        if message.get_sender() != node(from) {
            return false;
        }
        if let Some((ballot, index)) = accepted(&message) {
            self.learner.accepted(node(from), ballot, index);
        }
        if message.get_receiver() != node(self.dc) {
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
        paxos.take_outgoing_messages(&mut messages);
        let mut outgoing = Vec::with_capacity(messages.len());
        for message in &messages {
            let bytes = postcard::to_stdvec(message).expect("a message has a form");
            if let Some((ballot, index)) = accepted(message) {
                self.learner.accepted(node(self.dc), ballot, index);
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
            paxos.reconnected(node(dc));
        }
    }

    /// Time passed.
    pub fn tick(&mut self) {
        let Some(paxos) = &mut self.paxos else { return };
        paxos.tick();
        self.shut_out_ticks = match paxos.get_current_leader() {
            Some((_, false)) if self.is_shut_out => self.shut_out_ticks + 1,
            _ => 0,
        };
        if self.shut_out_ticks > SHUT_OUT_ELECTIONS * self.election_ticks {
            paxos.try_become_leader();
            self.shut_out_ticks = 0;
        }
        self.is_shut_out &= self.shut_out_ticks > 0;
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
            None => self.mirror.compact_alone(index, state.clone()),
        }
    }
}

/// The number of a data center's replica.
fn node(dc: DcId) -> NodeId {
    NodeId::from(dc.0) + 1
}

/// The data center of a replica.
fn dc_of(node: NodeId) -> DcId {
    DcId((node - 1) as u8)
}

/// What its sender has accepted, if that is what the message says.
fn accepted(message: &PaxosMessage<Entry>) -> Option<(Ballot, usize)> {
    let PaxosMessage::SequencePaxos(inner) = message else { return None };
    match &inner.msg {
        PaxosMsg::Accepted(accepted) => Some((accepted.n, accepted.accepted_idx)),
        _ => None,
    }
}

fn join(config: &GroupConfig, mirror: Mirror) -> Result<OmniPaxos<Entry, Mirror>, String> {
    let cluster = ClusterConfig {
        configuration_id: 1,
        nodes: (0..config.dc_count).map(|dc| node(DcId(dc))).collect(),
        flexible_quorum: None,
    };
    let server = ServerConfig {
        pid: node(config.dc),
        election_tick_timeout: config.election_ticks,
        resend_message_tick_timeout: config.election_ticks,
        // Nothing is held back to be sent with something else.
        batch_size: 1,
        flush_batch_tick_timeout: 1,
        buffer_size: 64,
        leader_priority: config.priority,
    };
    cluster.build_for_server(server, mirror).map_err(|error| error.to_string())
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
