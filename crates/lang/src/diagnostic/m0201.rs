#![doc = include_str!("m0201.md")]

use std::sync::Arc;

use mingle_model::EnumType;

use super::{Code, Diagnostic, Edit};
use crate::syntax::Span;

/// The way in which types do not fit.
#[derive(Clone, Debug)]
pub(crate) enum Mismatch {
    /// The expected type differs from the type found.
    Types { expected: String, found: String },
    /// Operands that an operator does not accept.
    Operands { operator: &'static str, left: String, right: String, text: Option<Span> },
    /// `none` or `[]` whose type the context does not determine.
    Unknown { literal: &'static str },
    /// An expression without a value where a value is needed.
    NoValue { what: String },
    /// An enumeration without values.
    EmptyEnum { name: String },
    /// The name of an enumeration in place of one of its values.
    BareEnum { of: Arc<EnumType> },
    /// A type that cannot be a key.
    Key { found: String },
    /// A struct that cannot be a key because of the type of one of its fields.
    KeyPart { name: String, field: String, found: String },
    /// A type of elements or keys without an order, and the type of their field.
    Element { found: String, field: String },
    /// A field that no index can be ordered by.
    Index { found: String },
    /// Keys that are refs to each other.
    KeyCycle { object: String },
    /// A struct that contains itself.
    Recursive { name: String },
    /// The name of an object kind used as a type, or as a value in braces.
    BareObject { name: String, is_type: bool },
    /// A write where only reads may stand.
    Write { what: String, place: &'static str },
    /// A default that is not constant.
    NotConstant,
    /// A `return` whose value, or lack of one, contradicts the declaration.
    Return { expected: Option<String> },
}

pub(crate) fn render(mismatch: Mismatch, span: Span) -> Diagnostic {
    let new = |title: String, label: String| Diagnostic::new(Code::M0201, title, span, label);
    match mismatch {
        Mismatch::Types { expected, found } => types(&expected, &found, span),
        Mismatch::Operands { operator, left, right, text } => {
            let plain = new(format!("`{operator}` does not go with `{left}` and `{right}`"), format!("`{left}` {operator} `{right}`"));
            match (&*left, &*right) {
                _ if text.is_some() => {
                    let edits = text.map(|span| Edit { span, text: "string({text})".into() });
                    plain.with_help("`string(…)` makes it a string", edits.into_iter().collect())
                }
                ("decimal", "decimal") => plain.with_note("`a.divide(b, digits)` gives a quotient with so many digits after the point"),
                ("decimal", "int") | ("int", "decimal") => plain.with_note("`decimal(…)` and `int(…)` convert"),
                ("int", "float") | ("float", "int") => plain.with_note("`float(…)` and `int(…)` convert"),
                _ => plain,
            }
        }
        Mismatch::Unknown { literal } => new(
            format!("the type of `{literal}` is not known here"),
            "write the type of the variable: `let x: … =`".into(),
        ),
        Mismatch::NoValue { what } => new(format!("expected a value, but {what} gives none"), "no value".into()),
        Mismatch::EmptyEnum { name } => new(format!("`{name}` has no values"), "expected at least one value, such as `open`".into()),
        Mismatch::BareEnum { of } => bare_enum(&of, span),
        Mismatch::Key { found } => new(format!("`{found}` cannot be a key"), "expected `string`, `int`, `bool`, `bytes`, `time`, `date`, `decimal`, an enum, a `ref`, or a struct of these".into()),
        Mismatch::KeyPart { name, field, found } => new(
            format!("`{name}` cannot be a key: its field `{field}` is of type `{found}`"),
            "expected a struct of `string`, `int`, `bool`, `bytes`, `time`, `date`, `decimal`, enum and `ref` fields".into(),
        ),
        Mismatch::Index { found } => new(
            format!("an index cannot be ordered by `{found}`"),
            "expected `string`, `int`, `bool`, `bytes`, `time`, `date`, `decimal`, an enum, a `ref`, or an `option` of these".into(),
        ),
        Mismatch::Element { found, field } => new(
            format!("`{found}` cannot be in `{field}`"),
            "a `json` has no order, which elements of sets and keys of maps have".into(),
        )
        .with_note("`list<json>`, `log<json>` and the values of a map hold it"),
        Mismatch::KeyCycle { object } => new(format!("the key of `{object}` leads back to itself"), "a key cannot hold a ref whose key holds it".into()),
        Mismatch::Recursive { name } => new(format!("`{name}` contains itself"), "expected `option<…>` or `list<…>` around it".into()),
        Mismatch::BareObject { name, is_type } => {
            let label = if is_type { format!("write `ref {name}`") } else { "fields of an object".into() };
            let plain = new(format!("an object is not a value: expected `ref {name}`"), label);
            let edit = Edit { span, text: format!("ref {name}") };
            if is_type {
                plain.with_help("name it by a ref", vec![edit])
            } else {
                let made = Edit { span, text: format!("new {name}") };
                plain.with_help("`new` inserts one", vec![made])
            }
        }
        Mismatch::Write { what, place } => new(format!("{what} writes, which is not allowed {place}"), "only reads may stand here".into()),
        Mismatch::NotConstant => new("a default is a constant".into(), "this is not constant".into()),
        Mismatch::Return { expected: Some(expected) } => new(format!("expected a value of type `{expected}` after `return`"), "no value".into()),
        Mismatch::Return { expected: None } => new("the transaction declares no result".into(), "a value is returned".into())
            .with_note("declare the result's type with `-> type` after the parameters"),
    }
}

/// Renders the name of an enumeration in place of one of its values.
fn bare_enum(of: &EnumType, span: Span) -> Diagnostic {
    let title = format!("expected a value, but `{0}` is an enum: its values are `{0}.…`", of.name);
    let plain = Diagnostic::new(Code::M0201, title, span, "no value");
    match of.values.first() {
        Some(first) => plain.with_note(format!("for example `{}.{}`", of.name, first.name)),
        None => plain,
    }
}

/// True if `string(…)` takes a value of this type.
fn is_shown(found: &str) -> bool {
    matches!(found, "int" | "float" | "bool" | "time" | "date" | "decimal")
}

/// Renders a type that differs from the expected one, with the conversion if there is one.
fn types(expected: &str, found: &str, span: Span) -> Diagnostic {
    let title = format!("expected `{expected}`, found `{found}`");
    let plain = Diagnostic::new(Code::M0201, title, span, format!("this is `{found}`"));
    let instead = |text: &str| vec![Edit { span, text: text.to_owned() }];
    if found == format!("option<{expected}>") {
        plain.with_note("`value ?? default` takes the value out of an option")
    } else if expected == "string" && is_shown(found) {
        plain.with_help("`string(…)` makes it a string", instead("string({text})"))
    } else if expected == "float" && found == "int" {
        plain.with_help("`float(…)` converts it", instead("float({text})"))
    } else if expected == "bool" && found.starts_with("option<") {
        plain.with_note("`value.is_some()` tests an option, and `match` takes its value out")
    } else if expected == "bool" && matches!(found, "int" | "string" | "float") {
        plain.with_note("a condition is a `bool`: compare the value, as in `value != …`")
    } else if expected == format!("option<{found}>") {
        plain.with_help("make it an option", instead("some({text})"))
    } else {
        plain
    }
}
