//! Lengths of files and functions.

/// The longest file, in lines.
const FILE_LINES_MAX: usize = 500;

/// The longest function, in lines, from its signature to its closing brace.
const FUNCTION_LINES_MAX: usize = 60;

/// Returns the parts of a Rust file that are too long: the file by its path, functions by path and
/// name.
pub fn too_long(path: &str, text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        found.push((path.to_owned(), lines));
    }
    // Tests are lists of cases more often than logic.
    if path.contains("/tests/") || path.ends_with("/tests.rs") {
        return found;
    }
    for (name, length) in functions(text) {
        if length > FUNCTION_LINES_MAX {
            let name = format!("{path} {name}");
            match found.iter_mut().find(|(other, _)| *other == name) {
                // If a file has two functions of one name, the longer one counts.
                Some((_, longest)) => *longest = length.max(*longest),
                None => found.push((name, length)),
            }
        }
    }
    found
}

/// Returns the functions of a file that rustfmt laid out, with their lengths: a function ends at
/// the brace with the same indentation as its first line.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let rest = lines[index..].iter();
        let length = if line.ends_with('}') || line.ends_with(';') {
            Some(0)
        } else {
            // A function without a body ends at a semicolon.
            let is_end = |line: &&str| {
                let here = line.get(indent..).unwrap_or_default();
                !here.starts_with(' ') && (here == "}" || here.ends_with(';'))
            };
            rest.clone().position(is_end)
        };
        found.push((name.to_owned(), length.map_or(rest.len(), |at| at + 1)));
    }
    found
}

/// Returns the name of the function that starts on this line.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if rest.starts_with("pub(") {
        rest = rest.split_once(") ")?.1;
    }
    for word in ["pub ", "const ", "async ", "extern \"C\" "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let rest = rest.strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured() {
        let text = "impl A {\n    pub(crate) async fn one(&self) {\n        if a {\n        }\n    }\n\n    \
                    fn two<T>() {}\n    fn three(\n        a: b,\n    );\n}\n\nconst fn four() {\n    x\n}\n";
        let expected = [("one", 4), ("two", 1), ("three", 3), ("four", 3)];
        let found = functions(text);
        let found: Vec<_> = found.iter().map(|(name, length)| (name.as_str(), *length)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn long_ones_are_reported() {
        let body = "    x;\n".repeat(FUNCTION_LINES_MAX);
        let text = format!("fn long() {{\n{body}}}\n") + &"\n".repeat(FILE_LINES_MAX);
        let found = too_long("src/a.rs", &text);
        let lines = FUNCTION_LINES_MAX + 2;
        let expected = [("src/a.rs", lines + FILE_LINES_MAX), ("src/a.rs long", lines)];
        assert_eq!(found, expected.map(|(name, length)| (name.to_owned(), length)));
        assert_eq!(too_long("src/tests.rs", &text).len(), 1);
    }
}
