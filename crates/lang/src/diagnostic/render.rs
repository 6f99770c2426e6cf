//! Diagnostics for people: the affected source lines, with marks.
//!
//! The renderer gets only the lines around marks, so the cost of a diagnostic depends on its marks
//! and not on the program's size.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin, Patch, Renderer, Snippet,
};

use super::edit::in_order;
use super::{Code, Diagnostic, Edit, Severity};
use crate::syntax::{Places, Source, TextPlaces, line_starts};

/// Marks further apart than this, in bytes, get separate snippets.
const GAP_MAX: usize = 2_048;

/// The maximum length of a mark over several lines, in bytes; a longer one is cut to its first
/// line.
const MARK_MAX: usize = 2_048;

/// The maximum length of a line, in bytes; of a longer one only the surroundings of its marks are
/// shown.
const LINE_MAX: usize = 2_048;

/// The maximum number of labels shown for a diagnostic.
const LABELS_MAX: usize = 32;

/// Advice that replaces more than this, in bytes, is given in words only.
const PATCH_MAX: usize = 16_384;

/// Renders all diagnostics as text with marked source lines, notes, and advice as edits.
pub fn render_human(
    source: &Source,
    file: &str,
    diagnostics: &[Diagnostic],
    color: bool,
) -> String {
    let places = TextPlaces::new(source);
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let view = View { source, places: &places, file };
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&renderer.render(&view.report(diagnostic)));
        text.push_str("\n\n");
    }
    text
}

/// Renders each diagnostic as one line: `file:line:column: error[M0302]: title`.
pub fn render_short(source: &Source, file: &str, diagnostics: &[Diagnostic]) -> String {
    let places = TextPlaces::new(source);
    let mut text = String::new();
    for diagnostic in diagnostics {
        let (start, _) = places.place(diagnostic.span);
        let (line, column) = (start.line, start.column);
        let (severity, code) = (diagnostic.severity().name(), diagnostic.code);
        let title = one_line(&diagnostic.title);
        let file = places.file(diagnostic.span, file);
        writeln!(text, "{file}:{line}:{column}: {severity}[{code}]: {title}")
            .expect("writing to a string does not fail");
    }
    text
}

fn one_line(title: &str) -> String {
    title.replace(['\n', '\r'], " ")
}

/// A mark: its bytes, its kind, and the label's text if it is a label.
type Mark<'a> = (Range<usize>, AnnotationKind, &'a str);

struct View<'a> {
    source: &'a Source,
    places: &'a TextPlaces<'a>,
    file: &'a str,
}

impl<'a> View<'a> {
    fn report(&self, diagnostic: &'a Diagnostic) -> Vec<Group<'a>> {
        let level = match diagnostic.severity() {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title =
            level.primary_title(one_line(&diagnostic.title)).id(Code::text(diagnostic.code));
        let mut first = Group::with_title(title).elements(self.snippets(diagnostic));
        let more = diagnostic.labels.len().saturating_sub(LABELS_MAX);
        if more > 0 {
            let note = format!("{more} more places are not shown");
            first = first.element(Level::NOTE.message(note));
        }
        for note in &diagnostic.notes {
            first = first.element(Level::NOTE.message(note));
        }
        let mut groups = vec![first];
        for help in &diagnostic.help {
            let title = Level::HELP.secondary_title(&help.message);
            groups.push(Group::with_title(title).elements(self.patches(&help.edits)));
        }
        groups
    }

    /// Returns the labels on their lines, first those around the diagnostic's place.
    fn snippets(&self, diagnostic: &'a Diagnostic) -> Vec<Element<'a>> {
        let mut marks: Vec<Mark<'a>> = Vec::new();
        for label in diagnostic.labels.iter().take(LABELS_MAX) {
            let kind = if label.span == diagnostic.span {
                AnnotationKind::Primary
            } else {
                AnnotationKind::Context
            };
            let bytes = self.shown(self.source.bytes(label.span));
            marks.push((bytes, kind, &label.message));
        }
        if !marks.iter().any(|mark| mark.1 == AnnotationKind::Primary) {
            let bytes = self.shown(self.source.bytes(diagnostic.span));
            marks.push((bytes, AnnotationKind::Primary, ""));
        }
        marks.sort_by_key(|(bytes, ..)| (bytes.start, bytes.end));
        let mut clusters = self.clusters(marks, |mark| &mark.0);
        clusters.sort_by_key(|marks| !marks.iter().any(|mark| mark.1 == AnnotationKind::Primary));
        clusters.into_iter().flat_map(|marks| self.snippet(&marks)).collect()
    }

    fn snippet(&self, marks: &[Mark<'a>]) -> Vec<Element<'a>> {
        let (window, is_cut) = self.window(marks.iter().map(|mark| &mark.0));
        let annotations = marks.iter().map(|(bytes, kind, message)| -> Annotation<'a> {
            let span = kind.span(bytes.start - window.start..bytes.end - window.start);
            span.label((!message.is_empty()).then_some(*message))
        });
        let first_line = self.places.position(window.start).line as usize;
        let snippet =
            Snippet::source(self.excerpt(&window)).line_start(first_line).annotations(annotations);
        if !is_cut {
            return vec![snippet.path(self.file_at(window.start)).into()];
        }
        // The renderer would count columns from the cut.
        let primary = marks.iter().find(|mark| mark.1 == AnnotationKind::Primary).or(marks.first());
        let at = self.places.position(primary.map_or(0, |mark| mark.0.start));
        let origin = Origin::path(self.file_at(window.start))
            .line(at.line as usize)
            .char_column(at.column as usize);
        vec![origin.into(), snippet.into()]
    }

    fn patches(&self, edits: &'a [Edit]) -> Vec<Element<'a>> {
        let edits = in_order(self.source, edits);
        let size: usize = edits.iter().map(|(bytes, text)| bytes.len() + text.len()).sum();
        if size > PATCH_MAX {
            return Vec::new();
        }
        self.clusters(edits, |edit| &edit.0)
            .into_iter()
            .map(|edits| {
                let (window, _) = self.window(edits.iter().map(|edit| &edit.0));
                let patches = edits.iter().map(|(bytes, text)| {
                    Patch::new(bytes.start - window.start..bytes.end - window.start, *text)
                });
                let first_line = self.places.position(window.start).line as usize;
                let snippet = Snippet::source(self.excerpt(&window)).line_start(first_line);
                // With one file it is clear which one is meant.
                let file = self.source.file_name(window.start);
                file.map_or_else(|| snippet.clone(), |file| snippet.clone().path(file))
                    .patches(patches)
                    .into()
            })
            .collect()
    }

    /// Returns the marked part of a text range: all of it, or the start of a very long one.
    fn shown(&self, bytes: Range<usize>) -> Range<usize> {
        if bytes.len() <= MARK_MAX {
            return bytes;
        }
        let line = &self.source.text[bytes.start..self.places.line_bytes(bytes.start).end];
        let end = bytes.start + line.trim_end().len();
        bytes.start..self.boundary(end.min(bytes.start + MARK_MAX))
    }

    /// Returns the whole lines around marks, and whether they were cut.
    fn window<'b>(
        &self,
        mut marks: impl Iterator<Item = &'b Range<usize>>,
    ) -> (Range<usize>, bool) {
        let first = marks.next().cloned().unwrap_or_default();
        let (start, end) = marks.fold((first.start, first.end), |(start, end), mark| {
            (start.min(mark.start), end.max(mark.end))
        });
        let whole = self.places.line_bytes(start).start..self.places.line_bytes(end).end;
        let cut_start = self.boundary(whole.start.max(start.saturating_sub(LINE_MAX)));
        let cut_end = self.boundary(whole.end.min(end + LINE_MAX));
        let is_cut = cut_start > whole.start;
        // A mark before the first character of the text needs a window that starts there.
        (cut_start.min(start)..cut_end, is_cut)
    }

    /// Returns a part of the text, with the line ends that the renderer expects.
    fn excerpt(&self, window: &Range<usize>) -> Cow<'a, str> {
        let text = &self.source.text[window.clone()];
        if !text.contains('\r') {
            return Cow::Borrowed(text);
        }
        let mut lines = text.to_owned();
        for start in line_starts(text.as_bytes()).filter(|start| text[..*start].ends_with('\r')) {
            lines.replace_range(start - 1..start, "\n");
        }
        Cow::Owned(lines)
    }

    /// Splits items, sorted by place, at wide gaps and between files.
    fn clusters<T>(&self, sorted: Vec<T>, bytes: impl Fn(&T) -> &Range<usize>) -> Vec<Vec<T>> {
        let mut clusters: Vec<Vec<T>> = Vec::new();
        let (mut end, mut file) = (0, 0);
        for item in sorted {
            let (from, to) = (bytes(&item).start, bytes(&item).end);
            let (before, here) = (file, self.source.file_at(from));
            match clusters.last_mut() {
                Some(last) if from <= end + GAP_MAX && here == before => last.push(item),
                _ => clusters.push(vec![item]),
            }
            (end, file) = (end.max(to), here);
        }
        clusters
    }

    /// Returns the name of the file that contains a byte.
    fn file_at(&self, byte: usize) -> &'a str {
        self.source.file_name(byte).unwrap_or(self.file)
    }

    /// Returns the byte, or the nearest character boundary before it.
    fn boundary(&self, byte: usize) -> usize {
        self.source.text.floor_char_boundary(byte)
    }
}

#[cfg(test)]
mod tests;
