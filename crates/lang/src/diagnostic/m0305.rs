#![doc = include_str!("m0305.md")]

use super::{Code, Diagnostic, Label};
use crate::syntax::Span;

/// Renders two stores of one level with a flow in each direction.
pub(crate) fn render(span: Span, first: &str, second: &str, level: &str, there: Vec<Label>, back: Vec<Label>) -> Diagnostic {
    Diagnostic {
        code: Code::M0305,
        title: format!("`{first}` and `{second}` need each other's data, and a transaction visits each store once"),
        span,
        labels: there.into_iter().chain(back).collect(),
        notes: vec![
            format!("both stores are {level}: one of them would have to come first"),
            "put the objects into one store, or split the transaction in two".into(),
        ],
        help: Vec::new(),
    }
}

/// Renders an `isolated` transaction whose data flows against the order of declaration.
pub(crate) fn render_isolated(span: Span, isolated: Span, first: &str, second: &str, path: Vec<Label>) -> Diagnostic {
    Diagnostic {
        code: Code::M0305,
        title: format!("an `isolated` transaction visits `{second}` before `{first}`, but `{second}` needs data of `{first}`"),
        span,
        labels: path,
        notes: vec![format!("stores of one level are visited in the order of their declaration: declare `{first}` before `{second}`")],
        help: Vec::new(),
    }
    .with_label(isolated, "`isolated` asks for one order in all transactions")
}
