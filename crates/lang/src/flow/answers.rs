//! The provenance of answers that may be weak or late.
//!
//! A read `by` a bound gives an answer with a *tag*: its level, or late. The tag follows from time and
//! from the store's own answers, so it has the provenance of the store itself, and it joins the
//! context of every arm. The value in the arm of level `l` is as weak as `l`: it may reach stores of at
//! most that level, visited with or after the store that was read. The same holds for a read `at l`.

use mingle_model::LevelId;

use super::{Analysis, Sources};
use crate::diagnostic::{Diagnostics, m0606};
use crate::flat::{Access, Flat, Kind, ReadKind};
use crate::hir::{Policy, Program, StoreId};
use crate::ops::Op;

/// Returns the stores that a transaction reads as of weaker levels, with these levels.
pub(super) fn weak_sources(program: &Program, flat: &Flat) -> Vec<(StoreId, LevelId)> {
    let mut found = Vec::new();
    for (_, stmt) in flat.live_statements() {
        match &stmt.kind {
            Kind::Read(access) => match access.answering.map(|answering| answering.policy) {
                Some(Policy::At(level)) => found.push((access.store, level)),
                Some(Policy::By(_)) => {
                    let weakest = program.levels.find("eventual");
                    found.extend(weakest.map(|level| (access.store, level)));
                }
                None => {}
            },
            Kind::Local { op: Op::AnswerOf(level), args, .. } => {
                if let Some(store) =
                    flat.read_of_answer(&args[0]).and_then(|id| flat.get(id).store())
                {
                    found.push((store, *level));
                }
            }
            _ => {}
        }
    }
    // An answer at the store's own level is data of the store as any other.
    let is_weak = |(store, level): &(StoreId, LevelId)| {
        !program.levels.is_at_least(*level, program.level_of(*store))
    };
    found.retain(is_weak);
    found.sort_unstable();
    found.dedup();
    found
}

impl Analysis<'_> {
    /// M0606: a policy in an `isolated` transaction.
    pub(super) fn no_policies_if_isolated(&self, diagnostics: &mut Diagnostics) {
        let Some(isolated) = self.transaction.isolated else { return };
        for (_, stmt) in self.flat.live_statements() {
            let Kind::Read(access) = &stmt.kind else { continue };
            if access.answering.is_some() {
                let own = self.levels().name(self.program.level_of(access.store));
                diagnostics.push(m0606::render(stmt.span, isolated, own));
            }
        }
    }

    /// Returns the sources of a read's answer.
    pub(super) fn read_sources(&self, access: &Access<ReadKind>) -> Sources {
        match access.answering.map(|answering| answering.policy) {
            None => self.bit_of(access.store),
            Some(Policy::At(level)) => self.weak_bit(access.store, level),
            Some(Policy::By(_)) => {
                let weakest = self.levels().find("eventual");
                let weakest = weakest.map_or(0, |level| self.weak_bit(access.store, level));
                self.bit_of(access.store) | weakest
            }
        }
    }

    /// Returns the sources that the tag, or the value, of an answer has beside those of its read's
    /// operands.
    pub(super) fn answer_sources(&self, stmt: &Kind) -> Sources {
        let Kind::Local { op, args, .. } = stmt else { return 0 };
        let read = self.flat.read_of_answer(&args[0]).map(|id| self.flat.get(id));
        let Some(store) = read.and_then(crate::flat::Stmt::store) else { return 0 };
        match op {
            Op::AnswerOf(level) => self.weak_bit(store, *level),
            _ => self.bit_of(store),
        }
    }

    /// Returns the bit of a store as of a level: the store's own if the level is no weaker.
    fn weak_bit(&self, store: StoreId, level: LevelId) -> Sources {
        match self.weak.binary_search(&(store, level)) {
            Ok(index) => 1 << (self.stores.len() + index),
            Err(_) => self.bit_of(store),
        }
    }
}
