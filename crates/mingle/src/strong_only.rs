//! Pairs of conflicting transactions that follow from `strong_only`: the fields that a binding names in
//! place of pairs.
//!
//! `strong_only = ["Account.owner"]` lists every pair of two transactions that write the owner of an
//! account. Which transactions write it, the program says.

use mingle_lang::changes::Changes;
use mingle_lang::hir::StoreId;
use mingle_lang::{Plan, Program};

use crate::binding::{ConflictPairs, EmbeddedBinding};

/// Returns the pairs of transactions that conflict at a store: those that its binding lists, and all
/// pairs of transactions that write a field which `strong_only` names. None if the binding says neither.
pub(crate) fn pairs_of(
    program: &Program,
    store: StoreId,
    bound: &EmbeddedBinding,
) -> Option<ConflictPairs> {
    if bound.strong_only.is_empty() {
        return bound.conflicts.clone();
    }
    let mut pairs = bound.conflicts.clone().unwrap_or_default();
    let is_named = |name: &str| bound.strong_only.iter().any(|pattern| names(pattern, name));
    let writing = program.plans.iter().filter(|plan| {
        Changes::of(&program.checked, plan, store).changes(&program.checked, is_named)
    });
    let writing: Vec<&Plan> = writing.map(|plan| &**plan).collect();
    for (at, one) in writing.iter().enumerate() {
        for other in &writing[at..] {
            let (one, other) = (&one.name, &other.name);
            pairs.insert((one.min(other).clone(), one.max(other).clone()));
        }
    }
    Some(pairs)
}

/// True if a pattern names a field, given as `Account.balance`, or the existence of an object, given as
/// `Account`. A pattern without a period names an object with all its fields; `*` stands for any part of
/// a name.
pub(crate) fn names(pattern: &str, name: &str) -> bool {
    let (object, field) = name.split_once('.').map_or((name, None), |(o, f)| (o, Some(f)));
    match (pattern.split_once('.'), field) {
        (None, _) => fits(pattern, object),
        (Some((of, wanted)), Some(field)) => fits(of, object) && fits(wanted, field),
        (Some(_), None) => false,
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.into_iter().any(|at| fits(after, &rest[at..]))
        }),
    }
}
