//! Constraints that come into play too late: when the transaction has committed elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use mingle_lang::flat::WriteKind;
use mingle_lang::hir::StoreId;
use mingle_lang::split::Mode;
use mingle_lang::{Instr, Phase, Plan, Program};
use mingle_model::Name;

/// A sentence for each kind of object whose writes a store may refuse for reasons of its own, and
/// that some transaction writes in a phase which is not its first one that writes.
pub fn late_refusals(
    program: &Program,
    store: StoreId,
    may_refuse: &BTreeMap<Name, BTreeSet<String>>,
) -> Vec<String> {
    let mut late: BTreeMap<&Name, Vec<&str>> = BTreeMap::new();
    for plan in &program.plans {
        let written = written_late(program, plan, store);
        for kind in may_refuse.keys().filter(|kind| written.contains(*kind)) {
            late.entry(kind).or_default().push(&plan.name);
        }
    }
    let store = &program.checked.stores[store.index()].name;
    let sentence = |(kind, transactions): (&Name, Vec<&str>)| {
        let constraints: Vec<&str> = may_refuse[kind].iter().map(String::as_str).collect();
        format!(
            "store {store} may refuse a write of {kind} when {} has committed elsewhere, and would leave it unfinished: {}",
            transactions.join(", "),
            constraints.join("; ")
        )
    };
    late.into_iter().map(sentence).collect()
}

/// The kinds of objects that a transaction writes at this store after its first phase that writes.
fn written_late<'a>(program: &'a Program, plan: &Plan, store: StoreId) -> BTreeSet<&'a Name> {
    let later = plan.first_write.map_or(plan.phases.len(), |first| first + 1);
    let phases = plan.phases[later..].iter();
    phases
        .filter(|phase| phase.store == Some(store) && phase.mode == Mode::Write)
        .flat_map(|phase| written(program, phase))
        .collect()
}

fn written<'a>(program: &'a Program, phase: &Phase) -> impl Iterator<Item = &'a Name> {
    phase.code.iter().filter_map(|instruction| {
        let Instr::Write { write, .. } = instruction else { return None };
        match &write.kind {
            WriteKind::Assign(kind, _)
            | WriteKind::Collection(kind, ..)
            | WriteKind::Delete(kind)
            | WriteKind::Create(kind, _) => {
                Some(&program.checked.objects[kind.index()].declared.name)
            }
            WriteKind::Command(_) => None,
        }
    })
}
