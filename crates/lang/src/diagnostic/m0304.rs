#![doc = include_str!("m0304.md")]

use super::flow::{Fact, diagnostic};
use super::{Code, Diagnostic};

pub(crate) fn render(fact: Fact) -> Diagnostic {
    let title = format!("{} depends on {}, but the transaction writes {}", fact.failing, fact.source, fact.reached());
    diagnostic(Code::M0304, title, fact)
}
