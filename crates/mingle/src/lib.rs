//! Mixed-consistency transactions: connect a program to its stores, and call it.
//!
//! - [`binding`]: `mingle.toml`, which says what engine each store is;
//! - [`database`]: a program over its stores.
//!
//! # Examples
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
//! let database = Database::open(program, &Binding::default(), None).unwrap();
//! let arguments = [("account", "\"ana\""), ("amount", "20")];
//! let arguments = database.arguments("deposit", arguments).unwrap();
//! let report = database.call("deposit", arguments, Default::default()).await.unwrap();
//! assert_eq!(database.result_json("deposit", &report), serde_json::json!(20));
//! # });
//! ```

pub mod binding;
pub mod database;

use std::sync::Arc;

pub use binding::{Binding, BindingError};
pub use database::{Database, OpenError};
pub use mingle_runtime::{CallReport, Error, PhaseReport, Settings};
pub use mingle_store::Session;

/// Checks and splits a program.
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
