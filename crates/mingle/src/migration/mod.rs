//! The changes that the tables of a program's stores still need.

#[cfg(feature = "postgres")]
mod postgres;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
use mingle_model::Name;

#[cfg(feature = "postgres")]
use crate::binding::Engine;
use crate::binding::{Binding, StoreBinding};
use crate::check::{check_all_bound, check_names};
use crate::open::OpenError;

/// The changes that the tables of one store need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The store.
    pub store: Name,
    /// The engine that keeps its data, by its name in the binding.
    pub engine: &'static str,
    /// SQL, statement by statement; empty if nothing is missing, or if the engine needs no tables made
    /// in advance.
    pub statements: Vec<String>,
}

/// Returns the changes that the tables of all stores of a program need, without making them. Must be
/// called on a tokio runtime.
///
/// # Errors
///
/// When the binding does not fit the program, a server cannot be reached, or the program contradicts
/// the kept data.
///
/// # Examples
///
/// ```
/// use mingle::{Binding, plan_migrations};
///
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
/// let program = mingle::compile("store a: causal; object O in a { key k: int; n: int; }").unwrap();
/// let planned = plan_migrations(&program, &Binding::default()).await.unwrap();
/// assert_eq!((&*planned[0].store, planned[0].engine), ("a", "embedded"));
/// assert!(planned[0].statements.is_empty());
/// # });
/// ```
pub async fn plan_migrations(
    program: &Program,
    binding: &Binding,
) -> Result<Vec<Migration>, OpenError> {
    check_names(program, binding)?;
    check_all_bound(program, binding)?;
    let mut all = Vec::new();
    for (index, declared) in program.checked.stores.iter().enumerate() {
        let statements = planned(program, StoreId(index as u32), binding).await?;
        let engine = bound(&declared.name, binding).engine.name();
        all.push(Migration { store: declared.name.clone(), engine, statements });
    }
    Ok(all)
}

/// Makes the missing tables and columns: all of a store's changes or none, and none at any store if
/// planning fails for one of them. Returns the changes made. Must be called on a tokio runtime.
///
/// # Errors
///
/// As [`plan_migrations`], and when a server refuses the SQL.
pub async fn apply_migrations(
    program: &Program,
    binding: &Binding,
) -> Result<Vec<Migration>, OpenError> {
    let mut all = plan_migrations(program, binding).await?;
    for (index, migration) in all.iter_mut().enumerate() {
        migration.statements = applied(program, StoreId(index as u32), binding).await?;
    }
    Ok(all)
}

fn bound(store: &Name, binding: &Binding) -> StoreBinding {
    binding.stores.get(&**store).cloned().unwrap_or_default()
}

/// The SQL that a store needs; empty for engines without tables that Mingle makes in advance.
async fn planned(
    program: &Program,
    id: StoreId,
    binding: &Binding,
) -> Result<Vec<String>, OpenError> {
    let bound = bound(&program.checked.stores[id.index()].name, binding);
    match &bound.engine {
        #[cfg(feature = "postgres")]
        Engine::Postgres(config) => postgres::planned(config, program, id, &bound).await,
        _ => Ok(Vec::new()),
    }
}

/// The SQL that was run for a store.
async fn applied(
    program: &Program,
    id: StoreId,
    binding: &Binding,
) -> Result<Vec<String>, OpenError> {
    let bound = bound(&program.checked.stores[id.index()].name, binding);
    match &bound.engine {
        #[cfg(feature = "postgres")]
        Engine::Postgres(config) => postgres::applied(config, program, id, &bound).await,
        _ => Ok(Vec::new()),
    }
}
