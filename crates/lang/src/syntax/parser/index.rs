//! Indexes of objects.

use super::super::ast::{Ident, Index};
use super::super::token::{Keyword, Punct, TokenKind};
use super::{Parse, Parser};
use crate::diagnostic::Edit;
use crate::diagnostic::m0001::Foreign;

impl Parser<'_> {
    /// True if an index begins here: the words are also names that a field may have.
    pub(super) fn at_index(&self) -> bool {
        let is_word = self.is_word("index") || self.is_word("unique");
        is_word && self.kind_ahead(1) != TokenKind::Punct(Punct::Colon)
    }

    /// Reads `index by field, field as name;`, or the same with `unique` in place of `index by`.
    pub(super) fn index_declaration(&mut self) -> Parse<Index> {
        let (start, docs) = (self.at, self.docs());
        let is_unique = self.is_word("unique");
        self.advance();
        let fields = if is_unique {
            self.unique_fields()?
        } else {
            self.expect_word("by")?;
            self.index_fields()?
        };
        let is_named = self.eat_keyword(Keyword::As);
        let name = if is_named { Some(self.ident("the name of the index")?) } else { None };
        self.close(Punct::Semicolon, if is_unique { "the `unique`" } else { "the index" })?;
        Ok(Index { docs, is_unique, fields, name, span: self.since(start) })
    }

    /// Reads the fields after `unique`, also if they are written with `by` or, as in SQL, in parentheses.
    fn unique_fields(&mut self) -> Parse<Vec<Ident>> {
        if self.is_word("by") && self.kind_ahead(1) == TokenKind::Ident {
            let edits = vec![self.remove(self.here())];
            self.foreign(Foreign::UniqueBy, self.here(), edits);
            self.advance();
        }
        let open = self.here();
        if !self.eat(Punct::LeftParen) {
            return self.index_fields();
        }
        let fields = self.index_fields()?;
        let close = self.here();
        self.expect(Punct::RightParen)?;
        let edits =
            [open, close].map(|span| Edit { span, text: String::new() }).into_iter().collect();
        self.foreign(Foreign::UniqueParentheses, open, edits);
        Ok(fields)
    }

    fn index_fields(&mut self) -> Parse<Vec<Ident>> {
        let mut fields = vec![self.ident("a field")?];
        while self.eat(Punct::Comma) {
            fields.push(self.ident("a field")?);
        }
        Ok(fields)
    }
}
