//! A program as a client in Go, which calls its transactions on a server by HTTP.
//!
//! - `names`: names of the program as names of Go;
//! - `types`: its types, and their JSON codecs;
//! - `data`: handles of objects, their fields, and structs;
//! - `enums`: enumerations;
//! - `client`: the type whose methods are the transactions;
//! - `comment`: doc comments in the form that `gofmt` keeps;
//! - `runtime/`: the code shared by all programs, a package of Go;
//! - `package`: the runtime as a package or as a part of the client's file, and the names that a client takes from it.
//!
//! One file without dependencies beyond the standard library, for Go 1.24 and newer. It is in the form
//! that `gofmt` gives it.
//!
//! # Choices
//!
//! - An `int` is an `int64`.
//! - A `time` is a `time.Time` in UTC. It has microseconds, so a time with parts of one is refused.
//! - A `date` is a `Date`, and a `decimal` is a `Decimal`: the standard library has neither.
//! - A `json` is a `json.RawMessage`, the text of the document, so no number is rounded.
//! - An `option` is a pointer; an option within an option is a pointer to a pointer.
//! - A handle is a struct with the key as its only field.
//! - An enumeration is a string type with a constant for each value. A label that the client does not know is refused.
//! - Map keys that Go compares by identity, or by their representation, make the map a slice of entries.
//! - All package-level names that are not for the caller begin with `wire`, `codecOf` or `callOf`. In the package
//!   of the runtime they begin with `Wire`, since clients are other packages.

mod client;
mod comment;
mod data;
mod enums;
mod names;
mod package;
mod types;

use mingle_lang::Checked;

use crate::declared::Declared;
use crate::lines::is_escaped;
use crate::shared::Runtime;
use names::Names;
pub use package::{module, runtime};

/// The properties of a client that its caller chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The name of the client's package; by default made from the name of the program.
    pub package: Option<String>,
    /// The place of the runtime code.
    pub runtime: Runtime,
    /// The import path of an imported runtime; [`module`] by default.
    pub module: Option<String>,
}

/// The state of the generator for a program.
struct Context<'a> {
    declared: Declared<'a>,
    /// Names of objects and structs.
    types: Names,
    runtime: Runtime,
}

/// Returns the client for a program; none if the program has errors. `origin` is the name of the program's file.
///
/// # Examples
///
/// ```
/// let text = "store accounts: linearizable;
///     object Account in accounts { key owner: string; balance: int; }
///     transaction balance(of: ref Account) -> int { return of.balance; }";
/// let client = mingle_gen::go::text(&mingle_lang::check(text), "bank.mingle").unwrap();
/// assert!(client.contains("package bank\n"));
/// assert!(client.contains(
///     "func (c *Client) Balance(ctx context.Context, of Account, options ...CallOption) (int64, error) {"
/// ));
/// ```
pub fn text(checked: &Checked, origin: &str) -> Option<String> {
    text_with(checked, origin, &Options::default())
}

/// Returns the client as [`text`] does, with options. Texts among the options that are no name of a package or no
/// import path give a client that Go refuses; see [`is_package_name`] and [`is_import_path`].
pub fn text_with(checked: &Checked, origin: &str, options: &Options) -> Option<String> {
    let declared = Declared::of(checked)?;
    let types = Names::of_types(declared.type_names());
    let context = Context { declared, types, runtime: options.runtime };
    Some(context.file(origin, options))
}

/// True if a text is allowed as the name of a package: lower-case letters, digits and underscores, and no word
/// that Go reserves.
///
/// # Examples
///
/// ```
/// assert!(mingle_gen::go::is_package_name("shop2"));
/// assert!(!mingle_gen::go::is_package_name("2shop") && !mingle_gen::go::is_package_name("func"));
/// ```
pub fn is_package_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    // The commands of Go skip files of a package called `documentation`.
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(is_part)
        && !names::is_keyword(text)
        && !text.ends_with("_test")
        && text != "documentation"
}

/// True if a text is allowed as an import path: parts of letters, digits and `-._~`, with slashes between them.
///
/// # Examples
///
/// ```
/// assert!(mingle_gen::go::is_import_path("shop.example/internal/mingleclient"));
/// assert!(!mingle_gen::go::is_import_path("a//b") && !mingle_gen::go::is_import_path("a b"));
/// ```
pub fn is_import_path(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    text.split('/').all(|part| part.contains(|c| c != '.') && part.chars().all(is_part))
}

/// Returns the name of a package for a program in a file of this name.
fn package_name(origin: &str) -> String {
    let stem = origin.strip_suffix(".mingle").unwrap_or(origin).to_lowercase();
    let kept: String = stem.chars().filter(char::is_ascii_alphanumeric).collect();
    if is_package_name(&kept) { kept } else { format!("client{kept}") }
}

impl Context<'_> {
    /// Returns the name of a declaration of the runtime, as code of the client writes it.
    fn wire(&self, name: &str) -> String {
        match self.runtime {
            Runtime::Embedded => format!("wire{name}"),
            Runtime::Imported => format!("{}.Wire{name}", package::NAME),
        }
    }

    /// Returns the name of a method that the runtime declares or calls.
    fn method_of_runtime(&self, name: &str) -> String {
        match self.runtime {
            Runtime::Embedded => format!("wire{name}"),
            Runtime::Imported => format!("Wire{name}"),
        }
    }

    fn file(&self, origin: &str, options: &Options) -> String {
        let mut parts = self.client();
        for (docs, object) in &self.declared.objects {
            parts.extend(self.handle(docs, object));
        }
        for (docs, declared) in &self.declared.structs {
            parts.push(self.record(docs, declared));
        }
        parts.extend(self.enums());
        let module = options.module.clone().unwrap_or_else(module);
        if self.runtime == Runtime::Embedded {
            parts.push("// What follows is the same for all programs.\n".to_owned());
            parts.push(package::embedded());
        } else {
            parts.push(package::aliases());
        }
        let codecs = self.codecs();
        if !codecs.is_empty() {
            parts.push("// How the program's own types are written and read.\n".to_owned());
            parts.extend(codecs);
        }
        let code = parts.join("\n");
        let name = options.package.clone().unwrap_or_else(|| package_name(origin));
        let (needs, imports) = match self.runtime {
            Runtime::Embedded => (String::new(), package::imports_of_runtime()),
            Runtime::Imported => (package::needs(&module), package::imports(&code, &module)),
        };
        // Go's tools know generated files by the second line.
        format!(
            "// Generated from {} by `mingle gen go`.\n// Code generated by mingle. DO NOT EDIT.\n{needs}
// Package {name} calls the transactions of a program on a server, which mingle serve is. It is for Go 1.24 and newer.
package {name}

{imports}
{code}",
            comment::line(origin)
        )
    }
}

/// Returns a text as a string of Go.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        c if is_escaped(c) => format!("\\U{:08x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_a_name_that_go_allows() {
        for (origin, name) in [
            ("message_groups.mingle", "messagegroups"),
            ("Shop-2.mingle", "shop2"),
            ("<stdin>", "stdin"),
            ("2.mingle", "client2"),
            ("func.mingle", "clientfunc"),
            ("documentation.mingle", "clientdocumentation"),
            ("größe.mingle", "gre"),
            ("名.mingle", "client"),
        ] {
            assert_eq!(package_name(origin), name);
            assert!(is_package_name(name), "{name}");
        }
        for wrong in ["", "_", "a-b", "A", "a_test", "type", "größe"] {
            assert!(!is_package_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn import_paths_are_told_from_other_texts() {
        assert!(is_import_path(&module()));
        for wrong in ["", "/a", "a/", "a/../b", "a\"", "a b", "a\n"] {
            assert!(!is_import_path(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\U0000000ad\"");
    }
}
