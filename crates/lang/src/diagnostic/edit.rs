//! Application of the edits that a diagnostic suggests.

use std::ops::Range;

use super::Edit;
use crate::syntax::files::Part;
use crate::syntax::{self, Source};

/// Returns the text with the edits applied.
///
/// Insertions at one place keep the order of `edits`. If two edits overlap, the one that starts
/// first is applied and the other is dropped, so no text is replaced twice.
///
/// # Examples
///
/// ```
/// use mingle_lang::diagnostic::{Edit, apply_edits};
/// use mingle_lang::syntax::{Span, lex};
///
/// let source = lex("let x = 1;");
/// let edit = Edit { span: Span::token(1), text: "y".into() };
/// assert_eq!(apply_edits(&source, &[edit]), "let y = 1;");
/// ```
pub fn apply_edits(source: &Source, edits: &[Edit]) -> String {
    let mut result = String::with_capacity(source.text.len());
    let mut at = 0;
    for (bytes, text) in in_order(source, edits) {
        result.push_str(&source.text[at..bytes.start]);
        result.push_str(text);
        at = bytes.end;
    }
    result.push_str(&source.text[at..]);
    result
}

/// Returns the texts of a program's files with the edits applied, in the order of
/// [`Source::files`].
fn edited(source: &Source, edits: &[Edit]) -> Vec<String> {
    let edits = in_order(source, edits);
    let mut edits = edits.iter().peekable();
    let of_file = |file: usize| {
        let bytes = source.file_bytes(file);
        let (mut text, mut at) = (String::with_capacity(bytes.len()), bytes.start);
        while let Some((edit, new)) = edits.next_if(|(edit, _)| edit.start <= bytes.end) {
            text.push_str(source.text.get(at..edit.start).unwrap_or_default());
            text.push_str(new);
            at = edit.end;
        }
        text.push_str(source.text.get(at..bytes.end).unwrap_or_default());
        text
    };
    (0..source.files.len()).map(of_file).collect()
}

/// Returns the program with edits applied, each to its file.
pub fn edited_source(source: &Source, edits: &[Edit]) -> Source {
    if source.files.is_empty() {
        return syntax::lex(apply_edits(source, edits));
    }
    let texts = edited(source, edits);
    let parts = source.files.iter().zip(texts).map(|(file, text)| Part {
        name: file.name.clone(),
        text,
        imports: file.results(),
    });
    Source::of_files(parts.collect())
}

/// Returns the edits as bytes and new text, from first to last, without overlap.
pub(super) fn in_order<'a>(source: &Source, edits: &'a [Edit]) -> Vec<(Range<usize>, &'a str)> {
    let mut ordered: Vec<_> =
        edits.iter().map(|edit| (source.bytes(edit.span), edit.text.as_str())).collect();
    ordered.sort_by_key(|(bytes, _)| (bytes.start, bytes.end));
    let mut at = 0;
    ordered.retain(|(bytes, _)| {
        let fits = bytes.start >= at;
        if fits {
            at = bytes.end;
        }
        fits
    });
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Span, lex};

    fn check(edits: &[(u32, u32, &str)], expected: &str) {
        let source = lex("let x = 1; // é");
        let edits: Vec<Edit> = edits
            .iter()
            .map(|(start, end, text)| Edit {
                span: Span { start: *start, end: *end },
                text: (*text).into(),
            })
            .collect();
        assert_eq!(apply_edits(&source, &edits), expected);
    }

    #[test]
    fn edits_are_carried_out_in_order() {
        check(&[], "let x = 1; // é");
        check(&[(3, 4, "2"), (0, 1, "var")], "var x = 2; // é");
        check(&[(1, 1, "a"), (1, 1, "b "), (1, 2, "y")], "let ab y = 1; // é");
        check(&[(0, 3, "all"), (1, 2, "lost")], "all 1; // é");
        check(&[(5, 5, "!"), (99, 100, "?")], "let x = 1; // é!?");
    }
}
