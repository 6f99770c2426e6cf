//! Golden scripts: one for each anomaly that the protocol must not show. Each file opens with what it
//! claims.

#[path = "../support/mod.rs"]
mod support;

mod alice_and_bob;
mod clock_skew;
mod clock_steps_back;
mod clocks;
mod coordinator_lost;
mod deposits;
mod disk;
mod epochs;
mod exposure;
mod folded_apart;
mod folding;
mod forwarding;
mod heartbeat;
mod idempotency;
mod key_ranges;
mod last_writer_order;
mod migration;
mod old_snapshot;
mod operation_ids;
mod outside_vectors;
mod properties;
mod replication;
mod skipped_operations;
mod slow_partition;
mod stale_prepared;
mod strong;
mod third_data_center;
mod transfer;
mod wait_deadline;
