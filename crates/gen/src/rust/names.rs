//! Names of a program as names of Rust.
//!
//! A name is converted to Rust's case, unless two names would then be equal. Words that Rust
//! reserves are written raw. The few words that cannot be raw, and the names that the generated
//! code defines itself, get an underscore.

use mingle_model::Name;
use proc_macro2::{Ident, Span};

use crate::names::{self, Style, of_identifier_characters, pascal_case, snake_case};

/// Types of Rust that generated code names without a path, and the types that it defines.
const TYPES: &[&str] = &["Database", "bool", "i64", "f64", "u8", "str"];

/// Methods that the generated database has beside the transactions.
const METHODS: &[&str] = &["connect", "over", "untyped", "with_session"];

/// Names of one namespace.
pub(super) struct Names(names::Names);

impl Names {
    /// Assigns the names of types.
    pub(super) fn of_types<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, pascal_case, TYPES)
    }

    /// Assigns the names of transactions.
    pub(super) fn of_methods<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, snake_case, METHODS)
    }

    /// Assigns the names of fields or parameters.
    pub(super) fn of_values<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, snake_case, &[])
    }

    /// Assigns the names of the values of an enumeration.
    pub(super) fn of_variants<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, pascal_case, &[])
    }

    fn assign<'a>(
        names: impl Iterator<Item = &'a Name>,
        convert: fn(&str) -> String,
        reserved: &[&str],
    ) -> Self {
        let reserved = |name: &str| reserved.contains(&name);
        Self(names::Names::assign(names, &Style { convert, valid, reserved: &reserved }))
    }

    /// Returns the Rust identifier of a name.
    pub(super) fn ident(&self, name: &Name) -> Ident {
        let text = self.0.of(name);
        if is_keyword(text) {
            Ident::new_raw(text, Span::call_site())
        } else {
            Ident::new(text, Span::call_site())
        }
    }
}

/// Returns a valid name in Rust: raw, if necessary.
fn valid(name: String) -> String {
    let mut name = of_identifier_characters(&name);
    if matches!(&*name, "_" | "self" | "Self" | "super" | "crate") {
        name.push('_');
    }
    name
}

fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "abstract"
            | "as"
            | "async"
            | "await"
            | "become"
            | "box"
            | "break"
            | "const"
            | "continue"
            | "do"
            | "dyn"
            | "else"
            | "enum"
            | "extern"
            | "false"
            | "final"
            | "fn"
            | "for"
            | "gen"
            | "if"
            | "impl"
            | "in"
            | "let"
            | "loop"
            | "macro"
            | "match"
            | "mod"
            | "move"
            | "mut"
            | "override"
            | "priv"
            | "pub"
            | "ref"
            | "return"
            | "static"
            | "struct"
            | "trait"
            | "true"
            | "try"
            | "type"
            | "typeof"
            | "unsafe"
            | "unsized"
            | "use"
            | "virtual"
            | "where"
            | "while"
            | "yield"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(names: &[&str], of: fn(std::slice::Iter<'_, Name>) -> Names) -> Vec<String> {
        let names: Vec<Name> = names.iter().map(|name| Name::from(*name)).collect();
        let assigned = of(names.iter());
        names.iter().map(|name| assigned.ident(name).to_string()).collect()
    }

    #[test]
    fn methods_are_in_snake_case_and_never_meet() {
        let found = assigned(
            &["addPost", "HTTPServer", "type", "self", "connect", "connect_", "getX", "get_x", "_"],
            |names| Names::of_methods(names),
        );
        let expected = [
            "add_post",
            "http_server",
            "r#type",
            "self_",
            "connect__",
            "connect_",
            "getX",
            "get_x",
            "__",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn types_are_in_pascal_case_and_never_meet() {
        let found = assigned(
            &["group", "message_group", "Self", "Database", "User", "i64", "I64", "_1a", "Größe"],
            |names| Names::of_types(names),
        );
        let expected =
            ["Group", "MessageGroup", "Self_", "Database_", "User", "i64_", "I64", "_1a", "Größe"];
        assert_eq!(found, expected);
    }

    #[test]
    fn every_name_is_one_that_rust_takes() {
        for name in ["a\u{345}", "\u{345}a", "ª", "ǅ", "gen", "crate", "___"] {
            for found in [
                assigned(&[name], |names| Names::of_types(names)),
                assigned(&[name], |names| Names::of_methods(names)),
                assigned(&[name], |names| Names::of_values(names)),
            ] {
                let tokens: proc_macro2::TokenStream = found[0].parse().expect("it is a token");
                assert_eq!(tokens.into_iter().count(), 1, "{name}");
            }
        }
    }
}
