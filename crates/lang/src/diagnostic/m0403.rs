#![doc = include_str!("m0403.md")]

use super::flow::Place;
use super::{Code, Diagnostic};
use crate::syntax::Span;

/// Renders an `isolated` transaction that visits a store for an endorsement, with the read at
/// `early`, and again afterwards, with the effect at `late`.
pub(crate) fn render(late: Span, early: Span, isolated: Span, store: &Place) -> Diagnostic {
    let diagnostic = Diagnostic::new(
        Code::M0403,
        format!("an `isolated` transaction visits {store} for an `endorse`, and again afterwards"),
        late,
        "visits the store after others",
    );
    let diagnostic =
        if late == early { diagnostic } else { diagnostic.with_label(early, "read before all else, for the sake of an `endorse`") };
    diagnostic
        .with_label(isolated, "each store is visited once, in one order")
        .with_note("use the endorsed value alone, or write this store in a transaction of its own")
}
