//! Computation of stability and uniformity (2:23-38).

use super::Replica;
use crate::flaw::Flaw;
use crate::message::{Address, KnownVecLocal, Message, SiblingVecs, UniformVecLocal};
use crate::record::{Alarm, Record, Vectors};
use crate::timestamp::{Now, PartitionId, Timestamp};
use crate::vector::{Vector, uniform_of};

/// Every so many announcements, the other partitions are told what is uniform.
const UNIFORM_EVERY: u8 = 4;

/// The silence, in microseconds, after which [`Flaw::SilentSkipped`] skips a partition.
const SILENT_US: u64 = 200_000;

impl Replica {
    /// BROADCAST_VECS (2:23-26). Announced vectors are written to disk first.
    pub(super) fn broadcast_vecs(&mut self, now: Now) {
        self.recompute_known(now);
        let vectors = Vectors {
            known_vec: self.known_vec,
            stable_vec: self.stable_vec,
            uniform_vec: self.uniform_vec,
        };
        let epoch = self.members.epoch();
        if vectors != self.disk.vectors || epoch != self.disk.epoch {
            (self.disk.vectors, self.disk.epoch) = (vectors, epoch);
            // The records of this input get the next index.
            self.disk.announced.push_back((self.next_index(), epoch, self.known_vec));
            self.write(Record::Vectors(vectors));
        }
        let own = self.config.partition;
        let snapshot_floor = self.local_matrix[usize::from(own.0)].snapshot_floor;
        let (known_vec, clock) = (self.known_vec, self.clock.last());
        for partition in self.config.partitions().filter(|partition| *partition != own) {
            let message = KnownVecLocal { epoch, partition: own, known_vec, snapshot_floor, clock };
            self.announce(self.peer(partition), Message::KnownVecLocal(message));
        }
        self.tell_uniform();
        for dc in self.others_in() {
            // With f = 0 the other data centers' state makes no difference.
            let is_asked = self.config.f > 0;
            let stable_vec = if is_asked { self.stable_vec } else { Vector::ZERO };
            let dc_own = self.config.dc;
            let message = SiblingVecs { epoch, dc: dc_own, known_vec, stable_vec };
            self.announce(self.sibling(dc), Message::SiblingVecs(message));
        }
    }

    /// Tells the other partitions what is uniform. Sessions have seen it: while another data center
    /// is cut off, a partition that heard less of it would not serve them any more (against 1:2-3,
    /// where the sessions themselves tell it).
    fn tell_uniform(&mut self) {
        if let Some(left) = self.until_told.checked_sub(1) {
            self.until_told = left;
            return;
        }
        self.until_told = UNIFORM_EVERY - 1;
        if self.makes(Flaw::UniformUntold) {
            return;
        }
        let (epoch, own, uniform_vec) =
            (self.members.epoch(), self.config.partition, self.uniform_vec);
        for partition in self.config.partitions().filter(|partition| *partition != own) {
            let message = UniformVecLocal { epoch, partition: own, uniform_vec };
            self.announce(self.peer(partition), Message::UniformVecLocal(message));
        }
    }

    /// Takes over what another partition of this data center knows to be uniform.
    pub(super) fn on_uniform_vec_local(&mut self, now: Now, told: &UniformVecLocal) {
        if told.partition.0 >= self.config.partition_count {
            return self.alarm(Alarm::Malformed("a uniform vector of no known partition"));
        }
        self.uniform_told.join(&told.uniform_vec);
        self.recompute_uniform(now);
    }

    fn announce(&mut self, to: Address, message: Message) {
        if self.makes(Flaw::VectorBeforeDisk) {
            self.send_now(to, message);
        } else {
            self.send(to, message);
        }
    }

    /// KNOWNVEC_LOCAL (2:27-30).
    pub(super) fn on_known_vec_local(&mut self, now: Now, known: KnownVecLocal) {
        let Some(row) = self.local_matrix.get_mut(usize::from(known.partition.0)) else {
            return self.alarm(Alarm::Malformed("a vector of no known partition"));
        };
        row.known_vec.join(&known.known_vec);
        row.snapshot_floor.join(&known.snapshot_floor);
        row.epoch = row.epoch.max(known.epoch);
        let dc = self.config.dc;
        if known.clock > self.highest_accepted(now) {
            self.counters.clock_ahead += 1;
            self.alarm(Alarm::ClockAhead { dc, timestamp: known.clock });
        } else {
            self.clock.observe(known.clock);
        }
        self.recompute_known(now);
        self.recompute_stable(now);
        self.wake(now);
    }

    /// STABLEVEC (2:31-36) and KNOWNVEC_GLOBAL (2:37-38).
    pub(super) fn on_sibling_vecs(&mut self, now: Now, vecs: SiblingVecs) {
        let row = usize::from(vecs.dc.0);
        if vecs.dc == self.config.dc || row >= self.stable_matrix.len() {
            return self.alarm(Alarm::Malformed("a vector of no known sibling"));
        }
        self.stable_matrix[row].join(&vecs.stable_vec);
        self.global_matrix[row].join(&vecs.known_vec);
        self.recompute_uniform(now);
    }

    /// Recomputes `stable_vec`, the minimum of all partitions' announcements. A partition that was
    /// never heard from has announced zero, and holds the minimum there.
    pub(super) fn recompute_stable(&mut self, now: Now) {
        let own = self.config.dc;
        let row = &mut self.local_matrix[usize::from(self.config.partition.0)];
        // No transaction of this data center can commit here below this any more, on disk or not.
        row.known_vec[own] = row.known_vec[own].max(self.known_vec[own]);
        let heard = self.heard();
        let rows = self.local_matrix.iter().map(|row| row.known_vec);
        let rows = rows.filter(|row| row[own] >= heard);
        let least = rows.reduce(|mut least, row| {
            least.meet(&row);
            least
        });
        self.stable_vec.join(&least.unwrap_or(Vector::ZERO));
        self.recompute_uniform(now);
    }

    /// Returns the announcement below which a partition is skipped: none is, except by the mistake
    /// [`Flaw::SilentSkipped`].
    fn heard(&self) -> Timestamp {
        if !self.makes(Flaw::SilentSkipped) {
            return Timestamp::ZERO;
        }
        let own = self.config.dc;
        let newest = self.local_matrix.iter().map(|row| row.known_vec[own]).max();
        let newest = newest.unwrap_or_default().micros();
        Timestamp::new(newest.saturating_sub(SILENT_US), PartitionId(0))
    }

    /// Recomputes `uniform_vec` (2:33-36).
    fn recompute_uniform(&mut self, now: Now) {
        let own = self.config.dc;
        self.stable_matrix[usize::from(own.0)] = self.stable_vec;
        let mistaken = u8::from(self.makes(Flaw::GroupsOfF));
        let f = usize::from(self.config.f.saturating_sub(mistaken));
        let uniform = uniform_of(&self.stable_matrix, own, f);
        self.uniform_vec.join(&uniform);
        // All that is uniform is stable in this data center; this replica may have yet to hear that.
        let mut told = self.uniform_told;
        told.meet(&self.stable_vec);
        self.uniform_vec.join(&told);
        self.wake_attaching(now);
    }

    /// Updates the own entries of `known_vec` and `stable_vec` for a request, so that it never
    /// waits for a tick.
    pub(super) fn refresh(&mut self, now: Now) {
        self.recompute_known(now);
        let own = self.config.dc;
        let row = &mut self.local_matrix[usize::from(self.config.partition.0)];
        row.known_vec[own] = row.known_vec[own].max(self.known_vec[own]);
        let entries = self.local_matrix.iter().map(|row| row.known_vec[own]);
        let least = entries.min().unwrap_or_default();
        self.stable_vec[own] = self.stable_vec[own].max(least);
    }

    /// Returns the address of this replica.
    pub fn address(&self) -> Address {
        Address::Replica(self.config.dc, self.config.partition)
    }
}
