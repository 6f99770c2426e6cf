#![doc = include_str!("m0302.md")]

use super::flow::{Fact, diagnostic};
use super::{Code, Diagnostic};

pub(crate) fn render(fact: Fact) -> Diagnostic {
    let verb = if fact.is_read { "read" } else { "written" };
    let title = format!("a condition on {} decides whether {} is {verb}", fact.source, fact.reached());
    diagnostic(Code::M0302, title, fact)
}
