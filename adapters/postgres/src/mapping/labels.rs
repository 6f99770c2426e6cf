//! Columns with a list of values: enumerations, and texts with such a check.

use mingle_model::EnumType;

use super::column::Described;

/// The values that a column can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Labels {
    /// The name of the enumeration or domain in the database; none if the column has a check.
    pub(crate) name: Option<String>,
    /// The values, in the order of the database.
    pub(crate) list: Vec<String>,
    /// The definition of the check that lists them, if there is one.
    pub(crate) check: Option<String>,
}

impl Labels {
    /// Returns the labels of a column, from those of its enumeration, the checks of its domain and its own checks.
    pub(crate) fn of(
        found: &Described,
        of_enum: Vec<String>,
        of_domain: &[String],
        of_column: &[String],
    ) -> Option<Self> {
        let name = || Some(found.type_name.clone());
        if (found.is_enum || found.has_enum_items) && !of_enum.is_empty() {
            return Some(Self { name: name(), list: of_enum, check: None });
        }
        if !matches!(&*found.base, "text" | "character varying") {
            return None;
        }
        let listed = |checks: &[String]| {
            checks.iter().find_map(|check| Some((checked(check)?, check.clone())))
        };
        // A domain with several checks refuses more.
        let of_domain = if of_domain.len() == 1 { of_domain } else { &[] };
        let own = listed(of_column).map(|found| (None, found));
        let (name, (list, check)) = own.or_else(|| Some((name(), listed(of_domain)?)))?;
        Some(Self { name, list, check: Some(check) })
    }

    /// Returns the first value of an enumeration of the program that the column refuses.
    pub(crate) fn lacks<'e>(&self, declared: &'e EnumType) -> Option<&'e str> {
        let mut labels = declared.values.iter().map(|value| &*value.label);
        labels.find(|label| !self.list.iter().any(|known| known == label))
    }
}

/// Returns the values that a check lists, as PostgreSQL shows `CHECK (c IN ('a', 'b'))`; none if it says
/// anything else.
pub(crate) fn checked(definition: &str) -> Option<Vec<String>> {
    let rest = definition.strip_prefix("CHECK ")?;
    let (place, list) = rest.split_once(" = ANY (")?;
    // The column, or `VALUE` of a domain: a quoted name may hold anything, and is not read.
    let place = place.trim_start_matches('(').trim_end_matches("::text").trim_end_matches(')');
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    if !place.chars().all(is_name) {
        return None;
    }
    let mut rest = list.trim_start_matches('(').strip_prefix("ARRAY[")?;
    let mut all = Vec::new();
    loop {
        let (label, after) = literal(rest)?;
        all.push(label);
        let after =
            ["::text", "::character varying"].iter().find_map(|it| after.strip_prefix(it))?;
        match after.strip_prefix(", ") {
            Some(next) => rest = next,
            None => {
                rest = after.strip_prefix(']')?;
                break;
            }
        }
    }
    // What stands behind the list may only close it.
    rest.replace("::text[]", "").chars().all(|c| c == ')').then_some(all)
}

/// Reads a string of SQL as PostgreSQL writes it; returns it and the text behind it.
fn literal(text: &str) -> Option<(String, &str)> {
    let (has_escapes, inner) = match text.strip_prefix("E'") {
        Some(inner) => (true, inner),
        None => (false, text.strip_prefix('\'')?),
    };
    let mut label = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' if inner[at + 1..].starts_with('\'') => {
                label.push('\'');
                chars.next();
            }
            '\'' => return Some((label, &inner[at + 1..])),
            '\\' if has_escapes => label.push(chars.next()?.1),
            other => label.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_lists_values_is_read_and_no_other() {
        let list = |text: &str| checked(text).map(|all| all.join("|"));
        for (check, found) in [
            ("CHECK ((s = ANY (ARRAY['a'::text, 'b'::text])))", "a|b"),
            (
                "CHECK (((s)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[])))",
                "a|b",
            ),
            (
                "CHECK ((VALUE = ANY (ARRAY['it''s'::text, E'back\\\\slash'::text])))",
                "it's|back\\slash",
            ),
            ("CHECK ((s = ANY (ARRAY['])) OR true'::text])))", "])) OR true"),
            ("CHECK ((s = ANY (ARRAY[''::text])))", ""),
        ] {
            assert_eq!(list(check).as_deref(), Some(found), "{check}");
        }
        for other in [
            "CHECK ((s <> ALL (ARRAY['a'::text])))",
            "CHECK (((s = ANY (ARRAY['a'::text])) AND (n > 0)))",
            "CHECK (((s = ANY (ARRAY['a'::text])) OR (s = 'b'::text)))",
            "CHECK ((lower(s) = ANY (ARRAY['a'::text])))",
            "CHECK ((n = ANY (ARRAY[1, 2])))",
            "CHECK ((s = ANY (ARRAY['a'::text, other])))",
            "CHECK ((\"x = ANY (\" = ANY (ARRAY['a'::text])))",
            "CHECK ((s = ANY (ARRAY['a'::text",
        ] {
            assert_eq!(list(other), None, "{other}");
        }
    }
}
