//! Imports, and the way from one file of a program to the next.

use super::super::ast::Import;
use super::super::token::{Punct, Span, TokenKind};
use super::{Parse, Parser};
use crate::diagnostic::m0001::Syntax;

impl Parser<'_> {
    /// Reads the imports at the head of a file.
    pub(super) fn imports(&mut self, imports: &mut Vec<Import>) {
        while self.is_word("import") && self.kind_ahead(1) == TokenKind::String {
            let start = self.at;
            self.item_start = start;
            if let Ok(path) = self.import() {
                imports.push(Import { path, span: self.since(start) });
            } else {
                self.is_lost = true;
                self.skip_statement(start);
            }
        }
    }

    /// Reads an import; returns the place of its path.
    fn import(&mut self) -> Parse<Span> {
        self.advance();
        let path = self.here();
        if self.kind() != TokenKind::String {
            return Err(self.expected("the path of a file in double quotes".into()));
        }
        self.advance();
        self.close(Punct::Semicolon, "the path")?;
        Ok(path)
    }

    /// Reports an import that stands after an item, or has no path. The names that it would bring are
    /// unknown.
    pub(super) fn late_import(&mut self) -> Parse<()> {
        self.is_lost = true;
        let start = self.at;
        if self.kind_ahead(1) != TokenKind::String {
            self.advance();
            return Err(self.expected("the path of a file in double quotes".into()));
        }
        self.report(Syntax::LateImport, Span { start, end: start + 2 });
        self.import().map(drop)
    }

    /// Goes on to the next file; false if there is none.
    pub(super) fn next_file(&mut self) -> bool {
        let next = self.end + 1;
        if next as usize >= self.source.tokens.len() {
            return false;
        }
        self.at = next;
        self.end = self.source.end_of_file(next);
        (self.greater_split, self.depth, self.height) = (false, 0, 0);
        self.skip_odd();
        true
    }
}
