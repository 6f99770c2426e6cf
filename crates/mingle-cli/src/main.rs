//! The `mingle` command.
fn main() {}
