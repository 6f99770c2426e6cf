//! What endorsements depend on: it is computed in read-only phases before all others (MixT §6.2).

use std::collections::HashMap;

use super::rules::Needs;
use super::{Analysis, Sources};
use crate::diagnostic::{Diagnostics, m0402, w0403};
use crate::flat::{Kind, ReadKind, StmtId, WriteKind};
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
        if slice.statements.is_empty() {
            return;
        }
        let writes = self.writes_by_place();
        for (read, stmt) in self.flat.live_statements().filter(|(id, _)| slice.contains(*id)) {
            let (store, kind) = match &stmt.kind {
                Kind::Read(access) => (access.store, &access.kind),
                // A command's result is wanted before anything may be written.
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
    }

    /// All writes, in program order, by what they may change: a program of many thousand reads and
    /// writes has no time to compare each with each.
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

    /// The first of some writes that comes before a read: earlier in the program, or in a loop
    /// around both.
    fn earlier_write(&self, read: StmtId, writes: &[StmtId]) -> Option<StmtId> {
        let is_loop =
            |id: &StmtId| matches!(self.flat.get(*id).kind, Kind::While { .. } | Kind::For { .. });
        let loops: Vec<StmtId> = self.flat.ancestors(read).filter(is_loop).collect();
        let candidates = writes.iter().take_while(|write| **write < read || !loops.is_empty());
        candidates.copied().find(|write| {
            (*write < read && !self.exclude_each_other(*write, read))
                || self.flat.ancestors(*write).any(|around| loops.contains(&around))
        })
    }
}

/// What a write may change, as reads look for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// A field of a kind, by name.
    Field(ObjectId, u16),
    /// All fields of a kind.
    Fields(ObjectId),
    /// Anything of a kind.
    Kind(ObjectId),
    /// All that a command may reach.
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
