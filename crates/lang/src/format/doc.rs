//! Layout: a document marks possible line breaks, and [`layout`] chooses among them.
//!
//! After Wadler's "A prettier printer": a group is laid out on one line if it fits; otherwise it
//! breaks at each of its own breaks. Comments are part of the document: each comment ends its line.

/// The maximum line width, in columns.
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
    /// An empty line after the preceding line break.
    Blank,
    /// Text that appears only if its group breaks.
    IfBroken(&'static str),
    /// A comment after something on its line.
    Trailing(String),
    /// A comment on a line of its own.
    Comment(String),
    /// Indented content; true if it holds a forced break.
    Indent(bool, Vec<Doc>),
    /// Content on one line if it fits; true if it holds a forced break.
    Group(bool, Vec<Doc>),
}

impl Doc {
    /// Creates text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Indents documents.
    pub(super) fn indent(docs: Vec<Self>) -> Self {
        Self::Indent(docs.iter().any(Self::breaks), docs)
    }

    /// Groups documents on one line, if they fit.
    pub(super) fn group(docs: Vec<Self>) -> Self {
        Self::Group(docs.iter().any(Self::breaks), docs)
    }

    /// True if it contains a forced line break.
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

/// True if a group fits on the line, together with the text after it up to the next break.
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
                // The documents after the group may break at the first possible place.
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

/// The whitespace between the last written text and the next.
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

    /// Returns the whitespace with which a line continues after a comment.
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
