//! The server over real connections, from this machine to itself.

mod access;
mod browser;
mod calls;
mod client;
mod computing;
mod described;
mod documents;
mod exact;
mod heads;
mod hostile;
mod keys;
mod objects;
mod outcomes;
mod overload;
mod rules;
mod sessions;
mod stopping;
mod tls;
