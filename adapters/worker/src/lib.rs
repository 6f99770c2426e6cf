//! Stores behind a worker: `mingle serve --worker` beside a distant store runs whole phases there,
//! in one round trip each (MixT §7.2), and forwards other operations of a store one by one.
//!
//! - [`WorkerStore`]: the store, as the runtime sees it;
//! - [`config`]: the address and credentials of the worker;
//! - `errand`: whole phases; `transaction`: single operations;
//! - [`Principals`]: the callers that a worker's client may act for;
//! - `link`: connections; [`wire`]: the protocol, which the server shares;
//! - [`limits`]: the named bounds.
//!
//! Bodies are postcard, not JSON: reads, records and witness rows are not values of the language,
//! so its JSON, which is decoded by types, has no form for them; intents and witnesses are postcard
//! already.

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
