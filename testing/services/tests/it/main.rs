//! Real servers, and the command that keeps them.

mod command;
mod proxied;
mod servers;
mod wire;
