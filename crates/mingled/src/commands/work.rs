//! The data and the operations of one command.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_geo::State;
use mingle_geo::types::item::{Item, ItemOp, ItemType, View};
use mingle_model::random::Random;

use super::Fault;
use crate::resp::Bytes;

/// The states of the items that a command reads, by name.
pub type States = BTreeMap<Bytes, Arc<State>>;

/// A command's data: it reads items of one snapshot, and collects operations.
#[derive(Debug)]
pub struct Work<'a> {
    states: &'a States,
    empty: &'a Item,
    /// The time of the snapshot, in microseconds since 1970.
    pub now_us: u64,
    /// The machine's clock, in microseconds since 1970.
    pub wall_us: u64,
    /// True if the client uses version 3 of the protocol.
    pub is_new_protocol: bool,
    /// True within a strong transaction.
    pub is_strong: bool,
    /// The source of random choices.
    pub random: &'a mut Random,
    updates: Vec<(Bytes, ItemOp)>,
}

impl<'a> Work<'a> {
    /// Creates the work on these states; `empty` is an item without content.
    pub fn new(states: &'a States, empty: &'a Item, random: &'a mut Random) -> Self {
        Self {
            states,
            empty,
            now_us: 0,
            wall_us: 0,
            is_new_protocol: false,
            is_strong: false,
            random,
            updates: Vec::new(),
        }
    }

    /// Returns the content of an item.
    pub fn view(&self, name: &Bytes) -> View<'a> {
        let item = self.states.get(name).and_then(|state| state.as_item());
        item.unwrap_or(self.empty).at(self.now_us)
    }

    /// Returns the content of an item that has this type or does not exist.
    ///
    /// # Errors
    ///
    /// [`Fault::WrongType`].
    pub fn typed(&self, name: &Bytes, of: ItemType) -> Result<View<'a>, Fault> {
        let view = self.view(name);
        match view.shown_type() {
            Some(shown) if shown != of => Err(Fault::WrongType),
            _ => Ok(view),
        }
    }

    /// Adds an operation on an item.
    pub fn add(&mut self, name: &Bytes, op: ItemOp) {
        self.updates.push((name.clone(), op));
    }

    /// Ends the deadline of an item from which everything was removed: what is inserted later does not
    /// inherit it.
    pub fn emptied(&mut self, name: &Bytes) {
        if self.view(name).deadline_us().is_some() {
            self.add(name, ItemOp::Expire(None));
        }
    }

    /// Deletes an item, if it exists.
    pub fn delete(&mut self, name: &Bytes) -> bool {
        let exists = self.view(name).exists();
        if exists {
            self.add(name, ItemOp::Delete);
        }
        exists
    }

    /// Returns the time from which new deadlines count.
    pub fn base_us(&self) -> u64 {
        self.now_us.max(self.wall_us)
    }

    /// Takes the operations.
    pub fn take_updates(&mut self) -> Vec<(Bytes, ItemOp)> {
        std::mem::take(&mut self.updates)
    }
}
