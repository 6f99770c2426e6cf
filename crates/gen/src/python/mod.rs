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
//! - A `time` is a `datetime` with a time zone. A time outside the range of `datetime` is an
//!   `ExactTime`, a datetime that keeps the exact value.
//! - A `date` is a `date`, imported as `_Date`, since many fields are called `date`. A day outside the range of
//!   `date` is an `ExactDate`, which keeps the text.
//! - A `decimal` is a `Decimal`, imported as `_Decimal`.
//! - A `json` is what the module `json` reads and writes. A number that a float would round is a `Decimal`.
//! - An enumeration is the `Literal` of its labels. A label that the client does not know is refused.
//! - Handles and structs are frozen, so they can be keys of dictionaries.
//! - All names that are not for the caller begin with an underscore.

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

/// Returns the client for a program; none if the program has errors. `origin` says where the
/// program comes from.
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

/// Returns the client as [`text`] does, with the runtime in the place given by `runtime`.
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
        let enums = self.declared.enums.iter();
        parts.extend(enums.map(|(docs, declared)| self.enumeration(docs, declared)));
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

/// Returns a doc comment as a docstring: the first statement of the documented class or method.
fn doc(indent: &str, text: &str, otherwise: &str) -> String {
    let text = if text.is_empty() { otherwise } else { text };
    let mut lines = doc_lines(text);
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let text = lines.join("\n").replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    let text = match text.strip_suffix('"') {
        // An odd number of backslashes before the quote already escapes it.
        Some(before) if before.chars().rev().take_while(|c| *c == '\\').count() % 2 == 0 => {
            format!("{before}\\\"")
        }
        _ => text,
    };
    let text = text.replace('\n', &format!("\n{indent}")).replace(&format!("\n{indent}\n"), "\n\n");
    let end = if lines.len() > 1 { format!("\n{indent}") } else { String::new() };
    format!("{indent}\"\"\"{text}{end}\"\"\"\n")
}

/// Returns a comment that documents a field.
fn comment(indent: &str, text: &str, otherwise: &str) -> String {
    let text = if text.is_empty() { otherwise } else { text };
    let line = |line: &String| format!("{indent}#: {line}").trim_end().to_owned() + "\n";
    doc_lines(text).iter().map(line).collect()
}
