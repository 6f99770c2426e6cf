//! Names in SQL.

use crate::encoding::short_digest;
use crate::limits::NAME_BYTES_MAX;

/// A name as PostgreSQL reads it, whatever is in it.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A piece of text as PostgreSQL reads it.
pub fn literal(text: &str) -> String {
    if text.contains('\\') {
        return format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    }
    format!("'{}'", text.replace('\'', "''"))
}

/// A name that is short enough, and none of those that we keep for ourselves.
pub fn fit(name: &str) -> String {
    if name.len() <= NAME_BYTES_MAX - 20 && !name.starts_with("mingle_") {
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
        assert_eq!(literal("it's \\ it"), "E'it''s \\\\ it'");
        assert_eq!(fit("Thing"), "Thing");
        assert_ne!(fit("mingle_id"), "mingle_id");
        let (long, longer) = (fit(&"é".repeat(60)), fit(&"é".repeat(61)));
        assert!(long.len() <= NAME_BYTES_MAX && longer.len() <= NAME_BYTES_MAX);
        assert_ne!(long, longer);
    }
}
