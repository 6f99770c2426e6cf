//! Computation of endorsed values in read-only phases before all others (MixT §6.2).
//!
//! # `isolated` transactions
//!
//! The runtime orders `isolated` transactions by the records that they leave at each visited store:
//! write witnesses and read witnesses, which list the stores at which the transaction must still be
//! awaited. The runtime relies on three facts. A transaction visits each store once; two `isolated`
//! transactions visit the stores in the same order; a store detects any change to data that was
//! read there until the commit of that visit. If two transactions conflict, the one that comes
//! second at the first store of the conflict finds the other's witness there, and waits for it at
//! each later store. It cannot have visited a later store before.
//!
//! None of these facts depends on levels. A transaction that reads a weaker store for an
//! endorsement visits that store first, in a phase that reads and leaves read witnesses, and its
//! order of visits begins with that store. So it keeps the first fact exactly if it does not visit
//! the store again, which is M0403 ([`Analysis::check_visits`]). The runtime checks the second fact
//! for all `isolated` transactions of a program, phase by phase, with any store first for an
//! endorsement. The third fact follows from the runtime's requirements on stores
//! (`Runtime::check_plan` checks both).
//!
//! Read witnesses cannot make a second visit sound. Suppose T reads W for an endorsement, writes A,
//! then B, and visits W again. U writes B and has not visited A. If U writes at W between T's
//! visits, U comes after T's first visit and must come before the second, so U must wait there for
//! T. T, which is decided, finds U's row at B and must wait for U at W. Neither can give up.
//! Reading the endorsed values again, as part of the second visit, does not help either: it comes
//! after the first commit.

use std::collections::HashMap;

use super::Analysis;
use crate::diagnostic::{Diagnostics, m0402, m0403, m0404, w0403};
use crate::flat::{Access, Flat, Kind, Operand, ReadKind, Stmt, StmtId, WriteKind};
use crate::hir::{ObjectId, StoreId};

/// The statements that endorsed values depend on, by id; empty if there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    pub(crate) statements: Vec<bool>,
}

impl Slice {
    pub(crate) fn contains(&self, stmt: StmtId) -> bool {
        self.statements.get(stmt.index()).copied().unwrap_or(false)
    }
}

impl Analysis<'_> {
    /// The statements that endorsed values depend on.
    pub(super) fn endorsed_slice(&self) -> Slice {
        let live = self.live_endorsements();
        if live.is_empty() { Slice::default() } else { self.slice(live.iter().map(|(id, _)| *id)) }
    }

    fn live_endorsements(&self) -> Vec<(StmtId, u32)> {
        let endorsed = self.flat.live_statements().filter_map(|(id, stmt)| match stmt.kind {
            Kind::Endorse { endorsement, .. } => Some((id, endorsement)),
            _ => None,
        });
        endorsed.collect()
    }

    /// Returns the endorsements without dependents.
    pub(super) fn unused_endorsements(&self) -> impl Iterator<Item = StmtId> + '_ {
        let all = self.flat.statements.iter().enumerate();
        let is_unused = |(index, stmt): &(usize, &Stmt)| {
            !self.flat.live[*index] && matches!(stmt.kind, Kind::Endorse { .. })
        };
        all.filter(is_unused).map(|(index, _)| StmtId(index as u32))
    }

    /// Returns the analysis with true provenance: endorsements inside are ignored.
    pub(super) fn with_true_sources(&self) -> Self {
        let stores_only = self.store_sources();
        let own = |stmt: &Kind| self.own_sources(stmt) & stores_only;
        let sources = self.graph.spread(self.flat, own, true);
        let contexts = self.contexts_with(&sources);
        Self {
            flat: self.flat,
            program: self.program,
            transaction: self.transaction,
            rules: self.rules,
            stores: self.stores.clone(),
            weak: self.weak.clone(),
            graph: self.graph.clone(),
            returns: self.returns.clone(),
            sources,
            contexts,
        }
    }

    /// Returns the endorsements that the transaction does not need to keep all rules.
    pub(super) fn needless_endorsements(&self) -> Vec<StmtId> {
        let live = self.live_endorsements();
        if live.is_empty() {
            return Vec::new();
        }
        let truth = self.with_true_sources().sources;
        let needs = self.check(None, &mut Diagnostics::default());
        let is_needed = |(id, endorsement): &(StmtId, u32)| {
            let Kind::Endorse { src, .. } = &self.flat.get(*id).kind else { return false };
            let truth = src.slot().map_or(0, |slot| truth[slot.index()]);
            let bit = self.endorsement_bit(*endorsement);
            needs.endorsed.iter().any(|(endorsed, target)| {
                endorsed & bit != 0 && self.weaker_than(truth, *target) != 0
            })
        };
        let needless = live.iter().filter(|found| !is_needed(found)).map(|(id, _)| *id);
        self.without_cycles(needless.collect())
    }

    /// Returns the needless endorsements whose removal leaves no cycle among stores.
    fn without_cycles(&self, needless: Vec<StmtId>) -> Vec<StmtId> {
        let has_order = |left_out: &[StmtId]| {
            let flat = without(self.flat.clone(), left_out);
            let analysis = Analysis::new(self.program, self.transaction, &flat, self.rules);
            let analysis = analysis.expect("it has no more stores than before");
            let mut found = Diagnostics::default();
            let needs = analysis.check(None, &mut Diagnostics::default());
            analysis.visiting_order(&needs, &mut found);
            !found.has_errors()
        };
        if needless.is_empty() || has_order(&needless) || !has_order(&[]) {
            return needless;
        }
        let mut left_out = Vec::new();
        for id in needless {
            left_out.push(id);
            if !has_order(&left_out) {
                left_out.pop();
            }
        }
        left_out
    }

    /// W0403: an endorsement that is not needed.
    pub(super) fn warn_of_needless(&self, id: StmtId, diagnostics: &mut Diagnostics) {
        let Kind::Endorse { endorsement, .. } = self.flat.get(id).kind else { return };
        let info = &self.flat.endorsements[endorsement as usize];
        diagnostics.push(w0403::render(info.span, self.levels().name(info.level)));
    }

    /// M0403: an `isolated` transaction visits each store once, before or after the endorsements.
    pub(super) fn check_visits(&self, slice: &Slice, diagnostics: &mut Diagnostics) {
        let Some(isolated) = self.transaction.isolated else { return };
        for store in &self.stores {
            let visit = |is_early: bool| {
                self.flat.live_statements().find(|(id, stmt)| {
                    slice.contains(*id) == is_early && stmt.store() == Some(*store)
                })
            };
            if let (Some((_, early)), Some((_, late))) = (visit(true), visit(false)) {
                let place = self.store_words(*store);
                diagnostics.push(m0403::render(late.span, early.span, isolated, &place));
            }
        }
    }

    /// M0404: a value read early decides a branch or loop around an endorsement. If the value has
    /// changed when its own phase reads it, the transaction restarts; it can restart only up to its
    /// first commit.
    pub(super) fn check_agreements(&self, order: &[StoreId], diagnostics: &mut Diagnostics) {
        let written = self.written_stores();
        let Some(first) = order.iter().position(|store| written.contains(store)) else { return };
        for (id, stmt) in self.flat.live_statements() {
            let Kind::Agree { late, value_span, .. } = &stmt.kind else { continue };
            let sources = self.operand_sources(late) | self.contexts[id.index()];
            let place = |store: &StoreId| order.iter().position(|found| found == store);
            let later = self.stores_in(sources).find(|store| place(store) > Some(first));
            if let Some(later) = later {
                let (later, first) = (self.store_words(later), self.store_words(order[first]));
                diagnostics.push(m0404::render(*value_span, &later, &first));
            }
        }
    }

    /// M0404: reads for an endorsement run even if the program would have returned before them, so
    /// they must not fail or loop forever in that case.
    pub(super) fn check_returns(&self, slice: &Slice, diagnostics: &mut Diagnostics) {
        for (id, stmt) in self.flat.live_statements() {
            let is_total = match &stmt.kind {
                Kind::While { head, .. } => {
                    !slice.contains(id) && !head.iter().any(|id| slice.contains(*id))
                }
                Kind::Read(access) if slice.contains(id) => self.is_total(access),
                _ => true,
            };
            if is_total {
                continue;
            }
            let may_differ = |around| {
                let condition = self.condition_of(around).and_then(Operand::slot);
                condition.is_some_and(|slot| self.sources[slot.index()] != 0)
            };
            let mut returns = self.returns_before(id);
            if let Some(found) = returns.find(|id| self.flat.ancestors(*id).any(may_differ)) {
                let span = self.flat.get(found).span;
                diagnostics.push(m0404::render_behind_return(stmt.span, span));
            }
        }
    }

    /// Returns everything that the sources of these statements depend on, including conditions.
    fn slice(&self, endorsements: impl Iterator<Item = StmtId>) -> Slice {
        let mut defs: Vec<Vec<StmtId>> = vec![Vec::new(); self.flat.slots.len()];
        for (id, stmt) in self.flat.live_statements() {
            for dst in stmt.dsts() {
                defs[dst.index()].push(id);
            }
        }
        let mut statements = vec![false; self.flat.statements.len()];
        let mut queue: Vec<StmtId> = endorsements.collect();
        while let Some(id) = queue.pop() {
            if std::mem::replace(&mut statements[id.index()], true) {
                continue;
            }
            for operand in
                self.flat.get(id).operands().into_iter().filter_map(crate::flat::Operand::slot)
            {
                queue.extend(defs[operand.index()].iter().copied());
            }
            queue.extend(self.flat.get(id).parent);
        }
        Slice { statements }
    }

    /// Checks the rule for early statements: they see no writes (M0402). Returns true if it is
    /// kept.
    pub(super) fn check_slice(&self, slice: &Slice, diagnostics: &mut Diagnostics) -> bool {
        let errors = diagnostics.errors;
        self.check_no_takes(slice, diagnostics);
        let writes = self.writes_by_place();
        for (read, stmt) in self.flat.live_statements().filter(|(id, _)| slice.contains(*id)) {
            let (store, kind) = match &stmt.kind {
                // Each draw gives another number, so the object would get another key.
                Kind::Read(Access { kind: ReadKind::Draw(..), .. }) => {
                    diagnostics.push(m0402::render(stmt.span, stmt.span));
                    continue;
                }
                Kind::Read(access) => (access.store, &access.kind),
                // The result of a command would be needed before any write is allowed.
                Kind::Write(_) => {
                    diagnostics.push(m0402::render(stmt.span, stmt.span));
                    continue;
                }
                _ => continue,
            };
            let places = Place::read_by(kind);
            let found = places.filter_map(|place| writes.get(&(store, place)));
            if let Some(write) = found.filter_map(|writes| self.earlier_write(read, writes)).min() {
                diagnostics.push(m0402::render(stmt.span, self.flat.get(write).span));
            }
        }
        diagnostics.errors == errors
    }

    /// Returns all writes in program order, grouped by the place that they may change: comparing
    /// each read with each write is too slow for programs with thousands of them.
    fn writes_by_place(&self) -> HashMap<(StoreId, Place), Vec<StmtId>> {
        let mut writes: HashMap<_, Vec<StmtId>> = HashMap::new();
        for (id, stmt) in self.flat.live_statements() {
            if let Kind::Write(access) = &stmt.kind {
                for place in Place::written_by(&access.kind) {
                    writes.entry((access.store, place)).or_default().push(id);
                }
            }
        }
        writes
    }

    /// Returns the first of the writes that precedes a read: earlier in the program, or in a loop
    /// around both.
    pub(super) fn earlier_write(&self, read: StmtId, writes: &[StmtId]) -> Option<StmtId> {
        let is_loop =
            |id: &StmtId| matches!(self.flat.get(*id).kind, Kind::While { .. } | Kind::For { .. });
        let loops: Vec<StmtId> = self.flat.ancestors(read).filter(is_loop).collect();
        let candidates = writes.iter().take_while(|write| **write < read || !loops.is_empty());
        candidates.copied().find(|write| {
            (*write < read
                && !self.exclude_each_other(*write, read)
                && !self.returns_between(*write, read))
                || self.flat.ancestors(*write).any(|around| loops.contains(&around))
        })
    }
}

impl Analysis<'_> {
    /// True if a statement is in a branch that returns before control reaches a later statement.
    fn returns_between(&self, earlier: StmtId, later: StmtId) -> bool {
        let mut inner = earlier;
        for around in self.flat.ancestors(earlier) {
            if self.flat.ancestors(later).any(|id| id == around) {
                return false;
            }
            let mut blocks = self.flat.get(around).blocks().into_iter();
            if blocks.any(|block| block.contains(&inner) && self.always_returns(block)) {
                return true;
            }
            inner = around;
        }
        false
    }

    fn always_returns(&self, block: &[StmtId]) -> bool {
        block.iter().any(|id| match &self.flat.get(*id).kind {
            Kind::Return { .. } => true,
            Kind::If { then_block, else_block, .. } => {
                self.always_returns(then_block) && self.always_returns(else_block)
            }
            _ => false,
        })
    }
}

/// Returns the transaction with some endorsements replaced by copies of their values.
pub(super) fn without(mut flat: Flat, endorsements: &[StmtId]) -> Flat {
    for id in endorsements {
        let stmt = &mut flat.statements[id.index()];
        if let Kind::Endorse { dst, src, .. } = &stmt.kind {
            stmt.kind = Kind::Copy { dst: *dst, src: src.clone() };
        }
    }
    flat
}

/// The place that a write may change, as the key for lookups by reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// A field of a kind, by name.
    Field(ObjectId, u16),
    /// All fields of a kind.
    Fields(ObjectId),
    /// Anything of a kind.
    Kind(ObjectId),
    /// Everything that a command may reach.
    Everything,
    /// Anything in the store.
    Store,
}

impl Place {
    fn written_by(write: &WriteKind) -> Vec<Self> {
        match write {
            WriteKind::Assign(kind, field) | WriteKind::Collection(kind, field, _) => {
                vec![Self::Field(*kind, *field), Self::Kind(*kind), Self::Store]
            }
            WriteKind::Delete(kind) | WriteKind::Create(kind, _) => {
                vec![Self::Fields(*kind), Self::Kind(*kind), Self::Store]
            }
            WriteKind::Command(_) => vec![Self::Everything, Self::Store],
        }
    }

    fn read_by(read: &ReadKind) -> impl Iterator<Item = Self> {
        let places = match read.place() {
            Some((kind, Some(field))) => {
                vec![Self::Field(kind, field), Self::Fields(kind), Self::Everything]
            }
            Some((kind, None)) => vec![Self::Kind(kind), Self::Everything],
            None => vec![Self::Store],
        };
        places.into_iter()
    }
}
