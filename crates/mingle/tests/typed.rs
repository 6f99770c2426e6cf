//! Programs as Rust: what `mingle::program!` generates, called over real stores.

#[path = "typed/cancelled.rs"]
mod cancelled;
#[path = "typed/errors.rs"]
mod errors;
#[path = "typed/figures.rs"]
mod figures;
#[path = "typed/forms.rs"]
mod forms;
#[path = "typed/options.rs"]
mod options;
#[path = "typed/spans.rs"]
mod spans;
mod support;

/// From a file.
mod groups {
    mingle::program!("../../examples/message_groups.mingle");
}

/// As `mingle gen rust` writes it.
mod written {
    include!("generated/message_groups.rs");
}
