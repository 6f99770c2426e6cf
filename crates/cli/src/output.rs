//! Standard output, and its colours.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use mingle_lang::Checked;
use mingle_lang::diagnostic::{Diagnostic, Severity};

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How to say what was found and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// For other programs.
    Json,
}

impl Color {
    /// True if standard output gets colours.
    pub fn on_stdout(self) -> bool {
        self.on(std::io::stdout().is_terminal())
    }

    /// True if standard error gets colours.
    pub fn on_stderr(self) -> bool {
        self.on(std::io::stderr().is_terminal())
    }

    fn on(self, is_terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                is_terminal && !no_color && !is_dumb
            }
        }
    }
}

/// Prints to standard output. The reading program may stop reading: that is not an error of this
/// command, and does not change its exit code.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

/// Returns the numbers of errors and warnings: `2 errors, 1 warning`; none if there are none.
pub fn summary<'a>(found: impl IntoIterator<Item = &'a Diagnostic>) -> Option<String> {
    let (mut errors, mut warnings) = (0, 0);
    for diagnostic in found {
        match diagnostic.severity() {
            Severity::Error => errors += 1,
            Severity::Warning => warnings += 1,
        }
    }
    let counted = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        _ => Some(format!("{count} {word}s")),
    };
    let parts: Vec<_> =
        [counted(errors, "error"), counted(warnings, "warning")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns the diagnostics of a program as text with marked lines.
pub fn human(checked: &Checked, file: &str, color: bool) -> String {
    let found = &checked.diagnostics;
    mingle_lang::diagnostic::render_human(&checked.source, file, found, color)
}
