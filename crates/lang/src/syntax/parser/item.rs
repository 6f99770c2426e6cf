//! Items and types.

use super::super::ast::{
    Function, Ident, Item, ItemKind, Object, ObjectField, Operation, Param, Program, Store, Struct,
    Transaction, TypeExpr, TypeKind,
};
use super::super::token::{Punct, TokenKind};
use super::{Mistake, Parse, Parser};
use crate::diagnostic::m0001::Syntax;

impl Parser<'_> {
    pub(super) fn program(&mut self) -> Program {
        let mut items = Vec::new();
        while self.kind() != TokenKind::End {
            let (start, docs) = (self.at, self.docs());
            match self.item() {
                Ok(kind) => items.push(Item { docs, kind, span: self.since(start) }),
                Err(Mistake) => {
                    if self.at == start {
                        self.advance();
                    }
                    self.skip_item();
                }
            }
        }
        Program { items }
    }

    fn item(&mut self) -> Parse<ItemKind> {
        if self.kind() != TokenKind::Ident {
            return Err(self.expected_item());
        }
        match self.text() {
            "level" => self.level(),
            "store" => self.store().map(ItemKind::Store),
            "object" => self.object().map(ItemKind::Object),
            "struct" => self.struct_item().map(ItemKind::Struct),
            "fn" => self.function().map(ItemKind::Function),
            "isolated" | "transaction" => self.transaction().map(ItemKind::Transaction),
            "enum" => Err(self.mistake(Syntax::Reserved { what: "`enum`" })),
            "import" => Err(self.mistake(Syntax::Reserved { what: "`import`" })),
            _ => Err(self.expected_item()),
        }
    }

    fn expected_item(&mut self) -> Mistake {
        self.expected("`level`, `store`, `object`, `struct`, `fn` or `transaction`".into())
    }

    fn level(&mut self) -> Parse<ItemKind> {
        self.advance();
        let name = self.ident("the name of the level")?;
        self.expect_word("between")?;
        let above = self.levels("the level above")?;
        self.expect_word("and")?;
        let below = self.levels("the level below")?;
        self.close(Punct::Semicolon, "the level")?;
        Ok(ItemKind::Level { name, above, below })
    }

    fn levels(&mut self, what: &str) -> Parse<Vec<Ident>> {
        let mut levels = vec![self.ident(what)?];
        while self.eat(Punct::Comma) {
            levels.push(self.ident(what)?);
        }
        Ok(levels)
    }

    fn store(&mut self) -> Parse<Store> {
        self.advance();
        let name = self.ident("the name of the store")?;
        self.expect(Punct::Colon)?;
        let level = self.ident("the store's level")?;
        let mut operations = Vec::new();
        if self.eat(Punct::LeftBrace) {
            while !self.is(Punct::RightBrace) && self.kind() != TokenKind::End && !self.at_item() {
                let start = self.at;
                if let Ok(operation) = self.operation() {
                    operations.push(operation);
                } else {
                    self.skip_member(start);
                }
            }
            self.expect(Punct::RightBrace)?;
        } else {
            self.close(Punct::Semicolon, "the store")?;
        }
        Ok(Store { name, level, operations })
    }

    /// Skips the rest of a broken operation or field that began at `start`.
    fn skip_member(&mut self, start: u32) {
        self.skip_statement();
        // The start of a statement ends the skipping, but no statement can start here.
        while self.at_statement() {
            self.advance();
            self.skip_statement();
        }
        if self.at == start {
            self.advance();
        }
    }

    fn operation(&mut self) -> Parse<Operation> {
        let (start, docs) = (self.at, self.docs());
        let is_command = self.is_word("command");
        if !is_command && !self.is_word("query") {
            return Err(self.expected("`query` or `command`".into()));
        }
        self.advance();
        let name = self.ident("the name of the operation")?;
        let params = self.params()?;
        let result = self.result_type()?;
        self.close(Punct::Semicolon, "the operation")?;
        Ok(Operation { docs, is_command, name, params, result, span: self.since(start) })
    }

    fn params(&mut self) -> Parse<Vec<Param>> {
        self.expect(Punct::LeftParen)?;
        let mut params = Vec::new();
        while !self.is(Punct::RightParen) {
            params.push(self.param("a parameter")?);
            if !self.eat(Punct::Comma) {
                break;
            }
        }
        self.expect(Punct::RightParen)?;
        Ok(params)
    }

    /// Reads the parameters of a transaction. A broken parameter loses only itself: no code in the
    /// program calls a transaction with a number of parameters, so diagnostics about the rest stay
    /// true.
    fn transaction_params(&mut self) -> Parse<Vec<Param>> {
        self.expect(Punct::LeftParen)?;
        Ok(self.param_list("a parameter", Punct::RightParen)?.0)
    }

    /// Reads names with their types up to the closing punctuation. Also returns true if each could
    /// be read. A broken parameter is left out, and the parameters after it are still read.
    fn param_list(&mut self, what: &str, close: Punct) -> Parse<(Vec<Param>, bool)> {
        let (mut params, mut is_whole) = (Vec::new(), true);
        while !self.is(close) {
            match self.param(what) {
                Ok(param) => params.push(param),
                Err(Mistake) => {
                    is_whole = false;
                    self.skip_param(close)?;
                }
            }
            if self.eat(Punct::Comma) {
                continue;
            }
            let starts_next = self.kind() == TokenKind::Ident
                && self.kind_ahead(1) == TokenKind::Punct(Punct::Colon);
            if !starts_next {
                break;
            }
            let (after, found) = (what.replacen("a ", "the ", 1), self.found());
            self.report(Syntax::Missing { token: ",", after, found }, self.here());
            is_whole = false;
        }
        self.expect(close)?;
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
        let name = self.ident(what)?;
        self.expect(Punct::Colon)?;
        let param_type = self.type_expr()?;
        Ok(Param { docs, name, param_type })
    }

    fn result_type(&mut self) -> Parse<Option<TypeExpr>> {
        if self.eat(Punct::Arrow) { self.type_expr().map(Some) } else { Ok(None) }
    }

    fn object(&mut self) -> Parse<Object> {
        self.advance();
        let name = self.ident("the name of the object")?;
        if !self.eat_keyword(super::super::token::Keyword::In) {
            return Err(self.expected("`in` and the store".into()));
        }
        let store = self.ident("the store that the object lives in")?;
        self.expect(Punct::LeftBrace)?;
        let docs = self.docs();
        self.expect_word("key")?;
        let mut key = self.param("the name of the key")?;
        key.docs = docs;
        self.close(Punct::Semicolon, "the key")?;
        let mut fields = Vec::new();
        while !self.is(Punct::RightBrace) && self.kind() != TokenKind::End && !self.at_item() {
            let start = self.at;
            if let Ok(field) = self.object_field() {
                fields.push(field);
            } else {
                self.skip_member(start);
            }
        }
        self.expect(Punct::RightBrace)?;
        Ok(Object { name, store, key, fields })
    }

    fn object_field(&mut self) -> Parse<ObjectField> {
        let (start, docs) = (self.at, self.docs());
        if self.kind_ahead(1) != TokenKind::Punct(Punct::Colon) {
            if self.is_word("index") {
                return Err(self.mistake(Syntax::Reserved { what: "`index … on`" }));
            }
            if self.is_word("unique") {
                return Err(self.mistake(Syntax::Reserved { what: "`unique …`" }));
            }
        }
        let name = self.ident("a field")?;
        self.expect(Punct::Colon)?;
        let field_type = self.type_expr()?;
        self.no_policy()?;
        let default = if self.eat(Punct::Assign) { Some(self.expr()?) } else { None };
        self.no_policy()?;
        self.close(Punct::Semicolon, "the field")?;
        Ok(ObjectField { docs, name, field_type, default, span: self.since(start) })
    }

    fn no_policy(&mut self) -> Parse<()> {
        for (word, what) in [("within", "`within …`"), ("by", "`by …`")] {
            if self.is_word(word) {
                return Err(self.mistake(Syntax::Reserved { what }));
            }
        }
        Ok(())
    }

    fn struct_item(&mut self) -> Parse<Struct> {
        self.advance();
        let name = self.ident("the name of the struct")?;
        self.expect(Punct::LeftBrace)?;
        // A struct value names all fields, so a struct with missing fields is left out entirely.
        let (fields, is_whole) = self.param_list("a field", Punct::RightBrace)?;
        if is_whole { Ok(Struct { name, fields }) } else { Err(Mistake) }
    }

    fn function(&mut self) -> Parse<Function> {
        self.advance();
        let name = self.ident("the name of the function")?;
        self.expect(Punct::LeftParen)?;
        let (params, mut is_whole) = self.param_list("a parameter", Punct::RightParen)?;
        self.expect(Punct::Arrow)?;
        let result = self.type_expr()?;
        let start = self.at;
        self.expect(Punct::LeftBrace)?;
        let mut lets = Vec::new();
        while self.at_let() {
            if let Ok(binding) = self.let_binding() {
                lets.push(binding);
            } else {
                is_whole = false;
                self.skip_statement();
            }
        }
        let body = self.expr()?;
        self.expect(Punct::RightBrace)?;
        let function = Function { name, params, result, lets, body, body_span: self.since(start) };
        if is_whole { Ok(function) } else { Err(Mistake) }
    }

    fn transaction(&mut self) -> Parse<Transaction> {
        let isolated = self.is_word("isolated").then(|| self.here());
        if isolated.is_some() {
            self.advance();
        }
        self.expect_word("transaction")?;
        let name = self.ident("the name of the transaction")?;
        let params = self.transaction_params()?;
        let result = self.result_type()?;
        let body = self.block()?;
        Ok(Transaction { isolated, name, params, result, body })
    }

    pub(super) fn type_expr(&mut self) -> Parse<TypeExpr> {
        self.nested(Self::type_inner)
    }

    fn type_inner(&mut self) -> Parse<TypeExpr> {
        let start = self.at;
        let name = self.ident("a type")?;
        let has_arguments = self.is(Punct::Less);
        let kind = match &*name.name {
            "ref" if self.kind() == TokenKind::Ident => TypeKind::Ref(self.ident("an object")?),
            "counter" => TypeKind::Counter,
            "decimal" => return Err(self.reserved_at(start, "`decimal`")),
            "option" if has_arguments => TypeKind::Option(self.type_argument()?),
            "list" if has_arguments => TypeKind::List(self.type_argument()?),
            "set" if has_arguments => TypeKind::Set(self.type_argument()?),
            "log" if has_arguments => TypeKind::Log(self.type_argument()?),
            "map" if has_arguments => {
                self.advance();
                let key = self.type_expr()?;
                self.expect(Punct::Comma)?;
                let value = self.type_expr()?;
                self.close_angle()?;
                TypeKind::Map(Box::new(key), Box::new(value))
            }
            "option" | "list" | "set" | "log" | "map" => {
                return Err(self.expected(format!("`<` after `{}`", name.name)));
            }
            _ => TypeKind::Named(name.name),
        };
        // If `>=` was split, its first half belongs to this type.
        let end = self.at + u32::from(self.greater_split);
        Ok(TypeExpr { kind, span: super::Span { start, end } })
    }

    fn reserved_at(&mut self, token: u32, what: &'static str) -> Mistake {
        self.report(Syntax::Reserved { what }, super::Span::token(token));
        Mistake
    }

    fn type_argument(&mut self) -> Parse<Box<TypeExpr>> {
        self.expect(Punct::Less)?;
        let inner = self.type_expr()?;
        self.close_angle()?;
        Ok(Box::new(inner))
    }
}
