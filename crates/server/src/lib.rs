//! Serves a program over HTTP: each transaction is a `POST`, each object a `GET`.
//!
//! - [`config`]: access, TLS and bounds of a server ([`limits`]: their defaults);
//! - [`access`]: API tokens and their rights; [`tls`]: certificates;
//! - [`server`]: connections, from the first to the last;
//! - `heads`: heads of requests, which reach hyper only if they are correct;
//! - `overload`: admission of calls: refuses calls if others of the same sort take too long;
//! - `router`: the routes; `app`: the state that all requests share;
//! - `body`, `arguments`: a request's body, and the values in it; `budget`: the memory of all
//!   requests;
//! - `calls`: transactions; `live`: watching a running call; `objects`: looking at data;
//! - [`problem`]: every way in which a request can fail, with its code;
//! - [`openapi`]: the interface of a program as an OpenAPI document;
//! - `worker`: whole phases for clients elsewhere;
//! - `page`: the page for people, `shapes`: types for its forms; `crash`: crashes on request; [`metrics`]: figures for Prometheus.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use mingle::{Binding, Database};
//! use mingle_server::{Config, Server};
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let text = "store s: linearizable; object Item in s { key name: string; count: int; }
//!     transaction take(item: ref Item) -> int { item.count -= 1; return item.count; }";
//! let program = mingle::compile(text).unwrap();
//! let database = Database::open(program, &Binding::default(), None).await.unwrap();
//! let address = "127.0.0.1:0".parse().unwrap();
//! let server = Server::bind(Arc::new(database), address, Config::default()).await.unwrap();
//! assert!(server.address().port() != 0);
//! // It serves until it is told to stop.
//! assert!(server.run(async {}).await);
//! # });
//! ```

pub mod access;
mod app;
mod arguments;
mod body;
mod budget;
mod calls;
pub mod config;
mod crash;
mod heads;
mod keys;
pub mod limits;
mod live;
pub mod metrics;
mod objects;
mod observed;
pub mod openapi;
#[cfg(feature = "otlp")]
pub mod otlp;
mod overload;
mod page;
mod patient;
pub mod problem;
mod router;
pub mod server;
mod shapes;
pub mod tls;
mod worker;

pub use access::{Rights, Tokens, TokensError};
pub use config::{Config, ConfigError};
pub use crash::Crash;
pub use openapi::document;
pub use server::Server;
pub use worker::WorkerBounds;
