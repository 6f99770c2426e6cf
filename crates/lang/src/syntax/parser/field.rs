//! Names with their types: fields of objects and structs, and parameters.

use super::super::ast::{Ident, Object, ObjectField, Param, Struct, TypeExpr, TypeKind};
use super::super::token::{Keyword, Punct, Span, TokenKind};
use super::{Mistake, Parse, Parser};
use crate::diagnostic::m0001::{Foreign, Syntax};
use crate::diagnostic::{Edit, alias};

/// Rules of columns, which SQL writes after a type.
const COLUMN_RULES: [&str; 11] = [
    "not",
    "NOT",
    "null",
    "NULL",
    "unique",
    "UNIQUE",
    "PRIMARY",
    "primary",
    "KEY",
    "auto_increment",
    "AUTO_INCREMENT",
];

impl Parser<'_> {
    /// Reads names with their types up to the closing punctuation. Also returns true if each could
    /// be read. A broken parameter is left out, and the parameters after it are still read.
    pub(super) fn param_list(
        &mut self,
        what: &str,
        (open, close): (u32, Punct),
    ) -> Parse<(Vec<Param>, bool)> {
        let (mut params, mut is_whole) = (Vec::new(), true);
        while !self.is(close) && !self.at_item() {
            match self.param(what) {
                Ok(param) => params.push(param),
                Err(Mistake) => {
                    is_whole = false;
                    self.skip_param(close)?;
                }
            }
            if self.eat(Punct::Comma) || self.eat_instead(Punct::Semicolon, Punct::Comma) {
                continue;
            }
            let starts_next = self.kind() == TokenKind::Ident
                && (self.kind_ahead(1) == TokenKind::Punct(Punct::Colon)
                    || (self.on_new_line() && !self.at_item()));
            if !starts_next {
                break;
            }
            let edit = self.insert_after(self.before(), ",");
            self.miss(",", &what.replacen("a ", "the ", 1), Some(edit));
        }
        if close == Punct::RightBrace {
            self.close_brace();
        } else {
            self.close_bracket(open, close)?;
        }
        Ok((params, is_whole))
    }

    fn skip_param(&mut self, close: Punct) -> Parse<()> {
        loop {
            match self.kind() {
                TokenKind::Punct(punct) if punct == Punct::Comma || punct == close => return Ok(()),
                TokenKind::Punct(Punct::LeftBrace) | TokenKind::End => return Err(Mistake),
                _ if self.at_item() => return Err(Mistake),
                _ => self.advance(),
            }
        }
    }

    fn param(&mut self, what: &str) -> Parse<Param> {
        let docs = self.docs();
        self.field_words();
        if let Some((name, param_type)) = self.type_before() {
            return Ok(Param { docs, name, param_type });
        }
        let name = self.ident(what)?;
        if matches!(self.kind(), TokenKind::Punct(Punct::Comma | Punct::RightParen)) {
            self.foreign(Foreign::NoType, name.span, Vec::new());
            let param_type = TypeExpr { kind: TypeKind::Error, span: name.span };
            return Ok(Param { docs, name, param_type });
        }
        let mut mark = self.is_text("?").then(|| self.here());
        if mark.is_some() {
            self.advance();
        }
        self.colon("the name")?;
        let mut param_type = self.type_expr()?;
        if let Some(mark) = mark.take() {
            let text = format!("option<{}>", self.source.span_text(param_type.span));
            let edits = vec![
                Edit { span: mark, text: String::new() },
                Edit { span: param_type.span, text },
            ];
            self.foreign(Foreign::OptionalParam, mark, edits);
            let span = param_type.span;
            param_type = TypeExpr { kind: TypeKind::Option(Box::new(param_type)), span };
        }
        if self.is(Punct::Assign) {
            let start = self.at;
            self.advance();
            self.expr()?;
            let span = self.since(start);
            self.foreign(Foreign::ParamDefault, span, vec![Edit { span, text: String::new() }]);
        }
        Ok(Param { docs, name, param_type })
    }

    /// Expects the `:` before a type.
    fn colon(&mut self, after: &str) -> Parse<()> {
        if self.is(Punct::Assign) && self.kind_ahead(1) == TokenKind::Ident {
            self.eat_instead(Punct::Assign, Punct::Colon);
            return Ok(());
        }
        if self.kind_ahead(1) == TokenKind::Punct(Punct::Colon) {
            // Two names before one type.
            return Err(self.expected("`:`".into()));
        }
        self.expect_before(Punct::Colon, after, |next| next == TokenKind::Ident)
    }

    /// Passes over words that other languages write before a field.
    fn field_words(&mut self) {
        loop {
            let is_keyword = self.at_let();
            let is_word = self.kind() == TokenKind::Ident && alias::is_modifier(self.text());
            if !(is_keyword || is_word) || self.kind_ahead(1) != TokenKind::Ident {
                return;
            }
            let (word, span) = (self.text().to_owned(), self.here());
            let edits = vec![self.remove(span)];
            self.foreign(Foreign::FieldWord(word), span, edits);
            self.advance();
        }
    }

    /// Reads a type and the name after it, in the order of other languages.
    fn type_before(&mut self) -> Option<(Ident, TypeExpr)> {
        let is_type = |token: &str| alias::type_name(token).is_some();
        let is_two = self.kind() == TokenKind::Ident && self.kind_ahead(1) == TokenKind::Ident;
        if !is_two || !is_type(self.text()) {
            return None;
        }
        if is_type(self.source.token_text(self.ahead(1))) {
            return None;
        }
        let start = self.at;
        let means: super::Name = alias::type_name(self.text())?.into();
        let param_type = TypeExpr { kind: TypeKind::Named(means.clone()), span: self.here() };
        self.advance();
        let name = self.ident("a name").ok()?;
        let span = self.since(start);
        let text = format!("{}: {means}", name.name);
        self.foreign(Foreign::TypeBefore, span, vec![Edit { span, text }]);
        Some((name, param_type))
    }

    pub(super) fn object(&mut self) -> Parse<Object> {
        self.advance();
        self.pass_second_word("object");
        let name = self.ident("the name of the object")?;
        let store = self.store_of_object(&name)?;
        self.open_brace("the head of the object")?;
        let (mut key, mut fields): (Option<Param>, Vec<ObjectField>) = (None, Vec::new());
        let mut indexes = Vec::new();
        while !self.is(Punct::RightBrace) && self.kind() != TokenKind::End && !self.at_item() {
            let start = self.at;
            if self.at_index() {
                match self.index_declaration() {
                    Ok(index) => indexes.push(index),
                    Err(Mistake) => self.skip_member(start),
                }
                continue;
            }
            if !self.at_key() {
                match self.object_field() {
                    Ok(field) => fields.push(field),
                    Err(Mistake) => self.skip_member(start),
                }
                continue;
            }
            match self.key(key.is_some()) {
                Ok(found) if key.is_none() => {
                    if !fields.is_empty() {
                        self.late_key(start, &fields[0]);
                    }
                    key = Some(found);
                }
                Ok(_) => {}
                Err(Mistake) => {
                    // The key is there, but its type is not known.
                    key.get_or_insert_with(|| broken_key(start));
                    self.skip_member(start);
                }
            }
        }
        let key = match key {
            Some(key) => key,
            None if fields.is_empty() => return Err(self.expected("`key`".into())),
            None => self.missing_key(&mut fields),
        };
        self.close_brace();
        Ok(Object { name, store, key, fields, indexes })
    }

    /// Reads `in` and the store.
    fn store_of_object(&mut self, name: &Ident) -> Parse<Ident> {
        if self.eat_keyword(Keyword::In) {
            return self.ident("the store that the object lives in");
        }
        if !self.is(Punct::LeftBrace) {
            return Err(self.expected("`in` and the store".into()));
        }
        let stores = self.declared_stores();
        let edits = match &stores[..] {
            [only] => vec![self.insert_after(name.span.start, &format!(" in {only}"))],
            _ => Vec::new(),
        };
        let store = if stores.len() == 1 { stores[0].clone() } else { "".into() };
        self.foreign(Foreign::NoStore, name.span, edits);
        Ok(Ident { name: store, span: name.span })
    }

    /// Returns the names of the stores that the program declares.
    fn declared_stores(&self) -> Vec<super::Name> {
        let last = self.source.tokens.len() as u32 - 1;
        let stores = (0..last)
            .filter(|token| self.item_at(*token) && self.source.token_text(*token) == "store");
        stores.map(|token| self.source.token_text(token + 1).into()).collect()
    }

    /// True if a key stands here, perhaps written as in SQL.
    fn at_key(&self) -> bool {
        let is_name =
            |token: u32| matches!(self.kind_at(token), TokenKind::Ident | TokenKind::Keyword(_));
        let next = self.ahead(1);
        match self.kind() {
            TokenKind::Ident if self.text() == "key" => is_name(next),
            TokenKind::Ident if self.text() == "primary" => self.source.token_text(next) == "key",
            _ => false,
        }
    }

    fn key(&mut self, is_second: bool) -> Parse<Param> {
        let (start, docs) = (self.at, self.docs());
        if self.is_word("primary") {
            let edits = vec![self.remove(self.here())];
            self.foreign(Foreign::KeyWord, self.here(), edits);
            self.advance();
        }
        self.advance();
        self.pass_second_word("key");
        if is_second {
            self.foreign(Foreign::TwoKeys, Span::token(start), Vec::new());
        }
        let mut key = self.param("the name of the key")?;
        key.docs = docs;
        self.end_field("the key")?;
        Ok(key)
    }

    /// Reports a key that stands after a field, with the edit that moves it.
    fn late_key(&mut self, start: u32, first: &ObjectField) {
        let span = self.since(start);
        let text = self.source.span_text(span).trim_end_matches([',', ';']).to_owned();
        let before = first.span.start;
        let moved = format!("{text};\n{}", self.indent_of(before));
        let edits = vec![
            Edit { span: Span::token(before).before(), text: moved },
            Edit { span, text: String::new() },
        ];
        self.foreign(Foreign::LateKey, Span { start, end: start + 1 }, edits);
    }

    /// Makes the first field the key, if it may be one.
    fn missing_key(&mut self, fields: &mut Vec<ObjectField>) -> Param {
        let first = fields.remove(0);
        let span = first.name.span;
        let is_value = matches!(first.field_type.kind, TypeKind::Named(_) | TypeKind::Ref(_));
        let edits = if is_value && first.default.is_none() {
            vec![Edit { span, text: format!("key {}", first.name.name) }]
        } else {
            Vec::new()
        };
        self.last_mistake = None;
        // The field may be the key without its name.
        self.is_lost |= &*first.name.name == "key";
        self.foreign(Foreign::NoKey, span, edits);
        let param_type =
            if is_value { first.field_type } else { TypeExpr { kind: TypeKind::Error, span } };
        Param { docs: first.docs, name: first.name, param_type }
    }

    /// Expects the `;` after a field.
    fn end_field(&mut self, what: &str) -> Parse<()> {
        if self.eat_instead(Punct::Comma, Punct::Semicolon) {
            return Ok(());
        }
        self.close(Punct::Semicolon, what)
    }

    fn object_field(&mut self) -> Parse<ObjectField> {
        let (start, docs) = (self.at, self.docs());
        self.field_words();
        let (name, field_type) = match self.type_before() {
            Some(found) => found,
            None => {
                let name = self.ident("a field")?;
                self.colon("the name")?;
                (name, self.type_expr()?)
            }
        };
        let (policy, operation_policies) = self.field_policies()?;
        self.no_policy()?;
        self.column_rules(&name);
        let default = if self.eat(Punct::Assign) { Some(self.expr()?) } else { None };
        self.no_policy()?;
        self.end_field("the field")?;
        let span = self.since(start);
        Ok(ObjectField { docs, name, field_type, policy, operation_policies, default, span })
    }

    /// Passes over rules of columns, and reads `default` as `=`.
    fn column_rules(&mut self, field: &Ident) {
        let start = self.at;
        let mut is_unique = false;
        while self.kind() == TokenKind::Ident && COLUMN_RULES.contains(&self.text()) {
            is_unique |= self.text().eq_ignore_ascii_case("unique");
            self.advance();
        }
        let span = self.since(start);
        if self.at > start && is_unique {
            let text = format!("; unique {}", field.name);
            let edits =
                if self.is(Punct::Semicolon) { vec![Edit { span, text }] } else { Vec::new() };
            self.foreign(Foreign::UniqueColumn(field.name.to_string()), span, edits);
        } else if self.at > start {
            let word = self.source.span_text(span).to_owned();
            let edits = vec![Edit { span, text: String::new() }];
            self.foreign(Foreign::ColumnRule(word), span, edits);
        }
        if (self.is_word("default") || self.is_word("DEFAULT")) && !self.on_new_line() {
            let span = self.here();
            self.foreign(Foreign::DefaultWord, span, vec![Edit { span, text: "=".into() }]);
            self.advance();
            // The value is read by the caller as after `=`, so it is read here.
            if self.expr().is_err() {
                self.skip_value();
            }
        }
    }

    /// Skips to the end of a field.
    fn skip_value(&mut self) {
        while !self.is(Punct::Semicolon) && !self.starts_anew() {
            self.advance();
        }
    }

    fn no_policy(&mut self) -> Parse<()> {
        if self.is_word("within") {
            return Err(self.mistake(Syntax::Reserved { what: "`within …`" }));
        }
        Ok(())
    }

    pub(super) fn struct_item(&mut self) -> Parse<Struct> {
        self.advance();
        self.pass_second_word("struct");
        let name = self.ident("the name of the struct")?;
        let open = self.at;
        self.open_brace("the name of the struct")?;
        // A struct value names all fields, so a struct with missing fields is left out entirely.
        let (fields, is_whole) = self.param_list("a field", (open, Punct::RightBrace))?;
        if is_whole { Ok(Struct { name, fields }) } else { Err(Mistake) }
    }
}

/// Returns the key in place of one that could not be read.
fn broken_key(at: u32) -> Param {
    let span = Span::token(at);
    Param {
        docs: String::new(),
        name: Ident { name: "".into(), span },
        param_type: TypeExpr { kind: TypeKind::Error, span },
    }
}
