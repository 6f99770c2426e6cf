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
    /// A transaction that is called within the program.
    Transaction { name: String },
    /// An object that is called, or asked for an object by its key, with the edits that make a ref.
    Object { name: String, edits: Vec<Edit> },
    /// Brackets after a variable, with the edits that write `get`.
    Index { name: String, edits: Vec<Edit> },
    /// An operation that is named without its parentheses, and the operation that is meant.
    NoCall { on: String, name: String, means: String },
    /// A read of an index without its end.
    IndexAlone,
    /// A call that does not fit a read of an index.
    IndexStep { why: &'static str },
    /// A call of another language, with the edits that write the same.
    Written { name: String, edits: Vec<Edit> },
    /// An unsupported conversion.
    Convert { to: &'static str, found: String },
    /// A text in the program that is converted, but has another form.
    Text { why: String },
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
                None => with_operations(plain, &on, &name),
            }
        }
        Unfit::Field { on, name } => {
            let plain = new(format!("`{on}` has no fields, so no `{name}`"), "no such field".into());
            if on == "json" { plain.with_note(OPAQUE) } else { plain }
        }
        Unfit::Order { found } => new(format!("`{found}` has no order"), "cannot be compared with `<`, `<=`, `>`, `>=`, `min` or `max`".into())
            .with_note("ordered are `int`, `float`, `string`, `bytes`, `time`, `date` and `decimal`"),
        Unfit::Iterate { found } => new(format!("`{found}` cannot be iterated"), "expected a list, set, map or log".into()),
        Unfit::Call { name, what } => new(format!("`{name}` is {what}, which cannot be called"), "called here".into()),
        Unfit::Transaction { name } => new(format!("`{name}` is a transaction, which only clients call"), "called here".into())
            .with_note("a transaction runs as a whole, so none runs within another: write what both do as an `fn` if it only reads, and otherwise in each"),
        Unfit::Object { name, edits } => {
            let plain = new(format!("`{name}` is an object, which is not called: `{name}[key]` is the ref of one"), "called here".into());
            if edits.is_empty() {
                plain.with_note(format!("`{name}[key].field` reads a field, and `new {name} {{ … }}` inserts one"))
            } else {
                plain.with_help("write brackets", edits)
            }
        }
        Unfit::Index { name, edits } => new(
            format!("`{name}` is a variable: brackets only make refs, as in `Order[key]`"),
            "`get` reads from a list".into(),
        )
        .with_help("write `get`", edits),
        Unfit::NoCall { on, name, means } => new(format!("`{on}` has no field `{name}`, but an operation `{means}`"), "an operation is called".into())
            .with_help(format!("call `{means}`"), vec![Edit { span, text: format!("{means}()") }]),
        Unfit::IndexAlone => new("a read of an index ends with `first` or `count`".into(), "how many at most?".into())
            .with_note("`.first(20)` gives at most 20 refs, `.count(1_000)` counts up to 1,000; before them may stand `from(x)`, `before(x)`, `after(ref)` and `reversed()`"),
        Unfit::IndexStep { why } => new(why.into(), "this does not fit here".into()),
        Unfit::Written { name, edits } => new(format!("there is no `{name}`"), "an operation of another language".into())
            .with_help("write it this way", edits),
        Unfit::Convert { to, found } => new(format!("`{to}(…)` does not convert `{found}`"), format!("this is `{found}`")),
        Unfit::Text { why } => new(why, "this text is read when the program is checked".into()),
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

/// The reason why a `json` has no members.
const OPAQUE: &str = "programs only compare a `json` and pass it on: declare a `struct` to read members";

/// Adds the operations that a type has in place of the one of this name.
fn with_operations(plain: Diagnostic, on: &str, name: &str) -> Diagnostic {
    let Some(known) = operations(on) else { return plain };
    let plain = plain.with_note(format!("it has {known}"));
    if on.starts_with("list<") && matches!(name, "push" | "append" | "add" | "insert") {
        return plain.with_note("a list is a value: `xs = xs + [x]` adds to a copy");
    }
    plain
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
        "decimal" => "`divide` and `round`",
        "json" => "`==` and `!=` alone: programs do not look into it, a `struct` has fields",
        "index" => "`first` and `count`, and before them `from`, `before`, `after` and `reversed`",
        "option" => "`is_some`, and `match` and `??` take it apart",
        _ if on.starts_with("ref ") => "its fields, `exists` and `delete`",
        _ => return None,
    })
}
