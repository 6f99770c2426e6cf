//! Programs in Markdown, with their expected results.

use mingle_lang::diagnostic::{Severity, render_human};
use mingle_lang::{Checked, check, format};

/// A fenced block: the words after the fence, and its text.
pub struct Block {
    /// The words after the fence.
    pub info: String,
    /// The text between the fences.
    pub text: String,
}

/// Returns the fenced blocks of a page.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                open = Some(Block { info: info.to_owned(), text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block does not end");
    blocks
}

/// Returns the text that a failed test prints.
pub fn shown(checked: &Checked) -> String {
    render_human(&checked.source, "example.mingle", &checked.diagnostics, false)
}

/// Returns the codes of all errors, each once.
pub fn errors(checked: &Checked) -> Vec<&'static str> {
    let errors = checked.diagnostics.iter().filter(|found| found.severity() == Severity::Error);
    let mut codes: Vec<_> = errors.map(|found| found.code.text()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Asserts that a program has no mistakes and no warnings, and that its layout is the formatter's.
pub fn assert_clean(text: &str) {
    let checked = check(text);
    assert!(checked.diagnostics.is_empty(), "{text}\n{}", shown(&checked));
    assert_formatted(&checked);
}

/// Asserts that a program's layout is the formatter's.
pub fn assert_formatted(checked: &Checked) {
    let formatted = format::format(&checked.source, &checked.syntax);
    assert_eq!(checked.source.text, formatted, "not formatted");
}
