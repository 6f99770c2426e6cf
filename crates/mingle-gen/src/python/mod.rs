//! A program as a client in Python, which calls its transactions on a server by HTTP.
//!
//! - `names`: names of the program as names of Python;
//! - `types`: its types, and their JSON codecs;
//! - `data`: handles of objects, their fields, and structs;
//! - `client`: the class whose methods are the transactions;
//! - `imports.py`, `runtime.py`: the code shared by all programs;
//! - `package`: the runtime as a package, and a client's imports from it.
//!
//! One file without dependencies, for Python 3.10 and newer.
//!
//! # Choices
//!
//! - A `time` is a `datetime` with a time zone. What is further off than those reach is an
//!   `ExactTime`, a datetime that remembers.
//! - Handles and structs are frozen, so they can be keys of dictionaries.
//! - All that is not for the caller begins with an underscore.

mod client;
mod data;
mod names;
mod package;
mod types;

use mingle_lang::Checked;

use crate::declared::Declared;
use crate::lines::{doc_lines, one_line};
use crate::shared::Runtime;
use names::Names;
pub use package::runtime;

/// The code shared by all programs.
const IMPORTS: &str = include_str!("imports.py");
const RUNTIME: &str = include_str!("runtime.py");

/// The state of the generator for a program.
struct Context<'a> {
    declared: Declared<'a>,
    /// Names of objects and structs.
    types: Names,
    /// The name of the program.
    origin: String,
}

/// The client for a program; none if that has errors. `origin` says where the program comes from.
///
/// # Examples
///
/// ```
/// let text = "store accounts: linearizable;
///     object Account in accounts { key owner: string; balance: int; }
///     transaction balance(of: ref Account) -> int { return of.balance; }";
/// let client = mingle_gen::python::text(&mingle_lang::check(text), "bank.mingle").unwrap();
/// assert!(client.contains("def balance(self, of: Account, *, options: Options | None = None) -> int: ..."));
/// ```
pub fn text(checked: &Checked, origin: &str) -> Option<String> {
    text_with(checked, origin, Runtime::Embedded)
}

/// As [`text`], with the runtime where that is wanted.
pub fn text_with(checked: &Checked, origin: &str, runtime: Runtime) -> Option<String> {
    let declared = Declared::of(checked)?;
    let types = Names::of_types(declared.type_names());
    let context = Context { declared, types, origin: one_line(origin) };
    Some(context.file(runtime))
}

impl Context<'_> {
    fn file(&self, runtime: Runtime) -> String {
        let generated = format!("# Generated from {} by `mingle gen python`.\n", self.origin);
        let mut parts = vec![self.client()];
        parts.extend(self.declared.objects.iter().map(|(docs, object)| self.handle(docs, object)));
        let structs = self.declared.structs.iter();
        parts.extend(structs.map(|(docs, declared)| self.record(docs, declared)));
        let imports = match runtime {
            Runtime::Embedded => {
                parts.push(RUNTIME.to_owned());
                parts.push(self.codecs());
                format!("\n{IMPORTS}")
            }
            Runtime::Imported => {
                parts.push(self.codecs());
                package::imports(&parts.concat())
            }
        };
        parts.insert(0, format!("{generated}{imports}"));
        parts.join("\n\n")
    }
}

/// A doc comment as the first statement of what it documents.
fn doc(indent: &str, text: &str, otherwise: &str) -> String {
    let text = if text.is_empty() { otherwise } else { text };
    let mut lines = doc_lines(text);
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let text = lines.join("\n").replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    let text = match text.strip_suffix('"') {
        // The quote is escaped already where an odd number of backslashes stands before it.
        Some(before) if before.chars().rev().take_while(|c| *c == '\\').count() % 2 == 0 => {
            format!("{before}\\\"")
        }
        _ => text,
    };
    let text = text.replace('\n', &format!("\n{indent}")).replace(&format!("\n{indent}\n"), "\n\n");
    let end = if lines.len() > 1 { format!("\n{indent}") } else { String::new() };
    format!("{indent}\"\"\"{text}{end}\"\"\"\n")
}

/// A comment that documents a field.
fn comment(indent: &str, text: &str, otherwise: &str) -> String {
    let text = if text.is_empty() { otherwise } else { text };
    let line = |line: &String| format!("{indent}#: {line}").trim_end().to_owned() + "\n";
    doc_lines(text).iter().map(line).collect()
}
