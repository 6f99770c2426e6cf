//! The parts of a program that are skipped after a mistake.

use super::super::token::{Keyword, Punct, Span, TokenKind};
use super::{ITEM_WORDS, Parser};

impl Parser<'_> {
    /// True if an item starts here: two names in a row are never part of anything else.
    pub(super) fn at_item(&self) -> bool {
        self.item_at(self.at)
    }

    /// True if an item starts at this token.
    pub(super) fn item_at(&self, token: u32) -> bool {
        let names =
            self.kind_at(token) == TokenKind::Ident && self.kind_at(token + 1) == TokenKind::Ident;
        names && ITEM_WORDS.contains(&self.source.token_text(token))
    }

    /// True if a statement starts here that could not continue an expression.
    pub(super) fn at_statement(&self) -> bool {
        matches!(
            self.kind(),
            TokenKind::Keyword(
                Keyword::Let
                    | Keyword::Var
                    | Keyword::While
                    | Keyword::For
                    | Keyword::Require
                    | Keyword::Return
            )
        )
    }

    /// Skips the rest of a broken statement that began at `start`: past its `;`, or up to the start
    /// or end of another.
    pub(super) fn skip_statement(&mut self, start: u32) {
        let from = self.at;
        self.pass_statement(start);
        self.given_up.push(Span { start: from, end: self.at });
    }

    /// Returns the number of braces that are open between `start` and the current token.
    fn opened_braces(&self, start: u32) -> usize {
        (start..self.at).fold(0, |opened: usize, at| match self.kind_at(at) {
            TokenKind::Punct(Punct::LeftBrace) => opened + 1,
            TokenKind::Punct(Punct::RightBrace) => opened.saturating_sub(1),
            _ => opened,
        })
    }

    fn pass_statement(&mut self, start: u32) {
        let mut opened = self.opened_braces(start);
        let (mut depth, mut braces) = (0_usize, 0_usize);
        loop {
            let is_free = depth == 0 || (braces == 0 && self.on_new_line());
            // A block is not followed by these: its brace belongs to the statement.
            let goes_on = matches!(
                self.kind_ahead(1),
                TokenKind::Punct(
                    Punct::RightParen
                        | Punct::RightBracket
                        | Punct::Comma
                        | Punct::Semicolon
                        | Punct::Dot
                )
            );
            match self.kind() {
                TokenKind::End => return,
                _ if is_free && (self.at_statement() || self.at_item()) => return,
                TokenKind::Punct(Punct::LeftBrace) => {
                    depth += 1;
                    braces += 1;
                }
                TokenKind::Punct(Punct::LeftParen | Punct::LeftBracket) => depth += 1,
                TokenKind::Punct(Punct::RightBrace) if braces == 0 => {
                    if opened == 0 && !goes_on {
                        return;
                    }
                    opened = opened.saturating_sub(1);
                }
                TokenKind::Punct(Punct::RightBrace) => {
                    depth = depth.saturating_sub(1);
                    braces -= 1;
                    if braces == 0 && opened == 0 && !goes_on {
                        self.advance();
                        return;
                    }
                }
                TokenKind::Punct(Punct::RightParen | Punct::RightBracket) => {
                    depth = depth.saturating_sub(1);
                }
                TokenKind::Punct(Punct::Semicolon) => {
                    self.advance();
                    if depth == 0 || (braces == 0 && self.on_new_line()) {
                        return;
                    }
                    continue;
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// Skips the rest of the contents of braces, and the closing brace.
    pub(super) fn skip_braces(&mut self) {
        while !self.is(Punct::RightBrace) && self.kind() != TokenKind::End && !self.at_item() {
            let start = self.at;
            self.skip_statement(start);
            if self.at == start {
                self.advance();
            }
        }
        self.eat(Punct::RightBrace);
    }

    /// Skips to the next item.
    pub(super) fn skip_item(&mut self) {
        let start = self.at;
        while self.kind() != TokenKind::End && !self.at_item() {
            self.advance();
        }
        self.given_up.push(Span { start, end: self.at });
    }
}
