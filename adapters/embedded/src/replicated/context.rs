//! The updates that a replica has seen.

use std::collections::BTreeSet;

use crate::encoding::wire::{Reader, Writer};

/// The updates that a replica has applied: for each origin all up to some number, and some more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    origins: Vec<Seen>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// All up to here.
    prefix: u64,
    /// And these, all above `prefix + 1`.
    extras: BTreeSet<u64>,
}

impl Context {
    /// Creates an empty context for this many origins.
    pub fn new(origins: usize) -> Self {
        Self { origins: vec![Seen::default(); origins] }
    }

    /// Returns the number of origins.
    pub fn origins(&self) -> usize {
        self.origins.len()
    }

    /// True if the context contains this update.
    pub fn contains(&self, origin: u8, sequence: u64) -> bool {
        self.origins
            .get(usize::from(origin))
            .is_some_and(|seen| sequence <= seen.prefix || seen.extras.contains(&sequence))
    }

    /// Returns the number up to which the context contains all updates of this origin.
    pub fn prefix(&self, origin: u8) -> u64 {
        self.origins.get(usize::from(origin)).map_or(0, |seen| seen.prefix)
    }

    /// Adds an update.
    pub fn add(&mut self, origin: u8, sequence: u64) {
        let seen = &mut self.origins[usize::from(origin)];
        seen.extras.insert(sequence);
        while seen.extras.remove(&(seen.prefix + 1)) {
            seen.prefix += 1;
        }
    }

    /// True if the context contains all updates of `other`.
    pub fn covers(&self, other: &Self) -> bool {
        other.origins.iter().enumerate().all(|(origin, theirs)| {
            let origin = u8::try_from(origin).expect("replicas are bounded by REPLICAS_MAX");
            // The prefix is covered by ours, or by ours and extras that close the gap, which
            // `add` would have folded.
            theirs.prefix <= self.prefix(origin)
                && theirs.extras.iter().all(|n| self.contains(origin, *n))
        })
    }

    /// The row form.
    pub fn encode(&self, writer: &mut Writer) {
        writer.count(self.origins.len());
        for seen in &self.origins {
            writer.u64(seen.prefix);
            writer.count(seen.extras.len());
            for extra in &seen.extras {
                writer.u64(*extra);
            }
        }
    }

    /// From the row form.
    pub fn decode(reader: &mut Reader<'_>) -> Self {
        let origins = (0..reader.count()).map(|_| Seen {
            prefix: reader.u64(),
            extras: (0..reader.count()).map(|_| reader.u64()).collect(),
        });
        Self { origins: origins.collect() }
    }
}
