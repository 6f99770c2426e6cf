//! Golden scripts: one for each anomaly that the protocol must not show.

#[path = "../support/mod.rs"]
mod support;

mod forwarding;
