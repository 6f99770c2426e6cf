#![doc = include_str!("m0306.md")]

use super::flow::{Fact, diagnostic};
use super::{Code, Diagnostic};

pub(crate) fn render(fact: Fact) -> Diagnostic {
    let title = format!("this `while` depends on {}, but the transaction writes {}", fact.source, fact.reached());
    diagnostic(Code::M0306, title, fact)
}
