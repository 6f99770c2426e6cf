#![doc = include_str!("m0301.md")]

use super::flow::{Fact, diagnostic};
use super::{Code, Diagnostic};

pub(crate) fn render(fact: Fact) -> Diagnostic {
    let verb = if fact.is_read { "an argument of a read of" } else { "written to" };
    let title = format!("data from {} is {verb} {}", fact.source, fact.reached());
    diagnostic(Code::M0301, title, fact)
}
