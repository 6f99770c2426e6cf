//! The place of a client's runtime code: in its own file, or in a package.

/// The place of a client's runtime code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// In the client's own file, which then has no dependencies.
    #[default]
    Embedded,
    /// In the package `mingle-client`, which the client imports.
    Imported,
}

/// The version of the package, equal to the generator's: a client needs the version that it was
/// generated for.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Splits code into words; `is_part` is true for the characters of identifiers.
pub(crate) fn words(code: &str, is_part: fn(char) -> bool) -> impl Iterator<Item = &str> {
    code.split(move |c: char| !is_part(c)).filter(|word| !word.is_empty())
}

/// Returns a line without its quoted text.
pub(crate) fn without_texts(line: &str) -> String {
    let (mut kept, mut quote) = (String::new(), None);
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '`') => quote = Some(c),
            None => kept.push(c),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_code() {
        assert_eq!(without_texts("a(\"Some\", `it's ${b}`).c"), "a(, ).c");
        let found: Vec<&str> =
            words("$a.b_c(1)", |c| c.is_alphanumeric() || "$_".contains(c)).collect();
        assert_eq!(found, ["$a", "b_c", "1"]);
    }
}
