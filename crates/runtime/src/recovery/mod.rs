//! Cleaning up after origins that are gone, and an operator's view and means.

pub mod abandon;
mod background;
pub(crate) mod dead_origins;
pub mod survey;
pub mod sweeper;
