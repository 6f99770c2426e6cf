//! A run from its start to the final state of every replica.

use std::collections::BTreeMap;

use mingle_checker::geo::{Content, End, Item, Run, View};
use mingle_geo::message::{Message, Read, Snapshot};
use mingle_geo::wire::{Parcel, VERSION, take_parcels};
use mingle_geo::{Address, DcId, Key, Now, Vector};
use mingle_geo_node::{Journal, Outgoing, Time, Transport};
use mingle_model::{Origin, TransactionId};

use super::client::Client;
use super::lives;
use super::plan::Plan;
use super::record::{content, visible};
use super::world::World;
use crate::workload::promises::Broken;

/// The time after healing within which each client must finish an attempt or an act, in microseconds, and do so again
/// until it has none left; one that takes longer counts as stuck.
const PATIENCE_US: u64 = 30_000_000;

/// After healing, each client's remaining acts are cut to this many.
const ACTS_AFTER: usize = 4;

/// An address that no session has.
const READER: u64 = u64::MAX;

/// The result of a run.
pub(super) struct Played {
    pub run: Run,
    pub covered: BTreeMap<String, u64>,
    pub broken: Option<Broken>,
    /// The counts of committed updating transactions, read-only transactions and faults.
    pub committed: u64,
    pub read: u64,
    pub struck: u64,
    pub events: u64,
    pub trace: Option<Vec<String>>,
}

pub(super) fn play(plan: &Plan, is_traced: bool) -> Played {
    let mut world = World::new(plan);
    world.trace = is_traced.then(Vec::new);
    world.run_until(plan.setup.lasts_us);
    if world.broken.is_none() {
        world.heal();
        world.blame_healing();
        world.finish_fence();
    }
    if world.broken.is_none() {
        world.finish_clients();
    }
    if world.broken.is_none() {
        let until_us = world.now_us + world.settle_us();
        world.run_until(until_us);
    }
    if world.broken.is_none() {
        world.view();
    }
    world.finish()
}

/// Returns what changes with each attempt at an act, and with each act.
fn progress(client: &Client) -> (usize, u32) {
    (client.acts.len(), client.attempt)
}

impl World<'_> {
    /// Returns the largest difference that clocks may still have, in microseconds.
    fn ahead_us(&self) -> u64 {
        let (by_us, drift_us) = self.setup.spread_us();
        let drifted = self.now_us / 1_000 * drift_us / 1_000;
        by_us + drifted + self.stepped_most_us
    }

    fn settle_us(&self) -> u64 {
        let config = &self.setup.config;
        let rounds_us = 30 * config.tick_idle_ms * 1_000 + 12 * self.setup.network.far_us.1;
        let forwards_us = 4 * config.forward_after_ms * 1_000;
        let accepted_us = config.clock_ahead_ms_max * 1_000;
        let strong_us = self.setup.strong.settle_us(self.setup.network.far_us.1);
        1_000_000
            + rounds_us
            + forwards_us
            + strong_us
            + self.ahead_us().saturating_sub(accepted_us / 2)
    }

    /// Waits until all replicas agree on the given-up data centers and every readmitted one has
    /// come up. If only a lost data center has reached a cut, it is given up, too.
    fn finish_fence(&mut self) {
        let mut until_us = self.now_us + PATIENCE_US + self.ahead_us();
        while self.fencing > 0 || self.is_admitting() {
            if !self.step() {
                return;
            }
            if self.now_us > until_us && self.fencing > 0 && self.give_up_lost() {
                until_us = self.now_us + PATIENCE_US + self.ahead_us();
                continue;
            }
            if self.now_us > until_us && self.fencing > 0 {
                let how = format!("d{} is not cut off", self.fencing.trailing_zeros());
                return self.breaks("once all is put right a data center can be given up", how);
            }
            if self.now_us > until_us {
                let how = "it has not come up".to_owned();
                let promise = "once all is put right a data center can be admitted again";
                return self.breaks(promise, how);
            }
        }
    }

    /// Runs until the clients have finished. Where many of them certify transactions on the same items, an act takes
    /// several attempts, each as long as several messages between data centers; but acts and attempts are bounded.
    fn finish_clients(&mut self) {
        for client in &mut self.clients {
            let left = client.acts.len();
            client.acts.drain(..left.saturating_sub(ACTS_AFTER));
        }
        let mut gone_on: Vec<_> =
            self.clients.iter().map(|client| (progress(client), self.now_us)).collect();
        while self.clients.iter().any(|client| !client.is_done()) {
            for _ in 0..200 {
                if !self.step() {
                    return;
                }
            }
            let now_us = self.now_us;
            for (client, (seen, since_us)) in self.clients.iter().zip(&mut gone_on) {
                if progress(client) != *seen {
                    (*seen, *since_us) = (progress(client), now_us);
                }
            }
            let patience_us = PATIENCE_US + self.ahead_us();
            let clients = self.clients.iter().zip(&gone_on);
            let stuck = clients.filter(|(client, (_, since_us))| {
                !client.is_done() && now_us - since_us > patience_us
            });
            let stuck: Vec<String> = stuck
                .map(|(client, _)| {
                    format!("session {} at d{}, {:?}", client.id, client.dc(), client.stage)
                })
                .collect();
            if !stuck.is_empty() {
                let how = stuck.join("; ");
                return self.breaks("once all is put right every session goes on", how);
            }
        }
    }

    /// Records the final contents of every data center.
    fn view(&mut self) {
        let mut views = Vec::new();
        for dc in self.living().collect::<Vec<u8>>() {
            let Some(snapshot) = self.visible_at(dc) else { continue };
            let mut items: BTreeMap<Item, Content> = BTreeMap::new();
            for key in self.setup.keys.clone() {
                match self.read_now(dc, &key, snapshot) {
                    Ok(found) => {
                        items.insert(self.recorder.item(&key), found);
                    }
                    Err(how) => {
                        let how = format!("{key:?} at d{dc}: {how}");
                        return self.breaks("in the end everything can be read", how);
                    }
                }
            }
            let replica = self.nodes[self.index_of(dc, 0)].replica();
            let Some(replica) = replica else { continue };
            let shown = self.recorder.of_replica(&snapshot, replica.replica());
            let dc = self.recorder.columns.of(self.incarnation_at(dc));
            views.push(View { dc, snapshot: shown, items });
        }
        let at_us = self.now_us;
        self.recorder.run.end = End { at_us, is_settled: true, views };
    }

    /// Returns the vector that all partitions of a data center show to new sessions.
    fn visible_at(&self, dc: u8) -> Option<Vector> {
        let nodes = self.nodes.iter().filter(|node| node.dc == dc);
        let replicas = nodes.filter_map(|node| node.replica());
        let shown = replicas.map(|replica| visible(replica.replica()));
        shown.reduce(|mut least, shown| {
            least.meet(&shown);
            least
        })
    }

    fn read_now(&mut self, dc: u8, key: &Key, snapshot: Vector) -> Result<Content, String> {
        let partition = key.partition(self.setup.config.partition_count);
        let index = self.index_of(dc, partition.0);
        let node = &mut self.nodes[index];
        let mut probe = Probe { now: node.now(self.now_us), frames: Vec::new() };
        let process = node.process.as_mut().ok_or("the replica is down")?;
        let read = Read {
            incarnation: self.rejoin.incarnations[usize::from(dc)],
            request: 1,
            snapshot: Snapshot::At(snapshot),
            keys: vec![key.clone()],
        };
        let (from, to) = (Address::Client(READER), Address::Replica(DcId(dc), partition));
        process.receive(Parcel { from, to, message: Message::Read(read) }, &mut probe);
        // The answer may wait for a sync.
        for _ in 0..3 {
            process.synced(&mut probe);
        }
        let mut answers = Vec::new();
        for frame in probe.frames {
            let taken = take_parcels(VERSION, &frame, |parcel| answers.push(parcel.message));
            taken.map_err(|error| error.to_string())?;
        }
        match answers.into_iter().next() {
            Some(Message::ReadReply(reply)) => match reply.result {
                Ok((_, states)) => {
                    let now_us = snapshot[DcId(dc)].micros();
                    let none = TransactionId { origin: Origin(0), sequence: 0 };
                    let state = states.first().ok_or("nothing")?;
                    if state.changes() == 0 {
                        self.forgotten.insert(self.recorder.item(key));
                    }
                    Ok(content(state, now_us, none))
                }
                Err(refusal) => Err(refusal.to_string()),
            },
            _ => Err("no answer".to_owned()),
        }
    }

    fn finish(mut self) -> Played {
        for node in &self.nodes {
            if let Some(replica) = node.replica() {
                self.recorder.claim(self.now_us, replica.replica());
                self.met.add(&replica.replica().counters());
            }
        }
        for (slot, client) in std::mem::take(&mut self.clients).into_iter().enumerate() {
            self.record_session(slot, client.record);
        }
        if self.recorder.run.end.at_us == 0 {
            self.recorder.run.end.at_us = self.now_us;
        }
        let mut covered = self.reach.counts();
        covered.insert("tie of timestamps".to_owned(), self.recorder.ties);
        let floors = self.recorder.run.floors.len() as u64;
        covered.insert("floor of operation ids raised".to_owned(), floors);
        covered.extend(self.met.counts());
        let forgotten = std::mem::take(&mut self.forgotten);
        let run = self.recorder.finish();
        covered.extend(lives::counts(&run, &forgotten));
        Played {
            covered,
            broken: self.broken.take(),
            committed: self.committed,
            read: self.read,
            struck: self.struck,
            events: self.events,
            trace: self.trace,
            run,
        }
    }
}

/// The outside of a process that is asked for its contents after the run: it sends nothing else, and
/// its disk is no longer needed.
struct Probe {
    now: Now,
    /// The messages to the reader.
    frames: Vec<Vec<u8>>,
}

impl Time for Probe {
    fn now(&self) -> Now {
        self.now
    }
}

impl Transport for Probe {
    fn send(&mut self, outgoing: Outgoing) {
        if outgoing.to == Address::Client(READER) {
            self.frames.push(outgoing.frame);
        }
    }
}

impl Journal for Probe {
    fn append(&mut self, _: &[u8]) {}

    fn sync(&mut self) {}

    fn length(&self) -> usize {
        0
    }

    fn replace(&mut self, _: Vec<Vec<u8>>) {}
}
