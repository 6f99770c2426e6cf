//! Scripts with single replicas and sessions, driven by hand.

use std::collections::VecDeque;

use mingle_geo::certify::{CertifierConfig, Conflicts, GroupConfig, GroupMessage, Vote, Voted};
use mingle_geo::message::{AttachReply, Attached, BarrierReply, Handout, Missing};
use mingle_geo::session::SessionOutput;
use mingle_geo::{
    Address, Config, DcId, Envelope, Event, Input, Key, Kind, Message, Now, Op, Output,
    PartitionId, Refusal, Session, SessionConfig, State, StrongReplica, Timestamp, Update,
};
use mingle_model::{Origin, TransactionId};

const EPOCH_US: u64 = 1_000_000_000_000;
const PLACE: Address = Address::Replica(DcId(0), PartitionId(0));

/// A data center of one partition.
struct Solo {
    replica: StrongReplica,
    sessions: Vec<(Session, i64)>,
    now_us: u64,
    events: VecDeque<Event>,
}

impl Solo {
    /// Creates it with one session for each of these clock errors.
    fn new(skews_us: &[i64]) -> Self {
        let (dc, partition) = (DcId(0), PartitionId(0));
        let strong_only = vec![b"seat:*".to_vec()];
        let config = Config { strong_only, ..Config::new(dc, 1, partition, 1) };
        let certifier = CertifierConfig::new(partition, Conflicts::default());
        let group = GroupConfig::new(dc, 1, certifier);
        let session =
            |index: usize| Session::new(SessionConfig::new(Origin(index as u128), DcId(0), 1));
        Self {
            replica: StrongReplica::restore(config, group, Vec::new()).expect("settings"),
            sessions: skews_us.iter().enumerate().map(|(at, by)| (session(at), *by)).collect(),
            now_us: 0,
            events: VecDeque::new(),
        }
    }

    fn now(&self, skew_us: i64) -> Now {
        let wall_us = (EPOCH_US + self.now_us).saturating_add_signed(skew_us);
        Now { wall_us, mono_us: self.now_us }
    }

    /// Runs a call of a session and returns its event.
    fn call(
        &mut self,
        at: usize,
        call: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>),
    ) -> Event {
        let now = self.now(self.sessions[at].1);
        let mut out = Vec::new();
        call(&mut self.sessions[at].0, now, &mut out);
        self.take(at, out);
        for _ in 0..1_000 {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            self.now_us += 10_000;
            self.give(Input::Tick);
            let mut out = Vec::new();
            let now = self.now(self.sessions[at].1);
            self.sessions[at].0.tick(now, &mut out);
            self.take(at, out);
        }
        panic!("no event");
    }

    fn take(&mut self, at: usize, out: Vec<SessionOutput>) {
        for output in out {
            match output {
                SessionOutput::Send(Envelope { message, .. }) => {
                    self.give(Input::Message { from: Address::Client(at as u64), message });
                }
                SessionOutput::Event(event) => self.events.push_back(event),
            }
        }
    }

    fn give(&mut self, input: Input) {
        let mut out = Vec::new();
        self.replica.handle(self.now(0), input, &mut out);
        for output in out {
            match output {
                Output::Send(envelope) => self.send(envelope),
                Output::Persist(persist) => {
                    persist.then.into_iter().for_each(|envelope| self.send(envelope));
                    self.give(Input::Persisted { index: persist.index });
                }
                Output::Alarm(alarm) => panic!("{alarm:?}"),
            }
        }
    }

    fn send(&mut self, Envelope { to, message }: Envelope) {
        match to {
            Address::Replica(..) => self.give(Input::Message { from: PLACE, message }),
            Address::Client(at) => {
                let now = self.now(self.sessions[at as usize].1);
                let mut out = Vec::new();
                self.sessions[at as usize].0.handle(now, PLACE, message, &mut out);
                self.take(at as usize, out);
            }
        }
    }

    fn commit(&mut self, at: usize, is_strong: bool, key: &Key, op: Op) -> Event {
        let update = Update { key: key.clone(), op, id: None };
        if is_strong {
            let keys = vec![key.clone()];
            let event = self.call(at, |session, now, out| {
                session.begin_strong(now).expect("idle");
                session.read(now, keys, out).expect("idle");
            });
            assert!(matches!(event, Event::Read(_)), "{event:?}");
        }
        self.call(at, |session, now, out| {
            session.write(now, update).expect("idle");
            session.commit(now, out).expect("idle");
        })
    }

    fn read(&mut self, key: &Key) -> std::sync::Arc<State> {
        let keys = vec![key.clone()];
        let event = self.call(0, |session, now, out| session.read(now, keys, out).expect("idle"));
        let Event::Read(states) = event else { panic!("{event:?}") };
        states[0].clone()
    }
}

/// An operation that takes away part of a sum names the amount, which only a replica can compute.
#[test]
fn a_strong_reset_takes_away_what_its_transaction_saw() {
    let mut solo = Solo::new(&[0]);
    let (sum, map) = (Key::new(Kind::Counter, "sum"), Key::new(Kind::Map, "map"));
    let name = mingle_model::Value::Int(1);
    let steps = [
        (false, &sum, Op::Add(5)),
        (true, &sum, Op::Reset),
        (true, &sum, Op::Add(2)),
        (false, &map, Op::Increment(name.clone(), 5)),
        (true, &map, Op::Delete(name.clone())),
        (false, &map, Op::Increment(name, 3)),
    ];
    for (is_strong, key, op) in steps {
        let event = solo.commit(0, is_strong, key, op);
        assert!(matches!(event, Event::Committed { .. }), "{event:?}");
    }
    assert_eq!(solo.read(&sum).as_counter().map(mingle_geo::types::Counter::value), Some(2));
    let state = solo.read(&map);
    let counts = state.as_map().expect("a map").counts();
    assert_eq!(counts.map(|(_, count)| count.value()).collect::<Vec<_>>(), [3]);
}

/// It is the second session's first call, so it has no handout.
#[test]
fn a_strong_transaction_that_read_nothing_takes_the_newest_snapshot() {
    let mut solo = Solo::new(&[0, 0]);
    let key = Key::new(Kind::Counter, "x");
    for _ in 0..3 {
        assert!(matches!(solo.commit(0, true, &key, Op::Add(1)), Event::Committed { .. }));
    }
    // It repeats until everything is delivered.
    for _ in 0..20 {
        solo.now_us += 10_000;
        solo.give(Input::Tick);
    }
    let (id, now) = (TransactionId { origin: Origin(1), sequence: 1 }, solo.now(0));
    let update = Update { key, op: Op::Add(1), id: None };
    solo.sessions[1].0.begin_strong(now).expect("idle");
    solo.sessions[1].0.write(now, update).expect("idle");
    let event = solo.call(1, |session, now, out| session.commit(now, out).expect("idle"));
    assert!(matches!(event, Event::Committed { id: of, .. } if of == id), "{event:?}");
}

/// Names that begin with `seat:` are reserved for strong transactions.
#[test]
fn a_causal_write_to_what_only_strong_transactions_write_is_refused() {
    let mut solo = Solo::new(&[0]);
    let (seat, seats) = (Key::new(Kind::Counter, "seat:7"), Key::new(Kind::Counter, "seats"));
    let event = solo.commit(0, false, &seat, Op::Add(1));
    let Event::Aborted { refusal: Refusal::StrongOnly { key }, .. } = event else {
        panic!("{event:?}")
    };
    assert_eq!(key, seat);
    assert!(matches!(solo.commit(0, false, &seats, Op::Add(1)), Event::Committed { .. }));
    assert!(matches!(solo.commit(0, true, &seat, Op::Add(2)), Event::Committed { .. }));
    assert_eq!(solo.read(&seat).as_counter().map(mingle_geo::types::Counter::value), Some(2));
}

#[test]
fn a_strong_commit_whose_end_is_forgotten_stays_unanswered() {
    // The clock of the second session is far behind.
    let mut solo = Solo::new(&[0, -100_000_000]);
    let key = Key::new(Kind::Register, "x");
    let event = solo.commit(0, true, &key, Op::Erase);
    assert!(matches!(event, Event::Committed { .. }), "{event:?}");
    let update = Update { key, op: Op::Erase, id: None };
    let (session, skew_us) = &mut solo.sessions[1];
    let now = Now {
        wall_us: (EPOCH_US + solo.now_us).saturating_add_signed(*skew_us),
        mono_us: solo.now_us,
    };
    session.begin_strong(now).expect("idle");
    session.write(now, update).expect("idle");
    let event = solo.call(1, |session, now, out| session.commit(now, out).expect("idle"));
    let Event::Unknown { id, .. } = event else { panic!("{event:?}") };
    assert_eq!(solo.sessions[1].0.unanswered(), Some(id));
    let again = solo.call(1, |session, now, out| session.ask(now, out).expect("unanswered"));
    assert!(matches!(again, Event::Unknown { .. }), "{again:?}");
    assert_eq!(solo.sessions[1].0.leave_unanswered(), Some(id));
}

/// Returns the messages that a session sends.
fn sent(out: &mut Vec<SessionOutput>) -> Vec<Message> {
    let sent = out.drain(..).filter_map(|output| match output {
        SessionOutput::Send(envelope) => Some(envelope.message),
        SessionOutput::Event(_) => None,
    });
    sent.collect()
}

/// The transaction arrives there eventually, but is not there yet.
#[test]
fn a_strong_commit_that_is_not_where_its_session_goes_on_is_named() {
    let now = Now { wall_us: EPOCH_US, mono_us: 0 };
    let mut session = Session::new(SessionConfig::new(Origin(1), DcId(0), 1));
    let mut out = Vec::new();
    session.begin_strong(now).expect("idle");
    let key = Key::new(Kind::Register, "x");
    session.write(now, Update { key, op: Op::Erase, id: None }).expect("idle");
    session.commit(now, &mut out).expect("idle");
    let [Message::Barrier(barrier)] = &sent(&mut out)[..] else { panic!("a barrier") };
    let (request, handout) = (barrier.request, Handout::default());
    let reply = BarrierReply { request, result: Ok(()), handout };
    session.handle(now, PLACE, Message::BarrierReply(reply), &mut out);
    let [Message::Group(GroupMessage::Certify(proposal))] = &sent(&mut out)[..] else {
        panic!("a preparation");
    };
    let id = proposal.id;
    let vote = Some(Vote::Yes(Timestamp::new(EPOCH_US, PartitionId(0))));
    let partition = PartitionId(0);
    let voted = Voted { id, partition, vote, decision: None, is_forgotten: false };
    session.handle(now, PLACE, Message::Group(GroupMessage::Voted(voted)), &mut out);
    assert!(matches!(&out[..], [SessionOutput::Event(Event::Committed { .. })]), "{out:?}");
    out.clear();
    session.attach(now, DcId(1), &mut out).expect("idle");
    let [Message::Attach(attach)] = &sent(&mut out)[..] else { panic!("an attach") };
    let (have, want) = (Timestamp::ZERO, attach.past_vec[DcId::STRONG]);
    let missing = vec![Missing { dc: DcId::STRONG, have, want, is_lost: false }];
    let (request, result) = (attach.request, Ok(Attached::Waiting(missing)));
    let reply = AttachReply { incarnation: 0, request, result, handout };
    let there = Address::Replica(DcId(1), PartitionId(0));
    session.handle(now, there, Message::AttachReply(reply), &mut out);
    out.clear();
    session.accept_loss(now, &mut out).expect("it waits");
    let [SessionOutput::Event(Event::ResumedWithLoss { lost, .. })] = &out[..] else {
        panic!("{out:?}");
    };
    assert_eq!(lost[..], [id]);
}
