//! Checking a binding against a program, without opening a store.

use mingle_lang::hir::StoreId;
use mingle_lang::{Plan, Program};
use mingle_model::Level;

use crate::binding::{Binding, StoreBinding};
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
    let mut notes = crate::conflicts::check_conflicts(program, binding)?;
    #[cfg(not(feature = "embedded"))]
    let mut notes = Vec::new();
    for index in 0..program.checked.stores.len() {
        check_store(program, StoreId(index as u32), binding)?;
    }
    #[cfg(any(feature = "postgres", feature = "redis", feature = "cassandra"))]
    crate::overlaps::check_overlaps(program, binding)?;
    notes.extend(program.plans.iter().filter_map(|plan| not_isolated(program, plan, binding)));
    Ok(notes)
}

/// Returns a note for an isolated transaction that the embedded stores of a binding cannot isolate. Other
/// engines may give more than a store's level; opening them tells.
fn not_isolated(program: &Program, plan: &Plan, binding: &Binding) -> Option<String> {
    let default = StoreBinding::default();
    let visited = plan.phases.iter().filter_map(|phase| phase.store);
    let visited: Vec<StoreId> = if plan.isolated { visited.collect() } else { Vec::new() };
    let (_, before_last) = visited.split_last()?;
    let weak = before_last.iter().find_map(|store| {
        let declared = &program.checked.stores[store.index()];
        let bound = binding.stores.get(&*declared.name).unwrap_or(&default);
        let level = program.checked.levels.carrier(declared.level);
        (bound.engine.is_embedded() && level >= Level::Causal).then_some(&declared.name)
    })?;
    Some(format!(
        "every call is refused: {}: it is isolated, so all stores that it visits but the last must be \
         serializable, and {weak} is not",
        plan.name
    ))
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
        if let Some(unknown) = bound.operations.keys().find(|name| {
            let mut declared = store.operations.iter().filter(|known| known.builtin.is_none());
            !declared.any(|known| *known.name == ***name)
        }) {
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
