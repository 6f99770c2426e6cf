//! The runtime as a package, and the imports of a client.

use std::collections::BTreeSet;

use super::{IMPORTS, RUNTIME};
use crate::shared::{VERSION, words};

/// The name of the module; it is in the package `mingle-client`.
const MODULE: &str = "mingle_client";

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the names that the runtime declares.
pub(super) fn declared() -> impl Iterator<Item = &'static str> {
    let lines = RUNTIME.lines().filter(|line| !line.starts_with([' ', '#', '@', ')']));
    lines.filter_map(|line| {
        let rest = ["class ", "def "].iter().find_map(|word| line.strip_prefix(word));
        words(rest.unwrap_or(line), is_part).next()
    })
}

/// Returns the runtime as a separate module.
pub fn runtime() -> String {
    format!(
        "\"\"\"The runtime of the clients that `mingle gen python --runtime import` writes.\"\"\"

{IMPORTS}
__version__ = \"{VERSION}\"

{RUNTIME}"
    )
}

/// Returns the imports of a client with this code: from the language's library, and from the
/// package, whose public names it exports again.
pub(super) fn imports(code: &str) -> String {
    let used: BTreeSet<&str> = words(code, is_part).collect();
    let mut text = String::new();
    for line in IMPORTS.lines() {
        text += &library(line, &used).map_or_else(String::new, |line| format!("{line}\n"));
    }
    let names: BTreeSet<&str> = declared().collect();
    let names = names.into_iter().filter_map(|name| {
        if name.starts_with('_') {
            return used.contains(name).then(|| format!("    {name},\n"));
        }
        // This form of import exports the name again.
        Some(format!("    {name} as {name},\n"))
    });
    let names: String = names.collect();
    format!(
        "# It needs the package mingle-client {VERSION}.\n\n{text}\nfrom {MODULE} import (\n{names})\n"
    )
}

/// Returns the name that a part of an import binds: the last word of `date as _Date`.
pub(super) fn bound(imported: &str) -> &str {
    imported.rsplit(' ').next().unwrap_or(imported)
}

/// Returns an import of the language's library, without unused names.
fn library(line: &str, used: &BTreeSet<&str>) -> Option<String> {
    if line.is_empty() || line.starts_with("from __future__") {
        return Some(line.to_owned());
    }
    if let Some((from, names)) = line.split_once(" import ") {
        let names: Vec<&str> =
            names.split(", ").filter(|name| used.contains(bound(name))).collect();
        return (!names.is_empty()).then(|| format!("{from} import {}", names.join(", ")));
    }
    let module = line.strip_prefix("import ")?;
    let first = words(module, is_part).next()?;
    used.contains(first).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_imports_what_it_uses() {
        let text = imports("class Client:\n    a: Callable[[], ssl.SSLContext] = _int\n");
        for expected in [
            "from __future__",
            "import ssl\n",
            "import Callable\n",
            "    _int,\n",
            "    Session as Session,\n",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        for unexpected in ["import json", "_bool", "Sequence", "dataclass"] {
            assert!(!text.contains(unexpected), "{unexpected}: {text}");
        }
    }

    #[test]
    fn the_package_begins_with_its_docs() {
        assert!(runtime().starts_with("\"\"\"The runtime"));
        assert!(declared().any(|name| name == "_Codec") && declared().any(|name| name == "_EPOCH"));
    }
}
