//! The flow rules: which data may influence which effects.

use std::collections::HashSet;

use super::{Analysis, Sources};
use crate::diagnostic::{Code, Diagnostics, m0305, w0502, w0503};
use crate::flat::{Access, Kind, Operand, ReadKind, Slot, Stmt, StmtId, WriteKind};
use crate::hir::StoreId;
use crate::ops::Op;
use crate::syntax::Span;

/// One store must be visited before another.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub(crate) before: StoreId,
    pub(crate) after: StoreId,
    /// The use of the first store's data that requires this order.
    pub(crate) by: Use,
}

/// A use of data that a rule restricts.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) stmt: StmtId,
    /// The store that is reached.
    pub(crate) target: StoreId,
    pub(crate) code: Code,
    /// The operands whose provenance counts.
    pub(crate) operands: Vec<(Operand, Span)>,
    /// True if the context counts.
    pub(crate) context: bool,
    /// The statement's own store counts too.
    pub(crate) own: Option<StoreId>,
}

impl Use {
    pub(super) fn new(stmt: StmtId, target: StoreId, code: Code) -> Self {
        Self { stmt, target, code, operands: Vec::new(), context: false, own: None }
    }
}

/// The order that a transaction requires of its stores, and the endorsements that it used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) needs: Vec<Need>,
    /// Endorsed sources and the stores that they reached.
    pub(crate) endorsed: Vec<(Sources, StoreId)>,
}

impl Analysis<'_> {
    /// Checks every effect against the rules.
    ///
    /// Effects that endorsements depend on are checked with their true provenance, in `truth`.
    pub(super) fn check(
        &self,
        truth: Option<(&Self, &super::Slice)>,
        diagnostics: &mut Diagnostics,
    ) -> Needs {
        let mut checking = Checking {
            analysis: self,
            is_early: false,
            written: self.written_stores(),
            reported: HashSet::new(),
            seen: HashSet::new(),
            needs: Needs::default(),
            diagnostics,
        };
        for (id, stmt) in self.flat.live_statements() {
            checking.analysis = match truth {
                Some((truth, slice)) if slice.contains(id) => truth,
                _ => self,
            };
            checking.is_early = truth.is_some_and(|(_, slice)| slice.contains(id));
            checking.statement(id, stmt);
        }
        let needs = checking.needs;
        self.warn_of_torn_writes(diagnostics);
        needs
    }

    pub(crate) fn written_stores(&self) -> Vec<StoreId> {
        let writes = self.flat.live_statements().filter_map(|(_, stmt)| match &stmt.kind {
            Kind::Write(access) => Some(access.store),
            _ => None,
        });
        let mut stores: Vec<StoreId> = writes.collect();
        stores.sort_unstable();
        stores.dedup();
        stores
    }

    pub(crate) fn operand_sources(&self, operand: &Operand) -> Sources {
        operand.slot().map_or(0, |slot| self.sources[slot.index()])
    }

    pub(crate) fn use_sources(&self, used: &Use) -> Sources {
        let operands =
            used.operands.iter().fold(0, |all, (operand, _)| all | self.operand_sources(operand));
        let context = if used.context { self.contexts[used.stmt.index()] } else { 0 };
        operands | context | used.own.map_or(0, |store| self.bit_of(store))
    }

    /// W0502: two writes at a store without atomic commit that one run may make.
    fn warn_of_torn_writes(&self, diagnostics: &mut Diagnostics) {
        let eventual = self.levels().find("eventual");
        let mut pair = None;
        self.scan_torn(&self.flat.body, eventual, None, &mut pair);
        if let Some((first, second)) = pair {
            diagnostics.push(w0502::render(self.flat.get(second).span, self.flat.get(first).span));
        }
    }

    /// Finds the first pair of writes at a level that one run may both make; gives some write of
    /// the block, or the one before it.
    fn scan_torn(
        &self,
        block: &[StmtId],
        level: Option<mingle_model::LevelId>,
        mut earlier: Option<StmtId>,
        pair: &mut Option<(StmtId, StmtId)>,
    ) -> Option<StmtId> {
        for id in block.iter().filter(|id| self.flat.live[id.index()]) {
            let stmt = self.flat.get(*id);
            if let Kind::Write(access) = &stmt.kind
                && Some(self.program.level_of(access.store)) == level
                && !self.is_bounded(&access.kind)
            {
                if let Some(first) = earlier {
                    *pair = pair.or(Some((first, *id)));
                }
                earlier = earlier.or(Some(*id));
            }
            let inner: Vec<Option<StmtId>> = stmt
                .blocks()
                .iter()
                .map(|block| self.scan_torn(block, level, earlier, pair))
                .collect();
            earlier = earlier.or(inner.into_iter().flatten().next());
        }
        earlier
    }

    /// True if two statements stand in different branches of one `if`.
    pub(crate) fn exclude_each_other(&self, a: StmtId, b: StmtId) -> bool {
        let line = |id: StmtId| -> Vec<StmtId> {
            let mut line: Vec<StmtId> =
                std::iter::once(id).chain(self.flat.ancestors(id)).collect();
            line.reverse();
            line
        };
        let (a, b) = (line(a), line(b));
        let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let (Some(a), Some(b)) = (a.get(common), b.get(common)) else { return false };
        let parent = self.flat.get(*a).parent;
        let Some(Kind::If { then_block, else_block, .. }) =
            parent.map(|id| &self.flat.get(id).kind)
        else {
            return false;
        };
        then_block.contains(a) && else_block.contains(b)
            || else_block.contains(a) && then_block.contains(b)
    }
}

struct Checking<'a, 'd> {
    analysis: &'a Analysis<'a>,
    /// True if the statement serves an endorsement: it runs before anything is written.
    is_early: bool,
    written: Vec<StoreId>,
    /// One diagnostic for each statement, target and code.
    reported: HashSet<(u32, StoreId, Code)>,
    /// Needs of the order, each once.
    seen: HashSet<(StoreId, StoreId)>,
    needs: Needs,
    diagnostics: &'d mut Diagnostics,
}

impl Checking<'_, '_> {
    fn statement(&mut self, id: StmtId, stmt: &Stmt) {
        match &stmt.kind {
            // The write after it has the same object, values and context.
            Kind::Read(Access { kind: ReadKind::Free { .. } | ReadKind::Indexed(..), .. }) => {}
            Kind::Read(access) => {
                let object_code = if matches!(access.kind, ReadKind::ExistsForNew(_)) {
                    Code::M0301
                } else {
                    Code::M0303
                };
                self.effect(id, access, object_code, Code::M0301);
                if !self.is_early && !self.analysis.is_total(access) {
                    let is_draw = matches!(access.kind, ReadKind::Draw(..));
                    let code = if is_draw { Code::M0304 } else { Code::M0307 };
                    self.operation(id, access, code);
                }
            }
            Kind::Write(access) => {
                let object_code = if matches!(access.kind, WriteKind::Create(..)) {
                    Code::M0301
                } else {
                    Code::M0303
                };
                self.effect(id, access, object_code, Code::M0301);
                if matches!(access.kind, WriteKind::Command(_)) {
                    self.operation(id, access, Code::M0307);
                }
            }
            Kind::Require { condition, condition_span, message, message_span, .. }
                if self.analysis.rules.failures =>
            {
                self.warn_of_uniqueness(stmt);
                for target in self.written.clone() {
                    let mut used = Use::new(id, target, Code::M0304);
                    used.operands = vec![
                        (condition.clone(), *condition_span),
                        (message.clone(), *message_span),
                    ];
                    used.context = true;
                    self.hold(used);
                }
            }
            Kind::Hold(held) if self.analysis.rules.failures => {
                for used in self.analysis.uses_of_hold(id, held) {
                    self.hold(used);
                }
            }
            Kind::While { condition, condition_span, .. }
                if self.analysis.rules.termination && !self.is_early =>
            {
                for target in self.written.clone() {
                    let mut used = Use::new(id, target, Code::M0306);
                    used.operands = vec![(condition.clone(), *condition_span)];
                    used.context = true;
                    self.hold(used);
                }
            }
            _ => {}
        }
    }

    /// M0307: an operation of a store that may fail. M0304: the draw of a key, which may fail, too.
    fn operation<K>(&mut self, id: StmtId, access: &Access<K>, code: Code) {
        if !self.analysis.rules.failures {
            return;
        }
        for target in self.written.clone() {
            let mut used = Use::new(id, target, code);
            used.operands.clone_from(&access.args);
            used.context = true;
            used.own = Some(access.store);
            self.hold(used);
        }
    }

    /// W0503: checking that an object does not exist cannot stop other transactions from creating
    /// it.
    fn warn_of_uniqueness(&mut self, stmt: &Stmt) {
        let Kind::Require { condition, check, .. } = &stmt.kind else { return };
        let Some(store) = condition.slot().and_then(|slot| self.analysis.negated_exists(slot))
        else {
            return;
        };
        let (levels, level) = (self.analysis.levels(), self.analysis.program.level_of(store));
        let promises =
            levels.find("snapshot").is_some_and(|snapshot| levels.is_at_least(level, snapshot));
        if !promises {
            let place = self.analysis.store_words(store);
            self.diagnostics.push(w0503::render(stmt.span, &place, check.is_some()));
        }
    }

    fn effect<K>(
        &mut self,
        id: StmtId,
        access: &Access<K>,
        object_code: Code,
        argument_code: Code,
    ) {
        let rules = self.analysis.rules;
        if rules.values {
            let mut used = Use::new(id, access.store, argument_code);
            used.operands.clone_from(&access.args);
            if object_code == argument_code {
                used.operands.extend(access.object.clone());
            }
            self.hold(used);
        }
        if rules.contexts {
            let mut used = Use::new(id, access.store, Code::M0302);
            used.context = true;
            self.hold(used);
        }
        if rules.refs && object_code != argument_code {
            let mut used = Use::new(id, access.store, object_code);
            used.operands.extend(access.object.clone());
            self.hold(used);
        }
    }

    /// Checks one use against the rule, and records the order that it requires.
    fn hold(&mut self, used: Use) {
        let analysis = self.analysis;
        let sources = analysis.use_sources(&used);
        if sources == 0 {
            return;
        }
        let endorsed = sources & !analysis.store_sources();
        if endorsed != 0 {
            self.needs.endorsed.push((endorsed, used.target));
        }
        let weaker = analysis.weaker_than(sources, used.target);
        if weaker != 0 {
            let source = analysis.flat.get(used.stmt).source;
            // A value that was read through a weaker ref is that mistake again.
            let is_consequence = used.code == Code::M0301
                && self.reported.contains(&(source, used.target, Code::M0303));
            let is_new = self.reported.insert((source, used.target, used.code));
            if is_new && !is_consequence && !self.diagnostics.is_full() {
                let diagnostic = analysis.flow_error(&used, weaker);
                self.diagnostics.push_distinct(diagnostic);
            }
            return;
        }
        for before in analysis.stores_in(sources) {
            if before != used.target && self.seen.insert((before, used.target)) {
                self.needs.needs.push(Need { before, after: used.target, by: used.clone() });
            }
        }
    }
}

impl Analysis<'_> {
    /// Returns the store of the object whose absence a slot states.
    fn negated_exists(&self, slot: Slot) -> Option<StoreId> {
        let defined = |slot: Slot| self.graph.definition(slot).map(|id| self.flat.get(id));
        let Kind::Local { op: Op::Not, args, .. } = &defined(slot)?.kind else { return None };
        match &defined(args[0].slot()?)?.kind {
            Kind::Read(Access {
                kind: ReadKind::Exists(_) | ReadKind::ExistsForNew(_),
                store,
                ..
            }) => Some(*store),
            _ => None,
        }
    }

    /// M0305: two stores that need each other's data.
    pub(super) fn cycle_error(&self, there: &Need, back: &Need) -> crate::diagnostic::Diagnostic {
        let name = |store: StoreId| self.program.stores[store.index()].name.to_string();
        let level = self.levels().name(self.program.level_of(there.before)).to_string();
        let there_path = self.path_labels(&there.by, self.bit_of(there.before));
        let back_path = self.path_labels(&back.by, self.bit_of(back.before));
        let span = self.flat.get(back.by.stmt).span;
        m0305::render(span, &name(there.before), &name(there.after), &level, there_path, back_path)
    }
}
