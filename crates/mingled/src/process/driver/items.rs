//! Questions about all items: their names, and their states at one vector.

use std::sync::mpsc::Sender;

use mingle_geo::{HeldPart, Key, PartitionId, Vector};
use mingle_geo_node::{CopyError, Copying, Time as _};

use super::Driver;

/// A question for names of items.
#[derive(Debug)]
pub struct Names {
    pub partition: PartitionId,
    /// The last name of the answer before; `None` to begin.
    pub after: Option<Key>,
    /// The maximum number of names.
    pub count: usize,
}

/// A copy of all items at one vector.
#[derive(Debug)]
pub enum CopyCall {
    /// The vector that has all that was acknowledged so far is asked for.
    Wanted(Sender<Vector>),
    /// A copy begins once the partitions have reached a vector; the answer is its number. It replaces a copy that
    /// has not ended.
    Begin(Vector, Sender<Result<(u64, Copying), CopyError>>),
    /// The items of a partition that follow a key are asked for.
    Part(u64, PartitionId, Option<Key>, Sender<Result<HeldPart, CopyError>>),
    /// A copy has ended, complete or not.
    End(u64),
}

/// The copy of all items that is under way, and the number of all so far.
#[derive(Debug, Default)]
pub struct Copies {
    current: Option<Copying>,
    count: u64,
}

impl Driver {
    pub(super) fn names(&self, Names { partition, after, count }: &Names) -> Vec<Key> {
        let Some(replica) = self.node.replica(*partition) else { return Vec::new() };
        let core = replica.replica();
        let names: Box<dyn Iterator<Item = &Key>> = match after {
            Some(after) => Box::new(core.keys_from(after).filter(move |key| *key != after)),
            None => Box::new(core.keys()),
        };
        names.take(*count).cloned().collect()
    }

    /// Begins, goes on with or ends a copy. Callers may have gone away.
    pub(super) fn on_copy(&mut self, call: CopyCall) {
        let now = self.machine.now();
        match call {
            CopyCall::Wanted(answer) => {
                let mut wanted = self.floor.vector();
                wanted.join(&self.node.newest());
                _ = answer.send(wanted);
            }
            CopyCall::Begin(wanted, answer) => {
                let begun = self.node.begin_copy(now, &wanted);
                let begun = begun.map(|copying| {
                    self.copies.count += 1;
                    self.copies.current = Some(copying.clone());
                    (self.copies.count, copying)
                });
                _ = answer.send(begun);
            }
            CopyCall::Part(number, partition, after, answer) => {
                let current = self.copies.current.as_ref().filter(|_| number == self.copies.count);
                let part = current.map(|of| (of.at, of.epoch)).ok_or(CopyError::Passed);
                let part = part.and_then(|(at, epoch)| {
                    self.node.copy_part(now, (&at, epoch), partition, after.as_ref())
                });
                if part.is_err() && number == self.copies.count {
                    self.copies.current = None;
                }
                _ = answer.send(part);
            }
            CopyCall::End(number) if number == self.copies.count => {
                self.copies.current = None;
                self.node.end_copy();
            }
            CopyCall::End(_) => {}
        }
    }
}
