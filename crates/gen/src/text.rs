//! Pieces of text shared by the generators of several languages.

/// The longest line of a signature, in characters.
const LINE_CHARACTERS_MAX: usize = 100;

/// Returns `before(part, part)after` on one line, or with one line for each part.
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
    fn what_is_too_long_has_a_line_for_each_part() {
        let parts = ["a".repeat(60), "b".repeat(60)];
        let expected = format!("  f(\n    {},\n    {},\n  );", parts[0], parts[1]);
        assert_eq!(wrapped("  f", &parts, ";"), expected);
        assert_eq!(wrapped("  f", &["a".into(), "b".into()], ";"), "  f(a, b);");
    }
}
