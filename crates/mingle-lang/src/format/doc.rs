//! Layout: a document says where lines may break, and [`layout`] decides where they do.
//!
//! After Wadler's "A prettier printer": a group is laid out on one line if it fits, and else breaks
//! at each of its own breaks. Comments are part of the document: each one ends its line.

/// The widest line.
pub(super) const WIDTH: usize = 100;

/// Columns for each level of indentation.
const INDENT: usize = 4;

/// A piece of a document.
#[derive(Clone, Debug)]
pub(super) enum Doc {
    /// Text without a line break.
    Text(String),
    /// A blank, unless the line breaks here.
    Space,
    /// A blank, or a line break where its group breaks.
    Line,
    /// Nothing, or a line break where its group breaks.
    SoftLine,
    /// A line break.
    HardLine,
    /// The line break before this is an empty line besides.
    Blank,
    /// Text that stands only where its group breaks.
    IfBroken(&'static str),
    /// A comment after something on its line.
    Trailing(String),
    /// A comment on a line of its own.
    Comment(String),
    /// Further in, and whether it holds a forced break.
    Indent(bool, Vec<Doc>),
    /// On one line if it fits, and whether it holds a forced break.
    Group(bool, Vec<Doc>),
}

impl Doc {
    /// Text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Further in.
    pub(super) fn indent(docs: Vec<Self>) -> Self {
        Self::Indent(docs.iter().any(Self::breaks), docs)
    }

    /// On one line if it fits.
    pub(super) fn group(docs: Vec<Self>) -> Self {
        Self::Group(docs.iter().any(Self::breaks), docs)
    }

    /// Whether a line must end within it.
    fn breaks(&self) -> bool {
        match self {
            Self::HardLine | Self::Blank | Self::Trailing(_) | Self::Comment(_) => true,
            Self::Indent(breaks, _) | Self::Group(breaks, _) => *breaks,
            _ => false,
        }
    }
}

#[derive(Clone, Copy)]
struct Mode {
    indent: usize,
    is_flat: bool,
}

/// Writes a document as text.
pub(super) fn layout(docs: &[Doc]) -> String {
    let mut writer = Writer::default();
    let whole = Mode { indent: 0, is_flat: false };
    let mut rest: Vec<(Mode, &Doc)> = docs.iter().rev().map(|doc| (whole, doc)).collect();
    while let Some((mode, doc)) = rest.pop() {
        match doc {
            Doc::Text(text) => writer.text(text),
            Doc::Space => writer.space(),
            Doc::Line if mode.is_flat => writer.space(),
            Doc::SoftLine if mode.is_flat => {}
            Doc::Line | Doc::SoftLine | Doc::HardLine => writer.newline(mode.indent),
            Doc::Blank => writer.blank(mode.indent),
            Doc::IfBroken(text) => {
                if !mode.is_flat {
                    writer.text(text);
                }
            }
            Doc::Trailing(text) => writer.trailing(text, mode.indent),
            Doc::Comment(text) => writer.comment(text, mode.indent),
            Doc::Indent(_, inner) => {
                let inside = Mode { indent: mode.indent + INDENT, ..mode };
                rest.extend(inner.iter().rev().map(|doc| (inside, doc)));
            }
            Doc::Group(breaks, inner) => {
                let is_flat = mode.is_flat || !breaks && fits(writer.room(), inner, &rest);
                let inside = Mode { is_flat, ..mode };
                rest.extend(inner.iter().rev().map(|doc| (inside, doc)));
            }
        }
    }
    writer.finish()
}

/// Whether a group fits on the line, with what follows up to the next break.
fn fits(room: usize, group: &[Doc], rest: &[(Mode, &Doc)]) -> bool {
    let mut room = room;
    let mut todo: Vec<(bool, &Doc)> = group.iter().rev().map(|doc| (true, doc)).collect();
    let mut rest = rest.iter().rev();
    loop {
        let (is_flat, doc) = match todo.pop() {
            Some(next) => next,
            None => match rest.next() {
                Some((mode, doc)) => (mode.is_flat, *doc),
                None => return true,
            },
        };
        let width = match doc {
            Doc::Text(text) => text.chars().count(),
            Doc::Space => 1,
            Doc::Line if is_flat => 1,
            Doc::SoftLine if is_flat => 0,
            Doc::IfBroken(_) if is_flat => 0,
            Doc::IfBroken(text) => text.len(),
            Doc::Line | Doc::SoftLine | Doc::HardLine | Doc::Blank => return true,
            Doc::Trailing(_) | Doc::Comment(_) => return true,
            Doc::Indent(_, inner) => {
                todo.extend(inner.iter().rev().map(|doc| (is_flat, doc)));
                0
            }
            Doc::Group(breaks, inner) => {
                // What follows may break as soon as it can.
                let is_flat = is_flat && !breaks;
                todo.extend(inner.iter().rev().map(|doc| (is_flat, doc)));
                0
            }
        };
        let Some(left) = room.checked_sub(width) else {
            return false;
        };
        room = left;
    }
}

/// What stands between the text written last and the next.
#[derive(Clone, Copy, Default)]
enum Pending {
    #[default]
    Nothing,
    Space,
    Newline {
        indent: usize,
        blank: bool,
    },
}

/// Blanks and line breaks wait until text follows, so that no line ends in a blank and a comment
/// can still join the line before.
#[derive(Default)]
struct Writer {
    text: String,
    /// Characters on the current line.
    column: usize,
    pending: Pending,
}

impl Writer {
    fn text(&mut self, text: &str) {
        match std::mem::take(&mut self.pending) {
            Pending::Nothing => {}
            Pending::Space => self.push(" "),
            Pending::Newline { indent, blank } => {
                if !self.text.is_empty() {
                    self.text.push_str(if blank { "\n\n" } else { "\n" });
                }
                self.column = 0;
                self.push(&" ".repeat(indent));
            }
        }
        self.push(text);
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn space(&mut self) {
        if matches!(self.pending, Pending::Nothing) {
            self.pending = Pending::Space;
        }
    }

    fn newline(&mut self, indent: usize) {
        let blank = matches!(self.pending, Pending::Newline { blank: true, .. });
        self.pending = Pending::Newline { indent, blank };
    }

    fn blank(&mut self, indent: usize) {
        self.pending = Pending::Newline { indent, blank: true };
    }

    /// Where the line goes on that a comment interrupts.
    fn interrupted(&self, indent: usize) -> Pending {
        match self.pending {
            Pending::Newline { .. } => self.pending,
            _ => Pending::Newline { indent: indent + INDENT, blank: false },
        }
    }

    fn trailing(&mut self, comment: &str, indent: usize) {
        let next = self.interrupted(indent);
        if !self.text.is_empty() {
            self.push(" ");
        }
        self.push(comment);
        self.pending = next;
    }

    fn comment(&mut self, comment: &str, indent: usize) {
        self.pending = self.interrupted(indent);
        let Pending::Newline { indent, .. } = self.pending else {
            return;
        };
        self.text(comment);
        self.newline(indent);
    }

    /// Columns left on the line that the next text stands on.
    fn room(&self) -> usize {
        let used = match self.pending {
            Pending::Nothing => self.column,
            Pending::Space => self.column + 1,
            Pending::Newline { indent, .. } => indent,
        };
        WIDTH.saturating_sub(used)
    }

    fn finish(mut self) -> String {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }
}
