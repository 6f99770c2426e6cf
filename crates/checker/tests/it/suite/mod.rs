//! The checker against known anomalies, against a brute-force checker, and against its bounds.

mod brute;
mod files;
mod formats;
mod golden;
mod random;
mod scale;
mod wide;
