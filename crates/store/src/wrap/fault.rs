//! Injects faults: by a script, or by chance from a seed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mingle_model::Name;

use super::layer::{Layer, Layered, Request, Work};
use crate::store::{Capabilities, Commit, Committed, DataStore, StoreError, Transaction};
use crate::world::BoxFuture;

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// [`DataStore::begin`].
    Begin,
    /// [`Transaction::read`].
    Read,
    /// [`Transaction::flush`].
    Flush,
    /// [`Transaction::commit`] of a transaction that wrote something, or has guards.
    Commit,
    /// [`DataStore::outcome`].
    Outcome,
    /// [`DataStore::everywhere`].
    Everywhere,
}

/// A fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The call is answered with [`StoreError::Conflict`], and nothing is done. Not for `begin`,
    /// `outcome` and `everywhere`, which are [`Fault::Unavailable`] instead.
    Conflict,
    /// The call is answered with [`StoreError::Unavailable`], and nothing is done.
    Unavailable,
    /// A commit is lost on its way: nothing is done, and the answer is [`StoreError::Unknown`].
    /// Other calls are [`Fault::Unavailable`].
    LostBefore,
    /// A commit takes effect if it can, but the answer is [`StoreError::Unknown`]. Other calls
    /// are done and [`Fault::Unavailable`].
    LostAfter,
    /// A commit is delayed on its way, and the answer is [`StoreError::Unknown`]. It arrives when
    /// the test calls [`FaultPlan::release`]. Other calls are [`Fault::Unavailable`]. By
    /// script alone.
    HeldUp,
    /// The call is answered with [`StoreError::Refused`], and nothing is done. By script alone.
    Refused,
    /// The call is never answered. A commit takes effect if it can; other calls do nothing. By script
    /// alone.
    Silent,
}

/// The rate of each fault, in calls out of a thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// [`Fault::Conflict`], of reads, flushes and commits.
    pub conflict: u16,
    /// [`Fault::Unavailable`], of all calls.
    pub unavailable: u16,
    /// [`Fault::LostBefore`], of commits.
    pub lost_before: u16,
    /// [`Fault::LostAfter`], of commits.
    pub lost_after: u16,
}

/// The calls that fail. The plan is shared by the store and the test that watches it.
#[derive(Debug)]
pub struct FaultPlan {
    is_on: AtomicBool,
    state: Mutex<State>,
    held_up: Mutex<Vec<HeldUp>>,
}

/// A commit that has not arrived yet.
struct HeldUp {
    transaction: Box<dyn Transaction>,
    commit: Commit,
}

impl fmt::Debug for HeldUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldUp").field("commit", &self.commit).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    script: BTreeMap<(Call, u64), Fault>,
    rates: Rates,
    random: u64,
    calls: BTreeMap<Call, u64>,
    injected: BTreeMap<(Call, Fault), u64>,
}

impl FaultPlan {
    /// Fails the calls that the script names by kind and by index among the calls of that kind, from 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_store::wrap::fault::{Call, Fault, FaultPlan};
    ///
    /// let plan = FaultPlan::scripted([(Call::Commit, 0, Fault::LostAfter)]);
    /// assert_eq!(plan.calls(Call::Commit), 0);
    /// ```
    pub fn scripted(script: impl IntoIterator<Item = (Call, u64, Fault)>) -> Arc<Self> {
        let script = script.into_iter().map(|(call, index, fault)| ((call, index), fault));
        Self::new(State { script: script.collect(), ..State::default() })
    }

    /// Fails calls at these rates; the same seed and calls give the same faults.
    pub fn seeded(seed: u64, rates: Rates) -> Arc<Self> {
        Self::new(State { rates, random: seed, ..State::default() })
    }

    fn new(state: State) -> Arc<Self> {
        Arc::new(Self {
            is_on: AtomicBool::new(true),
            state: Mutex::new(state),
            held_up: Mutex::new(Vec::new()),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns faults on or off; calls are counted either way.
    pub fn set_on(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Release);
    }

    /// Returns the number of calls of this kind.
    pub fn calls(&self, call: Call) -> u64 {
        self.state().calls.get(&call).copied().unwrap_or(0)
    }

    /// Returns the number of injected faults, by kind of call and fault.
    pub fn injected(&self) -> BTreeMap<(Call, Fault), u64> {
        self.state().injected.clone()
    }

    /// Lets all delayed commits arrive, oldest first; returns their answers, for which no caller
    /// waits any more.
    pub async fn release(&self) -> Vec<Result<Committed, StoreError>> {
        let held_up = std::mem::take(&mut *self.held_up());
        let mut answers = Vec::with_capacity(held_up.len());
        for late in held_up {
            answers.push(late.transaction.commit(late.commit).await);
        }
        answers
    }

    fn held_up(&self) -> MutexGuard<'_, Vec<HeldUp>> {
        self.held_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, and returns its fault, if it has one.
    fn next(&self, call: Call) -> Option<Fault> {
        let mut state = self.state();
        let count = state.calls.entry(call).or_default();
        let index = *count;
        *count += 1;
        // Drawn even when off, so that turning faults off and on does not shift the later ones.
        let drawn = state.draw(call);
        if !self.is_on.load(Ordering::Acquire) {
            return None;
        }
        let fault = state.script.get(&(call, index)).copied().or(drawn)?;
        *state.injected.entry((call, fault)).or_default() += 1;
        Some(fault)
    }
}

impl State {
    fn draw(&mut self, call: Call) -> Option<Fault> {
        let Rates { conflict, unavailable, lost_before, lost_after } = self.rates;
        let mut left = crate::random::next_random(&mut self.random) % 1000;
        let mut falls = |rate: u16| {
            let falls = left < u64::from(rate);
            left = left.wrapping_sub(u64::from(rate));
            falls
        };
        let may_conflict = matches!(call, Call::Read | Call::Flush | Call::Commit);
        if falls(unavailable) {
            return Some(Fault::Unavailable);
        }
        if may_conflict && falls(conflict) {
            return Some(Fault::Conflict);
        }
        if call == Call::Commit {
            if falls(lost_before) {
                return Some(Fault::LostBefore);
            }
            if falls(lost_after) {
                return Some(Fault::LostAfter);
            }
        }
        None
    }
}

/// A store that fails as planned.
pub type FaultyStore = Layered<Faulty>;

/// The layer that fails.
#[derive(Clone)]
pub struct Faulty {
    store: Name,
    plan: Arc<FaultPlan>,
}

impl FaultyStore {
    /// Makes `inner` fail as planned.
    pub fn new(inner: Arc<dyn DataStore>, plan: Arc<FaultPlan>) -> Arc<Self> {
        let store = inner.capabilities().store.clone();
        Self::around(inner, Faulty { store, plan })
    }
}

impl Faulty {
    fn unavailable(&self) -> StoreError {
        StoreError::Unavailable { store: self.store.clone(), reason: REASON.into() }
    }

    fn refused(&self) -> StoreError {
        StoreError::Refused { store: self.store.clone(), reason: REASON.into() }
    }
}

const REASON: &str = "a fault was injected";

impl Layer for Faulty {
    fn change(&self, capabilities: &mut Capabilities) {
        capabilities.may_lose_answers = true;
    }

    async fn call<T: Send>(
        &self,
        request: Request<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        match (self.plan.next(request.call()), request) {
            (None, _) => work().await,
            (Some(Fault::Refused), _) => Err(self.refused()),
            (Some(Fault::Silent), _) => std::future::pending().await,
            (Some(Fault::Conflict), Request::Read(_) | Request::Flush { .. }) => {
                Err(StoreError::Conflict)
            }
            (Some(Fault::LostAfter), request) if !matches!(request, Request::Begin) => {
                work().await?;
                Err(self.unavailable())
            }
            (Some(_), _) => Err(self.unavailable()),
        }
    }

    fn commit(
        self,
        request: Request<'static>,
        inner: Box<dyn Transaction>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            if request.is_free() {
                return inner.commit(commit).await;
            }
            let lost = StoreError::Unknown { store: self.store.clone(), id: commit.id };
            match self.plan.next(Call::Commit) {
                None => inner.commit(commit).await,
                Some(Fault::Conflict) => Err(StoreError::Conflict),
                Some(Fault::Unavailable) => Err(self.unavailable()),
                Some(Fault::Refused) => Err(self.refused()),
                Some(Fault::Silent) => {
                    let _unheard = inner.commit(commit).await;
                    std::future::pending().await
                }
                Some(Fault::LostBefore) => Err(lost),
                Some(Fault::HeldUp) => {
                    self.plan.held_up().push(HeldUp { transaction: inner, commit });
                    Err(lost)
                }
                Some(Fault::LostAfter) => {
                    // The answer is discarded: it is lost.
                    let _unheard = inner.commit(commit).await;
                    Err(lost)
                }
            }
        })
    }
}
