//! The `mingle` command, and clients of its server.

mod cli;
mod clients;
