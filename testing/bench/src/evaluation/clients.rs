//! Clients of the model: each is a session of the core, with one transaction at a time.

use mingle_geo::session::SessionOutput;
use mingle_geo::{Address, DcId, Event, Message, Now, Refusal, Session, SessionConfig};
use mingle_model::Origin;

use super::model::{Happening, Model};
use super::tally::Took;
use super::workload::{Job, Step};

/// A client.
pub struct Client {
    session: Session,
    dc: u8,
    job: Job,
    /// The time of the transaction's first attempt.
    begun_ns: u64,
    /// The time of the commit request.
    asked_ns: u64,
}

impl Model {
    /// Starts the clients, each at some time within the first think time.
    pub fn start_clients(&mut self) {
        self.started_ns = self.now_ns;
        let count = self.setup.clients * usize::from(self.setup.dcs);
        for index in 0..count {
            let dc = (index % usize::from(self.setup.dcs)) as u8;
            let origin = Origin((u128::from(self.setup.seed) << 64) | (index as u128 + 1));
            let config = SessionConfig::new(origin, DcId(dc), self.setup.partitions);
            let session = Session::new(self.setup.system.session_config(config));
            self.clients.push(Client {
                session,
                dc,
                job: Job::default(),
                begun_ns: 0,
                asked_ns: 0,
            });
            let later_ns = self.random.below(self.spread_ns() as usize) as u64;
            self.push(self.now_ns + later_ns, Happening::Begin { client: index });
        }
    }

    /// Returns the time within which clients start.
    fn spread_ns(&self) -> u64 {
        self.setup.think_us.max(20_000) * 1_000
    }

    /// Lets clients finish their current transactions and start no more.
    #[cfg(test)]
    pub fn stop_clients(&mut self) {
        self.is_over = true;
    }

    pub(super) fn begin(&mut self, index: usize) {
        if self.is_over || self.is_lost(self.clients[index].dc) {
            return;
        }
        let job = self.workload.next(&mut self.random);
        let client = &mut self.clients[index];
        (client.job, client.begun_ns) = (job, self.now_ns);
        self.start(index);
    }

    /// Runs the client's transaction from the beginning.
    fn start(&mut self, index: usize) {
        let (now, system) = (self.now(), self.setup.system);
        let client = &mut self.clients[index];
        (client.job.rounds, client.job.is_done) = (0, false);
        if system.is_strong(client.job.is_strong) {
            client.session.begin_strong(now).expect("no transaction is under way");
        }
        let mut out = Vec::new();
        self.step(index, now, &[], &mut out);
        self.perform(index, out);
    }

    fn step(
        &mut self,
        index: usize,
        now: Now,
        found: &[std::sync::Arc<mingle_geo::State>],
        out: &mut Vec<SessionOutput>,
    ) {
        let system = self.setup.system;
        let client = &mut self.clients[index];
        let session = &mut client.session;
        match self.workload.step(&mut client.job, found) {
            Step::Read(keys) => session.read(now, keys, out).expect("no call is under way"),
            Step::Commit { updates, touches } => {
                for update in updates {
                    session.write(now, update).expect("no call is under way");
                }
                let is_strong = system.is_strong(client.job.is_strong);
                if is_strong && system.is_declared() && !touches.is_empty() {
                    session.declare(touches).expect("a strong transaction is under way");
                }
                client.asked_ns = self.now_ns;
                session.commit(now, out).expect("no call is under way");
            }
        }
    }

    pub(super) fn answer(&mut self, index: usize, from: Address, message: Message) {
        let now = self.now();
        let client = &mut self.clients[index];
        if self.lost.is_some_and(|(lost, _)| lost == client.dc) {
            return;
        }
        let mut out = Vec::new();
        client.session.handle(now, from, message, &mut out);
        self.perform(index, out);
    }

    /// Performs the outputs of a session.
    fn perform(&mut self, index: usize, mut outputs: Vec<SessionOutput>) {
        while !outputs.is_empty() {
            for output in std::mem::take(&mut outputs) {
                match output {
                    SessionOutput::Send(envelope) => {
                        let Address::Replica(dc, partition) = envelope.to else { continue };
                        let node = self.index_of(dc.0, partition.0);
                        let from = Address::Client(index as u64);
                        let input = mingle_geo::Input::Message { from, message: envelope.message };
                        let at_ns = self.now_ns + self.setup.near_us * 1_000;
                        self.push(at_ns, Happening::Arrive { node, input });
                    }
                    SessionOutput::Event(event) => self.on_event(index, event, &mut outputs),
                }
            }
        }
    }

    fn on_event(&mut self, index: usize, event: Event, out: &mut Vec<SessionOutput>) {
        let now = self.now();
        match event {
            Event::Read(states) => self.step(index, now, &states, out),
            Event::Committed { .. } => self.committed(index),
            Event::Aborted { refusal, .. } => {
                let is_conflict = matches!(refusal, Refusal::Conflict { .. });
                self.tally.aborted += u64::from(self.tally.is_counted && is_conflict);
                self.tally.failed += u64::from(self.tally.is_counted && !is_conflict);
                self.start(index);
            }
            Event::Unknown { .. } => {
                self.clients[index].session.leave_unanswered();
                self.failed(index);
            }
            Event::Failed(_) => self.failed(index),
            _ => {}
        }
    }

    fn committed(&mut self, index: usize) {
        let client = &self.clients[index];
        self.workload.on_committed(&client.job);
        let is_strong = self.setup.system.is_strong(client.job.is_strong);
        let took = Took {
            all_us: (self.now_ns - client.begun_ns) / 1_000,
            commit_us: is_strong.then(|| (self.now_ns - client.asked_ns) / 1_000),
        };
        let since_us = (self.now_ns - self.started_ns) / 1_000;
        if let Some((_, lost_ns)) = self.lost
            && is_strong
            && client.begun_ns >= lost_ns
        {
            self.tally.first_strong_us.get_or_insert((self.now_ns - lost_ns) / 1_000);
        }
        self.tally.on_committed(since_us, client.dc, &took);
        self.think(index);
    }

    fn failed(&mut self, index: usize) {
        self.tally.failed += u64::from(self.tally.is_counted);
        self.think(index);
    }

    fn think(&mut self, index: usize) {
        let think_ns = self.random.below(2 * self.setup.think_us as usize * 1_000 + 1) as u64;
        self.push(self.now_ns + think_ns, Happening::Begin { client: index });
    }

    /// Repeats overdue messages.
    pub(super) fn sweep(&mut self) {
        let now = self.now();
        for index in 0..self.clients.len() {
            let client = &mut self.clients[index];
            let is_due = client.session.wake_at_us().is_some_and(|at_us| at_us <= now.mono_us);
            let dc = client.dc;
            if is_due && !self.is_lost(dc) {
                let mut out = Vec::new();
                self.clients[index].session.tick(now, &mut out);
                self.perform(index, out);
            }
        }
    }
}
