//! The part of a server that all protocols share: clock, links, and the queue of outputs.

use std::collections::{BTreeMap, VecDeque};

use crate::clock::{Clock, NodeId, Timestamp};
use crate::config::Config;
use crate::flaw::Flaw;
use crate::link::{Receiver, Sender};
use crate::message::{Address, Event, Frame, Message, Output, Packet, Point};

/// The clock, links and outputs of a server.
#[derive(Debug)]
pub(crate) struct Net {
    pub id: NodeId,
    pub config: Config,
    pub clock: Clock,
    pub now_us: u64,
    senders: BTreeMap<NodeId, Sender<Message>>,
    receivers: BTreeMap<NodeId, Receiver>,
    outputs: VecDeque<Output>,
}

impl Net {
    pub fn new(config: Config, id: NodeId) -> Self {
        Self {
            id,
            config,
            clock: Clock::default(),
            now_us: 0,
            senders: BTreeMap::new(),
            receivers: BTreeMap::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Returns the timestamp of an event now.
    pub fn stamp(&mut self) -> Timestamp {
        let time = self.clock.tick();
        if self.config.has(Flaw::SignedNodeIds) {
            return Timestamp::signed(time, self.id);
        }
        Timestamp::new(time, self.id)
    }

    /// Returns the server of a key in this data center.
    pub fn local(&self, key: u32) -> NodeId {
        self.config.locator.server(self.id.dc(), key)
    }

    /// Returns the other data centers.
    pub fn others(&self) -> impl Iterator<Item = u8> + use<> {
        let own = self.id.dc();
        self.config.locator.dcs().filter(move |dc| *dc != own)
    }

    /// Sends a message over a link: it arrives, in order.
    pub fn link(&mut self, to: NodeId, message: Message) {
        let is_transaction = matches!(message, Message::ReplicatedTransaction { .. });
        let is_lost = is_transaction && self.config.has(Flaw::TransactionNotRetried);
        if is_lost || self.config.has(Flaw::NotRetried) {
            self.plain(Address::Server(to), message);
            return;
        }
        let sender = self.senders.entry(to).or_default();
        let number = sender.send(self.now_us, message.clone());
        self.frame(Address::Server(to), Frame::Numbered(number, message));
    }

    /// Sends a message that may be lost, or that goes to a client.
    pub fn plain(&mut self, to: Address, message: Message) {
        self.frame(to, Frame::Plain(message));
    }

    fn frame(&mut self, to: Address, frame: Frame) {
        let (from, time) = (Address::Server(self.id), self.clock.now());
        self.outputs.push_back(Output::Send(Packet { from, to, time, frame }));
    }

    /// Takes a packet, and returns its message if there is a new one.
    pub fn received(&mut self, now_us: u64, packet: Packet) -> Option<(Address, Message)> {
        self.now_us = now_us;
        self.clock.witness(packet.time);
        match (packet.frame, packet.from) {
            (Frame::Plain(message), from) => Some((from, message)),
            (Frame::Numbered(number, message), Address::Server(from)) => {
                let receiver = self.receivers.entry(from).or_default();
                let is_new = receiver.accepts(number);
                let next = receiver.next();
                self.frame(packet.from, Frame::Arrived(next));
                is_new.then_some((packet.from, message))
            }
            (Frame::Arrived(next), Address::Server(from)) => {
                self.senders.entry(from).or_default().acknowledge(now_us, next);
                None
            }
            // Only servers have links.
            (Frame::Numbered(..) | Frame::Arrived(_), Address::Client(_)) => None,
        }
    }

    /// Sends again the messages that have not arrived in time.
    pub fn tick(&mut self, now_us: u64) {
        self.now_us = now_us;
        let retry_us = self.config.retry_us;
        let due: Vec<(NodeId, u64, Message)> = self
            .senders
            .iter_mut()
            .flat_map(|(to, sender)| {
                let due = sender.due(now_us, retry_us);
                due.into_iter().map(|(number, message)| (*to, number, message))
            })
            .collect();
        for (to, number, message) in due {
            self.frame(Address::Server(to), Frame::Numbered(number, message));
        }
    }

    /// Reports an event.
    pub fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Reports a path that was taken.
    pub fn reached(&mut self, point: Point) {
        self.event(Event::Reached(point));
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}
