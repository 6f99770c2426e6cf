//! The runtime as a package, and the imports of a client.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::RUNTIME;
use crate::shared::{VERSION, without_texts, words};

/// The name of the package.
const PACKAGE: &str = "mingle-client";

/// The `EarlyOptions` of a client that imports the runtime: it knows its stores, and the package
/// does not.
/// the stores.
const EARLY_OPTIONS: &str = "\
/** How one transaction is called whose answer shall come early. */
export interface EarlyOptions extends $EarlyOptions {
  /** Answers once this store, and all that are visited before it, have committed. */
  readonly until: Store;
}
";

/// A declaration of the runtime.
struct Declaration {
    /// The keyword before the name: `class`, `const`, `function`, `interface` or `type`.
    word: &'static str,
    name: &'static str,
}

impl Declaration {
    /// Reads a line that begins a declaration.
    fn of(line: &'static str) -> Option<Self> {
        let line = line.strip_prefix("export ").unwrap_or(line);
        let line = line.strip_prefix("async ").unwrap_or(line);
        let kinds = ["class", "const", "function", "interface", "type"];
        let (word, rest) = line.split_once(' ')?;
        let word = kinds.into_iter().find(|kind| *kind == word)?;
        Some(Self { word, name: words(rest, is_part).next()? })
    }

    fn is_public(&self) -> bool {
        !self.name.starts_with('$')
    }

    /// Returns the name in the form in which it is imported or exported.
    fn shown(&self) -> String {
        let is_type = matches!(self.word, "interface" | "type");
        format!("{}{}", if is_type { "type " } else { "" }, self.name)
    }
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn declarations() -> impl Iterator<Item = Declaration> {
    RUNTIME.lines().filter_map(Declaration::of)
}

/// Returns the runtime as a separate module, which exports the names that clients use.
pub fn runtime() -> String {
    let mut text = format!(
        "// The runtime of the clients that `mingle gen typescript --runtime import` writes: mingle {VERSION}.

/** The stores of a program. */
export type Store = string;

"
    );
    for line in RUNTIME.lines() {
        let is_own = Declaration::of(line).is_some() && !line.starts_with("export ");
        text += if is_own { "export " } else { "" };
        text += line;
        text.push('\n');
    }
    text
}

/// Returns the imports from the package of a client with this code, and its exports for its users.
pub(super) fn imports(code: &str) -> String {
    let is_comment =
        |line: &&str| ["/**", "*", "//"].iter().any(|start| line.trim_start().starts_with(start));
    let code: String =
        code.lines().filter(|line| !is_comment(line)).fold(String::new(), |mut code, line| {
            code += &without_texts(line);
            code.push('\n');
            code
        });
    let used: BTreeSet<&str> = words(&code, is_part).collect();
    let is_own = |it: &Declaration| it.name == "EarlyOptions";
    let imported = declarations().filter(|it| used.contains(it.name) && !is_own(it));
    let own = std::iter::once("type EarlyOptions as $EarlyOptions".to_owned());
    let imported = list(imported.map(|it| it.shown()).chain(own));
    let exported = declarations().filter(|it| it.is_public() && !is_own(it));
    let exported = list(exported.map(|it| it.shown()));
    format!(
        "// It needs the package {PACKAGE} {VERSION}.

import {{
{imported}}} from \"{PACKAGE}\";
export {{
{exported}}} from \"{PACKAGE}\";

{EARLY_OPTIONS}"
    )
}

/// Returns a line for each name.
fn list(names: impl Iterator<Item = String>) -> String {
    names.fold(String::new(), |mut text, name| {
        writeln!(text, "  {name},").expect("a string can be written to");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_exports_all_that_it_declares() {
        let text = runtime();
        for expected in
            ["export class $Connection {", "export class Session {", "export const $int: "]
        {
            assert!(text.contains(expected), "{expected}");
        }
        let inside = text.lines().filter(|line| line.starts_with(|c: char| c.is_alphabetic()));
        let others: Vec<&str> = inside.filter(|line| !line.starts_with("export ")).collect();
        assert!(others.is_empty(), "{others:?}");
    }

    #[test]
    fn a_client_imports_what_it_uses() {
        let text = imports("/** Some users. */\nconst a: Session = $int(\"ExactTime\");\n");
        let (imported, exported) = text.split_once("export {").expect("it exports something");
        assert!(imported.contains("  Session,\n") && imported.contains("  $int,\n"), "{imported}");
        assert!(!imported.contains("Some") && !imported.contains("ExactTime"), "{imported}");
        assert!(
            exported.contains("  type Some,\n") && exported.contains("  ExactTime,\n"),
            "{exported}"
        );
        assert!(
            !exported.contains('$') || exported.contains("extends $EarlyOptions"),
            "{exported}"
        );
    }
}
