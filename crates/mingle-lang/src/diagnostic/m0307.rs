#![doc = include_str!("m0307.md")]

use super::flow::{Fact, diagnostic};
use super::{Code, Diagnostic};

pub(crate) fn render(fact: Fact) -> Diagnostic {
    let title = format!("this command depends on {}, but the transaction writes the stronger store {}", fact.source, fact.target);
    diagnostic(Code::M0307, title, fact)
}
