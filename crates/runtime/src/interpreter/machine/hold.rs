//! Takes that run ahead of the phase of their store.
//!
//! The machine asks for each of them once; the attempt ends, the take is made in a transaction of its own, and the
//! next attempt finds its result. The phase of the store begins as if nothing were held: it takes back what the
//! transaction holds there, and the program takes it anew.

use std::collections::BTreeMap;

use mingle_lang::Plan;
use mingle_lang::code::Instr;
use mingle_lang::hir::StoreId;
use mingle_model::{Ref, Value};

use super::{Machine, Need, Recorded};
use crate::interpreter::write_buffer::WriteBuffer;
use crate::protocol::held::Held;

/// The place of a take in a phase: its instruction, and the rounds of the loops around it.
pub(crate) type Site = (usize, Vec<u64>);

/// A take that is to be made.
#[derive(Clone, Debug)]
pub struct HoldAsked {
    pub(crate) site: Site,
    /// Index into [`Plan::holds`].
    pub(crate) hold: usize,
    pub(crate) object: Ref,
    pub(crate) amount: i64,
}

/// The results of takes that were made, by their places in a phase.
#[derive(Clone, Debug, Default)]
pub struct HoldAnswers(BTreeMap<Site, (Ref, i64, bool)>);

impl HoldAnswers {
    /// Notes the result of a take.
    pub(crate) fn note(&mut self, asked: HoldAsked, taken: bool) {
        self.0.insert(asked.site, (asked.object, asked.amount, taken));
    }
}

impl Recorded {
    /// Sets what the transaction holds.
    pub(crate) fn set_held(&mut self, queue: usize, held: &[Held]) {
        self.queues[queue] = held.iter().map(Held::to_value).collect();
    }

    /// Returns what the transaction holds at a store.
    pub(crate) fn held_at(&self, plan: &Plan, store: StoreId) -> Vec<Held> {
        let queue = plan.held_queue().and_then(|queue| self.queues.get(queue));
        let held = queue.into_iter().flatten().filter_map(Held::from_value);
        held.filter(|held| held.store == store.0).collect()
    }
}

/// Returns the write buffer with which a phase begins.
pub(super) fn given_back(earlier: &Recorded, plan: &Plan, store: Option<StoreId>) -> WriteBuffer {
    let mut buffer = WriteBuffer::default();
    for held in store.map(|store| earlier.held_at(plan, store)).unwrap_or_default() {
        buffer.add(&held.object, held.field, -held.change);
    }
    buffer
}

impl<'a> Machine<'a> {
    /// Hands in the results of the takes that were made for this phase.
    pub(crate) fn with_holds(&mut self, answers: Option<&'a HoldAnswers>) {
        self.holds = answers;
    }

    /// Runs a take that runs ahead: asks for it, or takes its result.
    pub(super) fn hold(&mut self, instr: &Instr) -> Option<Need> {
        let Instr::Hold { dst, object, amount, hold } = instr else { return None };
        let Value::Ref(object) = self.value(object) else {
            panic!("a take has its ref: the program was not checked")
        };
        let amount = self.value(amount).as_int().expect("an amount is an int");
        let rounds = self.loops.iter().map(|running| running.round).collect();
        let site = (self.at - 1, rounds);
        let known = self.holds.and_then(|answers| answers.0.get(&site));
        let taken = match known {
            _ if amount < 1 => false,
            Some((held, of, taken)) if *held == object && *of == amount => *taken,
            _ => {
                self.at -= 1;
                return Some(Need::Hold(HoldAsked { site, hold: *hold as usize, object, amount }));
            }
        };
        self.slots[dst.index()] = Value::Bool(taken);
        None
    }
}
