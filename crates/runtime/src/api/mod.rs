//! The types that a caller sees: calls, sessions, settings, errors, and the events of a call.

pub mod call;
pub mod error;
pub mod session;
pub mod settings;
pub mod watch;
