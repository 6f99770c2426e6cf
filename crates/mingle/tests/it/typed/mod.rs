//! Programs as Rust: what `mingle::program!` generates, called over real stores.

mod cancelled;
mod errors;
mod figures;
mod forms;
mod options;
mod spans;

/// From a file.
mod groups {
    mingle::program!("../../examples/message_groups.mingle");
}

/// As `mingle gen rust` writes it.
mod written {
    include!("../../generated/message_groups.rs");
}
