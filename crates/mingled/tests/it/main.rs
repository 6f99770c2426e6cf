//! Tests of the driver over real files, connections and processes.

mod check_log;
mod child;
mod clients;
mod journal;
mod process;
mod stores;
