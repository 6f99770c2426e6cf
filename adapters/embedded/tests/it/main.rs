//! The embedded engine.

mod builtin;
mod conformance;
mod crash;
mod damage;
mod damage_later;
mod engine;
mod geo;
mod geo_faults;
mod geo_labels;
mod geo_members;
mod geo_members_kept;
mod geo_mixed;
mod geo_shared;
mod geo_strong;
mod geo_strong_faults;
mod guards;
mod links;
mod open;
mod outcomes;
mod rename;
mod reopen;
mod serial;
mod suite;
mod support;
mod wrap;
mod wrap_everywhere;
