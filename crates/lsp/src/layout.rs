//! Formatting: the standard layout, as the smallest change of whole lines.

use gen_lsp_types::{Range, TextEdit};
use mingle_lang::format::format;
use mingle_lang::syntax::{lex, parse};
use serde_json::{Value, json};

use crate::document::Document;

/// Returns the change that formats a document; none while parts of it cannot be read.
pub(crate) fn layout(document: &Document) -> Value {
    let old = document.text();
    // The layout of a file does not depend on the other files of its program.
    let source = lex(old);
    let (tree, mistakes) = parse(&source);
    if !mistakes.is_empty() {
        return Value::Null;
    }
    let new = format(&source, &tree);
    if new == old {
        return json!([]);
    }
    let before = common_lines(old.split_inclusive('\n'), new.split_inclusive('\n'));
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let after =
        common_lines(old_rest.split_inclusive('\n').rev(), new_rest.split_inclusive('\n').rev());
    let range =
        Range { start: document.position(before), end: document.position(old.len() - after) };
    json!([TextEdit { range, new_text: new_rest[..new_rest.len() - after].to_owned() }])
}

/// Returns the number of bytes in the common first lines.
fn common_lines<'a>(
    old: impl Iterator<Item = &'a str>,
    new: impl Iterator<Item = &'a str>,
) -> usize {
    old.zip(new).take_while(|(old, new)| old == new).map(|(old, _)| old.len()).sum()
}
