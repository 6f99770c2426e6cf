//! Items.

use super::super::ast::{
    Block, Function, Ident, Item, ItemKind, Operation, Program, Stmt, StmtKind, Store, Transaction,
    TypeExpr, TypeKind,
};
use super::super::token::{Punct, TokenKind};
use super::{Mistake, Parse, Parser};
use crate::diagnostic::Edit;
use crate::diagnostic::m0001::Foreign;

impl Parser<'_> {
    pub(super) fn program(&mut self) -> Program {
        let (mut imports, mut items) = (Vec::new(), Vec::new());
        loop {
            self.imports(&mut imports);
            self.items(&mut items);
            if !self.next_file() {
                break;
            }
        }
        Program { imports, items, is_incomplete: self.is_lost, left_out: Vec::new() }
    }

    /// Reads the items of a file.
    fn items(&mut self, items: &mut Vec<Item>) {
        while self.kind() != TokenKind::End {
            let mut docs = self.docs();
            let allows = self.allows();
            if docs.is_empty() && !allows.is_empty() {
                docs = self.docs();
            }
            let start = self.at;
            (self.item_start, self.open_braces) = (start, Vec::new());
            (self.is_doubtful, self.is_unbalanced) = (false, false);
            match self.item() {
                Ok(Some(kind)) => {
                    items.push(Item { docs, allows, kind, span: self.since(start) });
                }
                Ok(None) => {
                    if let (true, Some(last)) = (self.is_unbalanced, items.last_mut()) {
                        mark_incomplete(last);
                    }
                }
                Err(Mistake) => {
                    // No other part of the program names a transaction.
                    self.is_lost |= !self.is_word_at(start, "transaction");
                    if self.at == start {
                        self.advance();
                    }
                    self.skip_item();
                }
            }
        }
    }

    fn is_word_at(&self, token: u32, word: &str) -> bool {
        self.source.token_text(token) == word
    }

    /// Reads an item; none if something stands here that is no item and declares nothing.
    fn item(&mut self) -> Parse<Option<ItemKind>> {
        if self.kind() != TokenKind::Ident {
            return self.between_items();
        }
        let item = match self.text() {
            "level" => self.level(),
            "store" => self.store().map(ItemKind::Store),
            "object" => self.object().map(ItemKind::Object),
            "struct" => self.struct_item().map(ItemKind::Struct),
            "enum" => self.enum_item().map(ItemKind::Enum),
            "fn" => self.function().map(ItemKind::Function),
            "isolated" | "transaction" => self.transaction().map(ItemKind::Transaction),
            "import" => return self.late_import().map(|()| None),
            _ => return self.foreign_item(),
        };
        item.map(Some)
    }

    /// Reads the item that `word` begins.
    pub(super) fn item_of(&mut self, word: &str) -> Parse<ItemKind> {
        match word {
            "level" => self.level(),
            "store" => self.store().map(ItemKind::Store),
            "object" => self.object().map(ItemKind::Object),
            "struct" => self.struct_item().map(ItemKind::Struct),
            "enum" => self.enum_item().map(ItemKind::Enum),
            "fn" => self.function().map(ItemKind::Function),
            _ => self.transaction().map(ItemKind::Transaction),
        }
    }

    pub(super) fn expected_item(&mut self) -> Mistake {
        self.expected("`level`, `store`, `object`, `struct`, `enum`, `fn` or `transaction`".into())
    }

    fn level(&mut self) -> Parse<ItemKind> {
        self.advance();
        self.pass_second_word("level");
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
        self.pass_second_word("store");
        let name = self.ident("the name of the store")?;
        let level = self.level_of_store(&name)?;
        let mut operations = Vec::new();
        if self.is(Punct::LeftBrace) {
            self.open_brace("the level")?;
            while !self.is(Punct::RightBrace) && self.kind() != TokenKind::End && !self.at_item() {
                let start = self.at;
                match self.operation() {
                    Ok(Some(operation)) => operations.push(operation),
                    Ok(None) => self.is_lost = true,
                    Err(Mistake) => self.skip_member(start),
                }
            }
            self.close_brace();
        } else {
            self.close(Punct::Semicolon, "the store")?;
        }
        Ok(Store { name, level, operations })
    }

    /// Reads `:` and the level of a store.
    fn level_of_store(&mut self, name: &Ident) -> Parse<Ident> {
        if matches!(self.kind(), TokenKind::Punct(Punct::Semicolon | Punct::LeftBrace)) {
            self.foreign(Foreign::NoLevel, name.span, Vec::new());
            return Ok(Ident { name: "".into(), span: name.span });
        }
        if self.is(Punct::Assign) {
            self.eat_instead(Punct::Assign, Punct::Colon);
        } else {
            self.expect_before(Punct::Colon, "the name", |next| next == TokenKind::Ident)?;
        }
        self.ident("the store's level")
    }

    /// Skips the rest of a broken operation or field that began at `start`.
    pub(super) fn skip_member(&mut self, start: u32) {
        self.is_lost = true;
        self.skip_statement(start);
        // The start of a statement ends the skipping, but no statement can start here.
        while self.at_statement() {
            self.advance();
            self.skip_statement(self.at);
        }
        if self.at == start {
            self.advance();
        }
    }

    /// Reads an operation; none if a parameter was lost.
    fn operation(&mut self) -> Parse<Option<Operation>> {
        let (start, docs) = (self.at, self.docs());
        let is_command = self.is_word("command");
        if !is_command && !self.is_word("query") {
            return Err(self.expected("`query` or `command`".into()));
        }
        let word = self.text().to_owned();
        self.advance();
        self.pass_second_word(&word);
        let name = self.ident("the name of the operation")?;
        let open = self.at;
        self.open_params()?;
        let (params, is_whole) = self.param_list("a parameter", (open, Punct::RightParen))?;
        let result = self.result_type()?;
        self.close(Punct::Semicolon, "the operation")?;
        let span = self.since(start);
        Ok(is_whole.then_some(Operation { docs, is_command, name, params, result, span }))
    }

    /// Expects the parenthesis before parameters.
    fn open_params(&mut self) -> Parse<()> {
        self.expect_before(Punct::LeftParen, "the name", |next| {
            matches!(next, TokenKind::Ident | TokenKind::Punct(Punct::RightParen))
        })
    }

    fn result_type(&mut self) -> Parse<Option<TypeExpr>> {
        self.pass_strays();
        if self.eat(Punct::Arrow) {
            return self.type_expr().map(Some);
        }
        if self.is(Punct::Colon) && self.kind_ahead(1) == TokenKind::Ident {
            let span = self.here();
            let edits = vec![self.insert_instead(" ->")];
            self.foreign(Foreign::ResultColon, span, edits);
            self.advance();
            return self.type_expr().map(Some);
        }
        if self.kind() == TokenKind::Ident && !self.at_item() && !self.on_new_line() {
            self.expect_before(Punct::Arrow, "the parameters", |_| true)?;
            return self.type_expr().map(Some);
        }
        Ok(None)
    }

    /// Returns the edit that writes `text` in place of the current token.
    fn insert_instead(&self, text: &str) -> Edit {
        let adjacent = self.is_adjacent(self.before());
        let text = if adjacent { text } else { text.trim_start() };
        Edit { span: self.here(), text: text.to_owned() }
    }

    fn function(&mut self) -> Parse<Function> {
        self.advance();
        self.pass_second_word("fn");
        let name = self.ident("the name of the function")?;
        let open = self.at;
        self.open_params()?;
        let (params, mut is_whole) = self.param_list("a parameter", (open, Punct::RightParen))?;
        let result = match self.result_type()? {
            Some(result) => result,
            None if self.is(Punct::LeftBrace) => {
                self.foreign(Foreign::NoResult, name.span, Vec::new());
                TypeExpr { kind: TypeKind::Error, span: name.span }
            }
            None => return Err(self.expected("`->`".into())),
        };
        let start = self.at;
        self.open_brace("the result")?;
        let mut lets = Vec::new();
        while self.at_let() {
            let start = self.at;
            if let Ok(binding) = self.let_binding() {
                lets.push(binding);
            } else {
                is_whole = false;
                self.skip_statement(start);
            }
        }
        let body = self.function_value()?;
        self.close_brace();
        let function = Function { name, params, result, lets, body, body_span: self.since(start) };
        if is_whole { Ok(function) } else { Err(Mistake) }
    }

    fn transaction(&mut self) -> Parse<Transaction> {
        let isolated = self.is_word("isolated").then(|| self.here());
        if isolated.is_some() {
            self.advance();
            self.pass_second_word("isolated");
            self.expect_word("transaction")?;
        } else {
            self.advance();
        }
        self.pass_second_word("transaction");
        let name = self.ident("the name of the transaction")?;
        let open = self.at;
        self.open_params()?;
        let (params, is_whole) = self.param_list("a parameter", (open, Punct::RightParen))?;
        let result = self.result_type()?;
        self.gives_result = result.is_some();
        let mut body = self.block()?;
        if !is_whole || self.is_unbalanced {
            // The body may use the lost parameter.
            mark_block(&mut body);
        }
        Ok(Transaction { isolated, name, params, result, body })
    }
}

/// Marks the body of a transaction that may end elsewhere.
fn mark_incomplete(item: &mut Item) {
    if let ItemKind::Transaction(declared) = &mut item.kind {
        mark_block(&mut declared.body);
    }
}

/// Marks a block that may use a name which was lost.
fn mark_block(body: &mut Block) {
    let span = body.span.before();
    body.statements.insert(0, Stmt { allows: Vec::new(), kind: StmtKind::Error, span });
}
