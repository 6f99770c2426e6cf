//! The messages of reads: the rounds that a read takes, and that no server lets one wait.
//!
//! A server answers a read in the step in which it arrives; only in Eiger's second round it may ask
//! coordinators first, each of which answers in the step in which the question arrives. Timers may send
//! lost questions again.

use std::collections::BTreeMap;

use mingle_cops::message::{Address, ClientId, Frame, Message, Packet};

/// The cause of a step of a server or client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cause {
    /// A read that must be answered at once.
    Read,
    /// A read at an effective time.
    ReadAtTime,
    CommitCheck,
    CommitChecked,
    Timer,
    #[default]
    Other,
}

/// The messages of a step that belong to reads.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    answers: u32,
    checks: u32,
    checked: u32,
}

/// The last request for a part of a read.
#[derive(Clone, Copy, Debug)]
struct Asked {
    first_us: u64,
    is_second: bool,
}

/// The messages of the reads of a run.
#[derive(Debug, Default)]
pub(super) struct Trace {
    cause: Cause,
    sent: Sent,
    asked: BTreeMap<(ClientId, u64, u32), Asked>,
    /// The first mistake.
    broken: Option<String>,
}

fn message(packet: &Packet) -> Option<&Message> {
    match &packet.frame {
        Frame::Plain(message) | Frame::Numbered(_, message) => Some(message),
        Frame::Arrived(_) => None,
    }
}

impl Trace {
    /// Begins the step in which a packet arrives.
    pub fn arrives(&mut self, packet: &Packet) {
        self.sent = Sent::default();
        self.cause = match message(packet) {
            Some(Message::ReadByTime { .. } | Message::MultigetSlice { at: None, .. }) => {
                Cause::Read
            }
            Some(Message::MultigetSlice { .. }) => Cause::ReadAtTime,
            Some(Message::CommitCheck { .. }) => Cause::CommitCheck,
            Some(Message::CommitChecked { .. }) => Cause::CommitChecked,
            _ => Cause::Other,
        };
    }

    /// Begins a step of a server's timer.
    pub fn timer(&mut self) {
        (self.cause, self.sent) = (Cause::Timer, Sent::default());
    }

    /// Notes a packet that is sent in the step; `trans_time_us` is the longest time of a read before it
    /// begins again.
    pub fn sends(&mut self, now_us: u64, trans_time_us: u64, packet: &Packet) {
        match (message(packet), packet.from) {
            (Some(Message::ReadResult { .. } | Message::SliceResult { .. }), _) => {
                self.sent.answers += 1;
            }
            (Some(Message::CommitCheck { .. }), _) => self.sent.checks += 1,
            (Some(Message::CommitChecked { .. }), _) => self.sent.checked += 1,
            (Some(Message::ReadByTime { request, key, ts }), Address::Client(client)) => {
                self.asks(now_us, trans_time_us, (client, *request, *key), ts.is_some());
            }
            (Some(Message::MultigetSlice { request, part, at, .. }), Address::Client(client)) => {
                let place = (client, *request, *part as u32);
                self.asks(now_us, trans_time_us, place, at.is_some());
            }
            _ => {}
        }
    }

    fn asks(
        &mut self,
        now_us: u64,
        trans_time_us: u64,
        place: (ClientId, u64, u32),
        is_second: bool,
    ) {
        let before = self.asked.get(&place).copied();
        let is_allowed = match before {
            None => !is_second,
            Some(before) if is_second => !before.is_second,
            Some(before) => now_us > before.first_us + trans_time_us,
        };
        if !is_allowed {
            self.breaks(format!("{place:?} is asked for at {now_us} us, after {before:?}"));
        }
        let first_us = match before {
            Some(before) if is_second => before.first_us,
            _ => now_us,
        };
        self.asked.insert(place, Asked { first_us, is_second });
    }

    /// Ends the step of a server.
    pub fn ends(&mut self) {
        let Sent { answers, checks, checked } = self.sent;
        let is_allowed = match self.cause {
            Cause::Read => (answers, checks, checked) == (1, 0, 0),
            // Either it is answered at once, or coordinators are asked.
            Cause::ReadAtTime => (answers == 1) != (checks > 0) && answers < 2 && checked == 0,
            Cause::CommitCheck => (answers, checks, checked) == (0, 0, 1),
            Cause::CommitChecked => (checks, checked) == (0, 0),
            Cause::Timer => checked == 0,
            Cause::Other => (answers, checks, checked) == (0, 0, 0),
        };
        if !is_allowed {
            self.breaks(format!("{:?} in the step of a {:?}", self.sent, self.cause));
        }
    }

    fn breaks(&mut self, how: String) {
        self.broken.get_or_insert(how);
    }

    /// Returns the first mistake.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use mingle_cops::clock::NodeId;
    use mingle_cops::column::{Family, Predicate, Slice};

    use super::*;

    const CLIENT: ClientId = ClientId { dc: 0, number: 0 };

    fn packet(from: Address, to: Address, message: Message) -> Packet {
        Packet { from, to, time: 1, frame: Frame::Plain(message) }
    }

    fn server() -> Address {
        Address::Server(NodeId::new(0, 0))
    }

    fn asks(at: Option<u64>) -> Packet {
        let slice =
            Slice { key: 1, family: Family::Standard(0), predicate: Predicate::Names(Vec::new()) };
        let message = Message::MultigetSlice { request: 3, slice, part: 0, at };
        packet(Address::Client(CLIENT), server(), message)
    }

    fn answers() -> Packet {
        let (cells, evt, lvt, is_pending) = (Vec::new(), 1, 1, false);
        let message = Message::SliceResult { request: 3, part: 0, cells, evt, lvt, is_pending };
        packet(server(), Address::Client(CLIENT), message)
    }

    /// Runs a step that `arrived` causes.
    fn step(trace: &mut Trace, arrived: &Packet, sent: &[Packet]) {
        trace.arrives(arrived);
        for packet in sent {
            trace.sends(0, 10, packet);
        }
        trace.ends();
    }

    #[test]
    fn a_read_that_is_answered_at_once_does_not_wait() {
        for at in [None, Some(7)] {
            let mut trace = Trace::default();
            step(&mut trace, &asks(at), &[answers()]);
            assert_eq!(trace.broken(), None);
        }
    }

    #[test]
    fn a_read_without_an_answer_or_a_question_waits() {
        for at in [None, Some(7)] {
            let mut trace = Trace::default();
            step(&mut trace, &asks(at), &[]);
            assert!(trace.broken().is_some());
        }
        let mut trace = Trace::default();
        let commit = Message::Written {
            request: 1,
            dep: mingle_cops::deps::Dep { key: 1, ts: mingle_cops::clock::Timestamp::ABSENT },
        };
        step(&mut trace, &packet(server(), server(), commit), &[answers()]);
        assert!(trace.broken().is_some(), "the answer waited for another message");
    }

    #[test]
    fn a_third_round_is_a_mistake_unless_the_read_begins_again_late() {
        let ask = |times: &[(u64, Option<u64>)]| {
            let mut trace = Trace::default();
            for (now_us, at) in times {
                trace.sends(*now_us, 10, &asks(*at));
            }
            trace.broken().is_some()
        };
        assert!(!ask(&[(0, None), (1, Some(7))]));
        assert!(ask(&[(0, None), (1, Some(7)), (2, Some(8))]));
        assert!(ask(&[(0, None), (5, None)]));
        assert!(!ask(&[(0, None), (1, Some(7)), (20, None), (21, Some(9))]));
        assert!(ask(&[(0, Some(7))]), "the first round is missing");
    }
}
