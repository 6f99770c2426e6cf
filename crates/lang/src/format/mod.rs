//! The formatter: it lays out every program in one way and keeps comments.
//!
//! The layout has four columns for each level and lines up to 100 columns. A list that does not fit
//! has one element per line. At most one empty line stands in a row. Tokens are written as in the
//! source. Comments keep their place between tokens, except that a comment moves past a comma,
//! semicolon or opening brace so that it does not separate it from the token before.

mod doc;
mod expr;
mod item;
mod policy;
mod stmt;
#[cfg(test)]
mod tests;

use crate::syntax::ast::Program;
use crate::syntax::{Source, Span, Trivia, line_starts};
use doc::Doc;

/// Lays out a program that was parsed without mistakes.
///
/// # Examples
///
/// ```
/// use mingle_lang::format::format;
/// use mingle_lang::syntax::{lex, parse};
///
/// let source = lex("store  inboxes:causal ;  // near");
/// let (program, _) = parse(&source);
/// assert_eq!(format(&source, &program), "store inboxes: causal; // near\n");
/// ```
pub fn format(source: &Source, program: &Program) -> String {
    let mut formatter = Formatter { source, next: 0 };
    let docs = formatter.program(program);
    doc::layout(&docs)
}

/// Builds the document in source order.
struct Formatter<'a> {
    source: &'a Source,
    /// The first comment that is not yet part of the document.
    next: usize,
}

impl Formatter<'_> {
    /// Returns the comments up to a token, within a statement or item.
    fn comments(&mut self, token: u32) -> Vec<Doc> {
        self.collect(token, Self::comment)
    }

    /// Returns the comments up to a token that they may document.
    fn doc_comments(&mut self, token: u32) -> Vec<Doc> {
        self.collect(token, |this, comment, trails| this.before_docs(comment, token, trails))
    }

    fn collect(&mut self, token: u32, doc: impl Fn(&Self, Trivia, bool) -> Doc) -> Vec<Doc> {
        let mut docs = Vec::new();
        while let Some(comment) = self.take_comment(token) {
            // If two comments follow each other, only the first can end a line.
            let trails = docs.is_empty() && self.is_trailing(comment);
            docs.push(doc(self, comment, trails));
        }
        docs
    }

    /// Starts a line for the syntax that begins at a token, after the comments before it.
    fn line(&mut self, token: u32, start: LineStart) -> Vec<Doc> {
        let mut docs = vec![Doc::HardLine];
        let mut start = start;
        while let Some(comment) = self.take_comment(token) {
            let trails = docs.len() == 1 && self.is_trailing(comment);
            if !trails {
                let gap = self.gap(comment.start);
                start.separate(gap, &mut docs);
            }
            docs.push(self.before_docs(comment, token, trails));
        }
        let gap = self.gap(self.source.tokens[token as usize].start);
        start.separate(gap, &mut docs);
        docs
    }

    /// Returns the comments before a closing brace, each on its line.
    fn last_comments(&mut self, close: u32, start: LineStart) -> Vec<Doc> {
        let mut start = start;
        let mut docs = Vec::new();
        while let Some(comment) = self.take_comment(close) {
            let trails = docs.is_empty() && self.is_trailing(comment);
            if !trails {
                docs.push(Doc::HardLine);
                let gap = self.gap(comment.start);
                start.separate(gap, &mut docs);
            }
            docs.push(self.comment(comment, trails));
        }
        docs
    }

    fn take_comment(&mut self, token: u32) -> Option<Trivia> {
        let comment = *self.source.trivia.get(self.next)?;
        (comment.before <= token).then(|| {
            self.next += 1;
            comment
        })
    }

    fn comment(&self, comment: Trivia, trails: bool) -> Doc {
        let text = self.source.trivia_text(comment).to_owned();
        if trails { Doc::Trailing(text) } else { Doc::Comment(text) }
    }

    /// Formats a comment before a declaration: a comment that moves to this place must not become a
    /// doc comment.
    fn before_docs(&self, comment: Trivia, token: u32, trails: bool) -> Doc {
        let mut doc = self.comment(comment, trails);
        if comment.is_doc
            && comment.before < token
            && let Doc::Trailing(text) | Doc::Comment(text) = &mut doc
        {
            text.remove(0);
        }
        doc
    }

    /// True if a comment stands on the line of the token before it.
    fn is_trailing(&self, comment: Trivia) -> bool {
        let before = comment.before.checked_sub(1);
        before.is_some_and(|token| {
            let from = self.source.tokens[token as usize].end as usize;
            !self.source.text[from..comment.start as usize].contains(['\n', '\r'])
        })
    }

    /// True if an empty line stands before a byte, after the last token or comment before it.
    fn gap(&self, start: u32) -> bool {
        let tokens = &self.source.tokens;
        let token = tokens.partition_point(|token| token.start < start);
        let trivia = self.source.trivia.partition_point(|other| other.start < start);
        let end_of_token = token.checked_sub(1).map_or(0, |last| tokens[last].end);
        let end_of_comment = trivia.checked_sub(1).map_or(0, |last| self.source.trivia[last].end);
        let from = end_of_token.max(end_of_comment);
        let between = &self.source.text[from as usize..start as usize];
        line_starts(between.as_bytes()).count() > 1
    }

    /// Returns the text of a token.
    fn token(&self, token: u32) -> Doc {
        Doc::text(self.source.token_text(token))
    }

    /// Returns the token that closes a bracketed list, which is empty or has `last` as its last
    /// element.
    fn close_after(&self, last: Span) -> u32 {
        let is_comma = self.source.token_text(last.end) == ",";
        last.end + u32::from(is_comma)
    }
}

/// The choice whether an empty line precedes the next line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineStart {
    /// No: it is the first thing in its block.
    First,
    /// Only if the source has one.
    AsWritten,
    /// Yes.
    Blank,
}

impl LineStart {
    fn separate(&mut self, gap: bool, docs: &mut Vec<Doc>) {
        if *self == Self::Blank || *self == Self::AsWritten && gap {
            docs.push(Doc::Blank);
        }
        *self = Self::AsWritten;
    }
}
