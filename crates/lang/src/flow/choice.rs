//! Selection of the operators whose first operand may decide whether a query is asked.

use super::{Analysis, Rules, Slice, Sources, analyse};
use crate::diagnostic::Diagnostics;
use crate::flat::{Choice, Flat, Kind, Operators, Separated, StmtId, lower, separate};
use crate::hir::{Program, StoreId, Transaction};

/// The maximum number of attempts; after them all operators evaluate all operands first.
const ROUNDS_MAX: usize = 4;

/// Flattens a transaction. A `take` is decided in the phase of its store, unless the flow rules need its result
/// earlier: then it runs ahead.
pub(crate) fn flatten(program: &Program, transaction: &Transaction, rules: Rules) -> Option<Flat> {
    let flat = flatten_with(program, transaction, rules, &[])?;
    let held = super::bounded::stores_to_hold(program, &flat);
    let errors = |flat: &Flat| {
        let mut found = Diagnostics::default();
        analyse(program, transaction, flat.clone(), rules, &mut found);
        found.errors
    };
    if held.is_empty() || errors(&flat) == 0 {
        return Some(flat);
    }
    let ahead = flatten_with(program, transaction, rules, &held)?;
    Some(if errors(&ahead) <= errors(&flat) { ahead } else { flat })
}

/// Flattens a transaction. A query in an operand of `&&`, `||`, `??` or `if` is asked only if the
/// first operand selects it, where the flow rules allow that decision. None if the inlined
/// functions of the transaction are too large.
fn flatten_with(
    program: &Program,
    transaction: &Transaction,
    rules: Rules,
    held: &[StoreId],
) -> Option<Flat> {
    let mut eager = Operators::new();
    for round in 0.. {
        let flat = lower(program, transaction, &eager, held)?;
        let found: Vec<u32> = if round < ROUNDS_MAX {
            refused(program, transaction, &flat, rules)
        } else {
            numbers(flat.choices.iter())
        };
        if found.is_empty() {
            return Some(flat);
        }
        eager.extend(found);
    }
    None
}

/// Returns the operators of a flattened transaction that must evaluate all operands first.
fn refused(program: &Program, transaction: &Transaction, flat: &Flat, rules: Rules) -> Vec<u32> {
    if flat.choices.is_empty() {
        return Vec::new();
    }
    let analysis_of = |flat| Analysis::new(program, transaction, flat, rules);
    let Some(analysis) = analysis_of(flat) else { return Vec::new() };
    let needless = analysis.needless_endorsements();
    let without = super::endorsement::without(flat.clone(), &needless);
    let analysis = analysis_of(&without).expect("it has no more stores than before");
    let around = numbers(flat.choices.iter().filter(|choice| analysis.endorses_in(choice.branch)));
    if !around.is_empty() {
        return around;
    }
    let endorsed = analysis.endorsed_slice();
    let is_split = !endorsed.statements.is_empty()
        && rules.separation
        && analysis.check_slice(&endorsed, &mut Diagnostics::default());
    let (flat, slice) = if is_split {
        let varies = |slot| analysis.depends_on_stores(slot);
        let Separated { flat, slice } = separate(&without, &endorsed.statements, &varies);
        (flat, Slice { statements: slice })
    } else {
        (without.clone(), Slice::default())
    };
    let analysis = analysis_of(&flat).expect("it has no more stores than before");
    let truth = analysis.with_true_sources();
    let by = |id: StmtId| if slice.contains(id) { &truth } else { &analysis };
    let choices = || flat.choices.iter().filter(|choice| flat.live[choice.branch.index()]);
    let may_not = |choice: &&Choice| {
        let id = choice.branch;
        !by(id).may_choose(id, slice.contains(id))
    };
    let found = numbers(choices().filter(may_not));
    if !found.is_empty() {
        return found;
    }
    let reaches_across = |choice: &&Choice| by(choice.branch).visits_others(choice.branch);
    let across = numbers(choices().filter(reaches_across));
    let mut found = Diagnostics::default();
    if !across.is_empty() {
        analyse(program, transaction, without, rules, &mut found);
    }
    // If the order of the stores forbids a choice, all operands are evaluated first.
    if found.has_errors() { across } else { Vec::new() }
}

fn numbers<'c>(choices: impl Iterator<Item = &'c Choice>) -> Vec<u32> {
    choices.map(|choice| choice.number).collect()
}

impl Analysis<'_> {
    /// Returns the live statements in the branches of a choice.
    fn chosen(&self, choice: StmtId) -> impl Iterator<Item = StmtId> + '_ {
        let all = (choice.0 + 1..self.flat.statements.len() as u32).map(StmtId);
        // The statements inside a statement directly follow it.
        let inner =
            all.take_while(move |id| self.flat.ancestors(*id).any(|around| around == choice));
        inner.filter(|id| self.flat.live[id.index()])
    }

    fn chooses_by(&self, choice: StmtId) -> Sources {
        Self::condition_sources(&self.flat.get(choice).kind, &self.sources)
    }

    /// True if an operand contains an endorsement, which is evaluated before everything else.
    fn endorses_in(&self, choice: StmtId) -> bool {
        self.chosen(choice).any(|id| matches!(self.flat.get(id).kind, Kind::Endorse { .. }))
    }

    /// True if the first operand may decide what the other operands read. An early read comes
    /// before all writes, so it may fail.
    fn may_choose(&self, choice: StmtId, is_early: bool) -> bool {
        let sources = self.chooses_by(choice);
        let written = self.written_stores();
        let reaches = |target| self.weaker_than(sources, target) == 0;
        self.chosen(choice).all(|id| match &self.flat.get(id).kind {
            Kind::Read(access) => {
                reaches(access.store)
                    && (is_early
                        || self.is_total(access)
                        || written.iter().all(|target| reaches(*target)))
            }
            _ => true,
        })
    }

    /// True if the choice depends on stores other than the one that an operand reads.
    fn visits_others(&self, choice: StmtId) -> bool {
        let sources = self.chooses_by(choice) & self.store_sources();
        self.chosen(choice)
            .filter_map(|id| self.flat.get(id).store())
            .any(|store| sources & !self.bit_of(store) != 0)
    }
}
