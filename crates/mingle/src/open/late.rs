//! Constraints that are checked too late: after the transaction has committed elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use mingle_lang::flat::{ReadKind, WriteKind};
use mingle_lang::hir::{ObjectId, StoreId};
use mingle_lang::split::Mode;
use mingle_lang::{Instr, Phase, Plan, Program};
use mingle_model::Name;
use mingle_store_postgres::MayRefuse;

/// A change by a transaction to a kind of object: a write or a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Write,
    Delete,
}

/// Returns a warning for each kind of object whose changes a store may refuse by constraints of its
/// own, and which a transaction changes in a phase after its first phase that writes.
pub fn late_refusals(
    program: &Program,
    store: StoreId,
    may_refuse: &BTreeMap<Name, MayRefuse>,
) -> Vec<String> {
    let mut late: BTreeMap<&Name, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    for plan in &program.plans {
        for (kind, change) in changed_late(program, plan, store) {
            let Some((kind, refusals)) = may_refuse.get_key_value(kind) else { continue };
            let constraints = match change {
                Change::Write => &refusals.writes,
                Change::Delete => &refusals.deletions,
            };
            if constraints.is_empty() {
                continue;
            }
            let (transactions, reasons) = late.entry(kind).or_default();
            transactions.insert(&plan.name);
            reasons.extend(constraints.iter().map(String::as_str));
        }
    }
    let store = &program.checked.stores[store.index()].name;
    let joined = |words: BTreeSet<&str>, by: &str| words.into_iter().collect::<Vec<_>>().join(by);
    let sentence = |(kind, (transactions, reasons)): (&Name, (BTreeSet<&str>, BTreeSet<&str>))| {
        format!(
            "store {store} may refuse a write of {kind} when {} has committed elsewhere, and would leave it unfinished: {}",
            joined(transactions, ", "),
            joined(reasons, "; ")
        )
    };
    late.into_iter().map(sentence).collect()
}

/// Returns a warning for each kind of object whose deletion makes the database change other objects of
/// the store, if a transaction deletes one.
pub fn reached_by_deletions(
    program: &Program,
    store: StoreId,
    may_refuse: &BTreeMap<Name, MayRefuse>,
) -> Vec<String> {
    let mut found: BTreeMap<&Name, BTreeSet<&str>> = BTreeMap::new();
    for plan in &program.plans {
        let phases = plan.phases.iter().filter(|phase| phase.store == Some(store));
        for (kind, change) in phases.flat_map(|phase| changed(program, phase)) {
            if change == Change::Delete {
                found.entry(kind).or_default().insert(&plan.name);
            }
        }
    }
    let store = &program.checked.stores[store.index()].name;
    let warning = |(kind, transactions): (&Name, BTreeSet<&str>)| {
        let reaches = &may_refuse.get(kind)?.reaches;
        if reaches.is_empty() {
            return None;
        }
        let transactions = transactions.into_iter().collect::<Vec<_>>().join(", ");
        let reaches = reaches.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
        Some(format!(
            "when {transactions} deletes {kind}, store {store} itself {reaches}: the transaction does not see that, and nobody else takes it for \
             a write of the transaction"
        ))
    };
    found.into_iter().filter_map(warning).collect()
}

/// Returns a warning for each field whose write makes the database change other objects of the store, if a transaction
/// writes it to an object that may be there already.
pub fn reached_by_writes(
    program: &Program,
    store: StoreId,
    may_refuse: &BTreeMap<Name, MayRefuse>,
) -> Vec<String> {
    let mut found: BTreeMap<(&Name, &Name), BTreeSet<&str>> = BTreeMap::new();
    for plan in &program.plans {
        for (kind, field) in written_fields(plan, store, Creates::OfPut) {
            let declared = &program.checked.objects[kind.index()].declared;
            let Some(field) = declared.fields.get(usize::from(field)) else { continue };
            found.entry((&declared.name, &field.name)).or_default().insert(&plan.name);
        }
    }
    let store = &program.checked.stores[store.index()].name;
    let warning = |((kind, field), transactions): ((&Name, &Name), BTreeSet<&str>)| {
        let texts = may_refuse.get(kind)?.written.get(field)?;
        let transactions = transactions.into_iter().collect::<Vec<_>>().join(", ");
        let texts = texts.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
        Some(format!(
            "when {transactions} writes {kind}.{field}, store {store} itself {texts}: the transaction does not see that, and no other \
             one takes it for a write of the transaction"
        ))
    };
    found.into_iter().filter_map(warning).collect()
}

/// The creations of objects that count as writes of their fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Creates {
    All,
    /// Those of `put`, after which an object has new values if it was there.
    OfPut,
}

/// Returns the fields that a transaction writes at a store.
fn written_fields(plan: &Plan, store: StoreId, creates: Creates) -> Vec<(ObjectId, u16)> {
    let code = || {
        let phases = plan.phases.iter().filter(move |phase| phase.store == Some(store));
        phases.flat_map(|phase| &phase.code)
    };
    let is_new = |kind: ObjectId| {
        let mut reads = plan.phases.iter().flat_map(|phase| &phase.code);
        reads.any(|instruction| {
            matches!(instruction, Instr::Read { read, .. } if read.kind == ReadKind::ExistsForNew(kind))
        })
    };
    let writes = code().filter_map(|instruction| match instruction {
        Instr::Write { write, .. } => Some(&write.kind),
        _ => None,
    });
    let fields = writes.flat_map(|write| match write {
        WriteKind::Assign(kind, field) => vec![(*kind, *field)],
        WriteKind::Create(kind, _) if creates == Creates::OfPut && is_new(*kind) => Vec::new(),
        WriteKind::Create(kind, fields) => fields.iter().map(|field| (*kind, *field)).collect(),
        _ => Vec::new(),
    });
    fields.collect()
}

/// Returns the reason why a store cannot run a program that writes a field which can only be read; none if no
/// transaction writes one.
pub fn read_only_writes(
    program: &Program,
    store: StoreId,
    may_refuse: &BTreeMap<Name, MayRefuse>,
) -> Option<String> {
    program.plans.iter().find_map(|plan| {
        written_fields(plan, store, Creates::All).into_iter().find_map(|(kind, field)| {
            let declared = &program.checked.objects[kind.index()].declared;
            let name = &declared.fields.get(usize::from(field))?.name;
            let why = may_refuse.get(&declared.name)?.read_only.get(name)?;
            Some(format!(
                "{} writes {}.{name}, which can only be read: it is in the {why}",
                plan.name, declared.name
            ))
        })
    })
}

/// Returns the changes of a transaction at this store after its first phase that writes.
fn changed_late<'a>(
    program: &'a Program,
    plan: &Plan,
    store: StoreId,
) -> BTreeSet<(&'a Name, Change)> {
    let later = plan.first_write.map_or(plan.phases.len(), |first| first + 1);
    let phases = plan.phases[later..].iter();
    phases
        .filter(|phase| phase.store == Some(store) && phase.mode == Mode::Write)
        .flat_map(|phase| changed(program, phase))
        .collect()
}

fn changed<'a>(program: &'a Program, phase: &Phase) -> impl Iterator<Item = (&'a Name, Change)> {
    phase.code.iter().filter_map(|instruction| {
        let Instr::Write { write, .. } = instruction else { return None };
        let (kind, change) = match &write.kind {
            WriteKind::Assign(kind, _)
            | WriteKind::Collection(kind, ..)
            | WriteKind::Create(kind, _) => (kind, Change::Write),
            WriteKind::Delete(kind) => (kind, Change::Delete),
            WriteKind::Command(_) => return None,
        };
        Some((&program.checked.objects[kind.index()].declared.name, change))
    })
}
