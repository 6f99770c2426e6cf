//! Several statements as one. Each statement of a commit takes the server, and whoever sends it, about as
//! long as the change of a row does, so those that may go together do.

use crate::session::Step;
use crate::text::{Sql, Text, Texts};
use crate::wire::Param;

/// So many go together at most, as there is a text of its own for each combination.
const TOGETHER_MAX: usize = 4;

/// Statements that go out as the parts of the last one, which comes before them; as they are where one
/// of them may not be a part. Parts see what was there before the statement, so there must not be two that
/// change one row.
pub fn together(texts: &Texts, last: Step, parts: Vec<Step>) -> Vec<Step> {
    let may = parts.len() <= TOGETHER_MAX && parts.iter().all(|part| part.is_part);
    if parts.is_empty() || !may {
        return [vec![last], parts].concat();
    }
    let all = || parts.iter().chain([&last]);
    let key = Text::Together(all().map(|step| step.sql.clone()).collect());
    let sql = texts.get(key, || text(all()));
    let params: Vec<Param> = all().flat_map(|step| step.params.iter().cloned()).collect();
    vec![Step::new(sql, params)]
}

fn text<'a>(all: impl Iterator<Item = &'a Step>) -> String {
    let (mut shifted_texts, mut before) = (Vec::new(), 0);
    for step in all {
        shifted_texts.push(shifted(&step.sql, before));
        before += step.params.len();
    }
    let last = shifted_texts.pop().unwrap_or_default();
    let parts = shifted_texts.iter().enumerate();
    let parts: Vec<String> = parts.map(|(number, sql)| format!("p{number} AS ({sql})")).collect();
    format!("WITH {} {last}", parts.join(", "))
}

/// A statement whose first parameter is not `$1`: so many come before it. What stands in quotes stays.
fn shifted(sql: &Sql, by: usize) -> String {
    let (mut text, mut quote) = (String::with_capacity(sql.len() + 8), None);
    let mut rest = sql.chars().peekable();
    while let Some(next) = rest.next() {
        text.push(next);
        match (quote, next) {
            (None, '\'' | '"') => quote = Some(next),
            // A quote within quotes is doubled, and ends and begins here.
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
    fn parts_come_with_the_last_one_and_others_after_it() {
        let texts = Texts::default();
        let last = || step("SELECT f($1, $2)", 2, false);
        let (a, b) = (step("UPDATE a SET x = $1", 1, true), step("DELETE FROM b", 0, true));
        let merged = together(&texts, last(), vec![a.clone(), b.clone()]);
        assert_eq!(merged.len(), 1);
        let expected = "WITH p0 AS (UPDATE a SET x = $1), p1 AS (DELETE FROM b) SELECT f($2, $3)";
        assert_eq!(&*merged[0].sql, expected);
        assert_eq!(merged[0].params.len(), 3);
        assert_eq!(together(&texts, last(), Vec::new()).len(), 1);
        let whole = step("WITH w AS (SELECT 1) DELETE FROM c", 0, false);
        let apart = together(&texts, last(), vec![a, whole, b]);
        let order: Vec<&str> = apart.iter().map(|step| &*step.sql).collect();
        assert_eq!(order[0], "SELECT f($1, $2)");
        assert_eq!(order[1], "UPDATE a SET x = $1");
        assert_eq!(order.len(), 4);
    }
}
