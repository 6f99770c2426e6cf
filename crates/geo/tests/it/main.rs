//! The protocol core: scripts, random runs, and the claims of the paper.

mod certify;
mod golden;
mod paper_tests;
mod random;
mod strong;
mod support;
