//! Operations of scripts on sessions.

use std::sync::Arc;

use mingle_geo::session::{SessionOutput, Token};
use mingle_geo::{
    Address, DcId, Envelope, Event, Key, Message, Now, Op, PartitionId, Refusal, Session,
    SessionConfig, State, Update,
};
use mingle_model::{Origin, Value};

use super::{Happening, World, number};

impl World {
    pub fn open(&mut self, client: u64, dc: u8) {
        self.open_with(client, dc, |_| {});
    }

    pub fn open_with(&mut self, client: u64, dc: u8, adjust: impl Fn(&mut SessionConfig)) {
        let config = self.session_config(client, dc, adjust);
        self.sessions.insert(client, Session::new(config));
    }

    pub fn resume(&mut self, client: u64, dc: u8, token: &Token) {
        let config = self.session_config(client, dc, |_| {});
        self.sessions.insert(client, Session::resume(config, token));
    }

    fn session_config(
        &self,
        client: u64,
        dc: u8,
        adjust: impl Fn(&mut SessionConfig),
    ) -> SessionConfig {
        let partitions = self.configs.keys().filter(|(other, _)| *other == dc).count();
        let mut config = SessionConfig::new(Origin(client.into()), DcId(dc), partitions as u16);
        adjust(&mut config);
        config
    }

    /// Begins a call of a session.
    pub fn call(
        &mut self,
        client: u64,
        call: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>),
    ) {
        let now = self.now();
        let mut out = Vec::new();
        call(self.sessions.get_mut(&client).expect("a session"), now, &mut out);
        self.perform(client, out);
    }

    pub(super) fn perform(&mut self, client: u64, outputs: Vec<SessionOutput>) {
        for output in outputs {
            match output {
                SessionOutput::Send(envelope) => self.send(Address::Client(client), envelope),
                SessionOutput::Event(event) => self.events.push_back((client, event)),
            }
        }
        let wake_at_us = self.sessions.get_mut(&client).and_then(Session::wake_at_us);
        if let Some(at_us) = wake_at_us {
            self.schedule(at_us.saturating_sub(self.now_us), Happening::SessionTick(client));
        }
    }

    /// Returns the next event of a session.
    pub fn event(&mut self, client: u64) -> Event {
        self.run_until("an event", |world| world.events.iter().any(|(of, _)| *of == client));
        let place = self.events.iter().position(|(of, _)| *of == client).expect("an event");
        self.events.remove(place).expect("it is there").1
    }

    pub fn read(&mut self, client: u64, keys: &[&Key]) -> Result<Vec<Arc<State>>, Refusal> {
        let keys = keys.iter().map(|key| (*key).clone()).collect();
        self.call(client, |session, now, out| session.read(now, keys, out).expect("idle"));
        match self.event(client) {
            Event::Read(states) => Ok(states),
            Event::Failed(refusal) => Err(refusal),
            event => panic!("{event:?}"),
        }
    }

    pub fn write(&mut self, client: u64, key: &Key, op: Op) {
        let update = Update { key: key.clone(), op, id: None };
        self.call(client, |session, now, _| session.write(now, update).expect("idle"));
    }

    /// Commits, and returns the event.
    pub fn commit(&mut self, client: u64) -> Event {
        self.call(client, |session, now, out| session.commit(now, out).expect("idle"));
        self.event(client)
    }

    /// Commits; the commit must succeed.
    pub fn committed(&mut self, client: u64) -> mingle_geo::Vector {
        match self.commit(client) {
            Event::Committed { commit_vec, .. } => commit_vec,
            event => panic!("{event:?}"),
        }
    }

    /// Writes in a transaction of its own.
    pub fn put(&mut self, client: u64, key: &Key, value: i64) -> mingle_geo::Vector {
        self.write(client, key, Op::Write(Value::Int(value)));
        self.committed(client)
    }

    /// Reads registers in a transaction of its own.
    pub fn get(&mut self, client: u64, keys: &[&Key]) -> Vec<Option<i64>> {
        let states = self.read(client, keys).expect("a read");
        self.call(client, |session, _, _| session.rollback());
        states.iter().map(|state| number(state)).collect()
    }

    /// Sends a message as a client without a session.
    pub fn inject(&mut self, client: u64, dc: u8, partition: u16, message: Message) {
        let to = Address::Replica(DcId(dc), PartitionId(partition));
        self.deliver(Address::Client(client), Envelope { to, message });
    }

    /// Returns the answers to a client without a session.
    pub fn answers(&mut self, client: u64) -> Vec<Message> {
        let of = Address::Client(client);
        let (taken, kept) =
            std::mem::take(&mut self.inbox).into_iter().partition(|(_, sent)| sent.to == of);
        self.inbox = kept;
        let taken: Vec<(Address, Envelope)> = taken;
        taken.into_iter().map(|(_, sent)| sent.message).collect()
    }
}
