//! Reading a line of the repl.

use mingle_model::Tree;

/// A parsed line.
#[derive(Debug, PartialEq)]
pub enum Line {
    /// Nothing, or a comment.
    Nothing,
    /// `help`
    Help,
    /// `exit`
    Exit,
    /// `transaction(argument, …)`
    Call {
        /// The transaction.
        transaction: String,
        /// Its arguments.
        arguments: Vec<Tree>,
    },
    /// `Kind[key].field`
    Read {
        /// The kind of object.
        kind: String,
        /// Its key.
        key: Tree,
        /// One field, or all.
        field: Option<String>,
    },
}

/// Parses a line; the error names the expected text.
pub fn parse(line: &str) -> Result<Line, String> {
    let mut reader = Reader { rest: line.trim() };
    if reader.rest.is_empty() || reader.rest.starts_with("//") {
        return Ok(Line::Nothing);
    }
    let name = reader.name().ok_or("expected `transaction(…)` or `Kind[key]`; try `help`")?;
    let parsed = if reader.eat('(') {
        Line::Call { transaction: name, arguments: reader.values(')')? }
    } else if reader.eat('[') {
        let mut keys = reader.values(']')?;
        let (Some(key), true) = (keys.pop(), keys.is_empty()) else {
            return Err("expected one key in the brackets".into());
        };
        let field = if reader.eat('.') {
            Some(reader.name().ok_or("expected a field after the dot")?)
        } else {
            None
        };
        Line::Read { kind: name, key, field }
    } else {
        match name.as_str() {
            "help" => Line::Help,
            "exit" | "quit" => Line::Exit,
            _ => return Err(format!("expected `(` or `[` after `{name}`; try `help`")),
        }
    };
    reader.eat(';');
    if !reader.rest.is_empty() {
        return Err(format!("expected the end of the line, found `{}`", reader.rest));
    }
    Ok(parsed)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn eat(&mut self, wanted: char) -> bool {
        let Some(rest) = self.rest.strip_prefix(wanted) else { return false };
        self.rest = rest.trim_start();
        true
    }

    fn name(&mut self) -> Option<String> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let name = &self.rest[..length];
        if name.is_empty() || name.starts_with(char::is_numeric) {
            return None;
        }
        self.rest = self.rest[length..].trim_start();
        Some(name.to_owned())
    }

    /// Parses JSON values with commas between them, up to the closing character.
    fn values(&mut self, close: char) -> Result<Vec<Tree>, String> {
        let mut values = Vec::new();
        while !self.eat(close) {
            if !values.is_empty() && !self.eat(',') {
                return Err(format!("expected `,` or `{close}`, found `{}`", self.rest));
            }
            let text = &self.rest[..value_length(self.rest)];
            if text.is_empty() && self.rest.is_empty() {
                return Err(format!("expected `{close}` at the end"));
            }
            let value = Tree::parse(text.as_bytes())
                .map_err(|error| format!("expected JSON at `{}`: {error}", self.rest))?;
            self.rest = self.rest[text.len()..].trim_start();
            values.push(value);
        }
        Ok(values)
    }
}

/// Returns the length of a value: it ends at the first comma or bracket that is not a part of it.
fn value_length(text: &str) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b',' | b')' | b']' | b'}' if depth == 0 => return at,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls() {
        let call = |transaction: &str, arguments: Vec<serde_json::Value>| {
            let arguments = arguments.iter().map(Tree::from).collect();
            Ok(Line::Call { transaction: transaction.into(), arguments })
        };
        assert_eq!(parse("f()"), call("f", vec![]));
        let arguments = vec![json!("a)\\\"b"), json!(-1.5), json!([{"x": null}, 2]), json!(true)];
        let line = r#" f ( "a)\\\"b" , -1.5,[{"x":null}, 2],true) ; "#;
        assert_eq!(parse(line), call("f", arguments));
    }

    #[test]
    fn reads() {
        let read = |key: serde_json::Value, field: Option<&str>| {
            Ok(Line::Read {
                kind: "User".into(),
                key: Tree::from(&key),
                field: field.map(str::to_owned),
            })
        };
        assert_eq!(parse(r#"User["ana"]"#), read(json!("ana"), None));
        assert_eq!(parse("User [ 1 ] . inbox"), read(json!(1), Some("inbox")));
    }

    #[test]
    fn words_and_nothing() {
        assert_eq!(parse("  "), Ok(Line::Nothing));
        assert_eq!(parse("// f()"), Ok(Line::Nothing));
        assert_eq!(parse("help"), Ok(Line::Help));
        assert_eq!(parse("quit;"), Ok(Line::Exit));
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for (line, expected) in [
            ("1", "expected `transaction(…)`"),
            ("f", "expected `(` or `[` after `f`"),
            ("f(", "expected `)` at the end"),
            ("f(1 2)", "expected JSON at `1 2)`"),
            ("f(1]", "expected `,` or `)`, found `]`"),
            ("f(1,)", "expected JSON at `)`"),
            ("f(ana)", "expected JSON at `ana)`"),
            ("f() g()", "expected the end of the line, found `g()`"),
            ("User[]", "expected one key"),
            ("User[1].", "expected a field"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.starts_with(expected), "{line}: {error}");
        }
    }
}
