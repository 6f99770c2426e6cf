//! Tests of the driver over real files, connections and processes.

mod child;
mod journal;
mod process;
