//! Several statements combined into one. Each statement of a commit costs the server and the client
//! about as much as the change of a row does, so statements are combined where possible.

use crate::session::Step;
use crate::text::{Text, Texts};
use crate::wire::Param;

/// Maximum number of combined statements: each combination has a text of its own.
const TOGETHER_MAX: usize = 4;

/// The beginning of a statement that has a first part of its own.
const WITH: &str = "WITH ";

/// True if these may be the parts of one statement.
pub fn may_go_together(parts: &[Step]) -> bool {
    parts.len() <= TOGETHER_MAX
        && parts.iter().all(|part| part.is_part)
        // Their first parts have the same name.
        && parts.iter().filter(|part| part.sql.starts_with(WITH)).count() <= 1
}

/// Combines statements into one, as parts of the last. They all see the state before the combined
/// statement, so no two of them may change the same row.
pub fn together(texts: &Texts, last: Step, parts: Vec<Step>) -> Step {
    if parts.is_empty() {
        return last;
    }
    let all = || parts.iter().chain([&last]);
    let key = Text::Together(all().map(|step| step.sql.clone()).collect());
    let sql = texts.get(key, || text(all()));
    let mut params: Vec<Param> = Vec::with_capacity(all().map(|step| step.params.len()).sum());
    for step in parts.into_iter().chain([last]) {
        params.extend(step.params);
    }
    Step::new(sql, params)
}

fn text<'a>(all: impl Iterator<Item = &'a Step>) -> String {
    let (mut shifted_texts, mut before) = (Vec::new(), 0);
    for step in all {
        shifted_texts.push(shifted(&step.sql, before));
        before += step.params.len();
    }
    let last = shifted_texts.pop().unwrap_or_default();
    let mut parts = Vec::new();
    for (number, sql) in shifted_texts.iter().enumerate() {
        // A part that changes rows must be at the top level.
        let (before, sql) = with(sql).unwrap_or(("", sql));
        if !before.is_empty() {
            parts.push(before.to_owned());
        }
        parts.push(format!("p{number} AS ({sql})"));
    }
    format!("WITH {} {last}", parts.join(", "))
}

/// Splits a statement `WITH first AS (…) then` into its named first part and the rest.
fn with(sql: &str) -> Option<(&str, &str)> {
    let rest = sql.strip_prefix(WITH)?;
    let (mut depth, mut quote) = (0, None);
    for (at, next) in rest.char_indices() {
        match (quote, next) {
            (None, '\'' | '"') => quote = Some(next),
            (Some(open), _) if open == next => quote = None,
            (None, '(') => depth += 1,
            (None, ')') if depth == 1 => {
                let (first, then) = rest.split_at(at + 1);
                return Some((first, then.trim_start()));
            }
            (None, ')') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Renumbers the parameters of a statement, of which `by` come before its first. Quoted text stays.
pub fn shifted(sql: &str, by: usize) -> String {
    let (mut text, mut quote) = (String::with_capacity(sql.len() + 8), None);
    let mut rest = sql.chars().peekable();
    while let Some(next) = rest.next() {
        text.push(next);
        match (quote, next) {
            (None, '\'' | '"') => quote = Some(next),
            // A doubled quote inside quotes ends the quote and begins it again here.
            (Some(open), _) if open == next => quote = None,
            (None, '$') => {
                let mut number = 0;
                while let Some(digit) = rest.peek().and_then(|next| next.to_digit(10)) {
                    number = number * 10 + digit as usize;
                    rest.next();
                }
                text.push_str(&(number + by).to_string());
            }
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Sql;

    fn step(sql: &str, count: usize, is_part: bool) -> Step {
        let params = (0..count).map(|_| Param::Null).collect();
        Step { is_part, ..Step::new(sql, params) }
    }

    #[test]
    fn parameters_are_counted_on_and_what_is_quoted_stays() {
        let sql = Sql::from(r#"UPDATE "a$1""b$2" SET x = $1 WHERE y = '$1''$2' AND z = $12"#);
        let expected = r#"UPDATE "a$1""b$2" SET x = $4 WHERE y = '$1''$2' AND z = $15"#;
        assert_eq!(shifted(&sql, 3), expected);
        assert_eq!(shifted(&sql, 0), &*sql);
    }

    #[test]
    fn parts_come_with_the_last_one() {
        let texts = Texts::default();
        let last = || step("SELECT f($1, $2)", 2, false);
        let (a, b) = (step("UPDATE a SET x = $1", 1, true), step("DELETE FROM b", 0, true));
        let merged = together(&texts, last(), vec![a.clone(), b.clone()]);
        let expected = "WITH p0 AS (UPDATE a SET x = $1), p1 AS (DELETE FROM b) SELECT f($2, $3)";
        assert_eq!(&*merged.sql, expected);
        assert_eq!(merged.params.len(), 3);
        assert_eq!(together(&texts, last(), Vec::new()).sql, last().sql);
        let whole = step("SELECT FROM c FOR UPDATE", 0, false);
        assert!(may_go_together(&[a.clone(), b.clone()]));
        assert!(!may_go_together(&[a.clone(), whole, b]));
        assert!(!may_go_together(&vec![a; TOGETHER_MAX + 1]));
    }

    #[test]
    fn what_a_part_does_first_stands_beside_it() {
        let texts = Texts::default();
        let both = "WITH u AS (UPDATE \"a)\" SET x = f($2) WHERE y = ')' RETURNING 1) \
                    INSERT INTO a SELECT $1 WHERE NOT EXISTS (SELECT FROM u)";
        let (both, gone) = (step(both, 2, true), step("DELETE FROM b WHERE z = $1", 1, true));
        assert!(may_go_together(&[gone.clone(), both.clone()]));
        assert!(!may_go_together(&[both.clone(), both.clone()]), "two of one name");
        let merged = together(&texts, step("SELECT $1", 1, false), vec![gone, both]);
        let expected = "WITH p0 AS (DELETE FROM b WHERE z = $1), \
                        u AS (UPDATE \"a)\" SET x = f($3) WHERE y = ')' RETURNING 1), \
                        p1 AS (INSERT INTO a SELECT $2 WHERE NOT EXISTS (SELECT FROM u)) SELECT $4";
        assert_eq!(&*merged.sql, expected);
    }
}
