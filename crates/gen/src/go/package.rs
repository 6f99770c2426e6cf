//! The runtime as a package or as a part of a client's file, and the names that a client takes from the package.

use std::collections::BTreeSet;

use crate::shared::{VERSION, without_texts, words};

/// The name of the package.
pub(super) const NAME: &str = "mingleclient";

/// The files of the runtime.
const FILES: [&str; 6] = [
    include_str!("runtime/option.go"),
    include_str!("runtime/value.go"),
    include_str!("runtime/failure.go"),
    include_str!("runtime/session.go"),
    include_str!("runtime/connection.go"),
    include_str!("runtime/wire.go"),
];

/// The address of the project, of which the package's import path is a part.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Returns the import path of the package of the runtime, which is also the path of its module.
pub fn module() -> String {
    let (_, place) = REPOSITORY.split_once("://").unwrap_or(("", REPOSITORY));
    format!("{place}/{NAME}")
}

/// A declaration of the runtime for callers.
struct Declaration {
    /// The doc comment, with its marks.
    docs: String,
    /// The first line.
    line: &'static str,
    name: &'static str,
}

/// Returns the imports and the code of a file of the runtime.
fn parts(file: &'static str) -> (&'static str, &'static str) {
    let rest = file.split_once("import (\n").map_or("", |(_, rest)| rest);
    rest.split_once("\n)\n\n").unwrap_or((rest, ""))
}

/// Returns the part of an import that `gofmt` sorts by.
fn path_of(import: &str) -> &str {
    import.split('"').nth(1).unwrap_or(import)
}

/// Returns the imports of the runtime, one a line, in the order of `gofmt`.
fn library() -> Vec<&'static str> {
    let lines = FILES.into_iter().flat_map(|file| parts(file).0.lines()).map(str::trim);
    let mut lines: Vec<&str> = lines.collect::<BTreeSet<_>>().into_iter().collect();
    lines.sort_by_key(|line| path_of(line));
    lines
}

fn block(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("\t{line}\n")).collect();
    format!("import (\n{})\n", lines.concat())
}

/// Returns the imports of a client that contains the runtime.
pub(super) fn imports_of_runtime() -> String {
    block(&library())
}

/// Returns the code of the runtime, as a client contains it.
pub(super) fn embedded() -> String {
    FILES.map(|file| parts(file).1).join("\n")
}

/// Returns the runtime as a package of one file.
pub fn runtime() -> String {
    let code = with_exported_names(&embedded());
    format!(
        "// Package {NAME} is the runtime of the clients that mingle gen go --runtime import writes.
//
// Names that begin with Wire are for these clients alone.
package {NAME}

{}
// Version is the version of the command mingle whose clients need this package.
const Version = \"{VERSION}\"

{code}",
        block(&library())
    )
}

/// Puts an upper-case letter at the beginning of each name that begins with `wire`.
fn with_exported_names(code: &str) -> String {
    let mut exported = String::with_capacity(code.len());
    let mut last = ' ';
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let begins = !is_part(last)
            && rest.strip_prefix("wire").is_some_and(|rest| rest.starts_with(char::is_uppercase));
        exported.push(if begins { 'W' } else { c });
        last = c;
        rest = &rest[c.len_utf8()..];
    }
    exported
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the declarations of the runtime for callers.
fn declarations() -> Vec<Declaration> {
    let mut found = Vec::new();
    for file in FILES {
        let mut docs = String::new();
        for line in parts(file).1.lines() {
            if line.starts_with("//") {
                docs.extend([line, "\n"]);
                continue;
            }
            let docs = std::mem::take(&mut docs);
            let kinds = ["type ", "func ", "var ", "const "];
            let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else {
                continue;
            };
            let name = words(rest, is_part).next().filter(|name| rest.starts_with(name));
            if let Some(name) = name.filter(|name| name.starts_with(char::is_uppercase)) {
                found.push(Declaration { docs, line, name });
            }
        }
    }
    found
}

/// Returns the names that the runtime declares for callers.
pub(super) fn declared() -> Vec<&'static str> {
    declarations().into_iter().map(|it| it.name).collect()
}

/// Returns the names of parameters or type parameters, from their list.
fn names_in(list: &str) -> Vec<&str> {
    list.split(',').filter_map(|part| words(part, is_part).next()).collect()
}

/// Returns the declaration with which a client exports a name of the package as its own.
fn alias(declaration: &Declaration) -> String {
    let Declaration { line, name, .. } = declaration;
    let after = line.split_once(name).map_or("", |(_, after)| after);
    let generic = after.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (generics, after) = generic.unwrap_or(("", after));
    if line.starts_with("type ") {
        return match generics {
            "" => format!("type {name} = {NAME}.{name}\n"),
            all => format!("type {name}[{all}] = {NAME}.{name}[{}]\n", names_in(all).join(", ")),
        };
    }
    if !line.starts_with("func ") {
        return format!("var {name} = {NAME}.{name}\n");
    }
    let head = line.trim_end_matches('{').trim_end();
    let params = after.trim_start_matches('(').split_once(')').map_or("", |(params, _)| params);
    format!("{head} {{\n\treturn {NAME}.{name}({})\n}}\n", names_in(params).join(", "))
}

/// Returns the declarations with which a client exports the names of the package as its own.
pub(super) fn aliases() -> String {
    let all = declarations();
    let all: Vec<String> = all.iter().map(|it| format!("{}{}", it.docs, alias(it))).collect();
    all.join("\n")
}

/// Returns the line of a client that names the package it needs.
pub(super) fn needs(module: &str) -> String {
    format!("// It needs the package {module} v{VERSION}.\n")
}

/// Returns the imports of a client with this code.
pub(super) fn imports(code: &str, module: &str) -> String {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code: Vec<String> = code.lines().filter(is_code).map(without_texts).collect();
    let code = code.join("\n");
    let is_used = |line: &&str| {
        let package = path_of(line).rsplit('/').next().unwrap_or_default();
        line.starts_with('"') && code.contains(&format!("{package}."))
    };
    let library: Vec<&str> = library().into_iter().filter(is_used).collect();
    let own = format!("import {NAME} \"{module}\"\n");
    format!("{}\n{own}", block(&library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_has_all_that_clients_use() {
        let text = runtime();
        for expected in
            ["func WireConnect(", "type Session struct {", ") WireRead(r *WireReader, found any)"]
        {
            assert!(text.contains(expected), "{expected}");
        }
        let is_hidden = |word: &&str| {
            word.strip_prefix("wire").is_some_and(|rest| rest.starts_with(char::is_uppercase))
        };
        assert_eq!(words(&text, is_part).find(is_hidden), None);
    }

    #[test]
    fn names_for_callers_are_told_from_others() {
        let declared = declared();
        for name in [
            "Session",
            "NewSession",
            "Error",
            "ErrRequire",
            "WithRetries",
            "Decimal",
            "Early",
            "Some",
        ] {
            assert!(declared.contains(&name), "{name}");
        }
        assert!(declared.iter().all(|name| name.starts_with(char::is_uppercase)), "{declared:?}");
        assert!(!declared.contains(&"Token"), "a method is no declaration of its own");
    }

    #[test]
    fn clients_export_the_names_of_the_package() {
        let text = aliases();
        for expected in [
            "type Session = mingleclient.Session\n",
            "type Entry[K, V any] = mingleclient.Entry[K, V]\n",
            "var ErrRequire = mingleclient.ErrRequire\n",
            "func Some[T any](value T) *T {\n\treturn mingleclient.Some(value)\n}\n",
            "func NewDate(year int, month time.Month, day int) (Date, error) {\n\treturn mingleclient.NewDate(year, month, day)\n}\n",
        ] {
            assert!(text.contains(expected), "{expected}");
        }
    }
}
