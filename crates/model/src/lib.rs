//! Values, types, levels and ids shared by the pure crates of Mingle.
//!
//! Everything here is data. Nothing reads a clock, a file or a socket, and nothing draws a random
//! number, so the compiler, the checkers and the simulator can all depend on it.
//!
//! - [`value`]: the values that programs compute with, totally ordered and hashable.
//! - [`types`]: the declarations of a program: objects, fields, structs, in a [`Schema`].
//! - [`level`]: consistency levels and their order.
//! - [`json`]: the one JSON form of values, the same in every tool.
//! - [`Document`]: the opaque value `json`; [`Tree`]: JSON whose numbers lose nothing.
//! - [`parse_json`]: JSON text without repeated members.
//! - [`id`]: transactions, versions, stamps and witness rows.
//! - [`index`]: reads of indexes; [`BuiltinQuery`]: these, and keys that a store draws.
//! - [`Principal`]: the caller of a transaction.
//! - [`limits`]: the named bounds on sizes.
//! - [`random`]: seeded random numbers.

mod builtin;
mod date;
mod decimal;
mod decode;
mod document;
mod enumeration;
pub mod id;
pub mod index;
pub mod json;
pub mod level;
pub mod limits;
mod parse;
mod principal;
pub mod random;
mod time;
pub mod types;
pub mod value;

pub use builtin::BuiltinQuery;
pub use date::Date;
pub use decimal::Decimal;
pub use document::{Document, Tree, TreeError};
pub use enumeration::Undeclared;
pub use id::{Origin, RowKind, Stamp, TransactionId, Version, WitnessRow};
pub use index::{IndexQuestion, IndexRead, Taken};
pub use level::{Level, LevelId, Levels};
pub use parse::parse_json;
pub use principal::{NoPrincipal, Principal};
pub use time::Time;
pub use types::{
    EnumType, EnumValue, Field, FieldType, ObjectType, Schema, Shape, StructType, Type,
};
pub use value::{Float, Name, Ref, Value};
