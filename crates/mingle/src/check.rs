//! Checking a binding against a program, without opening a store.

use mingle_lang::Program;
use mingle_lang::hir::StoreId;

use crate::binding::Binding;
use crate::open::{OpenError, check_store};

/// Checks a binding against a program, with the checks that opening a database begins with. The
/// binding must name only stores and operations of the program and bind all of its stores;
/// transactions that it declares free of conflicts must be safe without them; and each engine must
/// accept its part, as far as it can tell without asking a server.
///
/// Returns notes for the operator, one sentence each.
///
/// # Errors
///
/// As [`crate::Database::open`]; the error says which value was found and which was expected.
///
/// # Examples
///
/// ```
/// use mingle::{Binding, check_binding};
///
/// let program = mingle::compile(
///     "store accounts: linearizable;
///     object Account in accounts { key number: string; balance: int; }
///     transaction deposit(account: ref Account, amount: int) { account.balance += amount; }",
/// );
/// let text = "[stores.accounts]\ndatacenters = 3\nconflicts = []";
/// let error = check_binding(&program.unwrap(), &Binding::parse(text).unwrap()).unwrap_err();
/// assert!(error.to_string().contains("list [\"deposit\", \"deposit\"]"));
/// ```
pub fn check_binding(program: &Program, binding: &Binding) -> Result<Vec<String>, OpenError> {
    check_names(program, binding)?;
    check_all_bound(program, binding)?;
    #[cfg(feature = "embedded")]
    crate::open::renamed::check_renamed(program, binding)?;
    #[cfg(feature = "embedded")]
    let notes = crate::conflicts::check_conflicts(program, binding)?;
    #[cfg(not(feature = "embedded"))]
    let notes = Vec::new();
    for index in 0..program.checked.stores.len() {
        check_store(program, StoreId(index as u32), binding)?;
    }
    #[cfg(any(feature = "postgres", feature = "redis", feature = "cassandra"))]
    crate::overlaps::check_overlaps(program, binding)?;
    Ok(notes)
}

/// Checks that the binding names only stores and operations of the program.
pub(crate) fn check_names(program: &Program, binding: &Binding) -> Result<(), OpenError> {
    for (name, bound) in &binding.stores {
        let Some(store) = program.checked.stores.iter().find(|store| *store.name == **name) else {
            let known: Vec<&str> =
                program.checked.stores.iter().map(|store| &*store.name).collect();
            return Err(OpenError::Binding(format!(
                "stores.{name}: the program has no such store; it has {}",
                known.join(", ")
            )));
        };
        if let Some(unknown) = bound
            .operations
            .keys()
            .find(|name| !store.operations.iter().any(|known| *known.name == ***name))
        {
            return Err(OpenError::Binding(format!(
                "stores.{name}.operations.{unknown}: the store declares no such operation"
            )));
        }
    }
    Ok(())
}

/// Checks that the binding names every store, if it names any: a forgotten store would otherwise
/// silently become an embedded store.
pub(crate) fn check_all_bound(program: &Program, binding: &Binding) -> Result<(), OpenError> {
    if binding.stores.is_empty() {
        return Ok(());
    }
    let stores = program.checked.stores.iter().map(|store| &*store.name);
    let unbound: Vec<String> = stores
        .filter(|name| !binding.stores.contains_key(*name))
        .map(|name| {
            format!(
                "stores.{name}: the binding does not say what keeps store {name}; add `[stores.{name}]`, \
                 with an `engine`, such as `engine = \"embedded\"`"
            )
        })
        .collect();
    if unbound.is_empty() { Ok(()) } else { Err(OpenError::Binding(unbound.join("\n"))) }
}
