//! The running transaction of a session.

use mingle_model::TransactionId;

use super::strong::Touched;
use crate::key::Key;
use crate::timestamp::{Timestamp, Version};
use crate::types::{Op, Update};
use crate::vector::Vector;

/// A transaction between its first operation and its commit.
#[derive(Clone, Debug)]
pub struct Running {
    pub id: TransactionId,
    pub begun_us: u64,
    pub snapshot: Option<Vector>,
    pub updates: Vec<Update>,
    /// The items used so far, if it is strong.
    pub strong: Option<Touched>,
}

impl Running {
    /// Takes back the transaction's own pushes among these elements, and leaves the others. An own
    /// element's version has the index of its push.
    pub fn pull_own(&mut self, key: &Key, elements: &mut Vec<Version>) {
        elements.retain(|element| {
            let is_own = element.timestamp == Timestamp(u64::MAX);
            let push = self.updates.get_mut(element.index as usize).filter(|push| push.key == *key);
            match push {
                Some(push) if is_own => push.op = Op::Nothing,
                _ => {}
            }
            !is_own
        });
    }
}
