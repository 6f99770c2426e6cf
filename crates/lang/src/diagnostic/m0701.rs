#![doc = include_str!("m0701.md")]

use super::{Code, Diagnostic};
use crate::syntax::lexer::string_value;
use crate::syntax::{Refused, Source, Span, TokenKind, ast};

/// The maximum number of files of a cycle that are named.
const NAMED_MAX: usize = 12;

/// Reports the imports of a parsed program that are refused; the names of what they would bring are
/// unknown, and so the tree is incomplete.
pub(crate) fn refusals(source: &Source, tree: &mut ast::Program) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for import in &tree.imports {
        let result = source.import_result(import.path.start);
        let refused = match result {
            Some(Ok(())) => continue,
            Some(Err(refused)) => Some(refused),
            None if source.files.is_empty() => Some(&Refused::NoFiles),
            // The parser has reported a mistake in it.
            None => None,
        };
        tree.is_incomplete = true;
        let token = source.tokens[import.path.start as usize];
        if let (Some(refused), TokenKind::String) = (refused, token.kind) {
            let path = string_value(source.token_text(import.path.start));
            found.push(render(&path, refused, import.path));
        }
    }
    found
}

/// Renders an import of `path` that is refused; `span` is the place of the path.
fn render(path: &str, refused: &Refused, span: Span) -> Diagnostic {
    let new = |title: String, label: &str| Diagnostic::new(Code::M0701, title, span, label);
    let shown = path.escape_debug();
    match refused {
        Refused::NoFiles => new(
            format!("\"{shown}\" cannot be imported: the program came as one text, without files"),
            "there is no folder in which to look",
        )
        .with_note("`mingle` with the name of a file reads what the file imports; so does `mingle::program!(\"FILE\")`"),
        Refused::Path(expected) => new(format!("\"{shown}\" is no path of an import"), expected)
            .with_note("a path is relative to the folder of the importing file, has `/` between folders, and ends with `.mingle`"),
        Refused::Unreadable(tried, reason) => {
            let plain = new(format!("\"{shown}\" cannot be imported: {reason}"), "this file");
            if tried == path { plain } else { plain.with_note(format!("its path is {}", tried.escape_debug())) }
        }
        Refused::Cycle(files) => new(
            format!("\"{shown}\" is imported in a circle"),
            "it imports this file, directly or through others",
        )
        .with_note(chain(files)),
        Refused::TooMany(counted, limit) => {
            new(format!("the program has more than {limit} {counted}"), "this file is not read")
        }
    }
}

/// Returns the files of a cycle in words.
fn chain(files: &[String]) -> String {
    let mut shown: Vec<_> = files.iter().map(|file| file.escape_debug().to_string()).collect();
    if shown.len() > NAMED_MAX {
        let left_out = shown.len() - NAMED_MAX;
        shown.splice(NAMED_MAX / 2..NAMED_MAX / 2 + left_out, [format!("… {left_out} more …")]);
    }
    shown.join(" imports ")
}
