//! Trial of advice: an edit to a flow error is shown only if the edited program has fewer errors.

use crate::diagnostic::{Diagnostic, Edit, edited_source};
use crate::syntax::{Source, Span};

/// The bytes of text that may be checked again to try advice, over all attempts.
const TRIED_BYTES_MAX: usize = 2 << 20;

/// Fills in the parts of edits that come from the text, tries the advice on flow diagnostics, and
/// keeps only advice that leaves fewer than `errors` errors. `count_errors` counts the errors of a
/// program.
pub(crate) fn keep_what_helps(
    source: &Source,
    diagnostics: &mut [Diagnostic],
    errors: usize,
    mut count_errors: impl FnMut(Source) -> usize,
) {
    let mut left = TRIED_BYTES_MAX;
    for diagnostic in diagnostics {
        for help in &mut diagnostic.help {
            fill(source, &mut help.edits);
        }
        if !diagnostic.code.text().starts_with("M03") {
            continue;
        }
        diagnostic.help.retain(|help| {
            let Some(rest) = left.checked_sub(source.text.len()) else { return false };
            left = rest;
            count_errors(edited_source(source, &help.edits)) < errors
        });
    }
}

/// Fills in the placeholders of edits: `{text}` is the text that the edit itself replaces, `{read}`
/// the text that the next edit replaces, `{indent}` the line's indentation.
fn fill(source: &Source, edits: &mut Vec<Edit>) {
    let spans: Vec<_> = edits.iter().map(|edit| edit.span).collect();
    for (index, edit) in edits.iter_mut().enumerate() {
        if edit.text.contains("{text}") {
            edit.text = edit.text.replace("{text}", source.span_text(edit.span));
        }
        if let (true, Some(next)) = (edit.text.contains("{read}"), spans.get(index + 1)) {
            let at = source.bytes(edit.span).start;
            let line = source.text[..at].rfind(['\n', '\r']).map_or(0, |newline| newline + 1);
            let blanks = source.text[line..at].len() - source.text[line..at].trim_start().len();
            let indent = &source.text[line..line + blanks];
            edit.text =
                edit.text.replace("{indent}", indent).replace("{read}", source.span_text(*next));
        }
    }
    drop_inner(edits);
}

/// Drops edits that lie within another: they only named a text that the other repeats.
fn drop_inner(edits: &mut Vec<Edit>) {
    let spans: Vec<_> = edits.iter().map(|edit| edit.span).collect();
    let mut index = 0;
    edits.retain(|edit| {
        index += 1;
        let within = |(other, span): (usize, &Span)| {
            other != index - 1 && *span != edit.span && span.contains(edit.span)
        };
        edit.span.start == edit.span.end || !spans.iter().enumerate().any(within)
    });
}
