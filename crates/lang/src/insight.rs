//! Facts about a transaction that editors show: the store where each statement runs, and the stores
//! whose data a value depends on, with the path.

use std::collections::BTreeMap;

use mingle_model::Name;

use crate::diagnostic::{Diagnostics, Label};
use crate::flat::{Flat, Kind, Operand, Slot};
use crate::flow::{self, Rules};
use crate::hir::{Program, StoreId};
use crate::names::Names;
use crate::program::flow_of;
use crate::split::phases::Phases;
use crate::split::{Mode, Mutation};
use crate::syntax::Span;

/// A phase in which a statement runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The phase, from 1.
    pub phase: usize,
    /// Its store; none for a transaction that visits no store.
    pub store: Option<Name>,
    /// The store's level.
    pub level: Option<Name>,
    /// Read-only or writing.
    pub mode: Mode,
    /// True if it only serves an endorsement.
    pub before_endorsement: bool,
}

/// A statement and the phases where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The whole statement, including the body of a loop or branch.
    pub span: Span,
    /// The phases of its effects, in order; without effects, the phase that computes it.
    pub visits: Vec<Visit>,
}

/// A store whose data influenced a value, or an endorsement that stands for one.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The store and its level, in words.
    pub source: String,
    /// The path from the read to the value, in the order of the flow.
    pub path: Vec<Label>,
}

/// The origins of the value of an expression or variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// The stores that it depends on; empty for parameters, literals, and values computed from
    /// them.
    pub origins: Vec<Origin>,
}

/// Returns where the statements of the transaction around `token` run, in source order; none if it
/// has mistakes.
///
/// # Examples
///
/// ```
/// use mingle_lang::insight::steps;
/// use mingle_lang::names::Names;
/// use mingle_lang::syntax::{lex, parse};
///
/// let text = "store s: causal; object O in s { key k: int; n: int; }
/// transaction t(o: ref O) { o.n = 1; }";
/// let (tree, _) = parse(&lex(text));
/// let steps = steps(&Names::of(&tree), tree.items[2].span.start).unwrap();
/// assert_eq!(steps[0].visits[0].store.as_deref(), Some("s"));
/// ```
pub fn steps(names: &Names, token: u32) -> Option<Vec<Step>> {
    let transaction = names.transaction_around(token)?;
    let program = &names.program;
    let (flat, flow) =
        flow_of(program, transaction, Rules::default(), &mut Diagnostics::default())?;
    let phases = Phases::new(&flat, &flow?, Mutation::None);
    // For each statement of the program: the phases of its effects, and the phase of its
    // computation.
    let mut found: BTreeMap<u32, (Vec<usize>, usize)> = BTreeMap::new();
    let merged = flat.merged_slots();
    for (id, stmt) in flat.live_statements() {
        let is_step = matches!(&stmt.kind, Kind::Copy { dst, .. } if merged.contains(dst));
        if is_step || !stmt.blocks().is_empty() {
            continue;
        }
        let phase = phases.of_stmt[id.index()];
        let (effects, last) = found.entry(stmt.source).or_default();
        *last = phase.max(*last);
        if stmt.store().is_some() {
            effects.push(phase);
        }
    }
    let visit = |phase: usize| {
        let found = &phases.phases[phase];
        Visit {
            phase: phase + 1,
            store: found.store.map(|store| program.stores[store.index()].name.clone()),
            level: found.store.map(|store| level_name(program, store)),
            mode: found.mode,
            before_endorsement: found.before_endorsement,
        }
    };
    let steps = found.into_iter().map(|(source, (mut effects, last))| {
        effects.sort_unstable();
        effects.dedup();
        let phases = if effects.is_empty() { vec![last] } else { effects };
        let visits = phases.into_iter().map(visit).collect();
        Step { span: flat.sources[source as usize], visits }
    });
    let mut steps: Vec<Step> = steps.collect();
    steps.sort_by_key(|step| step.span);
    Some(steps)
}

/// Returns the stores' data that the expression at `span` depends on; for a variable, pass its name
/// too. None outside of transactions, in transactions with mistakes in names or types, and for
/// expressions that compute nothing.
pub fn provenance(names: &Names, span: Span, variable: Option<&str>) -> Option<Provenance> {
    let transaction = names.transaction_around(span.start)?;
    let program = &names.program;
    let flat = flow::flatten(program, transaction, Rules::default())?;
    let slot = slot_of(&flat, span, variable)?;
    let analysis = flow::Analysis::new(program, transaction, &flat, Rules::default())?;
    let origins = analysis.origins(slot);
    let origins = origins.into_iter().map(|(source, path)| Origin { source, path }).collect();
    Some(Provenance { origins })
}

/// Returns the slot that holds the value of an expression, or of a variable at this place.
fn slot_of(flat: &Flat, span: Span, variable: Option<&str>) -> Option<Slot> {
    let Some(name) = variable else {
        let mut exact = flat.live_statements().filter(|(_, stmt)| stmt.span == span);
        return exact.find_map(|(_, stmt)| stmt.dsts().first().copied());
    };
    let is_called = |slot: &Slot| flat.slots[slot.index()].name.as_deref() == Some(name);
    // Otherwise the slot is an operand of the smallest statement around the name.
    let around = flat.live_statements().filter(|(_, stmt)| stmt.span.contains(span));
    let used = around.filter_map(|(_, stmt)| {
        let slot = stmt.operands().into_iter().filter_map(Operand::slot).find(is_called)?;
        Some((stmt.span.end - stmt.span.start, slot))
    });
    if let Some((_, slot)) = used.min_by_key(|(length, _)| *length) {
        return Some(slot);
    }
    let slots = || (0..flat.slots.len() as u32).map(Slot).filter(is_called);
    let assigned =
        |slot: &Slot| flat.slots[slot.index()].assigned.is_some_and(|at| at.contains(span));
    // For a parameter, and for a variable that is bound and never assigned, this is the first slot.
    slots().find(assigned).or_else(|| slots().next())
}

fn level_name(program: &Program, store: StoreId) -> Name {
    program.levels.name(program.level_of(store)).clone()
}
