#![doc = include_str!("m0307.md")]

use super::flow::{Fact, diagnostic};
use super::{Code, Diagnostic};

pub(crate) fn render(fact: Fact) -> Diagnostic {
    let (what, is_query) = if fact.is_read { ("query", true) } else { ("command", false) };
    let title = format!("this {what} depends on {}, but the transaction writes {}", fact.source, fact.reached());
    let found = diagnostic(Code::M0307, title, fact);
    if is_query {
        return found.with_note("where a query finds nothing it fails, unless its declared result is an `option` or a `list`");
    }
    found
}
