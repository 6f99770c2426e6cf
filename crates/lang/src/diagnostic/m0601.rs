#![doc = include_str!("m0601.md")]

use super::{Code, Diagnostic};
use crate::syntax::Span;

pub(crate) enum NoPolicy {
    /// What it stands after reads no field.
    NoRead,
    /// What it stands after writes.
    Write,
    /// No operation of the field's type that reads.
    Operation { name: String, on: String },
    /// The level is not weaker than the store's.
    Stronger { asked: String, own: String },
    /// A bound of zero.
    Zero,
    /// A bound above the maximum.
    TooLong,
}

pub(crate) fn render(why: NoPolicy, span: Span) -> Diagnostic {
    let (title, label, note) = match why {
        NoPolicy::NoRead => (
            "a policy stands after a read of a field".to_owned(),
            "this reads no field",
            "a field, an operation that reads a collection, and `exists()` can have one",
        ),
        NoPolicy::Write => (
            "a policy stands after a read, not after a write".to_owned(),
            "on a write",
            "writes always take effect at the level of their store",
        ),
        NoPolicy::Operation { name, on } => (
            format!("`{name}` is no reading operation of `{on}`"),
            "a policy of this operation",
            "a policy before the first operation's name holds for all reads of the field",
        ),
        NoPolicy::Stronger { asked, own } => (
            format!("`at {asked}` is not weaker than the store's own level, {own}"),
            "not weaker",
            "a store gives its own level and weaker ones; a stronger one needs another store",
        ),
        NoPolicy::Zero => (
            "no answer comes within 0 ms".to_owned(),
            "a bound of zero",
            "`at LEVEL` reads at a weaker level without a bound",
        ),
        NoPolicy::TooLong => (
            "a bound is at most one hour".to_owned(),
            "too long",
            "without a policy a read waits until the deadline of its call",
        ),
    };
    Diagnostic::new(Code::M0601, title, span, label).with_note(note)
}
