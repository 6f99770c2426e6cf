//! Indexes of objects.

use super::super::ast::Index;
use super::super::token::{Keyword, Punct, TokenKind};
use super::{Parse, Parser};

impl Parser<'_> {
    /// True if an index begins here: the word is also a name that a field may have.
    pub(super) fn at_index(&self) -> bool {
        self.is_word("index") && self.kind_ahead(1) != TokenKind::Punct(Punct::Colon)
    }

    /// Reads `index by field, field as name;`.
    pub(super) fn index_declaration(&mut self) -> Parse<Index> {
        let (start, docs) = (self.at, self.docs());
        self.advance();
        self.expect_word("by")?;
        let mut fields = vec![self.ident("a field")?];
        while self.eat(Punct::Comma) {
            fields.push(self.ident("a field")?);
        }
        let is_named = self.eat_keyword(Keyword::As);
        let name = if is_named { Some(self.ident("the name of the index")?) } else { None };
        self.close(Punct::Semicolon, "the index")?;
        Ok(Index { docs, fields, name, span: self.since(start) })
    }
}
