//! Types as they are written.

use super::super::ast::{Bounds, TypeExpr, TypeKind};
use super::super::token::{BadToken, Punct, Span, TokenKind};
use super::{Parse, Parser};
use crate::diagnostic::m0001::Foreign;
use crate::diagnostic::{Edit, alias};

impl Parser<'_> {
    pub(super) fn type_expr(&mut self) -> Parse<TypeExpr> {
        self.nested(|parser| {
            let plain = parser.type_inner()?;
            parser.foreign_type_end(plain)
        })
    }

    fn type_inner(&mut self) -> Parse<TypeExpr> {
        let start = self.at;
        if self.is(Punct::LeftBracket) || self.is_text("&") {
            return self.foreign_type();
        }
        let name = self.ident("a type")?;
        let has_arguments = self.is(Punct::Less);
        let word = match alias::generic_type(&name.name) {
            Some(means) if has_arguments => {
                let found = name.name.to_string();
                let means = means.to_owned();
                let edits = vec![Edit { span: name.span, text: means.clone() }];
                self.foreign(Foreign::TypeName { found, means: means.clone() }, name.span, edits);
                means
            }
            _ => name.name.to_string(),
        };
        let kind = match &*word {
            "ref" if self.kind() == TokenKind::Ident => {
                self.pass_second_word("ref");
                TypeKind::Ref(self.ident("an object")?)
            }
            "ref" if has_arguments => {
                self.advance();
                let object = self.ident("an object")?;
                self.close_angle()?;
                let text = format!("ref {}", object.name);
                let edits = vec![Edit { span: self.since(start), text }];
                self.foreign(Foreign::RefType, self.since(start), edits);
                TypeKind::Ref(object)
            }
            "ref" => return Err(self.expected("an object after `ref`".into())),
            "counter" => TypeKind::Counter(self.bounds()?),
            "option" | "list" | "set" | "log" | "map" => self.arguments_of(&word)?,
            "rushed" if self.is(Punct::Less) => self.arguments_of(&word)?,
            _ => TypeKind::Named(name.name),
        };
        // If `>=` was split, its first half belongs to this type.
        let end = self.since(start).end.max(self.at * u32::from(self.greater_split))
            + u32::from(self.greater_split);
        Ok(TypeExpr { kind, span: Span { start, end } })
    }

    /// Reads the bounds after `counter`, if there are any.
    fn bounds(&mut self) -> Parse<Bounds> {
        Ok(Bounds { min: self.bound("min")?, max: self.bound("max")? })
    }

    fn bound(&mut self, word: &str) -> Parse<Option<i64>> {
        let is_number =
            matches!(self.kind_ahead(1), TokenKind::Int | TokenKind::Punct(Punct::Minus));
        if !self.is_word(word) || (self.on_new_line() && !is_number) {
            return Ok(None);
        }
        self.advance();
        let sign = if self.eat(Punct::Minus) { "-" } else { "" };
        if self.kind() != TokenKind::Int {
            return Err(self.expected(format!("a whole number after `{word}`")));
        }
        let text = format!("{sign}{}", self.text().replace('_', ""));
        let Ok(bound) = text.parse() else {
            return Err(self.expected("a bound that fits in an `int`".into()));
        };
        self.advance();
        Ok(Some(bound))
    }

    /// Reads the arguments of a type that has some.
    fn arguments_of(&mut self, word: &str) -> Parse<TypeKind> {
        let (open, start) = (self.at, self.before());
        let close = match self.kind() {
            TokenKind::Punct(Punct::Less) => None,
            TokenKind::Punct(Punct::LeftBracket) if self.kind_ahead(1) == TokenKind::Ident => {
                Some(Punct::RightBracket)
            }
            TokenKind::Punct(Punct::LeftParen) if self.kind_ahead(1) == TokenKind::Ident => {
                Some(Punct::RightParen)
            }
            _ => return Err(self.expected(format!("`<` after `{word}`"))),
        };
        self.advance();
        let inner = Box::new(self.type_expr()?);
        let kind = match word {
            "option" => TypeKind::Option(inner),
            "list" => TypeKind::List(inner),
            "set" => TypeKind::Set(inner),
            "log" => TypeKind::Log(inner),
            "rushed" => TypeKind::Rushed(inner),
            _ => {
                self.expect_before(Punct::Comma, "the type of the key", |next| {
                    next == TokenKind::Ident
                })?;
                TypeKind::Map(inner, Box::new(self.type_expr()?))
            }
        };
        let Some(close) = close else {
            self.close_angle()?;
            return Ok(kind);
        };
        let end = self.here();
        self.expect(close)?;
        let angle = |span, text: &str| Edit { span, text: text.to_owned() };
        let edits = vec![angle(Span::token(open), "<"), angle(end, ">")];
        let name = word.to_owned();
        self.foreign(Foreign::TypeArguments { name }, self.since(start), edits);
        Ok(kind)
    }

    /// True if a character that is no token stands here.
    pub(super) fn is_text(&self, text: &str) -> bool {
        self.raw_kind() == TokenKind::Bad(BadToken::Character) && self.text() == text
    }

    /// Reads `[string]` or `&Order`.
    fn foreign_type(&mut self) -> Parse<TypeExpr> {
        let start = self.at;
        if self.is(Punct::LeftBracket) {
            self.advance();
            let inner = self.type_expr()?;
            self.expect(Punct::RightBracket)?;
            let span = self.since(start);
            let text = format!("list<{}>", self.source.span_text(inner.span));
            self.foreign(Foreign::ArrayType, span, vec![Edit { span, text }]);
            return Ok(TypeExpr { kind: TypeKind::List(Box::new(inner)), span });
        }
        self.advance();
        let inner = self.type_inner()?;
        let span = self.since(start);
        let TypeKind::Named(name) = &inner.kind else {
            self.foreign(Foreign::RefType, span, Vec::new());
            return Ok(inner);
        };
        if let Some(means) = alias::type_name(name) {
            let (found, text) = (self.source.span_text(span).to_owned(), means.to_owned());
            let edits = vec![Edit { span, text: text.clone() }];
            self.foreign(Foreign::TypeName { found, means: text }, span, edits);
            return Ok(TypeExpr { kind: TypeKind::Named(means.into()), span });
        }
        let edits = vec![Edit { span, text: format!("ref {name}") }];
        self.foreign(Foreign::RefType, span, edits);
        let object = super::Ident { name: name.clone(), span: inner.span };
        Ok(TypeExpr { kind: TypeKind::Ref(object), span })
    }

    /// Reads what other languages write after a type: `?`, `[]`, `(20)`, `| null`.
    fn foreign_type_end(&mut self, mut plain: TypeExpr) -> Parse<TypeExpr> {
        loop {
            let start = plain.span.start;
            let text = self.source.span_text(plain.span).to_owned();
            let (kind, foreign, instead) = if self.is_text("?") {
                self.advance();
                (
                    TypeKind::Option(Box::new(plain)),
                    Foreign::OptionalType,
                    format!("option<{text}>"),
                )
            } else if self.is(Punct::LeftBracket)
                && self.is_adjacent(self.before())
                && self.kind_ahead(1) == TokenKind::Punct(Punct::RightBracket)
            {
                self.advance();
                self.advance();
                (TypeKind::List(Box::new(plain)), Foreign::ArrayType, format!("list<{text}>"))
            } else if self.is(Punct::LeftParen) && self.kind_ahead(1) == TokenKind::Int {
                while !self.is(Punct::RightParen) && !self.starts_anew() {
                    self.advance();
                }
                self.expect(Punct::RightParen)?;
                let means = alias::type_name(&text).unwrap_or("int");
                (TypeKind::Named(means.into()), Foreign::SizedType, means.to_owned())
            } else if self.is_text("|") {
                self.advance();
                let is_none =
                    self.kind() != TokenKind::Ident || alias::constant(self.text()).is_some();
                self.advance();
                if !is_none {
                    return Err(self.foreign_mistake(
                        Foreign::Union,
                        self.since(start),
                        Vec::new(),
                    ));
                }
                (TypeKind::Option(Box::new(plain)), Foreign::Union, format!("option<{text}>"))
            } else {
                return Ok(plain);
            };
            let span = self.since(start);
            self.foreign(foreign, span, vec![Edit { span, text: instead }]);
            plain = TypeExpr { kind, span };
        }
    }
}
