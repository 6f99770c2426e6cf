//! Golden scripts of the reference protocols: one story of the thesis per test.

mod causal;
mod eiger;
mod faults;
mod stage;
mod transactions;
mod wire;
