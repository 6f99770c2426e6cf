//! The form of values as bytes, of which [`wire`](crate::wire) makes messages and records.
//!
//! The form follows from the type: fields in the order of their declaration, without names; a variant
//! is its number in the order of declaration.

mod error;
mod read;
#[cfg(test)]
pub mod trace;
mod version;
mod write;

pub use error::WireError;
pub(crate) use read::Reader;
pub use version::{VERSION, VERSIONS, Versions};
pub(crate) use write::{put_near, put_number, put_timestamp, put_value, put_vector, size_of_value};
