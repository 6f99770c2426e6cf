//! A snapshot of all items that is held for a reader, such as a backup.
//!
//! Nothing above the snapshot is folded while it is held, so the reader gets the states of all items at one
//! vector, part by part, while transactions go on. An epoch ends the hold, as it ends transfers.

use std::sync::Arc;

use super::Replica;
use super::transfer::encoded_bytes;
use crate::floors::Raised;
use crate::key::Key;
use crate::timestamp::DcId;
use crate::types::State;
use crate::vector::Vector;

/// Some items at a held snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldPart {
    /// The items, in the order of their keys; those in which nothing stands are left out.
    pub states: Vec<(Key, Arc<State>)>,
    /// The key after which the next part begins; `None` if this is the last one.
    pub next: Option<Key>,
}

impl Replica {
    /// Holds the items at a snapshot that this replica has and has not folded beyond, up to a time of the monotonic
    /// clock in microseconds. A later call replaces the snapshot and the time.
    ///
    /// # Errors
    ///
    /// The vector up to which this replica has folded, if the snapshot does not cover it.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_geo::{Config, DcId, PartitionId, Replica, Vector};
    ///
    /// let mut replica = Replica::new(Config::new(DcId(0), 1, PartitionId(0), 1)).expect("settings");
    /// replica.hold(Vector::ZERO, 1_000_000).expect("nothing is folded");
    /// let part = replica.held_part(None, &Vector::ZERO, 100, 1 << 20).expect("it is held");
    /// assert_eq!((part.states.len(), part.next), (0, None));
    /// replica.release();
    /// ```
    pub fn hold(&mut self, at: Vector, until_us: u64) -> Result<(), Vector> {
        let folded = self.pins.folded();
        if !at.covers(&folded) {
            return Err(folded);
        }
        self.transfer.hold(Some((at, until_us)));
        Ok(())
    }

    /// Ends a hold.
    pub fn release(&mut self) {
        self.transfer.hold(None);
    }

    /// Returns the items that follow a key at a held snapshot: at most `items_max`, and about `bytes_max` bytes, but at
    /// least one.
    ///
    /// # Errors
    ///
    /// The vector up to which this replica has folded, if the snapshot is not held any more.
    pub fn held_part(
        &self,
        after: Option<&Key>,
        at: &Vector,
        items_max: usize,
        bytes_max: usize,
    ) -> Result<HeldPart, Vector> {
        let folded = self.pins.folded();
        if !at.covers(&folded) {
            return Err(folded);
        }
        let (mut states, mut bytes) = (Vec::new(), 0);
        let mut last: Option<&Key> = None;
        for (visited, key) in self.op_log.keys(after).enumerate() {
            if visited >= items_max.max(1) || bytes >= bytes_max.max(1) {
                return Ok(HeldPart { states, next: last.cloned() });
            }
            last = Some(key);
            let state = self.op_log.peek(key, at)?;
            if !state.is_blank() {
                bytes += encoded_bytes(key, &state);
                states.push((key.clone(), state));
            }
        }
        Ok(HeldPart { states, next: None })
    }

    /// Returns the floors of operation ids that each data center has raised.
    pub fn op_floors(&self) -> impl Iterator<Item = (DcId, Raised)> {
        self.op_floors.iter()
    }
}
