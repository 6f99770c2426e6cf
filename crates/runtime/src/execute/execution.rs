//! The state of a running transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mingle_lang::hir::StoreId;
use mingle_lang::split::Mode;
use mingle_lang::{Phase, Plan, Program};
use mingle_model::{Name, Principal, TransactionId, Value};
use mingle_store::{Data, Read};

use crate::execute::host::HostTransaction;
use crate::execute::prefetch::Prefetched;
use crate::in_flight::table::Left;
use crate::interpreter::machine::{Facts, Recorded};
use crate::protocol::call_key::CallKey;
use crate::protocol::intent::{Intent, ProgramHash, Witness};
use crate::protocol::wait_set::{Awaited, WaitSet};

/// A running transaction: of a caller, or one that another process has left.
pub(crate) struct Execution {
    pub(crate) program: Arc<Program>,
    pub(crate) hash: ProgramHash,
    pub(crate) plan: Arc<Plan>,
    pub(crate) arguments: Vec<Value>,
    pub(crate) facts: Facts,
    pub(crate) recorded: Recorded,
    pub(crate) result: Option<Value>,
    pub(crate) wait_set: WaitSet,
    /// The replica at which it runs.
    pub(crate) replica: Option<Name>,
    /// The replica of its session, which also runs its phases at stores that have homes.
    pub(crate) home: Option<Name>,
    /// Set once it has written, if others must be able to finish it.
    pub(crate) begun: Option<Begun>,
    /// Set once it has written.
    pub(crate) has_written: bool,
    /// The index of the store at which it has written first.
    pub(crate) wrote_first: Option<usize>,
    pub(crate) principal: Option<Principal>,
    /// The key of its call. The next field is the digest that distinguishes calls with the same key.
    pub(crate) key: Option<CallKey>,
    pub(crate) digest: [u8; 32],
    /// Its id; an `isolated` transaction draws it before it writes.
    pub(crate) id: Option<TransactionId>,
    /// The reads before an endorsement with their answers, by store.
    pub(crate) endorsed: BTreeMap<StoreId, Vec<(Read, Data)>>,
    /// The transactions for which it has waited, and the stores where it did.
    pub(crate) satisfied: Vec<(Name, TransactionId, Awaited)>,
    /// The records that it leaves at its stores.
    pub(crate) left: Box<Left>,
    pub(crate) is_helper: bool,
    /// True if the phase after the first writing one may read before that one commits.
    pub(crate) prefetches: bool,
    /// The phase that has read ahead.
    pub(crate) prefetched: Option<Box<Prefetched>>,
    /// The time of its phases at stores whose writes bear timestamps; 0 before it has begun.
    pub(crate) time: u64,
    /// A time before any other process can have met it, by this process's clock; none for a helper.
    pub(crate) decided_after: Option<Duration>,
    /// The application's own transaction in which its first writing phase runs, if it is called in one.
    pub(crate) host: Option<HostTransaction>,
    /// The transactions that wait for it, each because of the next.
    pub(crate) chain: Vec<TransactionId>,
    /// True if a lost answer may have held its result.
    pub(crate) is_result_lost: bool,
    /// True if it helps others although another task of this process is already at it.
    pub(crate) pushes: bool,
    /// True if an operator has ended it: its remaining phases never commit.
    pub(crate) is_abandoned: bool,
}

/// The facts that other processes need to finish a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub(crate) id: TransactionId,
    /// The index of the phase that wrote first.
    pub(crate) first: usize,
    /// The store of that phase, which holds the intent.
    pub(crate) intent: Name,
}

impl Execution {
    /// Creates a transaction that has done nothing yet, for a session that stays at this replica.
    pub(crate) fn new(
        (program, hash): (Arc<Program>, ProgramHash),
        plan: Arc<Plan>,
        arguments: Vec<Value>,
        facts: Facts,
        wait_set: WaitSet,
        replica: Option<Name>,
    ) -> Self {
        Self {
            recorded: Recorded::new(&plan),
            program,
            hash,
            plan,
            arguments,
            facts,
            result: None,
            wait_set,
            home: replica.clone(),
            replica,
            begun: None,
            has_written: false,
            wrote_first: None,
            principal: None,
            key: None,
            digest: [0; 32],
            id: None,
            endorsed: BTreeMap::new(),
            satisfied: Vec::new(),
            left: Box::default(),
            is_helper: false,
            prefetches: false,
            prefetched: None,
            time: 0,
            decided_after: None,
            host: None,
            chain: Vec::new(),
            is_result_lost: false,
            pushes: false,
            is_abandoned: false,
        }
    }

    /// Rebuilds a transaction from its intent.
    pub(crate) fn from_intent(
        id: TransactionId,
        place: Name,
        intent: Intent,
        program: Arc<Program>,
        plan: Arc<Plan>,
    ) -> Self {
        let program = (program, intent.program);
        let facts = Facts { now: intent.now, seed: intent.seed };
        let recorded = Recorded::from_queues(&plan, intent.recorded);
        let (wait_set, replica) = (intent.wait_set, intent.replica);
        Self {
            key: intent.key,
            principal: intent.principal,
            recorded,
            begun: Some(Begun { id, first: intent.first as usize, intent: place }),
            has_written: true,
            id: Some(id),
            is_helper: true,
            time: intent.time,
            ..Self::new(program, plan, intent.arguments, facts, wait_set, replica)
        }
    }

    /// The intent that is kept for other processes once phase `first` has written.
    pub(crate) fn intent(&self, first: usize, recorded: &Recorded, wait_set: WaitSet) -> Intent {
        Intent {
            program: self.hash,
            transaction: self.plan.name.clone(),
            arguments: self.arguments.clone(),
            now: self.facts.now,
            seed: self.facts.seed,
            time: self.time,
            first: first as u32,
            recorded: recorded.queues().to_vec(),
            wait_set,
            replica: self.home.clone(),
            key: self.key,
            principal: self.principal.clone(),
        }
    }

    /// The last phase that leaves a commit witness, so that others can finish the transaction: the last one
    /// that writes. The reads of an `isolated` transaction after its writes must come before later writes
    /// of others there, so all of its phases count.
    pub(crate) fn last_witnessed(&self) -> Option<usize> {
        if self.plan.isolated && self.plan.phases.len() > 1 {
            return Some(self.plan.phases.len() - 1);
        }
        self.plan.phases.iter().rposition(|phase| phase.mode == Mode::Write)
    }

    pub(crate) fn store_name(&self, phase: &Phase) -> Option<Name> {
        phase.store.map(|store| self.program.checked.stores[store.index()].name.clone())
    }

    /// The stores of later phases that leave a commit witness.
    pub(crate) fn witnessed_later(&self, index: usize) -> BTreeSet<Name> {
        let last = self.last_witnessed().map_or(0, |last| last + 1);
        let later = self.plan.phases.get(index + 1..last).unwrap_or_default();
        later.iter().filter_map(|phase| self.store_name(phase)).collect()
    }

    /// Applies the content of a commit witness.
    pub(crate) fn take(&mut self, witness: Witness) {
        if let Witness::Committed { recorded, result, wait_set, .. } = witness {
            self.wait_set.join(&wait_set);
            let recorded = Recorded::from_queues(&self.plan, recorded);
            self.recorded.merge(recorded);
            self.result = result.or(self.result.take());
        }
    }
}
