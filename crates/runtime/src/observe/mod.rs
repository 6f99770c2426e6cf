//! Counts of events, and figures for a metrics recorder.

pub mod metrics;
pub mod stats;
