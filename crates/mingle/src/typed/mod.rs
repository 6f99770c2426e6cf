//! What [`program!`](crate::program) generates builds upon this: connecting, calls with their
//! options, and values as Rust's types.
//!
//! - `connect`: opening the stores of a program;
//! - `call`: one call, and what can be said of it;
//! - `inside`: calls inside a transaction of the application's;
//! - `value`: values of the language from and to those of Rust.

mod call;
mod connect;
#[cfg(feature = "postgres")]
mod inside;
mod value;

pub use call::{Call, Early, Outcome};
pub use connect::{Connect, Handle, Program};
#[cfg(feature = "postgres")]
pub use inside::Joined;
pub use mingle_model::{Time, Value};
pub use value::{FromValue, ToValue, fields_of, handle, key_of, record};

#[doc(hidden)]
pub use serde;
