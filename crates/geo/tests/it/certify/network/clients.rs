//! Sessions that run strong transactions, and sometimes vanish.

use std::collections::{BTreeMap, BTreeSet};

use mingle_geo::certify::{Access, Certified, Coordinator, Proposal};
use mingle_geo::{Address, DcId, PartitionId, Timestamp, Vector};
use mingle_model::TransactionId;

use super::{EPOCH_US, ITEMS, World};
use crate::certify::{id, proposal, touch};

impl World {
    pub fn ended(&mut self, number: u64, id: TransactionId, ended: Certified) {
        let client = &mut self.clients[number as usize];
        client.coordinator = None;
        match ended {
            Certified::Committed(commit_vec) => {
                self.met.commits += 1;
                client.until = commit_vec[DcId::STRONG];
                self.acknowledged.insert(id, commit_vec);
            }
            Certified::Conflict(until) => {
                self.met.conflicts += 1;
                client.until = until[DcId::STRONG];
                self.aborted.insert(id);
            }
            Certified::Refused => {
                self.met.refused += 1;
                self.aborted.insert(id);
            }
            Certified::Forgotten => self.met.unknown += 1,
        }
    }

    pub fn act(&mut self, number: u64) {
        let (now_us, is_healing) = (self.now_us, self.is_healing);
        let vanishes = !is_healing && self.random.one_in(60);
        let client = &mut self.clients[number as usize];
        if let Some((coordinator, _)) = &client.coordinator {
            if vanishes || now_us > client.since_us + 8_000_000 {
                self.met.unknown += 1;
                client.coordinator = None;
            } else if now_us > client.again_us {
                client.again_us = now_us + 600_000;
                let mut out = Vec::new();
                coordinator.ask(&mut out);
                for envelope in out {
                    self.send(Address::Client(number), envelope);
                }
            }
            return;
        }
        // A client that met a conflict waits until the other transaction is visible here.
        let (dc, until) = (client.dc, client.until);
        let stable = self.stable(dc);
        if stable >= until || self.random.one_in(40) {
            self.begin(number, stable);
        }
    }

    fn begin(&mut self, number: u64, stable: Timestamp) {
        let sequence = self.next;
        self.next += 1;
        let mut touches: BTreeMap<u16, Vec<_>> = BTreeMap::new();
        let is_reader = self.random.one_in(5);
        let items: BTreeSet<usize> =
            (0..=self.random.below(3)).map(|_| self.random.below(ITEMS)).collect();
        for item in items {
            let is_read = is_reader || self.random.one_in(3);
            let access = if is_read { Access::Read } else { Access::Write };
            let label = *self.random.pick(&["", "a", "b"]);
            let partition = (item % usize::from(self.partitions)) as u16;
            let touched = touch(&format!("k{item}"), access, label);
            touches.entry(partition).or_default().push(touched);
        }
        let participants: Vec<u16> = touches.keys().copied().collect();
        let begun_us = EPOCH_US + self.now_us;
        let parts = touches.into_iter().map(|(partition, touches)| {
            let part = proposal(sequence, &participants, touches);
            let snap_vec = Vector::ZERO.with(DcId::STRONG, stable);
            (PartitionId(partition), Proposal { snap_vec, begun_us, ..part })
        });
        let parts: BTreeMap<PartitionId, Proposal> = parts.collect();
        self.all.insert(id(sequence), parts.values().cloned().collect());
        let client = &mut self.clients[number as usize];
        let coordinator = Coordinator::new(DcId(client.dc), self.partitions, parts);
        let mut out = Vec::new();
        coordinator.ask(&mut out);
        client.coordinator = Some((coordinator, id(sequence)));
        (client.since_us, client.again_us) = (self.now_us, self.now_us + 600_000);
        let is_half = self.random.one_in(30);
        let count = if is_half { 1 } else { out.len() };
        for envelope in out.into_iter().take(count) {
            self.send(Address::Client(number), envelope);
        }
    }
}
