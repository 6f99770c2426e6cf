#![doc = include_str!("m0304.md")]

use super::flow::{Fact, diagnostic};
use super::{Code, Diagnostic};

pub(crate) fn render(fact: Fact) -> Diagnostic {
    let what = if fact.is_new { "this `new`" } else { "this `require`" };
    let title = format!("{what} depends on {}, but the transaction writes {}", fact.source, fact.reached());
    diagnostic(Code::M0304, title, fact)
}
