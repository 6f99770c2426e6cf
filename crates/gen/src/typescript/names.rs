//! Names of a program as names of TypeScript.

use mingle_model::Name;

use crate::names::{self, Style, camel_case, of_identifier_characters, pascal_case};

/// Names of one namespace.
pub(super) struct Names(names::Names);

impl Names {
    /// Assigns the names of objects and structs.
    pub(super) fn of_types<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        let runtime = declared();
        let reserved =
            |name: &str| runtime.contains(&name) || GLOBALS.contains(&name) || is_type(name);
        Self::assign(names, pascal_case, &reserved)
    }

    /// Assigns the names of transactions.
    pub(super) fn of_methods<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, camel_case, &|name| METHODS.contains(&name) || is_member(name))
    }

    /// Assigns the names of parameters.
    pub(super) fn of_parameters<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, camel_case, &|name| name == "options" || is_word(name))
    }

    /// Assigns the names of fields.
    pub(super) fn of_properties<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        Self::assign(names, camel_case, &|name| HANDLE.contains(&name) || is_member(name))
    }

    fn assign<'a>(
        names: impl Iterator<Item = &'a Name>,
        convert: fn(&str) -> String,
        reserved: &dyn Fn(&str) -> bool,
    ) -> Self {
        let valid = |name: String| of_identifier_characters(&name);
        Self(names::Names::assign(names, &Style { convert, valid, reserved }))
    }

    pub(super) fn of(&self, name: &Name) -> &str {
        self.0.of(name)
    }

    /// Returns the name of the type of an object's fields.
    pub(super) fn of_fields(&self, object: &Name) -> String {
        let mut name = format!("{}Fields", self.of(object));
        while self.0.has(&name) {
            name.push('_');
        }
        name
    }
}

/// Returns the names that the generated file declares for all programs.
pub(super) fn declared() -> Vec<&'static str> {
    let kinds = ["export interface ", "export class ", "export type "];
    let names = super::RUNTIME.lines().filter_map(|line| {
        let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
        rest.split(|c: char| !c.is_alphanumeric()).next()
    });
    names.chain(["Client", "Store"]).collect()
}

/// The platform's names that the generated file uses.
const GLOBALS: &[&str] = &[
    "AbortController",
    "AbortSignal",
    "Array",
    "BigInt",
    "Date",
    "Error",
    "Infinity",
    "Iterable",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Omit",
    "Promise",
    "RangeError",
    "Readonly",
    "Record",
    "Response",
    "String",
    "TypeError",
    "URL",
    "URLSearchParams",
    "Uint8Array",
    "atob",
    "btoa",
    "clearTimeout",
    "crypto",
    "encodeURIComponent",
    "fetch",
    "setTimeout",
];

/// The client's members beside the transactions; a method `then` would make the client a promise.
const METHODS: &[&str] = &["session", "show", "then", "withSession"];

/// The members of a handle beside its key.
const HANDLE: &[&str] = &["equals", "toJSON", "toString"];

/// True if the language reserves this member name in a class or object.
fn is_member(name: &str) -> bool {
    matches!(name, "constructor" | "prototype" | "__proto__" | "valueOf" | "hasOwnProperty")
}

/// True if the language reserves this name for variables in a class or module.
fn is_word(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "arguments",
        "await",
        "break",
        "case",
        "catch",
        "class",
        "const",
        "continue",
        "debugger",
        "default",
        "delete",
        "do",
        "else",
        "enum",
        "eval",
        "export",
        "extends",
        "false",
        "finally",
        "for",
        "function",
        "if",
        "implements",
        "import",
        "in",
        "instanceof",
        "interface",
        "let",
        "new",
        "null",
        "package",
        "private",
        "protected",
        "public",
        "return",
        "static",
        "super",
        "switch",
        "this",
        "throw",
        "true",
        "try",
        "typeof",
        "undefined",
        "var",
        "void",
        "while",
        "with",
        "yield",
    ];
    WORDS.contains(&name)
}

/// True if the language has a type of this name.
fn is_type(name: &str) -> bool {
    const TYPES: &[&str] =
        &["any", "bigint", "boolean", "never", "number", "object", "string", "symbol", "unknown"];
    TYPES.contains(&name) || is_word(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(names: &[&str], of: fn(std::slice::Iter<'_, Name>) -> Names) -> Vec<String> {
        let names: Vec<Name> = names.iter().map(|name| Name::from(*name)).collect();
        let assigned = of(names.iter());
        names.iter().map(|name| assigned.of(name).to_owned()).collect()
    }

    #[test]
    fn methods_are_in_camel_case_and_never_meet() {
        let names = ["add_post", "HTTPServer_id", "show", "show_", "then", "constructor", "delete"];
        let found = assigned(&names, |names| Names::of_methods(names));
        let expected =
            ["addPost", "httpServerId", "show__", "show_", "then_", "constructor_", "delete"];
        assert_eq!(found, expected);
        let found = assigned(&["getX", "get_x", "_", "__proto__", "proto"], |names| {
            Names::of_methods(names)
        });
        assert_eq!(found, ["getX", "get_x", "_", "__proto___", "proto"]);
    }

    #[test]
    fn parameters_are_no_words_of_the_language() {
        let names = ["class", "options", "this", "string", "arguments", "user_name", "_1a"];
        let found = assigned(&names, |names| Names::of_parameters(names));
        let expected = ["class_", "options_", "this_", "string", "arguments_", "userName", "_1a"];
        assert_eq!(found, expected);
    }

    #[test]
    fn types_are_not_those_of_the_file_or_the_platform() {
        let names = ["Date", "session", "Client", "user", "Map", "MingleError", "Größe", "Handle"];
        let found = assigned(&names, |names| Names::of_types(names));
        let expected =
            ["Date_", "Session_", "Client_", "User", "Map_", "MingleError_", "Größe", "Handle_"];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_object_may_be_called_like_the_fields_of_another() {
        let names = [Name::from("User"), Name::from("UserFields")];
        let types = Names::of_types(names.iter());
        assert_eq!(types.of_fields(&names[0]), "UserFields_");
    }
}
