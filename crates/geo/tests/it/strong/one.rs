//! A single replica and two sessions: the parts of sums that strong transactions take away, and the
//! declared touches.

use std::collections::VecDeque;

use mingle_geo::certify::{Access, CertifierConfig, Conflicts, GroupConfig, Touch};
use mingle_geo::session::SessionOutput;
use mingle_geo::{
    Address, Config, DcId, Envelope, Event, Input, Key, Kind, Now, Op, Output, PartitionId,
    Refusal, Session, SessionConfig, State, StrongReplica, Update,
};
use mingle_model::{Origin, Value};

struct One {
    replica: StrongReplica,
    sessions: [Session; 2],
    now_us: u64,
}

impl One {
    fn new() -> Self {
        let (dc, partition) = (DcId(0), PartitionId(0));
        let certifier = CertifierConfig::new(partition, Conflicts::default());
        let group = GroupConfig::new(dc, 1, certifier);
        let replica = StrongReplica::restore(Config::new(dc, 1, partition, 1), group, []);
        let session = |id| Session::new(SessionConfig::new(Origin(id), dc, 1));
        let sessions = [session(1), session(2)];
        Self { replica: replica.expect("settings"), sessions, now_us: 1_000_000 }
    }

    fn now(&self) -> Now {
        Now { wall_us: self.now_us, mono_us: self.now_us }
    }

    fn give(&mut self, input: Input, out: &mut Vec<(usize, SessionOutput)>) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let mut done = Vec::new();
            self.replica.handle(self.now(), input, &mut done);
            for output in done {
                let sends = match output {
                    Output::Send(envelope) => vec![envelope],
                    Output::Persist(persist) => {
                        inputs.push_back(Input::Persisted { index: persist.index });
                        persist.then
                    }
                    Output::Alarm(alarm) => panic!("{alarm:?}"),
                };
                for Envelope { to, message } in sends {
                    let (from, now) = (self.replica.address(), self.now());
                    let Address::Client(client) = to else {
                        inputs.push_back(Input::Message { from, message });
                        continue;
                    };
                    let (client, mut answers) = (client as usize, Vec::new());
                    self.sessions[client].handle(now, from, message, &mut answers);
                    out.extend(answers.into_iter().map(|answer| (client, answer)));
                }
            }
        }
    }

    /// Runs a call of a session and returns its event.
    fn call(
        &mut self,
        client: usize,
        call: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>),
    ) -> Event {
        let (now, mut begun) = (self.now(), Vec::new());
        call(&mut self.sessions[client], now, &mut begun);
        let mut out: Vec<_> = begun.into_iter().map(|output| (client, output)).collect();
        for _ in 0..2_000 {
            for (client, output) in std::mem::take(&mut out) {
                match output {
                    SessionOutput::Event(event) => return event,
                    SessionOutput::Send(Envelope { message, .. }) => {
                        let from = Address::Client(client as u64);
                        self.give(Input::Message { from, message }, &mut out);
                    }
                }
            }
            self.now_us += 5_000;
            self.give(Input::Tick, &mut out);
            let (now, mut sent) = (self.now(), Vec::new());
            self.sessions[client].tick(now, &mut sent);
            out.extend(sent.into_iter().map(|output| (client, output)));
        }
        panic!("nothing comes of the call");
    }

    fn commit(&mut self, client: usize, updates: Vec<(&Key, Op)>, touches: Vec<Touch>) -> Event {
        self.call(client, |session, now, out| {
            for (key, op) in updates {
                session.write(now, Update { key: key.clone(), op, id: None }).expect("idle");
            }
            if !touches.is_empty() {
                session.declare(touches).expect("it is strong");
            }
            session.commit(now, out).expect("idle");
        })
    }

    fn begin(&mut self, client: usize, key: &Key) -> State {
        let read = self.call(client, |session, now, out| {
            session.begin_strong(now).expect("idle");
            session.read(now, vec![key.clone()], out).expect("idle");
        });
        match read {
            Event::Read(states) => (*states[0]).clone(),
            other => panic!("{other:?}"),
        }
    }
}

fn is_committed(event: &Event) -> bool {
    matches!(event, Event::Committed { .. })
}

#[test]
fn a_strong_transaction_takes_a_sum_away() {
    let mut one = One::new();
    let counter = Key::new(Kind::Counter, "counter");
    one.begin(0, &counter);
    assert!(is_committed(&one.commit(0, vec![(&counter, Op::Add(5))], Vec::new())));
    assert_eq!(one.begin(0, &counter).as_counter().expect("a counter").value(), 5);
    let updates = vec![(&counter, Op::Add(7)), (&counter, Op::Reset), (&counter, Op::Add(1))];
    assert!(is_committed(&one.commit(0, updates, Vec::new())));
    assert_eq!(one.begin(1, &counter).as_counter().expect("a counter").value(), 1);
}

#[test]
fn whoever_declares_what_it_uses_is_in_the_way_of_nobody_else() {
    let mut one = One::new();
    let set = Key::new(Kind::Set, "set");
    let element = |name| vec![Touch::new(Key::new(Kind::Set, name), Access::Write)];
    let insert = |value| vec![(&set, Op::Insert(Value::Int(value)))];
    for client in [0, 1] {
        one.begin(client, &set);
    }
    assert!(is_committed(&one.commit(0, insert(1), element("set/1"))));
    assert!(is_committed(&one.commit(1, insert(2), element("set/2"))), "it uses another element");
    for client in [0, 1] {
        assert_eq!(one.begin(client, &set).as_set().expect("a set").count(), 2);
    }
    assert!(is_committed(&one.commit(0, insert(3), element("set/3"))));
    let event = one.commit(1, insert(3), element("set/3"));
    let is_conflict = |refusal: &Refusal| matches!(refusal, Refusal::Conflict { .. });
    assert!(matches!(&event, Event::Aborted { refusal, .. } if is_conflict(refusal)), "{event:?}");
}
