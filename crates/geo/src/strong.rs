//! A replica with its part in the group that certifies strong transactions. To the shell it is one
//! state machine with one log on disk.

mod members;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::central::{Held, SERVICE, Serve, Service, part_of};
use crate::certify::{
    Group, GroupConfig, GroupEnvelope, GroupInput, GroupMessage, GroupOutput, Proposal,
};
use crate::config::{Certification, Config};
use crate::derive::Derive;
use crate::flaw::Flaw;
use crate::message::{Address, Envelope, Message};
use crate::record::{Alarm, Output, Persist, Record};
use crate::replica::{Delivery, Input, Replica};
use crate::timestamp::{DcId, Now, PartitionId, Timestamp};
use crate::vector::Vector;

/// The partition is advanced at most once in this time, in microseconds, for items that wait for the
/// horizon.
const WANTED_EVERY_US: u64 = 250_000;

/// The part that issued a [`Persist`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Replica,
    Group,
}

/// The replica of one partition in one data center, which takes part in certification.
///
/// Inputs and outputs are those of a [`Replica`]. The shell carries [`Message::Group`] like all
/// other messages, over connections that keep the order between siblings, and reports when such a
/// connection was lost ([`Input::Reconnected`]).
#[derive(Debug)]
pub struct StrongReplica {
    replica: Replica,
    group: Group,
    /// The index of the last [`Persist`].
    index: u64,
    /// Writes that are not on disk yet, in order: the own index, the issuing part, and its index.
    on_the_way: VecDeque<(u64, Whose, u64)>,
    /// The sibling that was last asked for a state transfer.
    asked: u8,
    /// Up to here, the partition is not advanced again for items that wait for the horizon.
    wanted: Timestamp,
    role: Role,
    /// The disk has lost its records, so this replica must not continue: another incarnation has
    /// to.
    is_blank: bool,
}

/// The way in which this partition's transactions are certified.
#[derive(Debug)]
enum Role {
    /// Its own group.
    Own,
    /// Its own group, which also certifies for all other partitions.
    Service(Service),
    /// The group of another partition; its own group is idle.
    Served,
}

impl StrongReplica {
    /// Restores the replica that wrote these records, in this order; a new replica has none. If
    /// there are none but it is [not new](GroupConfig::is_new), it refuses everything: its data
    /// center needs another incarnation.
    ///
    /// # Errors
    ///
    /// The setting that is out of bounds, or that the consensus library does not accept.
    pub fn restore(
        config: Config,
        group_config: GroupConfig,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<Self, String> {
        let may_forget = group_config.is_new || config.planted.is(Flaw::EmptyDiskVotes);
        let (mut own, mut of_group) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Group(record) => of_group.push(record),
                record => own.push(record),
            }
        }
        let is_blank = !may_forget && own.is_empty() && of_group.is_empty();
        let role = match config.certification {
            Certification::Partitions => Role::Own,
            Certification::Central if config.partition == SERVICE => {
                Role::Service(Service::new(config.partition_count, group_config.retry_ms))
            }
            Certification::Central => Role::Served,
        };
        let replica =
            if own.is_empty() { Replica::new(config) } else { Replica::restore(config, own) };
        let replica = replica.map_err(|error| error.to_string())?;
        let delivered = replica.known_vec()[DcId::STRONG];
        let group = Group::restore(group_config, &of_group, delivered)?;
        let (on_the_way, wanted) = (VecDeque::new(), Timestamp::ZERO);
        Ok(Self { replica, group, index: 0, on_the_way, asked: 0, wanted, role, is_blank })
    }

    /// Returns the replica.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Holds the items at a snapshot for a reader; see [`Replica::hold`].
    ///
    /// # Errors
    ///
    /// The vector up to which the replica has folded, if the snapshot does not cover it.
    pub fn hold(&mut self, at: Vector, until_us: u64) -> Result<(), Vector> {
        self.replica.hold(at, until_us)
    }

    /// Ends a hold.
    pub fn release(&mut self) {
        self.replica.release();
    }

    /// Keeps an index from now on; see [`Replica::derive`].
    pub fn derive(&mut self, by: &Arc<dyn Derive>) {
        self.replica.derive(by);
    }

    /// Returns its part in the group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Returns records that recreate this replica: a log that begins with them needs no earlier
    /// records.
    pub fn checkpoint(&self) -> Vec<Record> {
        let mut records = self.replica.checkpoint();
        records.push(Record::Group(self.group.checkpoint()));
        records
    }

    /// Returns the time until the shell's next [`Input::Tick`], in milliseconds.
    pub fn tick_in_ms(&self) -> u64 {
        self.replica.tick_in_ms()
    }

    /// Handles one input. The resulting actions are appended to `out`, in the order to perform
    /// them.
    pub fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Output>) {
        if self.is_blank {
            return self.replica.refuse_for_ever(input, out);
        }
        if self.replica.is_over() && !matches!(input, Input::Persisted { .. }) {
            // Only clients get an answer, a refusal.
            return self.give_replica(now, input, out);
        }
        match input {
            Input::Message { from, message: Message::Fence(fence) } => {
                self.on_fence(now, from, fence, out);
            }
            Input::Message { from, message: Message::Admit(admit) } => {
                self.on_admit(now, from, admit, out);
            }
            Input::Message { from, message: Message::Group(GroupMessage::Certify(proposal)) }
                if !self.is_served() =>
            {
                self.certify(now, from, proposal, out);
            }
            Input::Message { message: Message::Group(_), .. } if self.is_served() => {
                out.push(Output::Alarm(Alarm::Malformed(
                    "a partition that is served is to certify",
                )));
            }
            Input::Message { from, message: Message::Group(message) } => {
                self.give_group(now, GroupInput::Message { from, message }, out);
            }
            Input::Message { from, message: Message::Serve(serve) }
                if self.is_from(from, SERVICE) =>
            {
                self.on_serve(now, serve, out);
            }
            Input::Message { from, message: Message::Held(held) }
                if self.is_from(from, held.partition) =>
            {
                if let Role::Service(service) = &mut self.role {
                    service.on_held(now, &held);
                }
            }
            Input::Reconnected { .. } if self.is_served() => {}
            Input::Reconnected { dc } => {
                self.give_group(now, GroupInput::Reconnected { dc }, out);
            }
            Input::Tick => self.tick(now, out),
            Input::Persisted { index } => {
                while let Some((_, whose, index)) = self.on_the_way.pop_front_if(|on| on.0 <= index)
                {
                    match whose {
                        Whose::Replica => self.give_replica(now, Input::Persisted { index }, out),
                        Whose::Group => {
                            self.give_group(now, GroupInput::Persisted { index }, out);
                        }
                    }
                }
            }
            input => self.give_replica(now, input, out),
        }
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Output>) {
        self.give_replica(now, Input::Tick, out);
        if self.is_served() {
            return self.say_held(out);
        }
        let delivered = self.delivered();
        self.give_group(now, delivered, out);
        self.group.reconfigure(now, &self.replica.members().admitted());
        self.give_group(now, GroupInput::Tick, out);
        self.advance(now, out);
        self.serve(now, out);
        self.report(now, out);
    }

    /// Returns the delivery progress that the group needs; for a service, the minimum over all
    /// partitions it serves.
    fn delivered(&self) -> GroupInput {
        let mut stable = self.replica.stable_vec()[DcId::STRONG];
        let mut everywhere = self.replica.strong_everywhere();
        let mut uniform = self.replica.strong_uniform();
        if let Role::Service(service) = &self.role
            && let Some(by_all) = service.everywhere()
        {
            stable = stable.min(by_all);
            everywhere = everywhere.min(by_all);
            uniform = uniform.min(by_all);
        }
        GroupInput::Delivered { stable, everywhere, uniform }
    }

    /// An operation that takes away part of a sum names the amount before it is logged, so that all
    /// replicas take away the same. If the snapshot is not here yet, the request is dropped, and
    /// the coordinator repeats it.
    fn certify(&mut self, now: Now, from: Address, proposal: Proposal, out: &mut Vec<Output>) {
        let Proposal { id, begun_us, snap_vec, .. } = proposal;
        if matches!(self.role, Role::Service(_)) {
            let measures = proposal.updates.iter().any(|update| update.op.measures());
            let message = if measures {
                GroupMessage::Query { id, begun_us, must_refuse: true }
            } else {
                GroupMessage::Certify(proposal)
            };
            return self.give_group(now, GroupInput::Message { from, message }, out);
        }
        let message = match self.replica.measure_strong(now, &snap_vec, &proposal.updates) {
            Ok(Some(updates)) => GroupMessage::Certify(Proposal { updates, ..proposal }),
            Ok(None) => return,
            // The amount can no longer be determined.
            Err(_) => GroupMessage::Query { id, begun_us, must_refuse: true },
        };
        self.give_group(now, GroupInput::Message { from, message }, out);
    }

    /// Advances this partition if others of the data center have delivered more and it holds back
    /// visibility. The leader does this, in case the committing coordinator did not send its
    /// message.
    fn advance(&mut self, now: Now, out: &mut Vec<Output>) {
        let wanted = self.replica.strong_wanted().filter(|wanted| *wanted > self.wanted);
        let to = self.replica.strong_ahead().max(wanted.unwrap_or_default());
        if to > self.group.delivered() && self.group.is_leader() {
            if let Some(wanted) = wanted {
                // Not again until others have waited as long.
                let again_us = wanted.micros().saturating_add(WANTED_EVERY_US);
                self.wanted = Timestamp::new(again_us, self.replica.config().partition);
            }
            let from = self.replica.address();
            let message = GroupMessage::Advance { to };
            self.give_group(now, GroupInput::Message { from, message }, out);
        }
    }

    fn give_replica(&mut self, now: Now, input: Input, out: &mut Vec<Output>) {
        let mut outputs = Vec::new();
        self.replica.handle(now, input, &mut outputs);
        for output in outputs {
            match output {
                Output::Persist(Persist { index, records, then }) => {
                    out.push(self.persist(Whose::Replica, index, records, then));
                }
                output => out.push(output),
            }
        }
        let known = self.replica.known_vec()[DcId::STRONG];
        if known > self.group.delivered() {
            // A state transfer has brought them.
            self.group.brought_up(known);
        }
    }

    fn give_group(&mut self, now: Now, input: GroupInput, out: &mut Vec<Output>) {
        let mut outputs = Vec::new();
        self.group.handle(now, input, &mut outputs);
        for output in outputs {
            match output {
                GroupOutput::Send(envelope) => out.push(Output::Send(wrapped(envelope))),
                GroupOutput::Persist { index, records, then } => {
                    let records = records.into_iter().map(Record::Group).collect();
                    let then = then.into_iter().map(wrapped).collect();
                    out.push(self.persist(Whose::Group, index, records, then));
                }
                GroupOutput::Deliver(delivery) => {
                    let delivery = self.own_part(delivery);
                    self.give_replica(now, Input::Deliver(delivery), out);
                }
                GroupOutput::Behind => self.transfer(now, out),
                GroupOutput::Alarm(alarm) => out.push(Output::Alarm(alarm)),
            }
        }
        self.follow_members(now, out);
    }

    /// Begins a state transfer from another data center, unless one is under way.
    fn transfer(&mut self, now: Now, out: &mut Vec<Output>) {
        if self.replica.is_pulling() {
            return;
        }
        let others: Vec<DcId> = self.replica.config().others().collect();
        self.asked = self.asked.wrapping_add(1);
        if let Some(dc) = others.get(usize::from(self.asked) % others.len().max(1)) {
            self.replica.begin_transfer(now, *dc);
            self.give_replica(now, Input::Persisted { index: 0 }, out);
        }
    }

    fn is_served(&self) -> bool {
        matches!(self.role, Role::Served)
    }

    fn is_from(&self, from: Address, partition: PartitionId) -> bool {
        from == Address::Replica(self.replica.config().dc, partition)
    }

    /// Returns this partition's part of the service's delivery.
    fn own_part(&self, delivery: Delivery) -> Delivery {
        if !matches!(self.role, Role::Service(_)) {
            return delivery;
        }
        let Config { partition, partition_count, .. } = *self.replica.config();
        let parts = delivery.transactions.iter();
        let parts = parts.map(|transaction| part_of(transaction, partition, partition_count));
        let transactions = parts.filter(|part| !part.updates.is_empty()).collect();
        Delivery { to: delivery.to, transactions }
    }

    fn serve(&mut self, now: Now, out: &mut Vec<Output>) {
        let Role::Service(service) = &mut self.role else { return };
        let dc = self.replica.config().dc;
        for (partition, serve) in service.serve(now, &self.group) {
            let (to, message) = (Address::Replica(dc, partition), Message::Serve(serve));
            out.push(Output::Send(Envelope { to, message }));
        }
    }

    fn on_serve(&mut self, now: Now, serve: Serve, out: &mut Vec<Output>) {
        if !self.is_served() {
            return;
        }
        let Serve { from, to, transactions } = serve;
        let Some(transactions) = transactions else { return self.transfer(now, out) };
        if from <= self.replica.known_vec()[DcId::STRONG] {
            self.give_replica(now, Input::Deliver(Delivery { to, transactions }), out);
        }
    }

    fn say_held(&mut self, out: &mut Vec<Output>) {
        let Config { dc, partition, .. } = *self.replica.config();
        let known = self.replica.known_vec()[DcId::STRONG];
        let everywhere = self.replica.strong_everywhere();
        let message = Message::Held(Held { partition, known, everywhere });
        out.push(Output::Send(Envelope { to: Address::Replica(dc, SERVICE), message }));
    }

    fn persist(
        &mut self,
        whose: Whose,
        index: u64,
        records: Vec<Record>,
        then: Vec<Envelope>,
    ) -> Output {
        self.index += 1;
        self.on_the_way.push_back((self.index, whose, index));
        Output::Persist(Persist { index: self.index, records, then })
    }

    /// Returns the address of this replica.
    pub fn address(&self) -> Address {
        self.replica.address()
    }
}

fn wrapped(GroupEnvelope { to, message }: GroupEnvelope) -> Envelope {
    Envelope { to, message: Message::Group(message) }
}
