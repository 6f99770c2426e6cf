//! Renamed stores of a folder.
//!
//! A store is found by its name. A store that was renamed in the program would begin empty, beside the
//! file that has its data. If a folder has a store that the program no longer has, a new store is
//! therefore refused, unless the binding says which store was renamed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mingle_lang::Program;
use mingle_store_embedded::Embedded;

use super::OpenError;
use crate::binding::{Binding, EmbeddedBinding, Engine};

/// Checks the former names in a binding, without looking at the folder.
///
/// # Errors
///
/// When a former name is the name of a present store, is claimed by two stores, or belongs to a store
/// that shares its data with others.
pub(crate) fn check_renamed(program: &Program, binding: &Binding) -> Result<(), OpenError> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (store, bound) in embedded(binding) {
        let Some(from) = &bound.renamed_from else { continue };
        let wrong =
            |why: String| Err(OpenError::Binding(format!("stores.{store}.renamed_from: {why}")));
        if program.checked.stores.iter().any(|other| *other.name == **from) {
            return wrong(format!("{from} is still a store of the program"));
        }
        if let Some(other) = seen.insert(from, store) {
            return wrong(format!("{other} is renamed from {from}, too"));
        }
        let is_host = embedded(binding).any(|(_, other)| other.with.as_deref() == Some(store));
        if bound.with.is_some() || is_host {
            return wrong("a store that shares its engine with others keeps its name".into());
        }
    }
    Ok(())
}

/// Renames the stores of a folder to their present names, and refuses a new store if the folder has a
/// store that the program no longer has.
///
/// # Errors
///
/// As [`check_renamed`]; also when the folder has no store of the former name, or has both names; and
/// when a new store may be an earlier one under another name.
pub(crate) fn rename_stores(
    program: &Program,
    binding: &Binding,
    folder: &Path,
) -> Result<(), OpenError> {
    let kept = || Embedded::stores(folder).map_err(OpenError::Embedded);
    let names: BTreeSet<&str> = program.checked.stores.iter().map(|store| &*store.name).collect();
    for (store, bound) in embedded(binding) {
        let Some(from) = &bound.renamed_from else { continue };
        let kept = kept()?;
        let why = match (kept.contains(from), kept.contains(store)) {
            (true, false) | (false, true) => {
                let done = Embedded::rename(folder, &from.as_str().into(), &store.into());
                done.map_err(OpenError::Embedded)?;
                continue;
            }
            (true, true) => format!("{} has data of both {from} and {store}", folder.display()),
            (false, false) => format!(
                "{} has no data of {from}; to begin with an empty store, leave the line out",
                folder.display()
            ),
        };
        return Err(OpenError::Binding(format!("stores.{store}.renamed_from: {why}")));
    }
    let kept = kept()?;
    let is_here = |name: &&str| match binding.stores.get(*name) {
        Some(bound) => bound.engine.is_embedded(),
        None => Engine::default().is_embedded(),
    };
    let new: Vec<&str> =
        names.iter().copied().filter(is_here).filter(|name| !kept.contains(*name)).collect();
    let gone: Vec<&str> =
        kept.iter().map(String::as_str).filter(|name| !names.contains(name)).collect();
    match (&gone[..], &new[..]) {
        ([], _) | (_, []) => Ok(()),
        ([from, ..], [to, ..]) => Err(OpenError::Binding(format!(
            "{} has data of {}, which the program does not have, and none of {}: where a store was renamed, say so in \
             the binding, as `[stores.{to}] renamed_from = \"{from}\"`; otherwise move the files of what is gone \
             elsewhere",
            folder.display(),
            gone.join(", "),
            new.join(", ")
        ))),
    }
}

fn embedded(binding: &Binding) -> impl Iterator<Item = (&str, &EmbeddedBinding)> {
    binding.stores.iter().filter_map(|(name, bound)| match &bound.engine {
        Engine::Embedded(embedded) => Some((name.as_str(), embedded)),
        _ => None,
    })
}
