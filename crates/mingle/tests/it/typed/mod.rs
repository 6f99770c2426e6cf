//! Programs as Rust: the code that `mingle::program!` generates, called over real stores.

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

/// The output of `mingle gen rust`.
mod written {
    include!("../../generated/message_groups.rs");
}
