//! Group commit: all records of one round are written together.

use mingle_geo::wire::put_record;
use mingle_geo::{Address, DcId, Input, PartitionId, Persist};

use super::{Batch, Worker};
use crate::geo::plan::Disk;

impl Worker {
    /// Writes all pending records together, and sends the outputs that waited for them.
    pub(super) fn commit(&mut self) {
        let is_memory = self.shared.plan.disk == Disk::Memory;
        for dc in 0..self.shared.plan.dcs {
            let mut persists = Vec::new();
            for index in 0..self.nodes.len() {
                let node = &mut self.nodes[index];
                if node.dc == dc {
                    persists.extend(node.pending.drain(..).map(|persist| (index, persist)));
                }
            }
            if !persists.is_empty() {
                let buffer = self.encode(dc, &persists);
                if is_memory {
                    self.written(persists);
                    self.buffers[usize::from(dc)] = buffer;
                } else {
                    self.hand_over(dc, buffer, persists);
                }
            }
            if !is_memory {
                self.on_disk(dc);
            }
        }
    }

    /// Encodes records in the format of the log.
    fn encode(&mut self, dc: u8, persists: &[(usize, Persist)]) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.buffers[usize::from(dc)]);
        buffer.clear();
        for (index, persist) in persists {
            buffer.extend(self.nodes[*index].partition.to_le_bytes());
            for record in &persist.records {
                put_record(&mut buffer, record);
            }
        }
        self.tally.log_bytes += buffer.len() as u64;
        buffer
    }

    fn hand_over(&mut self, dc: u8, mut buffer: Vec<u8>, persists: Vec<(usize, Persist)>) {
        self.ticket += 1;
        let log = &self.shared.logs[usize::from(dc)];
        log.write(self.index, self.ticket, &mut buffer);
        buffer.clear();
        self.buffers[usize::from(dc)] = buffer;
        self.batches[usize::from(dc)].push_back(Batch { ticket: self.ticket, persists });
    }

    fn on_disk(&mut self, dc: u8) {
        let durable = self.shared.logs[usize::from(dc)].durable(self.index);
        loop {
            let batches = &mut self.batches[usize::from(dc)];
            if batches.front().is_none_or(|batch| batch.ticket > durable) {
                return;
            }
            let batch = batches.pop_front().expect("it was seen");
            self.written(batch.persists);
        }
    }

    /// Sends the outputs that waited for these records, and notifies the replicas.
    fn written(&mut self, persists: Vec<(usize, Persist)>) {
        let mut persists = persists.into_iter().peekable();
        while let Some((index, persist)) = persists.next() {
            let node = &self.nodes[index];
            let from = Address::Replica(DcId(node.dc), PartitionId(node.partition));
            for envelope in persist.then {
                self.route(from, envelope);
            }
            if persists.peek().is_none_or(|(next, _)| *next != index) {
                self.input(index, Input::Persisted { index: persist.index });
            }
        }
    }
}
