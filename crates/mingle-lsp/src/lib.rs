//! The language server of Mingle: messages in, messages out.
//!
//! [`Server`] knows nothing of pipes: who runs it hands over the bodies of messages as they come,
//! and sends what [`Server::poll`] gives. [`frame`] cuts a stream of bytes into bodies.
//!
//! - `rpc`: JSON-RPC, and what is wrong with a message that is none;
//! - `text`: lines and columns as the protocol counts them;
//! - `document`: an open document and what the compiler knows of it;
//! - `server`: the order of things, from `initialize` to `exit`;
//! - one module for each thing that an editor asks for.
//!
//! Invariant: the server has no opinion of its own on the language. Names, types, flows and
//! phases come from `mingle-lang`, so the editor says what `mingle check` says.
//!
//! Messages are decoded by hand and not by the `lsp-server` crate: that one ends the connection at
//! the first message that is not JSON, where a client deserves an answer.

mod actions;
mod completion;
mod diagnostics;
mod document;
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

pub use server::Server;
