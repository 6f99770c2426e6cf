//! `allow`: warnings that do not matter at a place.

use super::super::ast::{Allow, Ident};
use super::super::lexer::string_value;
use super::super::token::{Keyword, Punct, Span, TokenKind};
use super::{Parse, Parser};
use crate::diagnostic::m0001::Foreign;
use crate::diagnostic::{Code, Severity, m0101};

impl Parser<'_> {
    /// Reads what is allowed in the item or statement that follows.
    pub(super) fn allows(&mut self) -> Vec<Allow> {
        let mut allows = Vec::new();
        while self.is_word("allow") && self.kind_ahead(1) == TokenKind::Ident {
            let start = self.at;
            let Ok((codes, reason)) = self.allow() else { continue };
            allows.push(Allow { codes, reason, span: self.since(start) });
            if self.is(Punct::Semicolon) {
                let span = self.here();
                let edits = vec![self.remove(span)];
                self.foreign(Foreign::Surplus(";"), span, edits);
                self.advance();
            }
        }
        if !allows.is_empty() && (self.is(Punct::RightBrace) || self.kind() == TokenKind::End) {
            self.expected("an item or statement after `allow`".into());
        }
        allows
    }

    fn allow(&mut self) -> Parse<(Vec<Ident>, Option<Span>)> {
        self.advance();
        let mut codes = vec![self.code()?];
        while self.eat(Punct::Comma) {
            codes.push(self.code()?);
        }
        let last = Span::token(self.before());
        let has_reason = self.eat_keyword(Keyword::Because) && self.kind() == TokenKind::String;
        if !has_reason {
            self.foreign(Foreign::AllowReason, last, Vec::new());
            return Ok((codes, None));
        }
        let span = self.here();
        let is_bad = matches!(self.raw_kind(), TokenKind::Bad(_));
        if !is_bad && string_value(self.text()).trim().is_empty() {
            self.foreign(Foreign::AllowReason, span, Vec::new());
        }
        self.advance();
        Ok((codes, Some(span)))
    }

    /// Reads the code of a warning.
    fn code(&mut self) -> Parse<Ident> {
        let code = self.ident("the code of a warning")?;
        let is_warning = |known: &&Code| known.severity() == Severity::Warning;
        let found = Code::ALL.iter().find(|known| known.text() == &*code.name);
        if found.as_ref().is_some_and(is_warning) {
            return Ok(code);
        }
        let known: Vec<&str> =
            Code::ALL.iter().filter(is_warning).map(|known| known.text()).collect();
        let near = self.diagnostics.near_miss(&code.name, known.iter().copied());
        let near = near.filter(|_| found.is_none());
        let unknown = m0101::render_known("warning", &code.name, code.span, near, &known);
        self.mistakes += 1;
        self.diagnostics.push(match found {
            Some(_) => unknown.with_note("only warnings can be allowed, not errors"),
            None => unknown,
        });
        Ok(code)
    }
}
