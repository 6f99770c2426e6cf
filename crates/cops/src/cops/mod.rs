//! COPS, COPS-RT, COPS-CD, and the baselines `eventual` and `log` (thesis, chapter 4 and §6.3).
//!
//! A write is accepted by the server of its key in the client's data center, and sent to the
//! equivalent servers of the other data centers, each of which applies it once its dependencies are
//! applied there:
//!
//! ```text
//!   client ── write_after(key, value, deps) ──► server ── replicated write ──► equivalent server
//!                                                                                │ dep_check(key, ts)
//!                                                                                ▼
//!                                                             the servers of the dependencies there
//! ```
//!
//! - [`server`]: the servers; `versions` is the content of a key.
//! - [`client`]: the client library with the contexts of its actors.
//!
//! # Departures
//!
//! - The timestamps of a key's concurrent versions in COPS-CD are all kept until a write replaces
//!   them; the function of the conflict handler sees them in their order. The thesis leaves open how
//!   a handler converges.
//! - In `log`, a write follows all that its data center has applied, also from other data centers: their
//!   logs are exchanged in pairs, and causality over three data centers needs it.
//! - A dependency is satisfied once its own operation is applied, not once a newer one of its key is:
//!   see `dep_check`.
//! - Servers compute no global checkpoint time (§6.1); a driver that knows one tells the clients
//!   ([`Client::set_checkpoint`](client::Client::set_checkpoint)). Otherwise contexts in COPS are cleared by each write, and in COPS-RT by the
//!   never-depend flag.

pub mod client;
pub mod server;
mod versions;
