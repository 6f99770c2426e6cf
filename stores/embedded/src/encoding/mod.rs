//! How values and rows become bytes.
//!
//! - [`wire`]: the small parts that everything is made of.
//! - [`value`]: values as they stand in rows, exact to the bit.
//! - [`order`]: values as parts of keys: bytes compare as the values do, and no encoding is a
//!   prefix of another.
//! - [`key`]: where each row lives.
//! - [`row`]: what stands in it.

pub mod key;
pub mod order;
pub mod row;
pub mod value;
pub mod wire;
