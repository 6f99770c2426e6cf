//! Histories and runs, and the verdicts on them.

mod geo;
mod suite;
