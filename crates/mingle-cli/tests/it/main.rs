//! The `mingle` command, and clients of what it serves.

mod cli;
mod clients;
