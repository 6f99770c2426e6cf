//! Runs a split program, phase after phase, over its stores.
//!
//! - [`machine`]: the interpreter of one phase; it computes, and says what it wants to read;
//! - [`overlay`]: the transaction's own writes, through which its reads see them;
//! - [`runtime`]: phases in order, conflicts, deadlines, cancellation;
//! - [`error`]: how a call can end without a result;
//! - [`tokio_world`]: the real clock, and tokio's tasks.

pub mod error;
pub mod limits;
pub mod machine;
pub mod overlay;
pub mod runtime;
pub mod tokio_world;

pub use error::Error;
pub use limits::Settings;
pub use runtime::{Call, CallReport, PhaseReport, Runtime};
pub use tokio_world::TokioWorld;
