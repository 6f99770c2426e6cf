//! Cleaning up after origins that are gone, and an operator's view and means.

mod background;
pub mod survey;
pub mod sweeper;
