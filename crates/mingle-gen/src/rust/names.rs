//! Names of a program as names of Rust.
//!
//! A name is brought into Rust's case, unless two would then be one. Words that Rust reserves are
//! written raw; the few that cannot be, and what the generated code defines itself, get an
//! underscore.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Name;
use proc_macro2::{Ident, Span};

/// Types of Rust that generated code names without a path, and its own.
const TYPES: &[&str] = &["Database", "bool", "i64", "f64", "u8", "str"];

/// Methods that the generated database has beside the transactions.
const METHODS: &[&str] = &["connect", "over", "untyped", "with_session"];

/// Names of one namespace.
pub(super) struct Names(BTreeMap<Name, String>);

impl Names {
    /// Names of types.
    pub(super) fn of_types<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, pascal_case, TYPES)
    }

    /// Names of transactions.
    pub(super) fn of_methods<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, snake_case, METHODS)
    }

    /// Names of fields or parameters.
    pub(super) fn of_values<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, snake_case, &[])
    }

    fn assign<'a>(
        names: impl Iterator<Item = &'a Name>,
        convert: fn(&str) -> String,
        reserved: &[&str],
    ) -> Self {
        let names: Vec<&Name> = names.collect();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for name in &names {
            *counts.entry(convert(name)).or_default() += 1;
        }
        let converted = names.iter().map(|name| {
            let converted = convert(name);
            // Two that would be one stay as they are.
            let kept = if counts[&converted] > 1 { name.to_string() } else { converted };
            ((*name).clone(), valid(kept))
        });
        let mut converted: Vec<(Name, String)> = converted.collect();
        // Who is written as in Rust keeps its name, whoever else would get it.
        let is_free = |name: &str| !reserved.contains(&name);
        converted.sort_by_key(|(name, kept)| !(**name == **kept && is_free(kept)));
        let mut taken: BTreeSet<String> = reserved.iter().map(|name| (*name).to_owned()).collect();
        let mut assigned = BTreeMap::new();
        for (name, mut converted) in converted {
            while !taken.insert(converted.clone()) {
                converted.push('_');
            }
            assigned.insert(name, converted);
        }
        Self(assigned)
    }

    /// The name in Rust of one of these.
    pub(super) fn ident(&self, name: &Name) -> Ident {
        let text = &self.0[name];
        if is_keyword(text) {
            Ident::new_raw(text, Span::call_site())
        } else {
            Ident::new(text, Span::call_site())
        }
    }
}

/// Something that is a name in Rust: raw, if need be.
fn valid(name: String) -> String {
    let continues = |c| if unicode_ident::is_xid_continue(c) { c } else { '_' };
    let mut name: String = name.chars().map(continues).collect();
    let starts = |c| c == '_' || unicode_ident::is_xid_start(c);
    if !name.starts_with(starts) {
        name.insert(0, '_');
    }
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

/// `HTTPServer_id` becomes `http_server_id`.
fn snake_case(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, c) in characters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| characters[before]);
        let ends_word = before.is_some_and(|c| c.is_lowercase() || c.is_numeric());
        let begins_word = before.is_some_and(char::is_uppercase)
            && characters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (ends_word || begins_word) {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// `http_server` becomes `HttpServer`; what has no underscores changes its first letter alone.
fn pascal_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let pascal: String = words
        .flat_map(|word| {
            let mut characters = word.chars();
            let first = characters.next().into_iter().flat_map(char::to_uppercase);
            first.chain(characters)
        })
        .collect();
    if pascal.is_empty() { name.to_owned() } else { pascal }
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
