//! Checks of a transaction's plan and of a call against the stores.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_lang::Plan;
use mingle_lang::split::Mode;
use mingle_model::Name;
use mingle_store::{DataStore, Once};

use crate::api::call::Call;
use crate::api::error::Error;
use crate::api::session::Session;
use crate::stores::Stores;

impl Stores {
    /// The store with this id.
    pub(crate) fn store(&self, store: mingle_lang::hir::StoreId) -> &Arc<dyn DataStore> {
        &self.all[store.index()]
    }

    pub(crate) fn checked_plan(&self, call: &Call) -> Result<Arc<Plan>, Error> {
        let name = &call.transaction;
        let plan = self
            .program
            .plan(name)
            .ok_or_else(|| Error::Misuse(format!("no transaction is called {name:?}")))?;
        if plan.params.len() != call.arguments.len() {
            let (expected, found) = (plan.params.len(), call.arguments.len());
            return Err(Error::Misuse(format!("{name} takes {expected} arguments, found {found}")));
        }
        for ((param, param_type), argument) in plan.params.iter().zip(&call.arguments) {
            if !self.program.schema().conforms(argument, param_type) {
                return Err(Error::Misuse(format!(
                    "{param} of {name} is of type {param_type}, found {argument}"
                )));
            }
            let bounds = argument.check();
            bounds.map_err(|why| Error::Misuse(format!("{param} of {name}: {why}")))?;
        }
        if let Some(until) = &call.until
            && !plan.phases.iter().any(|phase| self.name_of(phase) == Some(until))
        {
            return Err(Error::Misuse(format!("{name} does not visit a store {until:?}")));
        }
        self.check_plan(plan)?;
        self.check_replica(&call.session)?;
        Ok(plan.clone())
    }

    /// Checks that some store has the session's replica. The session stays at that replica in every
    /// store that has one of that name.
    pub(crate) fn check_replica(&self, session: &Session) -> Result<(), Error> {
        let Some(replica) = session.replica() else { return Ok(()) };
        let all = || self.all.iter().flat_map(|store| &store.capabilities().replicas);
        if all().next().is_none() || all().any(|known| *known == replica) {
            return Ok(());
        }
        let known: BTreeSet<&str> = all().map(|name| &**name).collect();
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        Err(Error::Misuse(format!("no store has a replica {replica}; there are {known}")))
    }

    fn name_of(&self, phase: &mingle_lang::Phase) -> Option<&Name> {
        phase.store.map(|store| &self.program.checked.stores[store.index()].name)
    }

    /// Checks that its stores can run a transaction with all of its guarantees.
    pub(crate) fn check_plan(&self, plan: &Plan) -> Result<(), Error> {
        let unsupported = |why: String| Err(Error::Unsupported(format!("{}: {why}", plan.name)));
        self.check_bounds(plan)?;
        let mut has_written = false;
        for phase in plan.phases.iter().filter(|phase| phase.mode == Mode::Write) {
            let Some(store) = phase.store else { continue };
            let capabilities = self.store(store).capabilities();
            if has_written && capabilities.once == Once::Never {
                return unsupported(format!(
                    "store {} cannot see to it that a phase takes effect once, so it cannot be written after another store",
                    capabilities.store
                ));
            }
            has_written = true;
        }
        if plan.isolated && plan.phases.len() > 1 {
            for phase in &plan.phases[..plan.phases.len() - 1] {
                let Some(store) = phase.store else { continue };
                let capabilities = self.store(store).capabilities();
                if !capabilities.serializable {
                    return unsupported(format!(
                        "it is isolated, so all stores that it visits but the last must be serializable, and {} is not",
                        capabilities.store
                    ));
                }
            }
            self.check_isolated_order(plan)?;
        }
        Ok(())
    }

    /// Checks that stores with bounded counters can keep the bounds: a decision that was read must still hold
    /// when the change is committed.
    fn check_bounds(&self, plan: &Plan) -> Result<(), Error> {
        let objects = &self.program.checked.objects;
        for (kind, field) in plan.bounded_writes(&self.program.checked) {
            let object = &objects[kind.index()];
            let capabilities = self.store(object.store).capabilities();
            if !capabilities.serializable {
                let declared = &object.declared;
                return Err(Error::Unsupported(format!(
                    "{}: {}.{} has bounds, and store {} cannot keep them: it does not check at a commit that what was read still holds",
                    plan.name,
                    declared.name,
                    declared.fields[usize::from(field)].name,
                    capabilities.store
                )));
            }
        }
        Ok(())
    }

    /// Refuses two isolated transactions that visit two stores in opposite orders: they could not be ordered.
    fn check_isolated_order(&self, plan: &Plan) -> Result<(), Error> {
        let stores =
            |plan: &Plan| -> Vec<_> { plan.phases.iter().filter_map(|p| p.store).collect() };
        let mine = stores(plan);
        for other in self.program.plans.iter().filter(|other| other.isolated) {
            let theirs = stores(other);
            for (at, first) in mine.iter().enumerate() {
                for second in &mine[at + 1..] {
                    let place = |store| theirs.iter().position(|known| known == store);
                    if let (Some(a), Some(b)) = (place(first), place(second))
                        && a > b
                    {
                        let name = |store: &mingle_lang::hir::StoreId| {
                            self.program.checked.stores[store.index()].name.clone()
                        };
                        return Err(Error::Unsupported(format!(
                            "{} visits {} before {}, and {} the other way round, so they cannot both be isolated",
                            plan.name,
                            name(first),
                            name(second),
                            other.name
                        )));
                    }
                }
            }
        }
        Ok(())
    }
}
