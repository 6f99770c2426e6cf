//! The state of a running transaction.
//!
//! An [`Execution`] holds the call ([`Invocation`]), which is the same in every process that runs a phase, the
//! values and waits that its phases have added, and two states:
//!
//! - [`Stage`]: how far it has got. It is `Undecided` until its first write. Then it is `Begun` if it has more
//!   to write, so that its intent stands at a store, and otherwise `Written`.
//! - [`Runner`]: for which purpose this process runs it, for its caller or as a helper.
//!
//! # Example
//!
//! `order` takes an item from stock at `shop` and then appends it to a feed at `feed`. In the process of its
//! caller, it is `Undecided` while the phase at `shop` runs, however often a conflict repeats that phase. The
//! commit at `shop` makes it `Begun`: its id is (7,41), the first phase has index 0, and the intent stands at
//! `shop`. The phase at `feed` leaves the stage as it is. If the process stops in between, a helper rebuilds the
//! execution from the intent: `Begun` from the start, with the runner `Helper`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mingle_lang::hir::StoreId;
use mingle_lang::split::Mode;
use mingle_lang::{Phase, Plan, Program};
use mingle_model::{Name, Principal, TransactionId, Value};
use mingle_store::{Data, Read};

use crate::execute::hold::{Hold, Holds};
use crate::execute::host::HostTransaction;
use crate::execute::prefetch::Prefetched;
use crate::in_flight::table::Left;
use crate::interpreter::machine::{Facts, Recorded};
use crate::protocol::call_key::CallKey;
use crate::protocol::intent::{Intent, ProgramHash, Witness};
use crate::protocol::leans::Leans;
use crate::protocol::wait_set::{Awaited, WaitSet};

/// A running transaction: of a caller, or one that another process has left.
pub(crate) struct Execution {
    /// The call: it stays the same in every process that runs a phase.
    pub(crate) call: Invocation,
    pub(crate) recorded: Recorded,
    pub(crate) result: Option<Value>,
    pub(crate) wait_set: WaitSet,
    /// The replica at which it runs.
    pub(crate) replica: Option<Name>,
    /// The replica of its session, which also runs its phases at stores that have homes.
    pub(crate) home: Option<Name>,
    pub(crate) stage: Stage,
    pub(crate) runner: Runner,
    /// Its id; an `isolated` transaction draws it before it writes.
    pub(crate) id: Option<TransactionId>,
    /// The reads before an endorsement with their answers, by store.
    pub(crate) endorsed: BTreeMap<StoreId, Vec<(Read, Data)>>,
    /// The transactions for which it has waited, and the stores where it did.
    pub(crate) satisfied: Vec<(Name, TransactionId, Awaited)>,
    /// The records that it leaves at its stores.
    pub(crate) left: Box<Left>,
    /// The time of its phases at stores whose writes bear timestamps; 0 before it has begun.
    pub(crate) time: u64,
    /// The takes that ran ahead.
    pub(crate) holds: Holds,
    /// The hold that its commit leaves, if it is itself a take that runs ahead for another transaction.
    pub(crate) hold: Option<Box<Hold>>,
}

/// The call of a transaction.
#[derive(Clone)]
pub(crate) struct Invocation {
    pub(crate) program: Arc<Program>,
    pub(crate) hash: ProgramHash,
    pub(crate) plan: Arc<Plan>,
    pub(crate) arguments: Vec<Value>,
    pub(crate) facts: Facts,
    pub(crate) principal: Option<Principal>,
    /// The key of the call. The next field is the digest that distinguishes calls with the same key.
    pub(crate) key: Option<CallKey>,
    pub(crate) digest: [u8; 32],
}

impl Invocation {
    /// Creates the call of a transaction without a key, and without a caller's name.
    pub(crate) fn new(
        (program, hash): (Arc<Program>, ProgramHash),
        plan: Arc<Plan>,
        arguments: Vec<Value>,
        facts: Facts,
    ) -> Self {
        Self { program, hash, plan, arguments, facts, principal: None, key: None, digest: [0; 32] }
    }
}

/// The progress of a transaction.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// It has written nothing: if it is given up, nothing is left behind.
    Undecided,
    /// It has written, and no other process need finish it.
    Written {
        /// The index of the store at which it has written first, if this process has seen it.
        first: Option<usize>,
    },
    /// It has written, and any process can finish it from its intent.
    Begun {
        begun: Begun,
        /// The index of the store at which it has written first, if this process has seen it.
        first: Option<usize>,
    },
}

/// The part that this process has in a transaction.
pub(crate) enum Runner {
    /// It runs the transaction for its caller.
    Caller(ForCaller),
    /// It finishes the transaction from its intent.
    Helper {
        /// The transactions that wait for it, each because of the next.
        chain: Vec<TransactionId>,
        /// True if it helps others although another task of this process is already at it.
        pushes: bool,
    },
}

/// The state of a transaction that only the process of its caller has.
#[derive(Default)]
pub(crate) struct ForCaller {
    /// The application's own transaction in which its first writing phase runs, if it is called in one.
    pub(crate) host: Option<HostTransaction>,
    /// True if the phase after the first writing one may read before that one commits.
    pub(crate) prefetches: bool,
    /// The phase that has read before the first commit.
    prefetched: Option<Box<Prefetched>>,
    /// A time before any other process can have met it, by this process's clock.
    decided_after: Option<Duration>,
    /// True if a lost answer may have held its result.
    pub(crate) is_result_lost: bool,
    /// The replicas that its session leans on.
    pub(crate) leans: Leans,
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
    pub(crate) fn new(call: Invocation, wait_set: WaitSet, replica: Option<Name>) -> Self {
        Self {
            recorded: Recorded::new(&call.plan),
            call,
            result: None,
            wait_set,
            home: replica.clone(),
            replica,
            stage: Stage::Undecided,
            runner: Runner::Caller(ForCaller::default()),
            id: None,
            endorsed: BTreeMap::new(),
            satisfied: Vec::new(),
            left: Box::default(),
            time: 0,
            holds: Holds::default(),
            hold: None,
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
        let facts = Facts { now: intent.now, seed: intent.seed };
        let recorded = Recorded::from_queues(&plan, intent.recorded);
        let call = Invocation {
            key: intent.key,
            principal: intent.principal,
            ..Invocation::new((program, intent.program), plan, intent.arguments, facts)
        };
        let begun = Begun { id, first: intent.first as usize, intent: place };
        Self {
            recorded,
            stage: Stage::Begun { begun, first: None },
            runner: Runner::Helper { chain: Vec::new(), pushes: false },
            id: Some(id),
            time: intent.time,
            ..Self::new(call, intent.wait_set, intent.replica)
        }
    }

    /// The intent that is kept for other processes once phase `first` has written.
    pub(crate) fn intent(&self, first: usize, recorded: &Recorded, wait_set: WaitSet) -> Intent {
        Intent {
            program: self.call.hash,
            transaction: self.call.plan.name.clone(),
            arguments: self.call.arguments.clone(),
            now: self.call.facts.now,
            seed: self.call.facts.seed,
            time: self.time,
            first: first as u32,
            recorded: recorded.queues().to_vec(),
            wait_set,
            replica: self.home.clone(),
            key: self.call.key,
            principal: self.call.principal.clone(),
        }
    }

    /// The last phase that leaves a commit witness, so that others can finish the transaction: the last one
    /// that writes. The reads of an `isolated` transaction after its writes must come before later writes
    /// of others there, so all of its phases count.
    pub(crate) fn last_witnessed(&self) -> Option<usize> {
        if self.call.plan.isolated && self.call.plan.phases.len() > 1 {
            return Some(self.call.plan.phases.len() - 1);
        }
        self.call.plan.phases.iter().rposition(|phase| phase.mode == Mode::Write)
    }

    pub(crate) fn store_name(&self, phase: &Phase) -> Option<Name> {
        phase.store.map(|store| self.call.program.checked.stores[store.index()].name.clone())
    }

    /// The stores of later phases that leave a commit witness.
    pub(crate) fn witnessed_later(&self, index: usize) -> BTreeSet<Name> {
        let last = self.last_witnessed().map_or(0, |last| last + 1);
        let later = self.call.plan.phases.get(index + 1..last).unwrap_or_default();
        later.iter().filter_map(|phase| self.store_name(phase)).collect()
    }

    /// Applies the content of a commit witness.
    pub(crate) fn take(&mut self, witness: Witness) {
        if let Witness::Committed { recorded, result, wait_set, .. } = witness {
            self.wait_set.join(&wait_set);
            let recorded = Recorded::from_queues(&self.call.plan, recorded);
            self.recorded.merge(recorded);
            self.result = result.or(self.result.take());
        }
    }
}

/// The progress.
impl Execution {
    /// Returns the facts that other processes need to finish it, if they can.
    pub(crate) fn begun(&self) -> Option<&Begun> {
        match &self.stage {
            Stage::Begun { begun, .. } => Some(begun),
            Stage::Undecided | Stage::Written { .. } => None,
        }
    }

    /// True if other processes can finish it.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun().is_some()
    }

    /// True if it has written.
    pub(crate) fn has_written(&self) -> bool {
        !matches!(self.stage, Stage::Undecided)
    }

    /// Returns the index of the store at which it has written first, if this process has seen it.
    pub(crate) fn wrote_first(&self) -> Option<usize> {
        match self.stage {
            Stage::Undecided => None,
            Stage::Written { first } | Stage::Begun { first, .. } => first,
        }
    }

    /// Takes note that it has written at a store.
    pub(crate) fn writes_at(&mut self, store: usize) {
        match &mut self.stage {
            Stage::Undecided => self.stage = Stage::Written { first: Some(store) },
            Stage::Written { first } | Stage::Begun { first, .. } => {
                first.get_or_insert(store);
            }
        }
    }

    /// Takes note that other processes can finish it from now on.
    pub(crate) fn begins(&mut self, begun: Begun) {
        self.stage = Stage::Begun { begun, first: self.wrote_first() };
    }
}

/// The part of this process.
impl Execution {
    /// True if this process finishes it from its intent.
    pub(crate) fn is_helper(&self) -> bool {
        matches!(self.runner, Runner::Helper { .. })
    }

    /// Returns the transactions that wait for it, each because of the next.
    pub(crate) fn chain(&self) -> &[TransactionId] {
        match &self.runner {
            Runner::Caller(_) => &[],
            Runner::Helper { chain, .. } => chain,
        }
    }

    /// True if it helps others although another task of this process is already at it.
    pub(crate) fn pushes(&self) -> bool {
        matches!(self.runner, Runner::Helper { pushes: true, .. })
    }

    /// True if its session leans on a replica of `store`: its reads there run at no other one.
    pub(crate) fn leans_at(&self, store: &str) -> bool {
        self.caller().is_some_and(|caller| !caller.leans.replicas(store).is_empty())
    }

    /// Returns the state that only the process of its caller has.
    pub(crate) fn caller(&self) -> Option<&ForCaller> {
        match &self.runner {
            Runner::Caller(caller) => Some(caller),
            Runner::Helper { .. } => None,
        }
    }

    pub(crate) fn caller_mut(&mut self) -> Option<&mut ForCaller> {
        match &mut self.runner {
            Runner::Caller(caller) => Some(caller),
            Runner::Helper { .. } => None,
        }
    }

    /// Returns the application's own transaction in which its first writing phase runs, if any.
    pub(crate) fn host(&self) -> Option<&HostTransaction> {
        self.caller()?.host.as_ref()
    }

    /// Returns a time before any other process can have met it; none for a helper.
    pub(crate) fn decided_after(&self) -> Option<Duration> {
        self.caller()?.decided_after
    }

    /// Takes note that no other process can have met it up to this time.
    pub(crate) fn is_decided_after(&mut self, time: Duration) {
        if let Some(caller) = self.caller_mut() {
            caller.decided_after = Some(time);
        }
    }

    /// Keeps the phase that has read before the first commit.
    pub(crate) fn keep_prefetched(&mut self, prefetched: Option<Box<Prefetched>>) {
        if let Some(caller) = self.caller_mut() {
            caller.prefetched = prefetched;
        }
    }

    /// Takes the phase of this index, if it has read before the first commit.
    pub(crate) fn take_prefetched(&mut self, index: usize) -> Option<Box<Prefetched>> {
        self.caller_mut()?.prefetched.take_if(|prefetched| prefetched.index == index)
    }
}
