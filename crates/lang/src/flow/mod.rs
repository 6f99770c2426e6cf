//! Information flow: the stores whose data influenced each value (MixT §4.3, §5.2), and the order
//! in which a transaction visits its stores.
//!
//! The analysis computes the provenance of every slot by spreading sources along the edges of the
//! flattened transaction: from operands to results, and from conditions to the values that they
//! merge. It then checks each effect against the rules of the reference, and searches paths only
//! for effects that break one.

mod advice;
mod answers;
mod bounded;
mod choice;
mod endorsement;
mod graph;
mod order;
mod path;
mod rules;

use mingle_model::{LevelId, Levels};

use crate::diagnostic::Diagnostics;
use crate::flat::{Access, Flat, Kind, ReadKind, Separated, Slot, StmtId, separate};
use crate::hir::{Program, StoreId, Transaction};
use crate::ops::Op;

pub(crate) use choice::flatten;
pub(crate) use endorsement::Slice;
pub(crate) use graph::Graph;

/// A transaction has at most this many stores and endorsements together.
pub(crate) const SOURCES_MAX: usize = 128;

/// A set of sources: bit `i` stands for the transaction's `i`th store, or, beyond those, for what is
/// read at one of them as of a weaker level, or, beyond those, for an endorsement.
pub(crate) type Sources = u128;

/// One source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A store, at its own level.
    Store(StoreId),
    /// A store, as of a weaker level.
    Weak(StoreId, LevelId),
    /// An endorsement, by its index.
    Endorsement(usize),
}

/// The results of flow analysis for a transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// The stores that it visits, in visiting order.
    pub(crate) order: Vec<StoreId>,
    /// The statements that endorsements depend on.
    pub(crate) endorsed: Slice,
}

/// The flow rules; tests switch them off one by one to see that some test fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// M0301
    pub values: bool,
    /// M0302
    pub contexts: bool,
    /// M0303
    pub refs: bool,
    /// M0304, M0307
    pub failures: bool,
    /// M0306
    pub termination: bool,
    /// A `return` adds its context to the statements after it.
    pub returns: bool,
    /// A condition flows into the values that it merges.
    pub merges: bool,
    /// Endorsed data is read again for every other use.
    pub separation: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            values: true,
            contexts: true,
            refs: true,
            failures: true,
            termination: true,
            returns: true,
            merges: true,
            separation: true,
        }
    }
}

/// The data of one transaction's analysis.
pub(crate) struct Analysis<'a> {
    pub(crate) program: &'a Program,
    pub(crate) transaction: &'a Transaction,
    pub(crate) flat: &'a Flat,
    pub(crate) rules: Rules,
    /// The stores that it visits, in order of their declaration.
    pub(crate) stores: Vec<StoreId>,
    /// The stores that it reads as of a weaker level, in order.
    pub(crate) weak: Vec<(StoreId, LevelId)>,
    pub(crate) graph: Graph,
    /// Its `return`s.
    pub(crate) returns: Vec<StmtId>,
    /// Provenance of each slot.
    pub(crate) sources: Vec<Sources>,
    /// The context of each statement: the conditions around it, and the conditions of earlier
    /// `return`s.
    pub(crate) contexts: Vec<Sources>,
}

/// Checks the flow rules, and finds the order in which the transaction visits its stores.
///
/// Returns the transaction with the statements that endorsements depend on separated from all
/// others.
pub(crate) fn analyse(
    program: &Program,
    transaction: &Transaction,
    flat: Flat,
    rules: Rules,
    diagnostics: &mut Diagnostics,
) -> (Flat, Flow) {
    let analysis_of = |flat| Analysis::new(program, transaction, flat, rules);
    let Some(analysis) = analysis_of(&flat) else {
        let unfit = crate::diagnostic::m0204::Unfit::TooManySources { limit: SOURCES_MAX };
        diagnostics.push(crate::diagnostic::m0204::render(unfit, transaction.span));
        return (flat, Flow::default());
    };
    analysis.no_policies_if_isolated(diagnostics);
    analysis.no_holds_if_isolated(diagnostics);
    analysis.check_gifts(diagnostics);
    let needless = analysis.needless_endorsements();
    for id in needless.iter().copied().chain(analysis.unused_endorsements()) {
        analysis.warn_of_needless(id, diagnostics);
    }
    let flat = endorsement::without(flat.clone(), &needless);
    let analysis = analysis_of(&flat).expect("it has no more stores than before");
    let endorsed = analysis.endorsed_slice();
    if endorsed.statements.is_empty() {
        let needs = analysis.check(None, diagnostics);
        let order = analysis.visiting_order(&needs, diagnostics);
        return (flat, Flow { order, endorsed });
    }
    if !analysis.check_slice(&endorsed, diagnostics) || !rules.separation {
        let truth = analysis.with_true_sources();
        let needs = analysis.check(Some((&truth, &endorsed)), diagnostics);
        let order = analysis.visiting_order(&needs, diagnostics);
        return (flat, Flow { order, endorsed });
    }
    let varies = |slot| analysis.depends_on_stores(slot);
    let Separated { flat, slice } = separate(&flat, &endorsed.statements, &varies);
    let endorsed = Slice { statements: slice };
    let analysis = analysis_of(&flat).expect("it has no more stores than before");
    let truth = analysis.with_true_sources();
    let needs = analysis.check(Some((&truth, &endorsed)), diagnostics);
    let order = analysis.visiting_order(&needs, diagnostics);
    analysis.check_visits(&endorsed, diagnostics);
    analysis.check_agreements(&order, diagnostics);
    analysis.check_returns(&endorsed, diagnostics);
    (flat, Flow { order, endorsed })
}

impl<'a> Analysis<'a> {
    /// Spreads provenance; returns none if there are more sources than [`SOURCES_MAX`].
    pub(crate) fn new(
        program: &'a Program,
        transaction: &'a Transaction,
        flat: &'a Flat,
        rules: Rules,
    ) -> Option<Self> {
        let mut stores: Vec<StoreId> =
            flat.live_statements().filter_map(|(_, stmt)| stmt.store()).collect();
        stores.sort_unstable();
        stores.dedup();
        let weak = answers::weak_sources(program, flat);
        if stores.len() + weak.len() + flat.endorsements.len() > SOURCES_MAX {
            return None;
        }
        let graph = Graph::new(flat, rules.merges);
        let mut analysis = Self {
            program,
            transaction,
            flat,
            rules,
            stores,
            weak,
            graph,
            returns: flat
                .live_statements()
                .filter(|(_, stmt)| matches!(stmt.kind, Kind::Return { .. }))
                .map(|(id, _)| id)
                .collect(),
            sources: Vec::new(),
            contexts: Vec::new(),
        };
        analysis.sources = analysis.graph.spread(flat, |stmt| analysis.own_sources(stmt), false);
        analysis.contexts = analysis.contexts_with(&analysis.sources);
        Some(analysis)
    }
}

impl Analysis<'_> {
    pub(crate) fn levels(&self) -> &Levels {
        &self.program.levels
    }

    pub(crate) fn bit_of(&self, store: StoreId) -> Sources {
        1 << self.stores.binary_search(&store).expect("the transaction visits this store")
    }

    /// Returns the sources that are stores, at their own or a weaker level; the others are endorsements.
    pub(crate) fn store_sources(&self) -> Sources {
        let endorsements = Sources::BITS - (self.stores.len() + self.weak.len()) as u32;
        Sources::MAX.checked_shr(endorsements).unwrap_or(0)
    }

    pub(crate) fn endorsement_bit(&self, endorsement: u32) -> Sources {
        1 << (self.stores.len() + self.weak.len() + endorsement as usize)
    }

    /// True if a read has an answer for every state of its store.
    pub(crate) fn is_total(&self, read: &Access<ReadKind>) -> bool {
        match read.kind {
            ReadKind::Query(index) => {
                self.program.stores[read.store.index()].operations[index as usize].is_total()
            }
            ReadKind::Draw(..) => false,
            _ => true,
        }
    }

    /// True if a slot depends on data of stores, ignoring endorsed values.
    pub(crate) fn depends_on_stores(&self, slot: Slot) -> bool {
        self.sources[slot.index()] & self.store_sources() != 0
    }

    /// Returns the sources that a statement itself adds to the slots that it assigns.
    pub(crate) fn own_sources(&self, stmt: &Kind) -> Sources {
        match stmt {
            Kind::Read(access) => self.read_sources(access),
            Kind::Local { op: Op::IsOfLevel(_) | Op::AnswerOf(_), .. } => self.answer_sources(stmt),
            // A command's result is data of its store.
            Kind::Write(access) => self.bit_of(access.store),
            Kind::Endorse { endorsement, .. } => self.endorsement_bit(*endorsement),
            _ => 0,
        }
    }

    /// Returns the context of every statement, given the provenance of all slots.
    pub(crate) fn contexts_with(&self, sources: &[Sources]) -> Vec<Sources> {
        let mut contexts = vec![0; self.flat.statements.len()];
        self.block_contexts(&self.flat.body, 0, 0, sources, &mut contexts);
        contexts
    }

    /// Sets the contexts in a block; returns the context that its `return`s add to later
    /// statements.
    fn block_contexts(
        &self,
        block: &[StmtId],
        outer: Sources,
        returned: Sources,
        sources: &[Sources],
        contexts: &mut [Sources],
    ) -> Sources {
        let mut returned = returned;
        for id in block.iter().filter(|id| self.flat.live[id.index()]) {
            let stmt = self.flat.get(*id);
            let context = outer | returned;
            contexts[id.index()] = context;
            if matches!(stmt.kind, Kind::Return { .. }) && self.rules.returns {
                returned |= outer;
            }
            let blocks = stmt.blocks();
            if blocks.is_empty() {
                continue;
            }
            let inner = outer | Self::condition_sources(&stmt.kind, sources);
            let results: Vec<Sources> = blocks
                .iter()
                .map(|block| self.block_contexts(block, inner, returned, sources, contexts))
                .collect();
            returned = results.into_iter().fold(returned, |all, result| all | result);
        }
        returned
    }

    /// Returns the provenance of the condition under which the blocks of a statement run.
    pub(crate) fn condition_sources(stmt: &Kind, sources: &[Sources]) -> Sources {
        let condition = match stmt {
            Kind::If { condition, .. } | Kind::While { condition, .. } => condition,
            Kind::For { count, .. } => count,
            _ => return 0,
        };
        condition.slot().map_or(0, |slot| sources[slot.index()])
    }

    /// Returns the sources in `sources` that are not at least as strong as `target`.
    pub(crate) fn weaker_than(&self, sources: Sources, target: StoreId) -> Sources {
        let target = self.program.level_of(target);
        bits(sources)
            .filter(|bit| !self.levels().is_at_least(self.level_of(*bit), target))
            .fold(0, |all, bit| all | 1 << bit)
    }

    /// Returns the level of a source.
    pub(crate) fn level_of(&self, bit: usize) -> LevelId {
        match self.source_at(bit) {
            Source::Store(store) => self.program.level_of(store),
            Source::Weak(_, level) => level,
            Source::Endorsement(index) => self.flat.endorsements[index].level,
        }
    }

    /// Returns the source that a bit stands for.
    pub(crate) fn source_at(&self, bit: usize) -> Source {
        if let Some(store) = self.stores.get(bit) {
            return Source::Store(*store);
        }
        let bit = bit - self.stores.len();
        match self.weak.get(bit) {
            Some((store, level)) => Source::Weak(*store, *level),
            None => Source::Endorsement(bit - self.weak.len()),
        }
    }

    /// Returns the stores in a set of sources.
    pub(crate) fn stores_in(&self, sources: Sources) -> impl Iterator<Item = StoreId> + '_ {
        bits(sources).filter_map(|bit| match self.source_at(bit) {
            Source::Store(store) | Source::Weak(store, _) => Some(store),
            Source::Endorsement(_) => None,
        })
    }
}

/// Returns the set bits, lowest first.
pub(crate) fn bits(mut sources: Sources) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if sources == 0 {
            return None;
        }
        let bit = sources.trailing_zeros() as usize;
        sources &= sources - 1;
        Some(bit)
    })
}
