//! Pieces of text that generators of several languages share.

/// The longest line of a signature, in characters.
const LINE_CHARACTERS_MAX: usize = 100;

/// The lines of a doc comment, without characters that no source text should hold.
pub(crate) fn doc_lines(docs: &str) -> Vec<String> {
    docs.lines().map(clean).collect()
}

/// A line without control characters: some of them end a line in some languages.
pub(crate) fn clean(line: &str) -> String {
    let is_break = |c: char| (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}');
    let kept = line.chars().map(|c| if is_break(c) { '\u{fffd}' } else { c });
    kept.collect::<String>().trim_end().to_owned()
}

/// `before(part, part)after`, on one line or on one for each part.
pub(crate) fn wrapped(before: &str, parts: &[String], after: &str) -> String {
    let line = format!("{before}({}){after}", parts.join(", "));
    if line.chars().count() <= LINE_CHARACTERS_MAX || parts.is_empty() {
        return line;
    }
    let indent: String = before.chars().take_while(|c| *c == ' ').collect();
    let (parts, step) = (parts.iter(), "    ".get(..indent.len().clamp(2, 4)).unwrap_or("  "));
    let lines: Vec<String> = parts.map(|part| format!("{indent}{step}{part},\n")).collect();
    format!("{before}(\n{}{indent}){after}", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_ends_where_it_should_not() {
        let lines = doc_lines("a\u{85}b\u{2028}c\rd\0\n\n  e \t");
        assert_eq!(lines, ["a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}", "", "  e"]);
    }

    #[test]
    fn what_is_too_long_has_a_line_for_each_part() {
        let parts = ["a".repeat(60), "b".repeat(60)];
        let expected = format!("  f(\n    {},\n    {},\n  );", parts[0], parts[1]);
        assert_eq!(wrapped("  f", &parts, ";"), expected);
        assert_eq!(wrapped("  f", &["a".into(), "b".into()], ";"), "  f(a, b);");
    }
}
