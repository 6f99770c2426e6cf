//! The interpreter of a phase's instructions, without I/O.

pub(crate) mod instructions;
pub mod machine;
pub mod write_buffer;
