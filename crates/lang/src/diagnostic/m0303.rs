#![doc = include_str!("m0303.md")]

use super::flow::{Fact, diagnostic};
use super::{Code, Diagnostic};

pub(crate) fn render(fact: Fact) -> Diagnostic {
    let verb = if fact.is_read { "read" } else { "written" };
    let title = format!("a ref from {} names the object that is {verb} in {}", fact.source, fact.reached());
    diagnostic(Code::M0303, title, fact)
}
