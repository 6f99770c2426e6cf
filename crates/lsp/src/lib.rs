//! The language server of Mingle: messages in, messages out.
//!
//! [`Server`] does no I/O except through the [`Disk`] that the caller gives it: the caller passes it the bodies of messages as they arrive, and sends
//! the messages that [`Server::poll`] returns. [`frame`] splits a stream of bytes into bodies.
//!
//! - `rpc`: JSON-RPC, and the errors for invalid messages;
//! - `text`: lines and columns as the protocol counts them;
//! - `files`: the files of a program, open and on disk;
//! - `document`: an open document and the compiler's results for it;
//! - `server`: the protocol's states, from `initialize` to `exit`;
//! - one module for each editor feature.
//!
//! Invariant: the server has no language rules of its own. Names, types, flows and phases come from
//! `mingle-lang`, so the editor shows the same as `mingle check`.
//!
//! Messages are decoded by hand instead of with the `lsp-server` crate, which ends the connection
//! at the first message that is not JSON; this server answers it with an error.

mod actions;
mod completion;
mod diagnostics;
mod document;
mod files;
pub mod frame;
mod hints;
mod hover;
mod layout;
mod names;
mod rename;
mod rpc;
mod server;
mod symbols;
mod text;

pub use files::Disk;
pub use server::Server;
