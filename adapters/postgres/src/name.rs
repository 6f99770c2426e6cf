//! Names in SQL.

use crate::encoding::short_digest;
use crate::limits::NAME_BYTES_MAX;

/// Quotes a name for PostgreSQL; it may contain any characters.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the last of the quoted names, which dots separate, without its quotes.
pub fn unquoted(quoted: &str) -> String {
    let (mut name, mut is_open) = (String::new(), false);
    let mut chars = quoted.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_open && chars.peek() == Some(&'"') => {
                chars.next();
                name.push('"');
            }
            '"' => is_open = !is_open,
            '.' if !is_open => name.clear(),
            c => name.push(c),
        }
    }
    name
}

/// Quotes a string literal for PostgreSQL.
pub fn literal(text: &str) -> String {
    if text.contains('\\') {
        return format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    }
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns a dollar quote `$…$` for a text with these parts that occurs in none of them: `$mingle$`
/// if possible.
pub fn mark(parts: &[&str]) -> String {
    let numbered = (1..).map(|number| format!("$mingle{number}$"));
    let mut marks = std::iter::once("$mingle$".to_owned()).chain(numbered);
    let free = marks.find(|mark| !parts.iter().any(|part| part.contains(&**mark)));
    free.expect("there is always another number")
}

/// Columns that every table has, so no column of Mingle can have these names.
const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];

/// Returns a name that is short enough and is reserved neither by the server nor by Mingle.
pub fn fit(name: &str) -> String {
    let is_ours = name.starts_with("mingle_") || SYSTEM_COLUMNS.contains(&name);
    if name.len() <= NAME_BYTES_MAX - 20 && !is_ours {
        return name.to_owned();
    }
    let mut end = name.len().min(NAME_BYTES_MAX - 20);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("_{}_{}", &name[..end], short_digest(name))
}

/// Returns the name of a collection's table.
pub fn of_collection(object: &str, field: &str) -> String {
    let name = format!("{object}.{field}");
    if name.len() <= NAME_BYTES_MAX - 20 && !name.starts_with("mingle_") {
        return name;
    }
    fit(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_short() {
        assert_eq!(quote("a\"b"), "\"a\"\"b\"");
        assert_eq!(unquoted(&format!("{}.{}", quote("x.y"), quote("a\".\"b"))), "a\".\"b");
        assert_eq!(literal("it's \\ it"), "E'it''s \\\\ it'");
        assert_eq!(fit("Thing"), "Thing");
        assert_ne!(fit("mingle_id"), "mingle_id");
        assert_ne!(fit("ctid"), "ctid");
        let (long, longer) = (fit(&"é".repeat(60)), fit(&"é".repeat(61)));
        assert!(long.len() <= NAME_BYTES_MAX && longer.len() <= NAME_BYTES_MAX);
        assert_ne!(long, longer);
    }

    #[test]
    fn a_mark_is_no_part_of_what_it_stands_around() {
        assert_eq!(mark(&["a", "$b$"]), "$mingle$");
        assert_eq!(mark(&["a$mingle$", "b"]), "$mingle1$");
        assert_eq!(mark(&["a$mingle$", "$mingle1$"]), "$mingle2$");
    }
}
