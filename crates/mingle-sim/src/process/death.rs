//! When a process dies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_model::random::Random;
use mingle_store::wrap::fault::Call;

/// When a process dies, as seen from one call to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// Just before the store hears of the call.
    Before,
    /// Just after it has answered, before anyone has seen the answer.
    After,
}

/// How often processes die, in calls out of a thousand, and what becomes of their last words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeathRates {
    /// Deaths just before a call.
    pub before: u16,
    /// Deaths just after a call.
    pub after: u16,
    /// Of commits that are on their way when their process dies, out of a thousand, how many
    /// arrive all the same.
    pub late: u16,
    /// At most how much later they arrive.
    pub late_most: Duration,
}

/// At which calls processes die. Shared by the stores of a process and by its incarnations, and
/// with whoever watches.
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

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// How many deaths there were, by kind of call.
    pub fn kills(&self) -> BTreeMap<(Call, Moment), u64> {
        self.state().kills.clone()
    }

    /// How many commits arrived after the death of their process, or are on their way.
    pub fn late(&self) -> u64 {
        self.state().late
    }

    /// Counts a call, and says whether the process dies of it.
    pub(super) fn next(&self, call: Call) -> Option<Moment> {
        let mut state = self.state();
        let index = state.calls;
        state.calls += 1;
        // Drawn even when off, so that turning deaths off and on shifts nothing.
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

    /// How much later a commit arrives whose process has died, if it does.
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
