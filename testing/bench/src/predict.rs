//! Predictions of latencies from the round-trip counts alone.

use mingle_lang::Program;
use mingle_lang::explain::{Explained, ExplainedPhase, explain};
use mingle_store::wrap::distance::Distance;

use crate::groups::MIX;
use crate::measured::Measured;

/// The paper's ratio of mixed to linearizable throughput for Message Groups (MixT §8.2).
pub const PAPER_RATIO: f64 = 3.5;

/// Returns the phases of the mix's transactions.
pub fn phases(text: &str, program: &Program) -> Vec<Explained> {
    let checked = mingle_lang::check(text);
    let plans = MIX.iter().filter_map(|(name, _)| program.plan(name));
    plans.map(|plan| explain(&checked.source, program, plan)).collect()
}

/// Returns the latency of each transaction from its round trips alone, in ms.
pub fn by_transaction(
    phases: &[Explained],
    distance: &dyn Fn(&ExplainedPhase) -> Distance,
) -> Vec<f64> {
    let predict = |explained: &Explained| -> f64 {
        let phases = explained.phases.iter();
        let ms = phases.map(|phase| {
            f64::from(phase.round_trips.fixed) * distance(phase).mean.as_secs_f64() * 1e3
        });
        ms.sum()
    };
    phases.iter().map(predict).collect()
}

/// Returns the mean of such latencies over the measured calls.
pub fn mean_ms(by_transaction: &[f64], measured: &Measured) -> f64 {
    let counts = measured.counts();
    let calls: f64 = counts.iter().map(|count| *count as f64).sum();
    let sum: f64 = counts.iter().zip(by_transaction).map(|(count, ms)| *count as f64 * ms).sum();
    sum / calls
}
