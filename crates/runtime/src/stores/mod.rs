//! The program's stores, and all that this process has learned of them.

pub(crate) mod admission;
pub mod answers;
pub mod availability;
pub(crate) mod deadline;
pub mod lost_replicas;
pub(crate) mod records;
pub(crate) mod visibility;
pub(crate) mod visibility_cache;
