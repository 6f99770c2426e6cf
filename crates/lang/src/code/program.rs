//! Programs that are ready to run.

use std::collections::HashSet;
use std::sync::Arc;

use mingle_model::Schema;

use super::Plan;
use crate::flat::{Access, Kind, ReadKind};
use crate::hir::{self, StoreId};

/// A checked and split program, ready to run.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its text; the hash of the text identifies the program.
    pub text: Arc<str>,
    /// The unsplit program.
    pub checked: Arc<hir::Program>,
    /// Its split transactions, in order of declaration.
    pub plans: Vec<Arc<Plan>>,
}

impl Program {
    /// Returns the transaction called `name`.
    pub fn plan(&self, name: &str) -> Option<&Arc<Plan>> {
        self.plans.iter().find(|plan| &*plan.name == name)
    }

    /// Returns the operations of a store, those that draw keys only where a transaction does so.
    pub fn operations(&self, store: StoreId) -> impl Iterator<Item = &hir::Operation> {
        let statements = self.plans.iter().flat_map(|plan| plan.flat.live_statements());
        let drawn: HashSet<u32> = statements
            .filter_map(|(_, stmt)| match &stmt.kind {
                Kind::Read(Access { store: at, kind: ReadKind::Draw(_, operation), .. }) => {
                    (*at == store).then_some(*operation)
                }
                _ => None,
            })
            .collect();
        let declared = self.checked.stores[store.index()].operations.iter().enumerate();
        let is_used = move |at: usize, operation: &hir::Operation| {
            operation.draws().is_none() || drawn.contains(&(at as u32))
        };
        declared.filter(move |(at, operation)| is_used(*at, operation)).map(|(_, found)| found)
    }

    /// Returns the schema of the program's data.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.checked.schema
    }
}
