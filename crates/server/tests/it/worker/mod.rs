//! Phases that run beside a distant store, over real connections.

mod bounds;
mod by_id;
mod conformance;
mod faults;
mod killed;
mod principals;
mod programs;
mod replicas;
mod site;
mod tls;
mod trips;
