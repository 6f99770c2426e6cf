//! Names of a program as names of Python.
//!
//! Python treats names that look alike as equal (NFKC), so names are normalized to that form before
//! they are compared. A name with two leading underscores has a special meaning in a class, so it
//! gets one.

use mingle_model::Name;
use unicode_normalization::UnicodeNormalization;

use crate::names::{self, Style, of_identifier_characters, pascal_case, snake_case};

/// Names of one namespace.
pub(super) struct Names(names::Names);

impl Names {
    /// Assigns the names of objects and structs.
    pub(super) fn of_types<'a>(names: impl Iterator<Item = &'a Name>) -> Self {
        let valid = |name: String| {
            let name = valid(name);
            // Names with a leading underscore are reserved for the generated file.
            if name.starts_with('_') { format!("T{name}") } else { name }
        };
        let runtime = declared();
        let reserved = |name: &str| runtime.contains(&name) || is_taken(name);
        let convert = |name: &str| pascal_case(&normal(name));
        Self(names::Names::assign(names, &Style { convert, valid, reserved: &reserved }))
    }

    /// Assigns the names of transactions; their class also uses the names of types.
    pub(super) fn of_methods<'a>(names: impl Iterator<Item = &'a Name>, types: &Self) -> Self {
        Self::of_members(names, types, &["close", "session", "show", "with_session"])
    }

    /// Assigns the names of fields; their class also uses the names of types.
    pub(super) fn of_fields<'a>(names: impl Iterator<Item = &'a Name>, types: &Self) -> Self {
        Self::of_members(names, types, &[])
    }

    fn of_members<'a>(names: impl Iterator<Item = &'a Name>, types: &Self, own: &[&str]) -> Self {
        let runtime = declared();
        Self::of_values(names, &|name| {
            let is_own = own.contains(&name) || MEMBERS.contains(&name);
            is_own || is_taken(name) || runtime.contains(&name) || types.0.has(name)
        })
    }

    /// Assigns the names of parameters.
    pub(super) fn of_parameters<'a>(names: impl Iterator<Item = &'a Name>, types: &Self) -> Self {
        let runtime = declared();
        Self::of_values(names, &|name| {
            let is_own = matches!(name, "self" | "options" | "until");
            let is_codec = name.strip_prefix(CODEC).is_some_and(|rest| types.0.has(rest));
            is_own || is_codec || is_keyword(name) || runtime.contains(&name)
        })
    }

    fn of_values<'a>(
        names: impl Iterator<Item = &'a Name>,
        reserved: &dyn Fn(&str) -> bool,
    ) -> Self {
        let convert = |name: &str| snake_case(&normal(name));
        Self(names::Names::assign(names, &Style { convert, valid, reserved }))
    }

    pub(super) fn of(&self, name: &Name) -> &str {
        self.0.of(name)
    }

    /// Returns the name of the type of an object's fields.
    pub(super) fn of_object_fields(&self, object: &Name) -> String {
        let mut name = format!("{}Fields", self.of(object));
        while self.0.has(&name) {
            name.push('_');
        }
        name
    }
}

/// The prefix of the names of codecs.
pub(super) const CODEC: &str = "_of_";

/// The members of generated classes beside the program's fields and transactions.
const MEMBERS: &[&str] = &["_call", "_connection", "_mingle_fields", "_mingle_key", "_mingle_path"];

/// Returns the names that the generated file declares for all programs, or imports.
fn declared() -> Vec<&'static str> {
    let end = |c: char| !c.is_alphanumeric() && c != '_';
    let mut names = vec!["Client", "Store"];
    for line in super::IMPORTS.lines() {
        if let Some((_, imported)) = line.split_once(" import ") {
            names.extend(imported.split(", ").map(super::package::bound));
        } else if let Some(module) = line.strip_prefix("import ") {
            names.extend(module.split(end).next());
        }
    }
    names.extend(super::package::declared());
    names
}

/// True if the generated file itself uses this name of the language.
fn is_taken(name: &str) -> bool {
    const BUILTINS: &[&str] = &[
        "bool",
        "bytes",
        "callable",
        "classmethod",
        "dict",
        "float",
        "int",
        "list",
        "object",
        "property",
        "str",
        "tuple",
        "type",
    ];
    BUILTINS.contains(&name) || is_keyword(name)
}

fn is_keyword(name: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
        "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global",
        "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return",
        "try", "while", "with", "yield",
    ];
    KEYWORDS.contains(&name)
}

fn normal(name: &str) -> String {
    name.nfkc().collect()
}

/// Returns a valid name in Python; keywords count as valid.
fn valid(name: String) -> String {
    let name = of_identifier_characters(&normal(&name));
    match name.strip_prefix("__") {
        Some(rest) => format!("_{}", rest.trim_start_matches('_')),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Name> {
        names.iter().map(|name| Name::from(*name)).collect()
    }

    fn all<'a>(assigned: &'a Names, names: &[Name]) -> Vec<&'a str> {
        names.iter().map(|name| assigned.of(name)).collect()
    }

    #[test]
    fn methods_are_in_snake_case_and_never_meet() {
        let written = names(&[
            "addPost",
            "HTTPServer",
            "show",
            "class",
            "list",
            "getX",
            "get_x",
            "__init__",
            "_call",
        ]);
        let assigned = Names::of_methods(written.iter(), &Names::of_types([].iter()));
        let expected = [
            "add_post",
            "http_server",
            "show_",
            "class_",
            "list_",
            "getX",
            "get_x",
            "_init__",
            "_call_",
        ];
        assert_eq!(all(&assigned, &written), expected);
    }

    #[test]
    fn names_that_look_alike_to_python_never_meet() {
        let written = names(&["ﬁle", "file", "ª", "__a", "_a", "___"]);
        let types = Names::of_types([].iter());
        let assigned = Names::of_fields(written.iter(), &types);
        assert_eq!(all(&assigned, &written), ["file_", "file", "a", "_a_", "_a", "_"]);
        let parameters = names(&["self", "until", "_of_User", "_of_user", "list", "_int"]);
        let users = [Name::from("user")];
        let assigned = Names::of_parameters(parameters.iter(), &Names::of_types(users.iter()));
        let expected = ["self_", "until_", "_of_User_", "_of_user", "list", "_int_"];
        assert_eq!(all(&assigned, &parameters), expected);
    }

    #[test]
    fn types_are_not_those_of_the_file() {
        let written = names(&["user", "session", "None", "_a", "_", "Any", "Größe", "handle"]);
        let expected = ["User", "Session_", "None_", "A", "T_", "Any_", "Größe", "Handle_"];
        assert_eq!(all(&Names::of_types(written.iter()), &written), expected);
    }

    #[test]
    fn what_the_file_declares_is_found() {
        let declared = declared();
        for name in ["datetime", "Any", "urllib", "MingleError", "_int", "_fields", "_T", "_EPOCH"]
        {
            assert!(declared.contains(&name), "{name}");
        }
    }
}
