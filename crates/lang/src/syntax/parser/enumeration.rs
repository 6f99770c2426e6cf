//! Enumerations.

use super::super::ast::{Enum, EnumValue};
use super::super::lexer::string_value;
use super::super::token::{Punct, TokenKind};
use super::{Mistake, Parse, Parser};
use crate::diagnostic::Edit;

impl Parser<'_> {
    /// Reads `enum Name { value, value = "label" }`.
    pub(super) fn enum_item(&mut self) -> Parse<Enum> {
        self.advance();
        self.pass_second_word("enum");
        let name = self.ident("the name of the enum")?;
        self.open_brace("the name of the enum")?;
        let (mut values, mut is_whole) = (Vec::new(), true);
        while !self.is(Punct::RightBrace) && !self.at_item() && self.kind() != TokenKind::End {
            match self.enum_value() {
                Ok(value) => values.push(value),
                Err(Mistake) => {
                    is_whole = false;
                    self.skip_enum_value()?;
                }
            }
            if self.eat(Punct::Comma) || self.eat_instead(Punct::Semicolon, Punct::Comma) {
                continue;
            }
            if self.kind() != TokenKind::Ident || self.at_item() {
                break;
            }
            let edit: Edit = self.insert_after(self.before(), ",");
            self.miss(",", "the value", Some(edit));
        }
        self.close_brace();
        // A program may name the lost value anywhere.
        if is_whole { Ok(Enum { name, values }) } else { Err(Mistake) }
    }

    fn enum_value(&mut self) -> Parse<EnumValue> {
        let docs = self.docs();
        let name = self.ident("a value of the enum")?;
        if !self.eat(Punct::Assign) && !self.eat_instead(Punct::Colon, Punct::Assign) {
            return Ok(EnumValue { docs, name, label: None });
        }
        if self.kind() != TokenKind::String {
            return Err(self.expected("the label in double quotes".into()));
        }
        if matches!(self.raw_kind(), TokenKind::Bad(_)) {
            // It is reported as any other text that is not well formed.
            self.expr()?;
            return Err(Mistake);
        }
        let (text, span) = (string_value(self.text()), self.here());
        self.advance();
        Ok(EnumValue { docs, name, label: Some((text.into(), span)) })
    }

    /// Skips to the end of a broken value.
    fn skip_enum_value(&mut self) -> Parse<()> {
        loop {
            match self.kind() {
                TokenKind::Punct(Punct::Comma | Punct::RightBrace) => return Ok(()),
                TokenKind::End => return Err(Mistake),
                _ if self.at_item() => return Err(Mistake),
                _ => self.advance(),
            }
        }
    }
}
