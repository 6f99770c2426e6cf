#![doc = include_str!("m0204.md")]

use super::{Code, Diagnostic, Edit};
use crate::syntax::Span;

/// The operation that a type does not support.
#[derive(Clone, Debug)]
pub(crate) enum Unfit {
    /// A method of an unknown name.
    Method { on: String, name: String, near: Option<String> },
    /// A field access on a type without fields.
    Field { on: String, name: String },
    /// A comparison of unordered values.
    Order { found: String },
    /// Iteration over a type without elements.
    Iterate { found: String },
    /// A call of something that is not callable.
    Call { name: String, what: &'static str },
    /// An unsupported conversion.
    Convert { to: &'static str, found: String },
    /// A function that calls itself.
    Recursion { name: String },
    /// Inlined functions beyond the size limit.
    TooLarge { name: String, limit: usize },
    /// Functions in functions, or structs and keys in each other, nested beyond the limit.
    TooDeep { name: String, limit: usize },
    /// More fields or operations in one declaration, or more values in a struct, than allowed.
    TooMany { name: String, what: &'static str, limit: usize },
    /// More stores and endorsements in one transaction than allowed.
    TooManySources { limit: usize },
    /// `unique()` in a function.
    UniqueInFunction,
}

pub(crate) fn render(unfit: Unfit, span: Span) -> Diagnostic {
    let new = |title: String, label: String| Diagnostic::new(Code::M0204, title, span, label);
    match unfit {
        Unfit::Method { on, name, near } => {
            let plain = new(format!("`{on}` has no operation `{name}`"), "no such operation".into());
            match near {
                Some(near) => plain.with_help(format!("there is `{near}`"), vec![Edit { span, text: near }]),
                None => match operations(&on) {
                    Some(known) => plain.with_note(format!("it has {known}")),
                    None => plain,
                },
            }
        }
        Unfit::Field { on, name } => new(format!("`{on}` has no fields, so no `{name}`"), "no such field".into()),
        Unfit::Order { found } => new(format!("`{found}` has no order"), "cannot be compared with `<`, `<=`, `>`, `>=`, `min` or `max`".into())
            .with_note("ordered are `int`, `float`, `string`, `bytes` and `time`"),
        Unfit::Iterate { found } => new(format!("`{found}` cannot be iterated"), "expected a list, set, map or log".into()),
        Unfit::Call { name, what } => new(format!("`{name}` is {what}, which cannot be called"), "called here".into()),
        Unfit::Convert { to, found } => new(format!("`{to}(…)` does not convert `{found}`"), format!("this is `{found}`")),
        Unfit::Recursion { name } => new(format!("`{name}` would call itself"), "functions do not recurse".into()),
        Unfit::TooLarge { name, limit } => new(
            format!("`{name}` grows beyond {limit} operations once its functions are written in place"),
            "split it up".into(),
        ),
        Unfit::TooDeep { name, limit } => {
            new(format!("`{name}` is nested more than {limit} deep"), "too deep".into())
        }
        Unfit::TooMany { name, what, limit } => {
            new(format!("`{name}` has more than {limit} {what}"), "too many".into())
        }
        Unfit::TooManySources { limit } => new(format!("a transaction has at most {limit} stores and endorsements"), "too many".into()),
        Unfit::UniqueInFunction => new("`unique()` stands in a function".into(), "draw it in the transaction and pass it on".into()),
    }
}

/// Returns the operations of a type, as a message lists them.
fn operations(on: &str) -> Option<&'static str> {
    let name = on.split('<').next().unwrap_or(on);
    Some(match name {
        "counter" => "`add` and `value`",
        "set" => "`insert`, `remove`, `clear`, `contains`, `size` and `to_list`",
        "map" => "`put`, `remove`, `clear`, `get`, `size` and `keys`",
        "log" => "`append`, `clear`, `last`, `slice`, `size` and `to_list`",
        "list" => "`size`, `get` and `contains`",
        "string" => "`size` and `contains`",
        "option" => "`is_some`, and `match` and `??` take it apart",
        _ if on.starts_with("ref ") => "its fields, `exists` and `delete`",
        _ => return None,
    })
}
