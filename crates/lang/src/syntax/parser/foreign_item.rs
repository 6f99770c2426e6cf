//! Items of other languages, and things that stand between items.

use super::super::ast::ItemKind;
use super::super::token::{Punct, Span, TokenKind};
use super::foreign::STATEMENT_WORDS;
use super::{ITEM_WORDS, Parse, Parser};
use crate::diagnostic::m0001::Foreign;
use crate::diagnostic::{Edit, alias};

impl Parser<'_> {
    /// Reads an item that begins with a word of another language.
    pub(super) fn foreign_item(&mut self) -> Parse<Option<ItemKind>> {
        let (word, span) = (self.text().to_owned(), self.here());
        let next = self.kind_ahead(1);
        let is_named = next == TokenKind::Ident;
        if alias::is_sql(&word) && (is_named || next == TokenKind::Punct(Punct::Star)) {
            self.foreign(Foreign::Sql(word), span, Vec::new());
            self.skip_item();
            return Ok(None);
        }
        let is_item = self.kind_ahead(2) == TokenKind::Ident || self.item_at(self.ahead(1));
        if is_named && is_item && alias::is_modifier(&word) {
            let edits = vec![self.remove(span)];
            self.foreign(Foreign::Modifier(word), span, edits);
            self.advance();
            return Ok(None);
        }
        if is_named && (alias::is_function_word(&word)) {
            let means = if self.ends_with_value() { "fn" } else { "transaction" };
            return self.item_instead(word, means).map(Some);
        }
        let near = self.diagnostics.near_miss(&word, ITEM_WORDS);
        let means = alias::item(&word).or(near.filter(|near| *near != "isolated"));
        if let Some(means) = means
            && is_named
        {
            let means = ITEM_WORDS.iter().find(|known| **known == means).copied();
            return self.item_instead(word, means.unwrap_or("transaction")).map(Some);
        }
        let is_statement = STATEMENT_WORDS.contains(&word.as_str())
            || matches!(
                next,
                TokenKind::Punct(
                    Punct::Dot | Punct::Assign | Punct::PlusAssign | Punct::MinusAssign
                )
            );
        if is_statement || (word == "const" && is_named) {
            self.outside();
            return Ok(None);
        }
        Err(self.expected_item())
    }

    fn item_instead(&mut self, found: String, means: &'static str) -> Parse<ItemKind> {
        let span = self.here();
        let edits = vec![Edit { span, text: means.to_owned() }];
        self.foreign(Foreign::ItemWord { found, means }, span, edits);
        self.item_of(means)
    }

    /// True if the braces that follow end with a value, as those of an `fn` do.
    fn ends_with_value(&self) -> bool {
        let (mut depth, mut at) = (0, self.at);
        let mut last = TokenKind::End;
        while self.kind_at(at) != TokenKind::End && !(at > self.at && self.item_at(at)) {
            match self.kind_at(at) {
                TokenKind::Punct(Punct::LeftBrace) => depth += 1,
                TokenKind::Punct(Punct::RightBrace) if depth == 1 => {
                    let ends = [Punct::Semicolon, Punct::RightBrace, Punct::LeftBrace];
                    return !ends.iter().any(|end| last == TokenKind::Punct(*end));
                }
                TokenKind::Punct(Punct::RightBrace) => depth -= 1,
                _ => {}
            }
            last = self.kind_at(at);
            at += 1;
        }
        false
    }

    /// Reads something between items that begins with no name.
    pub(super) fn between_items(&mut self) -> Parse<Option<ItemKind>> {
        let span = self.here();
        match self.kind() {
            TokenKind::Punct(
                punct @ (Punct::RightBrace | Punct::RightParen | Punct::RightBracket),
            ) => {
                let edits = vec![Edit { span, text: String::new() }];
                self.foreign(Foreign::Stray(punct.text()), span, edits);
                self.advance();
                Ok(None)
            }
            TokenKind::Punct(Punct::Semicolon) => {
                let edits = vec![Edit { span, text: String::new() }];
                self.foreign(Foreign::Surplus(";"), span, edits);
                self.advance();
                Ok(None)
            }
            TokenKind::Keyword(_) => {
                self.outside();
                Ok(None)
            }
            _ => Err(self.expected_item()),
        }
    }

    /// Reports a statement outside of every transaction: perhaps a brace before it ends the
    /// transaction too early.
    fn outside(&mut self) {
        let (span, before) = (self.here(), self.before());
        let follows = self.at > 0 && self.kind_at(before) == TokenKind::Punct(Punct::RightBrace);
        if follows && self.closing_braces() > 0 {
            let brace = Span::token(before);
            let edits = vec![Edit { span: brace, text: String::new() }];
            self.foreign(Foreign::EndsEarly(span), brace, edits);
            self.is_unbalanced = true;
        } else {
            self.foreign(Foreign::Outside, span, Vec::new());
        }
        self.advance();
        self.skip_item();
    }
}
