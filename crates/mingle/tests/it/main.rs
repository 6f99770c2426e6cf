//! Programs over their stores, as applications use them.

mod ahead;
mod anomalies;
mod circle;
mod concurrency;
mod contest;
mod costs;
mod early;
mod engines;
mod examples;
mod geo;
mod geo_bank;
mod geo_strong;
mod geo_united;
mod here;
mod inside;
mod keys;
mod long_group;
mod operations;
mod owed;
mod recovery;
mod round_trips;
mod running;
mod sessions;
mod support;
mod typed;
