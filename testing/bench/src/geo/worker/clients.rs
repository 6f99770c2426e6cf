//! The clients of a thread.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use hdrhistogram::Histogram;
use mingle_geo::session::SessionOutput;
use mingle_geo::{Address, Event};

use super::{UNREADY_US, Worker};
use crate::geo::client::{Client, Role};

impl Worker {
    /// Adds the clients that belong to this thread.
    pub(super) fn add_clients(&mut self) {
        let (shared, plan) = (self.shared.clone(), &self.shared.plan);
        let threads = plan.threads as u64;
        let mut roles: Vec<(u8, Role)> = Vec::new();
        for dc in 0..plan.dcs {
            roles.extend((0..plan.clients).map(|_| (dc, Role::Load)));
        }
        for probe in &shared.probes {
            roles.push((0, Role::Writer(probe.clone())));
            roles.extend((0..plan.dcs).map(|dc| (dc, Role::Reader(probe.clone()))));
        }
        for (number, (dc, role)) in roles.into_iter().enumerate() {
            let number = number as u64;
            if number % threads == self.index as u64 {
                let client = Client::new(plan, number, dc, role, shared.keys.clone());
                self.stopped.push(self.clients.len());
                self.clients.push(client);
            }
        }
    }

    /// Wakes sessions with unanswered calls, and clients that may continue.
    pub(super) fn wake_overdue(&mut self) {
        for index in 0..self.clients.len() {
            let session = &mut self.clients[index].session;
            if session.wake_at_us().is_some_and(|at_us| at_us <= self.now.mono_us) {
                session.tick(self.now, &mut self.session_outputs);
                self.perform(index);
            }
        }
        let (clients, shared) = (&self.clients, &self.shared);
        let may_go_on = |index: &mut usize| {
            let dc = usize::from(clients[*index].dc());
            shared.has_clients[dc].load(Ordering::Relaxed)
        };
        for index in self.stopped.extract_if(.., may_go_on) {
            self.pausing.push(Reverse((self.now.mono_us, index)));
        }
    }

    /// Starts clients whose pause is over.
    pub(super) fn wake_clients(&mut self) {
        while let Some(Reverse((due_us, index))) = self.pausing.peek().copied() {
            if due_us > self.now.mono_us {
                return;
            }
            self.pausing.pop();
            let client = &mut self.clients[index];
            let dc = usize::from(client.dc());
            if !self.shared.has_clients[dc].load(Ordering::Relaxed) {
                self.stopped.push(index);
            } else if !client.is_ready() {
                self.pausing.push(Reverse((self.now.mono_us + UNREADY_US, index)));
            } else {
                if self.shared.plan.has_floors {
                    client.session.start_above(&self.shared.floor(dc));
                }
                client.begin(&self.shared.plan, self.now, &mut self.session_outputs);
                self.perform(index);
            }
        }
    }

    /// Performs the outputs of a session.
    pub(super) fn perform(&mut self, index: usize) {
        let number = (index * self.shared.plan.threads + self.index) as u64;
        let mut outputs = std::mem::take(&mut self.session_outputs);
        let mut more = Vec::new();
        loop {
            for output in outputs.drain(..) {
                match output {
                    SessionOutput::Send(envelope) => self.route(Address::Client(number), envelope),
                    SessionOutput::Event(event) => self.on_event(index, event, &mut more),
                }
            }
            if more.is_empty() {
                break;
            }
            std::mem::swap(&mut outputs, &mut more);
        }
        self.session_outputs = outputs;
    }

    fn on_event(&mut self, index: usize, event: Event, out: &mut Vec<SessionOutput>) {
        let (client, started) = (&mut self.clients[index], self.shared.started);
        let is_counted = self.shared.is_counted.load(Ordering::Relaxed);
        let done = &mut self.done[usize::from(client.dc())];
        let clock_ns = || started.elapsed().as_nanos() as u64;
        client.is_counted = is_counted;
        if self.shared.plan.has_floors
            && let Some(commit_vec) = client.acknowledged(&event)
        {
            self.shared.floor(client.dc().into()).raise(&client.session, &commit_vec);
        }
        if client.on_event(&self.shared.plan, self.now, event, clock_ns, done, out) {
            let took_us = self.now.mono_us.saturating_sub(client.begun_us);
            if is_counted {
                self.latencies_us.saturating_record(took_us.max(1));
            }
            let due_us = self.now.mono_us + client.pause_us(&self.shared.plan);
            self.pausing.push(Reverse((due_us, index)));
        }
    }

    /// Adds the measurements of the thread's clients.
    pub fn collect(&self, delays_ns: &mut [Histogram<u64>], latencies_us: &mut Histogram<u64>) {
        for client in &self.clients {
            for delay in &client.delays_ns {
                delays_ns[usize::from(client.dc())].saturating_record((*delay).max(1));
            }
        }
        latencies_us.add(&self.latencies_us).expect("the bounds are the same");
    }
}
