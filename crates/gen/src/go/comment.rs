//! Comments of Go, in the form that `gofmt` keeps.
//!
//! `gofmt` rewrites the comments before declarations at the left margin: it knows paragraphs, headings,
//! lists, links and preformatted text. Text of a program that would be taken for more than paragraphs is preformatted
//! text.

use crate::lines::{doc_lines, one_line};

/// Returns a text from outside as one line of a comment.
pub(super) fn line(text: &str) -> String {
    without_marks(&one_line(text))
}

/// Go refuses a byte order mark within a file.
fn without_marks(text: &str) -> String {
    text.replace('\u{feff}', "\u{fffd}")
}

/// Go takes a line that begins with `+build`, in any comment, for a condition of the whole file.
fn without_constraint(line: &str) -> String {
    let rest = line.trim_start().strip_prefix("+build");
    rest.map_or_else(|| line.to_owned(), |rest| format!("+ build{rest}"))
}

/// Returns the comment of a declaration at the left margin. `first` is a sentence, `docs` a doc comment of the
/// program.
pub(super) fn top(first: &str, docs: &str) -> String {
    let lines = kept(docs);
    let mut text = format!("// {first}\n");
    if lines.is_empty() {
        return text;
    }
    text += "//\n";
    if is_plain(&lines) {
        text.extend(lines.iter().map(|line| format!("// {line}").trim_end().to_owned() + "\n"));
        return text;
    }
    // The first line tells preformatted text from a list.
    text += "//\tIn the program:\n";
    let common = common_indent(&lines);
    text.extend(lines.iter().map(|line| match line.get(common..) {
        Some(rest) if !line.is_empty() => format!("//\t{rest}\n"),
        _ => "//\n".to_owned(),
    }));
    text
}

/// Returns the comment of a field, which `gofmt` leaves as it is.
pub(super) fn inner(first: &str, docs: &str) -> String {
    let mut text = format!("\t// {first}\n");
    let lines = kept(docs);
    if !lines.is_empty() {
        text += "\t//\n";
    }
    text.extend(lines.iter().map(|line| format!("\t// {line}").trim_end().to_owned() + "\n"));
    text
}

/// Returns the lines of a doc comment without empty ones at the ends, and without several after each other.
fn kept(docs: &str) -> Vec<String> {
    let lines = doc_lines(docs).into_iter().map(|line| without_constraint(&without_marks(&line)));
    let mut kept: Vec<String> = Vec::new();
    for line in lines {
        if !line.is_empty() || kept.last().is_some_and(|last| !last.is_empty()) {
            kept.push(line);
        }
    }
    kept.truncate(kept.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
    kept
}

/// True if `gofmt` takes the lines for paragraphs, and changes nothing in them.
fn is_plain(lines: &[String]) -> bool {
    let begins_paragraph = |line: &String| {
        line.is_empty() || line.starts_with(|c: char| c.is_alphabetic() || "\"'(`".contains(c))
    };
    // Go turns these into other quotes.
    let has_quotes = |line: &String| line.contains("``") || line.contains("''");
    lines.iter().all(begins_paragraph) && !lines.iter().any(has_quotes) && !has_heading(lines)
}

/// True if a paragraph is one line without an end of a sentence, which may be a heading.
fn has_heading(lines: &[String]) -> bool {
    let mut paragraphs = lines.split(String::is_empty);
    let is_heading = |paragraph: &[String]| matches!(paragraph, [line] if !line.ends_with(['.', ',', ':', ';', '!', '?']));
    lines.iter().any(String::is_empty) && paragraphs.any(is_heading)
}

/// Returns the length of the blank text that all lines begin with, in bytes.
fn common_indent(lines: &[String]) -> usize {
    let mut lines = lines.iter().filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return 0 };
    let blank = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    lines.fold(blank(first), |common, line| {
        let same = first.bytes().zip(line.bytes()).take_while(|(a, b)| a == b).count();
        common.min(same).min(blank(line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_stay_paragraphs() {
        assert_eq!(top("A is one.", ""), "// A is one.\n");
        let expected = "// A is one.\n//\n// Sells an item.\n//\n// Or two,\n// or three.\n";
        assert_eq!(top("A is one.", "Sells an item.\n\n\nOr two,\nor three.\n\n"), expected);
    }

    #[test]
    fn other_text_is_preformatted() {
        for docs in ["- one\n- two", "# A", "1. a", "A\n\nB.", "[a]: b", "a ``b''", "a\n  b"] {
            let text = top("A is one.", docs);
            assert!(text.starts_with("// A is one.\n//\n//\tIn the program:\n//\t"), "{text}");
        }
        assert!(top("A.", "    a\n\n      b").ends_with("//\ta\n//\n//\t  b\n"));
    }

    #[test]
    fn comments_of_fields_have_the_lines_as_they_are() {
        assert_eq!(inner("A is one.", "- b\n  c"), "\t// A is one.\n\t//\n\t// - b\n\t//   c\n");
        assert_eq!(inner("A is one.", "  +build b"), "\t// A is one.\n\t//\n\t// + build b\n");
        assert_eq!(line("a\u{feff}\nb"), "a\u{fffd}\u{fffd}b");
    }
}
