//! Seeds of the simulation, and the same clients over real servers.

mod cops;
mod geo;
mod geo_baselines;
mod live;
mod live_replicas;
mod outage;
mod simulation;
