//! Counters that are exact in any order of their adds and removals.
//!
//! For each origin the tally has the sum of all adds up to some number, and single adds beyond it.
//! A removal has the same form for the adds that its replica had seen: a sum up to some number, and
//! single adds beyond it. Of several removals, the one that reaches furthest contains the others,
//! so the tally keeps only that one, and the single adds beyond it.

use std::collections::BTreeMap;

use super::context::Context;
use crate::encoding::wire::{Reader, Writer};

/// A counter's adds and removals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    parts: BTreeMap<u8, Part>,
}

/// One origin's part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Part {
    added: Sum,
    removed: Sum,
}

/// The sum of all adds of one origin up to a number, and single ones above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    to: u64,
    total: i128,
    extras: BTreeMap<u64, i128>,
}

/// The adds that a removal's replica had seen, by origin; the removal takes these away.
pub type Removal = BTreeMap<u8, Sum>;

impl Sum {
    /// Folds single adds up to `to` into the sum; all up to there must have been seen.
    fn fold(&mut self, to: u64) {
        let above = self.extras.split_off(&(to + 1));
        let folded: i128 = self.extras.values().sum();
        self.total = self.total.wrapping_add(folded);
        self.extras = above;
        self.to = self.to.max(to);
    }

    /// The join of two removals of one origin.
    fn join(&mut self, other: &Self) {
        if other.to > self.to {
            self.to = other.to;
            self.total = other.total;
        }
        self.extras.extend(&other.extras);
        self.extras = self.extras.split_off(&(self.to + 1));
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u64(self.to);
        writer.i128(self.total);
        writer.count(self.extras.len());
        for (sequence, amount) in &self.extras {
            writer.u64(*sequence);
            writer.i128(*amount);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Self {
        Self {
            to: reader.u64(),
            total: reader.i128(),
            extras: (0..reader.count()).map(|_| (reader.u64(), reader.i128())).collect(),
        }
    }
}

impl Part {
    /// The sum of the adds that were seen and not removed. `added` must be folded.
    fn live(&self) -> i128 {
        let Self { added, removed } = self;
        let mut live = 0i128;
        if added.to >= removed.to {
            live = added.total.wrapping_sub(removed.total);
            for amount in removed.extras.range(..=added.to).map(|(_, amount)| amount) {
                live = live.wrapping_sub(*amount);
            }
        }
        for (sequence, amount) in added.extras.range(removed.to.max(added.to) + 1..) {
            if !removed.extras.contains_key(sequence) {
                live = live.wrapping_add(*amount);
            }
        }
        live
    }
}

impl Tally {
    /// Adds the amount of an update; `seen` has all updates the replica has seen, this one
    /// included.
    pub fn add(&mut self, origin: u8, sequence: u64, amount: i128, seen: &Context) {
        let part = self.parts.entry(origin).or_default();
        part.added.extras.insert(sequence, amount);
        self.fold(seen);
    }

    /// Applies a removal.
    pub fn remove(&mut self, removal: &Removal, seen: &Context) {
        for (origin, sum) in removal {
            self.parts.entry(*origin).or_default().removed.join(sum);
        }
        self.fold(seen);
    }

    fn fold(&mut self, seen: &Context) {
        for (origin, part) in &mut self.parts {
            part.added.fold(seen.prefix(*origin));
        }
    }

    /// Returns a removal of all adds that a replica has seen.
    pub fn removal(mut self, seen: &Context) -> Removal {
        self.fold(seen);
        let parts = self.parts.into_iter();
        parts.map(|(origin, part)| (origin, part.added)).collect()
    }

    /// The counter's value.
    pub fn value(&self) -> i128 {
        let live = self.parts.values().map(Part::live);
        live.fold(0, i128::wrapping_add)
    }

    /// Appends the row form.
    pub fn encode(&self, writer: &mut Writer) {
        writer.count(self.parts.len());
        for (origin, part) in &self.parts {
            writer.u8(*origin);
            part.added.encode(writer);
            part.removed.encode(writer);
        }
    }

    /// From the row form.
    pub fn decode(reader: &mut Reader<'_>) -> Self {
        let parts = (0..reader.count()).map(|_| {
            let origin = reader.u8();
            let added = Sum::decode(reader);
            let removed = Sum::decode(reader);
            (origin, Part { added, removed })
        });
        Self { parts: parts.collect() }
    }
}

/// Appends a removal.
pub fn encode_removal(removal: &Removal, writer: &mut Writer) {
    writer.count(removal.len());
    for (origin, sum) in removal {
        writer.u8(*origin);
        sum.encode(writer);
    }
}

/// Takes a removal.
pub fn decode_removal(reader: &mut Reader<'_>) -> Removal {
    let sums = (0..reader.count()).map(|_| (reader.u8(), Sum::decode(reader)));
    sums.collect()
}
