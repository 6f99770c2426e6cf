//! The systems of UniStore's evaluation (§8) in the simulator; each is checked against its own
//! promises.

use mingle_checker::geo::{Promise, check_some};
use mingle_geo::Baseline;

use super::fault::{Event, Fault};
use super::finish::play;
use super::plan::Plan;
use super::script::{Act, Step};
use super::setup::Setup;
use crate::workload::promises::Broken;

/// Returns the promises of a system.
pub fn promises(system: Baseline) -> Vec<Promise> {
    let has_strong = matches!(system, Baseline::UniStore | Baseline::Strong | Baseline::RedBlue);
    let is_promised = |promise: &Promise| match promise {
        Promise::ConflictOrder | Promise::StrictSerializability | Promise::Invariants => has_strong,
        Promise::Uniformity => system != Baseline::CureFt,
        _ => true,
    };
    Promise::ALL.into_iter().filter(is_promised).collect()
}

impl Plan {
    /// Returns the plan of a seed for one of the systems. For the full system, two seeds of three
    /// give the plan of [`Plan::scaled`]; the third has strong transactions too.
    pub fn of(system: Baseline, seed: u64, percent: usize) -> Self {
        let plan = Self::drawn(seed, percent, system.has_groups());
        let setup = plan.setup.of(system);
        Self { setup, ..plan }
    }

    /// Returns the same plan without lost data centers.
    #[must_use]
    pub fn without_loss(mut self) -> Self {
        let is_loss =
            |event: &Event| matches!(event, Event::Fault { fault: Fault::Lose { .. }, .. });
        self.schedule.retain(|event| !is_loss(event));
        self
    }

    /// Runs the plan and checks `promises`. `losses_max` overrides the number of data centers that
    /// the system may lose.
    ///
    /// # Errors
    ///
    /// The first promise that did not hold.
    pub fn keeps(&self, promises: &[Promise], losses_max: Option<u8>) -> Result<(), Broken> {
        let mut played = play(self, false);
        if let Some(broken) = played.broken {
            return Err(broken);
        }
        if let Some(most) = losses_max {
            played.run.system.losses_max = most;
        }
        match check_some(&played.run, promises).problems.first() {
            None => Ok(()),
            Some(problem) => {
                Err(Broken { promise: problem.promise.name(), how: problem.to_string() })
            }
        }
    }
}

impl Setup {
    fn of(mut self, system: Baseline) -> Self {
        self.system = system;
        self.config = system.config(self.config);
        let certifier = &mut self.strong.group.certifier;
        certifier.conflicts = system.conflicts(certifier.conflicts.clone());
        if system == Baseline::Strong {
            // Only causal transactions contain operations with ids.
            let accounts = self.accounts().to_vec();
            self.keys.truncate(self.plain_keys);
            self.keys.extend(accounts);
            self.floor_every_us = 0;
        }
        self
    }

    /// Translates an act to its form in this system.
    pub(super) fn act_of(&self, act: Act) -> Act {
        let Act::Transaction { mut steps, end, is_strong } = act else { return act };
        if !self.system.is_declared() {
            steps.retain(|step| !matches!(step, Step::Label(..)));
        }
        Act::Transaction { steps, end, is_strong: self.system.is_strong(is_strong) }
    }
}
