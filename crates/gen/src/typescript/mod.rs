//! A program as a client in TypeScript, which calls its transactions on a server by HTTP.
//!
//! - `names`: names of the program as names of TypeScript;
//! - `types`: its types, and their JSON codecs;
//! - `data`: handles of objects, their fields, and structs;
//! - `client`: the class whose methods are the transactions;
//! - `runtime.ts`: the code shared by all programs;
//! - `package`: the runtime as a package, and a client's imports from it.
//!
//! One file without dependencies: an ES module for any platform with `fetch`. Removing the types
//! from its syntax turns it into JavaScript.
//!
//! # Choices
//!
//! - An `int` is a `bigint`, since a `number` loses precision beyond 2^53, and a value of a union
//!   of both types cannot be added to anything. A parameter accepts a `number` too.
//! - A `time` is a `Date`. A time that dates cannot hold (fractions of a millisecond, or outside
//!   their range) is an `ExactTime`, a date that keeps the exact value.
//! - A `json` is what `JSON.parse` gives. A number in it that JavaScript would round is a `JsonNumber`, which keeps its
//!   digits.
//! - A `date` is its text, such as `2026-01-31`: a `Date` is a moment, and shows another day in another time zone.
//! - A `decimal` is its text, such as `-19.90`: a `number` would lose digits.
//! - An enumeration is the union of its labels. A label that the client does not know is refused.
//! - All names that are not for the caller begin with `$`: no name of a program does.

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
const RUNTIME: &str = include_str!("runtime.ts");

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
/// let client = mingle_gen::typescript::text(&mingle_lang::check(text), "bank.mingle").unwrap();
/// assert!(client.contains("balance(of: Account, options?: CallOptions): Promise<bigint>;"));
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
        let mut parts = vec![self.client()];
        parts.extend(self.declared.objects.iter().map(|(docs, object)| self.handle(docs, object)));
        let structs = self.declared.structs.iter();
        parts.extend(structs.map(|(docs, declared)| self.record(docs, declared)));
        let enums = self.declared.enums.iter();
        parts.extend(enums.map(|(docs, declared)| self.enumeration(docs, declared)));
        let generated = format!("// Generated from {} by `mingle gen typescript`.\n", self.origin);
        match runtime {
            Runtime::Embedded => {
                parts.insert(0, generated);
                parts.push(RUNTIME.to_owned());
                parts.push(self.codecs());
                parts.push(self.all_used(true));
            }
            Runtime::Imported => {
                parts.push(self.codecs());
                let imports = package::imports(&parts.concat());
                parts.insert(0, format!("{generated}{imports}"));
                parts.push(self.all_used(false));
            }
        }
        parts.join("\n")
    }
}

/// Returns a doc comment.
fn doc(indent: &str, text: &str, otherwise: &str) -> String {
    let text = if text.is_empty() { otherwise } else { text };
    let lines: Vec<String> =
        doc_lines(text).iter().map(|line| line.replace("*/", "*\\/")).collect();
    match lines.as_slice() {
        [line] => format!("{indent}/** {line} */\n"),
        lines => {
            let line = |line: &String| format!("{indent} * {line}").trim_end().to_owned() + "\n";
            let lines: String = lines.iter().map(line).collect();
            format!("{indent}/**\n{lines}{indent} */\n")
        }
    }
}
