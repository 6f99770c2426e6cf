//! Golden scripts: one for each anomaly that the protocol must not show. Each file opens with what it
//! claims.

#[path = "../support/mod.rs"]
mod support;

mod clocks;
mod coordinator_lost;
mod disk;
mod exposure;
mod folding;
mod forwarding;
mod idempotency;
mod migration;
mod operation_ids;
mod outside_vectors;
mod replication;
mod strong;
mod transfer;
