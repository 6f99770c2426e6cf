//! Permission to call transactions.
//!
//! A call names its principal, if its caller has a name. The intent keeps it, so a helper runs a later phase as that
//! principal and not as itself. Every phase is checked: a phase before the first commit runs only if its principal is
//! admitted here and at each worker that the transaction visits. Once the first part has committed, the transaction
//! was admitted, and the rest runs with the rights that its principal had then, even if it has lost them since:
//! otherwise the transaction would stay half done (P3).

use std::sync::Arc;

use mingle_lang::Plan;
use mingle_lang::hir::StoreId;
use mingle_model::Principal;
use mingle_store::Admission;

use crate::api::error::Error;
use crate::stores::Stores;

impl Stores {
    /// Lets calls that name a principal run only if it is admitted. Calls without one are this process's own.
    pub(crate) fn admit_by(&self, admission: Arc<dyn Admission>) -> bool {
        self.admission.set(admission).is_ok()
    }

    /// Refuses a transaction before its first commit if its principal may not call it here, or at a
    /// worker that it visits.
    pub(crate) fn check_admitted(
        &self,
        plan: &Plan,
        principal: Option<&Principal>,
    ) -> Result<(), Error> {
        if let (Some(admission), Some(_)) = (self.admission.get(), principal)
            && !admission.admits(principal, &plan.name)
        {
            return Err(forbidden(plan, principal));
        }
        for store in plan.phases.iter().filter_map(|phase| phase.store.map(StoreId::index)) {
            let worker = self.all.get(store).and_then(|store| store.worker());
            if worker.is_some_and(|worker| !worker.admits(principal, &plan.name)) {
                return Err(forbidden(plan, principal));
            }
        }
        Ok(())
    }
}

/// Refuses an attempt at a worker whose principal may not call the transaction, up to the first commit.
pub(crate) fn check_attempt(
    plan: &Plan,
    principal: Option<&Principal>,
    has_written: bool,
    admission: Option<&dyn Admission>,
) -> Result<(), Error> {
    let is_admitted =
        has_written || admission.is_none_or(|admission| admission.admits(principal, &plan.name));
    if is_admitted { Ok(()) } else { Err(forbidden(plan, principal)) }
}

fn forbidden(plan: &Plan, principal: Option<&Principal>) -> Error {
    Error::Forbidden { principal: principal.cloned(), transaction: plan.name.clone() }
}
