//! Names in SQL.

use crate::encoding::short_digest;
use crate::limits::NAME_BYTES_MAX;

/// A name as PostgreSQL reads it, whatever is in it.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The last of the names in quotes, apart by dots, as it is without quotes.
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

/// A piece of text as PostgreSQL reads it.
pub fn literal(text: &str) -> String {
    if text.contains('\\') {
        return format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    }
    format!("'{}'", text.replace('\'', "''"))
}

/// A mark for `$…$` around a text that has these parts, which holds none of it: `$mingle$` where that will do.
pub fn mark(parts: &[&str]) -> String {
    let numbered = (1..).map(|number| format!("$mingle{number}$"));
    let mut marks = std::iter::once("$mingle$".to_owned()).chain(numbered);
    let free = marks.find(|mark| !parts.iter().any(|part| part.contains(&**mark)));
    free.expect("there is always another number")
}

/// Columns that every table has, so that none of ours can be called so.
const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];

/// A name that is short enough, and none of those that the server and we keep for ourselves.
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

/// The name of the table of a collection.
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
