//! The path of a flow: from the read of weaker data to its use at a stronger store.

use std::collections::HashMap;

use super::graph::{Edge, EdgeKind};
use super::rules::Use;
use super::{Analysis, Source, Sources, bits};
use crate::diagnostic::{Code, Diagnostic, Label, flow as words};
use crate::flat::{Access, Check, Kind, Operand, ReadKind, Slot, StmtId};
use crate::hir::StoreId;
use crate::syntax::Span;

/// The way in which data reached the use at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// As an operand.
    Operand,
    /// As the condition of a statement around it.
    Around(StmtId),
    /// As the condition of a `return` before it.
    Returned(StmtId),
    /// It is the statement's own store.
    Own,
}

/// A way from a source to a use.
struct Path {
    /// The slot that the source fills; none if the source is the statement's own store.
    from: Option<Slot>,
    /// The steps, in the order of the flow.
    edges: Vec<Edge>,
    arrival: Arrival,
}

impl Analysis<'_> {
    /// The diagnostic of a use that breaks a rule, with the path from each weaker source.
    pub(super) fn flow_error(&self, used: &Use, weaker: Sources) -> Diagnostic {
        let mut labels: Vec<Label> = Vec::new();
        labels.extend(self.unique_label(used));
        for bit in bits(weaker) {
            for label in self.path_labels(used, 1 << bit) {
                if !labels.contains(&label) {
                    labels.push(label);
                }
            }
        }
        let weakest = bits(weaker).next().expect("some source is weaker");
        let (level, reached) = (self.level_of(weakest), self.program.level_of(used.target));
        let source = self.source_words(weakest);
        let target = self.store_words(used.target);
        let span = self.flat.get(used.stmt).span;
        let fact = words::Fact {
            source,
            target,
            is_incomparable: !self.levels().is_at_least(reached, level),
            is_read: matches!(self.flat.get(used.stmt).kind, Kind::Read(_)),
            failing: self.failing(used.stmt),
            labels,
            span,
        };
        let mut diagnostic = match used.code {
            Code::M0301 => crate::diagnostic::m0301::render(fact),
            Code::M0302 => crate::diagnostic::m0302::render(fact),
            Code::M0303 => crate::diagnostic::m0303::render(fact),
            Code::M0304 => crate::diagnostic::m0304::render(fact),
            Code::M0306 => crate::diagnostic::m0306::render(fact),
            _ => crate::diagnostic::m0307::render(fact),
        };
        diagnostic.help = self.advice(used, weaker);
        diagnostic
    }

    /// Describes a statement that may fail.
    fn failing(&self, stmt: StmtId) -> String {
        match &self.flat.get(stmt).kind {
            Kind::Require { check: Some(Check::New(_)), .. }
            | Kind::Read(Access { kind: ReadKind::Draw(..), .. }) => "this `new`".into(),
            Kind::Require { check: Some(Check::Unique { kind, index, .. }), .. } => {
                let object = &self.program.objects[kind.index()];
                let fields = object.indexes[*index as usize].field_names();
                format!("this write of `unique {fields}` of `{}`", object.declared.name)
            }
            _ => "this `require`".into(),
        }
    }

    /// Returns the label of the declaration of a `unique`, if a write of one may fail.
    fn unique_label(&self, used: &Use) -> Option<Label> {
        let Kind::Require { check: Some(Check::Unique { kind, index, .. }), .. } =
            &self.flat.get(used.stmt).kind
        else {
            return None;
        };
        let declared = &self.program.objects[kind.index()].indexes[*index as usize];
        Some(Label { span: declared.whole, message: words::unique_declared() })
    }

    pub(super) fn store_words(&self, store: StoreId) -> words::Place {
        let name = self.program.stores[store.index()].name.to_string();
        words::Place { name, level: self.levels().name(self.program.level_of(store)).to_string() }
    }

    /// Describes a source: a store or an endorsement.
    fn source_words(&self, bit: usize) -> words::Place {
        let level = |level| self.levels().name(level).to_string();
        match self.source_at(bit) {
            Source::Store(store) => self.store_words(store),
            Source::Weak(store, weak) => {
                let name = self.program.stores[store.index()].name.to_string();
                words::Place { name, level: format!("as of {}", level(weak)) }
            }
            Source::Endorsement(index) => {
                let level = level(self.flat.endorsements[index].level);
                words::Place { name: String::new(), level }
            }
        }
    }

    /// Returns the sources of a slot in words, each with the labels from its read to the slot.
    pub(crate) fn origins(&self, slot: Slot) -> Vec<(String, Vec<Label>)> {
        let Some(stmt) = self.graph.definition(slot) else { return Vec::new() };
        let Some(target) = self.stores.first() else { return Vec::new() };
        let span = self.flat.get(stmt).span;
        let used = Use {
            stmt,
            target: *target,
            code: Code::M0301,
            operands: vec![(Operand::Slot(slot), span)],
            context: false,
            own: None,
        };
        bits(self.sources[slot.index()])
            .map(|bit| {
                let mut labels = self.path_labels(&used, 1 << bit);
                // The last label marks the value itself.
                labels.pop();
                (self.source_words(bit).to_string(), labels)
            })
            .collect()
    }

    /// Labels from the read at a source to the use, in the order of the flow.
    pub(super) fn path_labels(&self, used: &Use, source: Sources) -> Vec<Label> {
        let mut labels = Vec::new();
        if let Some(path) = self.path(used, source) {
            self.start_label(used, &path, source, &mut labels);
            for edge in &path.edges {
                labels.extend(self.edge_label(*edge));
            }
            labels.extend(self.arrival_label(path.arrival));
        }
        labels.push(self.end_label(used));
        labels
    }

    /// The shortest path of edges from a slot that the source fills to an operand of the use.
    fn path(&self, used: &Use, source: Sources) -> Option<Path> {
        let from_operands = used.operands.iter().filter_map(|(operand, _)| operand.slot());
        let mut starts: Vec<(Slot, Arrival)> =
            from_operands.map(|slot| (slot, Arrival::Operand)).collect();
        if used.context {
            starts.extend(self.context_slots(used.stmt, source));
        }
        starts.retain(|(slot, _)| self.sources[slot.index()] & source != 0);
        if starts.is_empty() && used.own.is_some() {
            return Some(Path { from: None, edges: Vec::new(), arrival: Arrival::Own });
        }
        let mut from: HashMap<Slot, Option<Edge>> = HashMap::new();
        let mut arrivals: HashMap<Slot, Arrival> = HashMap::new();
        let mut queue = std::collections::VecDeque::new();
        for (slot, arrival) in starts {
            if from.insert(slot, None).is_none() {
                arrivals.insert(slot, arrival);
                queue.push_back(slot);
            }
        }
        while let Some(slot) = queue.pop_front() {
            if self.source_stmt(slot, source).is_some() {
                // Walk from here to where the search began: that is along the flow.
                let (mut edges, mut at) = (Vec::new(), slot);
                while let Some(Some(edge)) = from.get(&at) {
                    edges.push(*edge);
                    at = edge.to;
                }
                return Some(Path { from: Some(slot), edges, arrival: arrivals[&at] });
            }
            for edge in self.graph.edges_into(slot) {
                let blocked = edge.kind == EdgeKind::Endorsed
                    || self.sources[edge.from.index()] & source == 0;
                if !blocked && !from.contains_key(&edge.from) {
                    from.insert(edge.from, Some(edge));
                    queue.push_back(edge.from);
                }
            }
        }
        None
    }

    /// The statement that fills a slot with this source's own data.
    pub(super) fn source_stmt(&self, slot: Slot, source: Sources) -> Option<StmtId> {
        let origin = self.graph.definition(slot)?;
        (self.own_sources(&self.flat.get(origin).kind) & source != 0).then_some(origin)
    }

    /// The conditions that decide whether a statement runs, and how.
    fn context_slots(&self, stmt: StmtId, source: Sources) -> Vec<(Slot, Arrival)> {
        let mut slots = Vec::new();
        for around in self.flat.ancestors(stmt) {
            let condition = self.condition_of(around).and_then(Operand::slot);
            slots.extend(condition.map(|slot| (slot, Arrival::Around(around))));
        }
        for id in self.returns_before(stmt) {
            for around in self.flat.ancestors(id) {
                let condition = self.condition_of(around).and_then(Operand::slot);
                slots.extend(condition.map(|slot| (slot, Arrival::Returned(id))));
            }
        }
        slots.retain(|(slot, _)| self.sources[slot.index()] & source != 0);
        slots
    }

    /// The `return`s that decide whether a statement after them runs.
    pub(super) fn returns_before(&self, stmt: StmtId) -> impl Iterator<Item = StmtId> + '_ {
        let returns = self.returns.iter().copied();
        returns.filter(move |id| *id < stmt && !self.exclude_each_other(*id, stmt))
    }

    pub(super) fn condition_of(&self, stmt: StmtId) -> Option<&Operand> {
        match &self.flat.get(stmt).kind {
            Kind::If { condition, .. } | Kind::While { condition, .. } => Some(condition),
            Kind::For { count, .. } => Some(count),
            _ => None,
        }
    }

    pub(super) fn condition_span(&self, stmt: StmtId) -> Span {
        match &self.flat.get(stmt).kind {
            Kind::If { condition_span, .. } | Kind::While { condition_span, .. } => *condition_span,
            Kind::For { iterated_span, .. } => *iterated_span,
            _ => self.flat.get(stmt).span,
        }
    }

    fn start_label(&self, used: &Use, path: &Path, source: Sources, labels: &mut Vec<Label>) {
        let words = self.source_words(bits(source).next().expect("one source"));
        let Some(from) = path.from else {
            let span = self.flat.get(used.stmt).span;
            labels.push(Label { span, message: words::at_own(&words) });
            return;
        };
        let Some(id) = self.source_stmt(from, source) else { return };
        let stmt = self.flat.get(id);
        let message = match stmt.kind {
            Kind::Endorse { .. } => words::endorsed(&words),
            _ => words::read(&words),
        };
        labels.push(Label { span: stmt.span, message });
        if let Some(call) = stmt.call {
            labels.push(Label { span: call, message: words::called() });
        }
        // The variable that holds the value as it was read.
        if let Some(name) = &self.flat.slots[from.index()].name {
            let span = self.assigned_span(from, id);
            labels.push(Label { span, message: words::assigned(name) });
        }
    }

    /// Returns the place of the assignment to the variable of which this slot is a version.
    fn assigned_span(&self, slot: Slot, by: StmtId) -> Span {
        self.flat.slots[slot.index()].assigned.unwrap_or(self.flat.get(by).span)
    }

    fn edge_label(&self, edge: Edge) -> Option<Label> {
        let stmt = self.flat.get(edge.by);
        let name = self.flat.slots[edge.to.index()].name.as_ref();
        match edge.kind {
            EdgeKind::Condition => {
                let name = name?;
                Some(Label {
                    span: self.condition_span(edge.by),
                    message: words::decides_value(name),
                })
            }
            _ => {
                // A copy from one version of a variable to the next is not in the program.
                let name = name.filter(|name| {
                    self.flat.slots[edge.from.index()].name.as_ref() != Some(*name)
                })?;
                match &stmt.kind {
                    Kind::For { .. } => Some(Label {
                        span: self.condition_span(edge.by),
                        message: words::iterated(name),
                    }),
                    _ => {
                        let span = self.assigned_span(edge.to, edge.by);
                        Some(Label { span, message: words::assigned(name) })
                    }
                }
            }
        }
    }

    fn arrival_label(&self, arrival: Arrival) -> Option<Label> {
        match arrival {
            Arrival::Around(stmt) => {
                Some(Label { span: self.condition_span(stmt), message: words::decides() })
            }
            Arrival::Returned(stmt) => {
                Some(Label { span: self.flat.get(stmt).span, message: words::returns() })
            }
            Arrival::Operand | Arrival::Own => None,
        }
    }

    fn end_label(&self, used: &Use) -> Label {
        let stmt = self.flat.get(used.stmt);
        let target = self.store_words(used.target);
        let message = match (&stmt.kind, used.code) {
            (_, Code::M0304) => words::may_fail(&target),
            (_, Code::M0306) => words::may_not_end(&target),
            (Kind::Read(_), Code::M0307) => words::query_may_fail(&target),
            (_, Code::M0307) => words::command_may_fail(&target),
            (Kind::Read(_), _) => words::reads(&target),
            _ => words::writes(&target),
        };
        let span = match &stmt.kind {
            Kind::While { condition_span, .. } => *condition_span,
            _ => stmt.span,
        };
        Label { span, message }
    }
}
