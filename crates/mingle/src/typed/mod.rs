//! The base of the code that [`program!`](crate::program) generates: connecting, calls with their
//! options, and conversions between values and Rust types.
//!
//! - `connect`: opening the stores of a program;
//! - `call`: one call, and its options;
//! - `inside`: calls inside a transaction of the application;
//! - `value`: conversions between values of the language and values of Rust.

mod call;
mod connect;
#[cfg(feature = "postgres")]
mod inside;
mod value;

pub use call::{Call, Early, Outcome};
pub use connect::{Connect, Handle, Program};
#[cfg(feature = "postgres")]
pub use inside::Joined;
pub use mingle_model::{Date, Decimal, Document, Time, Value};
pub use value::{FromValue, Rushed, ToValue, fields_of, handle, key_of, record};

#[doc(hidden)]
pub use serde;
