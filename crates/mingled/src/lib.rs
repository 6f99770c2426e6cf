//! A data center of Mingle's geo-replicated store as a process.
//!
//! The protocol is `mingle-geo`, and the shell around it `mingle-geo-node`; neither does any I/O. This
//! crate is the driver that an operating system runs: it has the files, the connections, the threads
//! and the clocks.
//!
//! - [`FileJournal`] is the journal in a folder, which never makes its caller wait for the disk.
//! - [`check_log`] reads it without a process; [`backup`] copies the items of one that runs, and restores them.
//! - [`process`] runs all partitions of a data center, connects it with the others, and has sessions.
//! - [`resp`] is Redis's protocol, [`commands`] its commands on items, both without I/O.
//! - [`server`] runs them for clients, whose rights and encryption [`access`] has.
//! - [`stores`] has the stores of Mingle's programs.

pub mod access;
pub mod backup;
pub mod check_log;
pub mod commands;
mod files;
mod journal;
pub mod process;
pub mod resp;
pub mod server;
pub mod stores;

pub use journal::{FileJournal, JournalSettings, OpenError, Report, Restored};

/// Returns a random number, new at each call and in each process.
#[doc(hidden)]
pub fn random() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    // The standard library draws the keys of each hasher from the operating system's randomness and a
    // counter.
    mingle_model::random::mix(RandomState::new().hash_one(std::process::id()))
}
