//! Takes from bounded counters.
//!
//! A take that its store decides in its own phase is a read and a write, and its result data of the store.
//! A store of any level certifies the result of a take that runs ahead: the amount is held until the
//! transaction has ended, so no later state of the store can make it wrong. Such a result has the provenance of the
//! take's operands alone. They decide before the first commit, as those of a `require`.

use super::rules::Use;
use super::{Analysis, Slice};
use crate::diagnostic::m0607::{self, Misplaced};
use crate::diagnostic::{Code, Diagnostics, m0606};
use crate::flat::{Flat, Held, Kind, Operand, Stmt, StmtId, WriteKind};
use crate::hir::{Program, StoreId};
use crate::ops::Op;

/// Returns the stores whose takes run ahead, if they cannot be decided in their own phase: those that are not at
/// least as strong as every other store that the transaction writes.
pub(super) fn stores_to_hold(program: &Program, flat: &Flat) -> Vec<StoreId> {
    let (mut taken, mut written) = (Vec::new(), Vec::new());
    for (_, stmt) in flat.live_statements() {
        match &stmt.kind {
            Kind::Write(access) => written.push(access.store),
            Kind::Local { op: Op::MayTake(_) | Op::MayGive(_), args, .. } => {
                let read = flat.read_of_answer(&args[0]).map(|id| flat.get(id));
                taken.extend(read.and_then(crate::flat::Stmt::store));
            }
            _ => {}
        }
    }
    let is_stronger = |store: StoreId, other: &StoreId| {
        let levels = &program.levels;
        levels.is_at_least(program.level_of(store), program.level_of(*other))
    };
    taken.retain(|store| !written.iter().all(|other| is_stronger(*store, other)));
    taken.sort_unstable();
    taken.dedup();
    taken
}

fn held((id, stmt): (StmtId, &Stmt)) -> Option<(StmtId, &Held)> {
    match &stmt.kind {
        Kind::Hold(held) => Some((id, held)),
        _ => None,
    }
}

impl Analysis<'_> {
    /// M0607: an endorsed value that depends on a take. The statements of the slice run twice.
    pub(super) fn check_no_takes(&self, slice: &Slice, diagnostics: &mut Diagnostics) {
        for (id, stmt) in self.flat.live_statements() {
            let is_taken = match &stmt.kind {
                Kind::Local { op: Op::MayTake(_) | Op::MayGive(_), .. } => slice.contains(id),
                // Values that are read early would run the take, and again later.
                Kind::Hold(_) => true,
                _ => false,
            };
            if is_taken {
                diagnostics.push(m0607::render(Misplaced::Endorsed, stmt.span));
            }
        }
    }

    /// True if a write changes a bounded counter. A store that keeps bounds commits all writes together.
    pub(super) fn is_bounded(&self, write: &WriteKind) -> bool {
        match write {
            WriteKind::Collection(kind, field, _) => {
                self.program.objects[kind.index()].bounds_of(*field).is_some()
            }
            _ => false,
        }
    }

    /// M0606: a take that runs ahead in an `isolated` transaction.
    pub(super) fn no_holds_if_isolated(&self, diagnostics: &mut Diagnostics) {
        let Some(isolated) = self.transaction.isolated else { return };
        for (_, stmt) in self.flat.live_statements() {
            if let Kind::Hold(_) = &stmt.kind {
                diagnostics.push(m0606::render_hold(stmt.span, isolated));
            }
        }
    }

    /// M0607: a take that runs ahead of a gift to the same counter.
    pub(super) fn check_gifts(&self, diagnostics: &mut Diagnostics) {
        let holds: Vec<(StmtId, &Held)> = self.flat.live_statements().filter_map(held).collect();
        if holds.is_empty() {
            return;
        }
        let settles = |id: StmtId| {
            let condition = self.flat.get(id).parent.and_then(|around| self.condition_of(around));
            holds.iter().any(|(_, held)| condition.and_then(Operand::slot) == Some(held.dst))
        };
        for (id, held) in &holds {
            let is_gift = |(write, stmt): &(StmtId, &Stmt)| match &stmt.kind {
                Kind::Write(access) => {
                    matches!(access.kind, WriteKind::Collection(kind, field, _)
                        if (kind, field) == (held.kind, held.field))
                        && !settles(*write)
                }
                _ => false,
            };
            let gifts = self.flat.live_statements().filter(is_gift).map(|(write, _)| write);
            let gifts: Vec<StmtId> = gifts.collect();
            if let Some(gift) = self.earlier_write(*id, &gifts) {
                let give = self.flat.get(gift).span;
                let span = self.flat.get(*id).span;
                diagnostics.push(m0607::render(Misplaced::AfterGive { give }, span));
            }
        }
    }

    /// The uses of a take's operands: it is decided before any other store is written.
    pub(super) fn uses_of_hold(&self, id: StmtId, held: &Held) -> Vec<Use> {
        let written = self.written_stores().into_iter().filter(|store| *store != held.store);
        let uses = written.map(|target| {
            let mut used = Use::new(id, target, Code::M0304);
            used.operands = vec![held.object.clone(), held.amount.clone()];
            used.context = true;
            used
        });
        uses.collect()
    }
}
