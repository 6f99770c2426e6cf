//! Outside text in comments of generated code.
//!
//! A comment ends with its line, and languages disagree on which characters end a line. So every
//! character that ends a line in any of them is replaced. Characters that change the order of
//! displayed text are replaced too, so that a person reads the same text as a compiler.

/// Returns a text as one line, for a comment that ends with its line, in any language.
///
/// # Examples
///
/// ```
/// assert_eq!(mingle_gen::one_line("orders\n}\ntransaction pay() {}"), "orders\u{fffd}}\u{fffd}transaction pay() {}");
/// assert_eq!(mingle_gen::one_line("bücher\t2"), "bücher\t2");
/// ```
pub fn one_line(text: &str) -> String {
    let is_kept = |c: char| !breaks_lines(c) && !changes_order(c);
    let kept = text.chars().map(|c| if is_kept(c) { c } else { '\u{fffd}' });
    kept.collect::<String>().trim_end().to_owned()
}

/// Returns the lines of a doc comment, without characters that no source text should hold.
pub(crate) fn doc_lines(docs: &str) -> Vec<String> {
    docs.lines().map(one_line).collect()
}

/// Returns a text as a string in double quotes, in languages that have the escape `\u`: TypeScript and Python.
#[cfg(feature = "text")]
pub(crate) fn literal(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        c if is_escaped(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// True for characters that a string of generated code does not hold as they are. All have at most four
/// hexadecimal digits.
#[cfg(feature = "text")]
pub(crate) fn is_escaped(c: char) -> bool {
    c.is_control() || breaks_lines(c) || changes_order(c) || c == '\u{feff}'
}

fn breaks_lines(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}')
}

/// True for characters that override the direction of the text that follows.
fn changes_order(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "text")]
    #[test]
    fn a_literal_holds_no_character_that_could_end_it() {
        assert_eq!(literal("a\"\\\n\u{2028}\u{202e}é"), r#""a\"\\\u000a\u2028\u202eé""#);
    }

    #[test]
    fn no_line_ends_where_it_should_not() {
        let lines = doc_lines("a\u{85}b\u{2028}c\rd\0\n\n  e \t");
        assert_eq!(lines, ["a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}", "", "  e"]);
        assert_eq!(one_line("a\u{202e}b\u{2066}c"), "a\u{fffd}b\u{fffd}c");
    }
}
