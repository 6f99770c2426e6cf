//! Explanation of a transaction's run: its phases, as data, as text and as JSON.

mod cost;
mod text;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mingle_model::Name;
use serde_json::{Value as Json, json};

use crate::code::{Phase, Plan, Program};
use crate::flat::{Check, Kind, ReadKind, Slot, Stmt, StmtId};
use crate::ops::Op;
use crate::split::Mode;
use crate::split::tree::Node;
use crate::syntax::token::TextPlaces;
use crate::syntax::{Source, Span};

pub use cost::{LoopCost, RoundTrips};
pub use text::render;

/// A transaction and its phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// Its name.
    pub name: String,
    /// Its head in the program's syntax.
    pub signature: String,
    /// Its phases, in order.
    pub phases: Vec<ExplainedPhase>,
}

/// A phase.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedPhase {
    /// Its store; none for a transaction that visits no store.
    pub store: Option<String>,
    /// The store's level.
    pub level: Option<String>,
    /// Read-only or writing.
    pub mode: Mode,
    /// True if it only serves an endorsement.
    pub before_endorsement: bool,
    /// Its reads in the program's syntax.
    pub reads: Vec<String>,
    /// Its writes.
    pub writes: Vec<String>,
    /// The values that it records for later phases.
    pub records: Vec<String>,
    /// The values that it takes from earlier phases.
    pub replays: Vec<String>,
    /// Its round trips.
    pub round_trips: RoundTrips,
    /// The longest wait for reads `by` a bound whose answer may be late, in milliseconds: outside of loops, and in
    /// each round of loops.
    pub wait_ms: (u64, u64),
    /// True if it runs in a worker beside its store, so that `round_trips` are made by that worker.
    pub is_beside: bool,
    /// Its steps, line by line.
    pub code: Vec<String>,
}

/// Explains how a transaction runs.
///
/// # Examples
///
/// ```
/// let text = "store s: causal; object O in s { key k: int; n: int; }
/// transaction bump(o: ref O) { o.n += 1; }";
/// let checked = mingle_lang::check(text);
/// let program = checked.program.as_ref().unwrap();
/// let explained = mingle_lang::explain::explain(&checked.source, program, &program.plans[0]);
/// assert_eq!(explained.phases[0].round_trips.fixed, 2);
/// assert_eq!(explained.phases[0].reads, ["o.n"]);
/// ```
pub fn explain(source: &Source, program: &Program, plan: &Plan) -> Explained {
    explain_at(&TextPlaces::new(source), program, plan)
}

/// Explains several transactions. It locates the places of the text once for all of them, so it is
/// linear in the program; calling [`explain`] for each transaction is not.
pub fn explain_all<'p>(
    source: &Source,
    program: &Program,
    plans: impl IntoIterator<Item = &'p Arc<Plan>>,
) -> Vec<Explained> {
    let places = TextPlaces::new(source);
    plans.into_iter().map(|plan| explain_at(&places, program, plan)).collect()
}

fn explain_at(places: &TextPlaces<'_>, program: &Program, plan: &Plan) -> Explained {
    let source = places.source();
    let merged = plan.flat.merged_slots();
    let choices =
        plan.flat.choices.iter().map(|choice| (choice.branch, choice.is_option)).collect();
    let store_names: Vec<Name> =
        program.checked.stores.iter().map(|store| store.name.clone()).collect();
    let params: Vec<String> =
        plan.params.iter().map(|(name, found)| format!("{name}: {found}")).collect();
    let result = plan.result.as_ref().map_or(String::new(), |result| format!(" -> {result}"));
    let isolated = if plan.isolated { "isolated " } else { "" };
    Explained {
        name: plan.name.to_string(),
        signature: format!("{isolated}transaction {}({}){result}", plan.name, params.join(", ")),
        phases: plan
            .phases
            .iter()
            .map(|phase| {
                Explainer {
                    source,
                    places,
                    plan,
                    phase,
                    merged: &merged,
                    choices: &choices,
                    store_names: &store_names,
                    objects: &program.checked.objects,
                }
                .explain(program)
            })
            .collect(),
    }
}

impl Explained {
    /// Marks the phases that run in a worker beside their store: the caller makes one round trip
    /// for such a phase, however much it reads.
    pub fn with_workers(mut self, has_worker: impl Fn(&str) -> bool) -> Self {
        for phase in &mut self.phases {
            let trips = &phase.round_trips;
            let visits = trips.fixed > 0 || !trips.per_iteration.is_empty();
            if visits && phase.store.as_deref().is_some_and(&has_worker) {
                phase.round_trips = RoundTrips { fixed: 1, per_iteration: Vec::new() };
                phase.is_beside = true;
            }
        }
        self
    }
}

/// Returns the phases of transactions as JSON, as `mingle explain --format json` prints them.
pub fn to_json(transactions: &[Explained]) -> Json {
    let transactions = transactions.iter().map(|transaction| {
        let phases = transaction.phases.iter().map(|phase| {
            json!({
                "store": phase.store,
                "level": phase.level,
                "mode": if phase.mode == Mode::Write { "write" } else { "read" },
                "before_endorsement": phase.before_endorsement,
                "reads": phase.reads,
                "writes": phase.writes,
                "records": phase.records,
                "replays": phase.replays,
                "round_trips": phase.round_trips.to_json(),
                "wait_ms": { "fixed": phase.wait_ms.0, "per_iteration": phase.wait_ms.1 },
                "worker": phase.is_beside,
            })
        });
        json!({ "name": transaction.name, "phases": phases.collect::<Vec<_>>() })
    });
    json!({ "transactions": transactions.collect::<Vec<_>>() })
}

struct Explainer<'a> {
    source: &'a Source,
    places: &'a TextPlaces<'a>,
    plan: &'a Plan,
    phase: &'a Phase,
    /// Slots into which branches and rounds copy.
    merged: &'a HashSet<Slot>,
    /// Branches that stand for operators; true if the operator decides by an option.
    choices: &'a HashMap<StmtId, bool>,
    /// The names of the program's stores.
    store_names: &'a [Name],
    /// The program's objects.
    objects: &'a [crate::hir::Object],
}

impl Explainer<'_> {
    fn explain(&self, program: &Program) -> ExplainedPhase {
        let mut explained = ExplainedPhase {
            store: self
                .phase
                .store
                .map(|store| program.checked.stores[store.index()].name.to_string()),
            level: self.phase.level.map(|level| program.checked.levels.name(level).to_string()),
            mode: self.phase.mode,
            before_endorsement: self.phase.before_endorsement,
            reads: Vec::new(),
            writes: Vec::new(),
            records: Vec::new(),
            replays: Vec::new(),
            round_trips: cost::round_trips(&self.plan.flat, self.phase, self.places),
            wait_ms: cost::waits(&self.plan.flat, &self.phase.tree),
            is_beside: false,
            code: Vec::new(),
        };
        self.collect(&self.phase.tree, &mut explained);
        self.lines(&self.phase.tree, 0, &mut explained.code);
        explained
    }

    /// Returns the text of a span on one line.
    fn text(&self, span: Span) -> String {
        let text = self.source.span_text(span);
        // Comments inside would hide the rest of the line.
        let lines =
            text.split(['\n', '\r']).map(|line| line.split("//").next().unwrap_or_default());
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        words.join(" ")
    }

    /// Returns the text of a read; that of a `unique` does not stand in the program.
    fn read_text(&self, stmt: &Stmt) -> String {
        let Kind::Read(access) = &stmt.kind else { return self.text(stmt.span) };
        match &access.kind {
            ReadKind::Free { kind, index, .. } => {
                let object = &self.objects[kind.index()];
                format!("{}.{}", object.declared.name, object.indexes[*index as usize].name)
            }
            ReadKind::Indexed(kind, field) => {
                let declared = &self.objects[kind.index()].declared;
                format!("{}.{}", declared.name, declared.fields[usize::from(*field)].name)
            }
            _ => self.text(stmt.span),
        }
    }

    /// Returns the description of a slot's value.
    fn slot(&self, stmt: StmtId, slot: Slot) -> String {
        match &self.plan.flat.slots[slot.index()].name {
            Some(name) => name.to_string(),
            None => {
                let stmt = self.plan.flat.get(stmt);
                let text = self.text(stmt.span);
                // The program shows level and reason; only the value matters here.
                let is_copy = matches!(stmt.kind, Kind::Endorse { .. } | Kind::Copy { .. });
                if is_copy
                    && text.starts_with("endorse")
                    && let Some(value) = text.rfind(") as ").and_then(|end| text.get(..=end))
                {
                    return value.to_owned();
                }
                // A loop computes the size of its list implicitly; the program has no such
                // expression.
                if matches!(stmt.kind, Kind::Local { op: Op::ListSize, .. })
                    && !text.contains("size")
                {
                    return format!("the number of {text}");
                }
                text
            }
        }
    }

    fn collect(&self, nodes: &[Node], explained: &mut ExplainedPhase) {
        for node in nodes {
            match node {
                Node::Run(id) => {
                    let stmt = self.plan.flat.get(*id);
                    match &stmt.kind {
                        Kind::Read(_) => add(&mut explained.reads, self.read_text(stmt)),
                        Kind::Write(_) => {
                            let text = self.text(stmt.span);
                            add(&mut explained.writes, text.trim_end_matches(';').to_owned());
                        }
                        _ => {}
                    }
                }
                Node::Record(id, slot) => add(&mut explained.records, self.slot(*id, *slot)),
                Node::Replay(id, slot) => add(&mut explained.replays, self.slot(*id, *slot)),
                Node::If(_, a, b) | Node::While(_, a, b) => {
                    self.collect(a, explained);
                    self.collect(b, explained);
                }
                Node::For(_, _, _, body) => self.collect(body, explained),
                Node::Fetch(_) | Node::Return(..) => {}
            }
        }
    }

    fn lines(&self, nodes: &[Node], depth: usize, lines: &mut Vec<String>) {
        let mut last_source = None;
        for node in nodes {
            let mut push = |text: String| lines.push(format!("{}{text}", "    ".repeat(depth)));
            match node {
                Node::Fetch(reads) => push(format!("fetch {}", self.names(reads))),
                Node::Run(id) => {
                    let stmt = self.plan.flat.get(*id);
                    let is_shown = match &stmt.kind {
                        Kind::Write(_) => true,
                        Kind::Read(access) if access.answering.is_some() => {
                            push(format!("ask {}", self.text(stmt.span)));
                            false
                        }
                        _ if self.told(stmt).is_some() => {
                            push(self.told(stmt).unwrap_or_default());
                            false
                        }
                        Kind::Require { .. } => true,
                        _ => self.is_assignment(*id) && last_source != Some(stmt.source),
                    };
                    if is_shown {
                        last_source = Some(stmt.source);
                        let statement = self.plan.flat.sources[stmt.source as usize];
                        let span =
                            if matches!(stmt.kind, Kind::Write(_)) { stmt.span } else { statement };
                        push(self.text(span));
                    }
                }
                Node::Record(id, slot) => push(format!("record {}", self.slot(*id, *slot))),
                Node::Replay(id, slot) => push(format!("replay {}", self.slot(*id, *slot))),
                Node::If(id, then, otherwise) => self.branch(*id, then, otherwise, depth, lines),
                Node::While(id, head, body) => {
                    push(format!("{} {{", self.head(*id)));
                    self.lines(head, depth + 1, lines);
                    self.lines(body, depth + 1, lines);
                    lines.push(format!("{}}}", "    ".repeat(depth)));
                }
                Node::For(id, _, prefetch, body) => {
                    push(format!("{} {{", self.head(*id)));
                    if let Some(prefetch) = prefetch {
                        let rounds = crate::code::PREFETCH_ROUNDS;
                        let names = self.names(&prefetch.reads);
                        lines.push(format!(
                            "{}fetch {names}, for {rounds} rounds at once",
                            "    ".repeat(depth + 1)
                        ));
                    }
                    self.lines(body, depth + 1, lines);
                    lines.push(format!("{}}}", "    ".repeat(depth)));
                }
                Node::Return(id, true) => push(self.text(self.plan.flat.get(*id).span)),
                Node::Return(_, false) => push("end of this phase".into()),
            }
        }
    }

    /// Returns the line of a step that the program does not show as a statement.
    fn told(&self, stmt: &Stmt) -> Option<String> {
        Some(match &stmt.kind {
            Kind::Hold(held) => {
                let store = &self.store_names[held.store.index()];
                format!("hold at {store}: {}", self.text(stmt.span))
            }
            Kind::Agree { value_span, .. } => {
                format!("start over if changed: {}", self.text(*value_span))
            }
            Kind::Require { check: Some(Check::New(_)), .. } => {
                format!("refuse if it exists: {}", self.text(stmt.span))
            }
            Kind::Require { check: Some(Check::Unique { kind, index, .. }), .. } => {
                let object = &self.objects[kind.index()];
                let fields = object.indexes[*index as usize].field_names();
                format!("refuse if another {} has the same {fields}", object.declared.name)
            }
            _ => return None,
        })
    }

    fn branch(
        &self,
        id: StmtId,
        then: &[Node],
        otherwise: &[Node],
        depth: usize,
        lines: &mut Vec<String>,
    ) {
        let indent = "    ".repeat(depth);
        lines.push(format!("{indent}{} {{", self.head(id)));
        self.lines(then, depth + 1, lines);
        let mut other_lines = Vec::new();
        self.lines(otherwise, depth + 1, &mut other_lines);
        if !other_lines.is_empty() {
            lines.push(format!("{indent}}} else {{"));
            lines.extend(other_lines);
        }
        lines.push(format!("{indent}}}"));
    }

    fn names(&self, reads: &[StmtId]) -> String {
        let mut names: Vec<String> = Vec::new();
        for id in reads {
            // One read may stand at several places of the text.
            add(&mut names, self.read_text(self.plan.flat.get(*id)));
        }
        names.join(", ")
    }

    /// True if a statement gives a variable its value.
    fn is_assignment(&self, id: StmtId) -> bool {
        let stmt = self.plan.flat.get(id);
        let is_variable = |slot: &Slot| self.plan.flat.slots[slot.index()].name.is_some();
        // Copies that merge and carry variables between branches and rounds are not in the program.
        let is_step = matches!(&stmt.kind, Kind::Copy { dst, .. } if self.merged.contains(dst));
        // The head of an arm says that its variable gets the answer.
        let is_of_arm = matches!(&stmt.kind, Kind::Local { op: Op::AnswerOf(_), .. });
        stmt.dsts().iter().any(is_variable) && !is_step && !is_of_arm
    }

    /// Returns the head of a branch that is an arm of a `match` over an answer.
    fn arm(&self, stmt: &Stmt) -> Option<String> {
        let Kind::If { condition, condition_span, .. } = &stmt.kind else { return None };
        let condition = condition.slot()?;
        let levels = self.plan.flat.statements.iter().find_map(|stmt| match &stmt.kind {
            Kind::Local { dst, op: Op::IsOfLevel(levels), .. } if *dst == condition => Some(levels),
            _ => None,
        })?;
        let answer = self.text(*condition_span);
        let levels: Vec<&str> = levels.iter().map(|level| &**level).collect();
        Some(match levels.split_last() {
            Some((last, [])) => format!("if {answer} is answered at {last}"),
            Some((last, others)) => {
                format!("if {answer} is answered at {} or {last}", others.join(", "))
            }
            None => format!("if {answer} is answered"),
        })
    }

    /// Returns the head of a loop or branch, without its body.
    fn head(&self, id: StmtId) -> String {
        let stmt = self.plan.flat.get(id);
        let span = stmt.span;
        if let (Some(is_option), Kind::If { condition_span, .. }) =
            (self.choices.get(&id), &stmt.kind)
        {
            // An operator one of whose operands contains a query.
            let is_some = if *is_option { " is some" } else { "" };
            return format!("if {}{is_some}", self.text(*condition_span));
        }
        if let Some(head) = self.arm(stmt) {
            return head;
        }
        let inner = match &stmt.kind {
            Kind::If { condition_span, .. } | Kind::While { condition_span, .. } => *condition_span,
            Kind::For { iterated_span, .. } => *iterated_span,
            _ => span,
        };
        self.text(Span { start: span.start, end: inner.end })
    }
}

/// Adds a text to a list, unless it is there.
fn add(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// The table of places is as long as the text: building it per transaction would be quadratic.
    #[test]
    fn places_are_found_once_for_all_transactions() {
        let mut text = "store s: causal; object O in s { key k: int; n: int; }\n".to_owned();
        for number in 0..50 {
            writeln!(text, "transaction t{number}(o: ref O) {{ o.n += {number}; }}")
                .expect("a string takes it");
        }
        let checked = crate::check(text);
        let program = checked.program.as_ref().expect("a program");
        let before = TextPlaces::made();
        let all = explain_all(&checked.source, program, &program.plans);
        assert_eq!(TextPlaces::made() - before, 1);
        let one_by_one: Vec<_> =
            program.plans.iter().map(|plan| explain(&checked.source, program, plan)).collect();
        assert_eq!(all, one_by_one);
        assert_eq!((all.len(), TextPlaces::made() - before), (50, 51));
    }
}
