//! Stores behind a worker: `mingle serve --worker` beside a distant store runs whole phases there, in
//! one round trip each (MixT §7.2), and lets the rest of what a store is asked go one by one.
//!
//! - [`WorkerStore`]: the store, as the runtime sees it;
//! - [`config`]: where the worker is, and how to be let in;
//! - `errand`: phases that run whole; `transaction`: what goes one by one;
//! - [`Principals`]: whose calls a worker takes;
//! - `link`: connections; [`wire`]: what is said, which the server shares;
//! - [`limits`]: the named bounds.
//!
//! What is sent is postcard, not JSON: reads, records and witness rows are no values of the language, so
//! its JSON, which is read by types, has no form for them; intents and witnesses are postcard already.

pub mod config;
mod errand;
pub mod limits;
mod link;
mod principals;
mod store;
mod transaction;
pub mod wire;

pub use config::{OpenError, WorkerConfig};
pub use principals::Principals;
pub use store::WorkerStore;
