//! The server over real connections, from this machine to itself.

mod access;
mod browser;
mod calls;
mod client;
mod documents;
mod hostile;
mod keys;
mod objects;
mod sessions;
mod stopping;
mod tls;
