//! The planned deaths of processes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::random::Random;
use mingle_store::wrap::fault::Call;

/// The moment of a process's death relative to a store call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// Just before the call reaches the store.
    Before,
    /// Just after the store has answered, before the caller has seen the answer.
    After,
}

/// The rates of process deaths, in 1/1000 of the calls, and the fate of commits then under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeathRates {
    /// The rate of deaths just before a call.
    pub before: u16,
    /// The rate of deaths just after a call.
    pub after: u16,
    /// The rate, in 1/1000, at which commits under way arrive although their process has died.
    pub late: u16,
    /// The maximum delay of such commits.
    pub late_most: Duration,
}

/// The calls at which processes die. The stores of a process, its incarnations and observers share
/// the plan.
#[derive(Debug)]
pub struct DeathPlan {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    is_on: bool,
    script: BTreeMap<u64, Moment>,
    rates: DeathRates,
    random: Random,
    calls: u64,
    kills: BTreeMap<(Call, Moment), u64>,
    late: u64,
}

impl DeathPlan {
    /// Kills at the calls that the script names, counted from 0 over all stores and incarnations.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_sim::process::{DeathPlan, Moment};
    ///
    /// let plan = DeathPlan::scripted([(3, Moment::After)]);
    /// assert_eq!(plan.calls(), 0);
    /// ```
    pub fn scripted(script: impl IntoIterator<Item = (u64, Moment)>) -> Arc<Self> {
        Self::new(0, script, DeathRates::default())
    }

    /// Kills at these rates; the same seed and calls give the same deaths.
    pub fn seeded(seed: u64, rates: DeathRates) -> Arc<Self> {
        Self::new(seed, [], rates)
    }

    /// Kills by script and at these rates.
    pub fn new(
        seed: u64,
        script: impl IntoIterator<Item = (u64, Moment)>,
        rates: DeathRates,
    ) -> Arc<Self> {
        let state = State {
            is_on: true,
            script: script.into_iter().collect(),
            rates,
            random: Random::new(seed),
            calls: 0,
            kills: BTreeMap::new(),
            late: 0,
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns deaths on or off; calls are counted either way.
    pub fn set_on(&self, is_on: bool) {
        self.state().is_on = is_on;
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Returns the number of deaths, by kind of call and moment.
    pub fn kills(&self) -> BTreeMap<(Call, Moment), u64> {
        self.state().kills.clone()
    }

    /// Returns the number of commits that arrived after the death of their process, or are under
    /// way.
    pub fn late(&self) -> u64 {
        self.state().late
    }

    /// Counts a call; returns the moment of death if the process dies of it.
    pub(super) fn next(&self, call: Call) -> Option<Moment> {
        let mut state = self.state();
        let index = state.calls;
        state.calls += 1;
        // The number is drawn even when deaths are off, so turning them off and on does not shift
        // later draws.
        let drawn = state.random.below(1000) as u16;
        if !state.is_on {
            return None;
        }
        let DeathRates { before, after, .. } = state.rates;
        let by_chance = match drawn {
            drawn if drawn < before => Some(Moment::Before),
            drawn if drawn < before.saturating_add(after) => Some(Moment::After),
            _ => None,
        };
        let moment = state.script.get(&index).copied().or(by_chance)?;
        *state.kills.entry((call, moment)).or_default() += 1;
        Some(moment)
    }

    /// Returns the delay with which a commit arrives after the death of its process, if it does
    /// arrive.
    pub(super) fn arrival(&self) -> Option<Duration> {
        let mut state = self.state();
        let DeathRates { late, late_most, .. } = state.rates;
        let arrives = (state.random.below(1000) as u16) < late;
        let most = usize::try_from(late_most.as_micros()).unwrap_or(usize::MAX - 1);
        let later = Duration::from_micros(state.random.below(most + 1) as u64);
        if !arrives || !state.is_on {
            return None;
        }
        state.late += 1;
        Some(later)
    }
}
