//! The interpreter of a phase's instructions, without I/O.

pub mod machine;
pub mod write_buffer;
