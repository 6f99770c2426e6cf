//! Mixed-consistency transactions: connect a program to its stores, and call it.
//!
//! - [`binding`]: `mingle.toml`, which names the engine of each store;
//! - [`database`]: a program over its stores; `check` compares a binding with a program, `open`
//!   opens the stores; `datacenters`: data centers in this process;
//! - [`migration`]: the tables and columns that its stores still need;
//! - [`recovery`]: unfinished transactions; `inside`: calls inside a transaction of the application;
//! - [`texts`]: values from their texts, as on a command line;
//! - [`typed`]: the base of the code that [`program!`] generates.
//!
//! Each engine is a feature: `embedded` (on by default), `postgres`, `redis`, `cassandra`, `mingled`, and `worker`
//! for stores behind a worker. `sqlx` adds calls inside transactions that the application has begun with
//! sqlx; `cassandra-tls` adds encrypted connections to Cassandra.
//!
//! # Examples
//!
//! [`program!`] makes a program a part of the crate, with types; see the chapter `docs/rust.md` of the
//! book.
//!
//! ```
//! mod bank {
//!     mingle::program! {
//!         store accounts: linearizable;
//!         object Account in accounts { key owner: string; balance: int; }
//!         /// Pays in money.
//!         transaction deposit(account: ref Account, amount: int) -> int {
//!             require amount > 0 else "an amount is positive" as amount;
//!             account.balance += amount;
//!             return account.balance;
//!         }
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let db = bank::Database::connect().await.unwrap();
//! assert_eq!(db.deposit(&bank::Account::new("ana"), 20).await, Ok(20));
//! # });
//! ```
//!
//! An application can also load a program at run time.
//!
//! ```
//! use mingle::{Binding, Database};
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let text = "store accounts: linearizable;
//!     object Account in accounts { key owner: string; balance: int; }
//!     transaction deposit(account: ref Account, amount: int) -> int {
//!         require amount > 0 else \"an amount is positive\" as amount;
//!         account.balance += amount;
//!         return account.balance;
//!     }";
//! let program = mingle::compile(text).unwrap();
//! let database = Database::open(program, &Binding::default(), None).await.unwrap();
//! let arguments = [("account", "\"ana\""), ("amount", "20")];
//! let arguments = database.arguments("deposit", arguments).unwrap();
//! let report = database.call("deposit", arguments, Default::default()).await.unwrap();
//! assert_eq!(database.result_json("deposit", &report), serde_json::json!(20));
//! # });
//! ```
//!
//! A [`Session`] is one client: its transactions see all that it has seen and written before, at any
//! replica and through any server. Between two requests a client keeps the session as text.
//!
//! ```
//! use mingle::{Binding, Database, Session, SessionKey};
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let text = "store inboxes: causal;
//!     object User in inboxes { key name: string; inbox: log<string>; }
//!     transaction send(to: ref User, text: string) { to.inbox.append(text); }
//!     transaction read(user: ref User) -> list<string> { return user.inbox.to_list(); }";
//! let binding = "[stores.inboxes]\nreplicas = [\"oslo\", \"rome\"]\ndelay = \"20ms\"";
//! let binding = Binding::parse(binding).unwrap();
//! let program = mingle::compile(text).unwrap();
//! let database = Database::open(program, &binding, None).await.unwrap();
//!
//! // A request that is served in Oslo.
//! let session = Session::at("oslo");
//! let arguments = database.arguments("send", [("to", "ana"), ("text", "hello")]).unwrap();
//! database.call("send", arguments, session.clone()).await.unwrap();
//!
//! // The key is the same at all servers, and secret. What the client keeps is the token.
//! let key = SessionKey::new(*b"32 random bytes, kept by servers");
//! let token = session.token(&key);
//!
//! // The next one is served in Rome, which has not heard of the first: it waits for it.
//! let session = Session::from_token(&key, &token).unwrap();
//! session.move_to("rome");
//! let arguments = database.arguments("read", [("user", "ana")]).unwrap();
//! let report = database.call("read", arguments, session).await.unwrap();
//! assert_eq!(database.result_json("read", &report), serde_json::json!(["hello"]));
//! # });
//! ```

pub mod binding;
mod check;
#[cfg(feature = "embedded")]
mod conflicts;
pub mod database;
#[cfg(feature = "embedded")]
mod datacenters;
pub mod doctor;
#[cfg(feature = "postgres")]
mod inside;
pub mod migration;
mod open;
#[cfg(any(feature = "postgres", feature = "redis", feature = "cassandra"))]
mod overlaps;
pub mod recovery;
mod scope;
mod still;
#[cfg(feature = "embedded")]
mod strong_only;
pub mod texts;
pub mod typed;

use std::sync::Arc;

pub use binding::{Binding, BindingError};
pub use check::check_binding;
pub use database::Database;
pub use doctor::{Examined, StoreFindings, examine};
pub use migration::{Migration, apply_migrations, plan_migrations};
pub use mingle_macros::program;
pub use mingle_model::Principal;
pub use mingle_runtime::{
    Abandoned, Call, CallKey, CallReport, Error, Loss, PhaseReport, Settings, Swept, Unfinished,
};
pub use mingle_runtime::{Backlog, Found, Holdings, Place, Process, Survey, Unreachable};
pub use mingle_runtime::{Event, Watcher};
pub use mingle_runtime::{Inside, metrics};
pub use mingle_runtime::{Session, SessionKey, SessionScope, TokenError, TokioWorld};
pub use mingle_store::{Admission, Finding, Judgement, Listing, StoreError};
#[cfg(feature = "embedded")]
pub use mingle_store_embedded::storage::contain::is_contained;
#[cfg(feature = "embedded")]
pub use mingle_store_embedded::{Admitted, DatacenterState, DatacenterStatus, GeoStore, GivenUp};
#[cfg(feature = "postgres")]
pub use mingle_store_postgres::HostTransaction;
pub use open::OpenError;

/// The chapter of the book; its examples run as doc-tests.
#[cfg(all(doctest, feature = "postgres", feature = "sqlx"))]
#[doc = include_str!("../chapter.md")]
struct Chapter;

/// Checks a program and splits its transactions into phases.
///
/// # Errors
///
/// The diagnostics, rendered for people, if the program has errors.
pub fn compile(text: &str) -> Result<Arc<mingle_lang::Program>, String> {
    let checked = mingle_lang::check(text);
    match checked.program {
        Some(program) => Ok(Arc::new(program)),
        None => {
            let titles = checked
                .diagnostics
                .iter()
                .map(|diagnostic| format!("{}: {}", diagnostic.code, diagnostic.title));
            Err(titles.collect::<Vec<_>>().join("\n"))
        }
    }
}
