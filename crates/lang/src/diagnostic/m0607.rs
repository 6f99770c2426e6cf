#![doc = include_str!("m0607.md")]

use super::{Code, Diagnostic, Edit};
use crate::syntax::Span;

pub(crate) enum Misplaced {
    /// Its result is dropped; the edit that requires it.
    Dropped { operation: String, edit: Edit },
    /// It stands within an expression.
    Inside { operation: String },
    /// It stands in a function.
    Function { operation: String },
    /// It decides an endorsement.
    Endorsed,
    /// It runs ahead of a gift that stands before it.
    AfterGive { give: Span },
}

pub(crate) fn render(misplaced: Misplaced, span: Span) -> Diagnostic {
    let new = |title: String, label: &str| Diagnostic::new(Code::M0607, title, span, label);
    match misplaced {
        Misplaced::Dropped { operation, edit } => {
            new(format!("the result of `{operation}` says if it took effect"), "its result is dropped")
                .with_help("require it", vec![edit])
        }
        Misplaced::Inside { operation } => new(
            format!("`{operation}` is the whole value of a `let`, or the whole condition of an `if`, `while` or `require`"),
            "within an expression",
        )
        .with_note("it has an effect, so it must be plain when it runs; bind it with `let` first"),
        Misplaced::Function { operation } => {
            new(format!("a function cannot `{operation}`: functions only compute"), "in a function")
                .with_note("let the transaction do it and pass the result on")
        }
        Misplaced::AfterGive { give } => new(
            "this `take` runs ahead, before what the transaction gives".to_owned(),
            "does not see the gift",
        )
        .with_label(give, "given here")
        .with_note("its result is needed before its store is visited; take first, and give afterwards"),
        Misplaced::Endorsed => new(
            "an endorsed value cannot depend on a `take` or `give`".to_owned(),
            "an endorsement depends on this",
        )
        .with_note("what an endorsement depends on runs twice, and a `take` takes effect once"),
    }
}
