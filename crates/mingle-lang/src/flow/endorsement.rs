//! What endorsements depend on: it is computed in read-only phases before all others (MixT §6.2).

use super::rules::Needs;
use super::{Analysis, Sources};
use crate::diagnostic::{Diagnostics, m0402, w0403};
use crate::flat::{Kind, ReadKind, StmtId};

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

    /// The same analysis with true provenance: an endorsement inside does not count.
    pub(super) fn with_true_sources(&self) -> Self {
        let stores_only = (1 << self.stores.len()) - 1;
        let own = |stmt: &Kind| self.own_sources(stmt) & stores_only;
        let sources = self.graph.spread(self.flat, own, true);
        let contexts = self.contexts_with(&sources);
        Self {
            flat: self.flat,
            program: self.program,
            transaction: self.transaction,
            rules: self.rules,
            stores: self.stores.clone(),
            graph: self.graph.clone(),
            returns: self.returns.clone(),
            sources,
            contexts,
        }
    }

    /// The rules about endorsements themselves.
    pub(super) fn check_endorsements(
        &self,
        truth: &Self,
        slice: &Slice,
        needs: &Needs,
        diagnostics: &mut Diagnostics,
    ) {
        self.warn_of_needless(&self.live_endorsements(), &truth.sources, needs, diagnostics);
        self.check_slice(slice, diagnostics);
    }

    /// W0403: what needs no endorsement.
    fn warn_of_needless(
        &self,
        live: &[(StmtId, u32)],
        sources: &[Sources],
        needs: &Needs,
        diagnostics: &mut Diagnostics,
    ) {
        for (id, endorsement) in live {
            let Kind::Endorse { src, .. } = &self.flat.get(*id).kind else { continue };
            let truth = src.slot().map_or(0, |slot| sources[slot.index()]);
            let bit = self.endorsement_bit(*endorsement);
            let needed = needs.endorsed.iter().any(|(endorsed, target)| {
                endorsed & bit != 0 && self.weaker_than(truth, *target) != 0
            });
            if !needed {
                let info = &self.flat.endorsements[*endorsement as usize];
                diagnostics.push(w0403::render(info.span, self.levels().name(info.level)));
            }
        }
    }

    /// Everything that the sources of these statements depend on, conditions included.
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

    /// The rules for what is computed before all others: no writes are seen (M0402).
    fn check_slice(&self, slice: &Slice, diagnostics: &mut Diagnostics) {
        for (read, stmt) in self.flat.live_statements().filter(|(id, _)| slice.contains(*id)) {
            let (store, kind) = match &stmt.kind {
                Kind::Read(access) => (access.store, access.kind.clone()),
                // A command's result is wanted before anything may be written.
                Kind::Write(_) => {
                    diagnostics.push(m0402::render(stmt.span, stmt.span));
                    continue;
                }
                _ => continue,
            };
            if let Some(write) = self.earlier_write(read, store, &kind) {
                diagnostics.push(m0402::render(stmt.span, self.flat.get(write).span));
            }
        }
    }

    /// A write that the read may see: earlier in the program, or in a loop around both.
    fn earlier_write(
        &self,
        read: StmtId,
        store: crate::hir::StoreId,
        kind: &ReadKind,
    ) -> Option<StmtId> {
        let is_loop =
            |id: &StmtId| matches!(self.flat.get(*id).kind, Kind::While { .. } | Kind::For { .. });
        let loops: Vec<StmtId> = self.flat.ancestors(read).filter(is_loop).collect();
        let mut writes = self.flat.live_statements().filter(|(_, stmt)| match &stmt.kind {
            Kind::Write(access) => access.store == store && access.kind.may_change(kind),
            _ => false,
        });
        let found = writes.find(|(write, _)| {
            (*write < read && !self.exclude_each_other(*write, read))
                || self.flat.ancestors(*write).any(|around| loops.contains(&around))
        });
        found.map(|(id, _)| id)
    }
}
