//! Statements and items of other languages. Each is reported with the way in which this language
//! writes it, and read as that where its meaning is clear.

use super::super::ast::{Block, Expr, ExprKind, StmtKind};
use super::super::token::{Keyword, Punct, Span, TokenKind};
use super::{Mistake, Parse, Parser};
use crate::diagnostic::m0001::Foreign;
use crate::diagnostic::{Edit, alias};

/// Words that begin a statement of this language.
pub(super) const STATEMENT_WORDS: [&str; 8] =
    ["let", "var", "if", "while", "for", "match", "require", "return"];

impl Parser<'_> {
    /// Returns the edit that writes `text` in place of the current token, with a blank before it.
    pub(super) fn replace_here(&self, text: &str) -> Edit {
        let is_apart = !self.is_adjacent(self.before());
        let text = if is_apart { text.trim_start() } else { text };
        Edit { span: self.here(), text: text.to_owned() }
    }

    /// Reports the current word as another one, and reads it as that keyword.
    fn read_as(&mut self, keyword: Keyword, foreign: Foreign) {
        let edits = vec![Edit { span: self.here(), text: keyword.text().to_owned() }];
        self.foreign(foreign, self.here(), edits);
        self.meant = Some((self.at, keyword));
    }

    /// Reads a statement of another language; none if this is no such statement.
    pub(super) fn foreign_statement(&mut self) -> Option<Parse<StmtKind>> {
        match self.kind() {
            TokenKind::Ident => self.foreign_word(),
            TokenKind::Punct(Punct::LeftBrace) => Some(self.bare_block()),
            TokenKind::Punct(punct @ (Punct::RightParen | Punct::RightBracket)) => {
                let span = self.here();
                let edits = vec![Edit { span, text: String::new() }];
                self.foreign(Foreign::Stray(punct.text()), span, edits);
                self.advance();
                Some(self.statement_after())
            }
            TokenKind::Punct(sign @ (Punct::Plus | Punct::Minus))
                if self.kind_ahead(1) == TokenKind::Punct(sign) && self.is_adjacent(self.at) =>
            {
                Some(self.increment_before(sign))
            }
            _ => None,
        }
    }

    /// Reads the statement after a mistake, if one follows.
    pub(super) fn statement_after(&mut self) -> Parse<StmtKind> {
        if self.is(Punct::RightBrace) || self.kind() == TokenKind::End || self.at_item() {
            // Nothing was lost.
            return Ok(StmtKind::Expr(Expr { kind: ExprKind::Error, span: self.here().before() }));
        }
        self.nested(Self::statement)
    }

    fn foreign_word(&mut self) -> Option<Parse<StmtKind>> {
        let (word, span, next) = (self.text().to_owned(), self.here(), self.kind_ahead(1));
        let after = self.ahead(1);
        let on_one_line = |parser: &Self| {
            let (from, to) = (parser.source.tokens[parser.at as usize].end, after);
            let to = parser.source.tokens[to as usize].start;
            !parser.source.text[from as usize..to as usize].contains(['\n', '\r'])
        };
        let punct = |wanted: Punct| next == TokenKind::Punct(wanted);
        if punct(Punct::Not) && self.is_adjacent(self.at) && self.is_call(2) {
            self.foreign(Foreign::Macro(word), span, Vec::new());
            return Some(Err(Mistake));
        }
        if punct(Punct::Colon)
            && self.kind_ahead(2) == TokenKind::Punct(Punct::Assign)
            && self.is_adjacent(after)
        {
            return Some(self.walrus());
        }
        if next == TokenKind::Keyword(Keyword::In) {
            let edits = vec![Edit { span, text: format!("for {word}") }];
            self.foreign(Foreign::NoHead, span, edits);
            return Some(self.for_after_word());
        }
        if punct(Punct::LeftBrace) && matches!(&*word, "loop" | "do" | "try" | "begin") {
            let is_loop = matches!(&*word, "loop" | "do");
            let foreign = if is_loop { Foreign::Loop(word) } else { Foreign::Try(word) };
            self.foreign(foreign, span, Vec::new());
            self.advance();
            return Some(self.block().map(|_| StmtKind::Error));
        }
        let is_switch = matches!(&*word, "switch" | "case" | "unless" | "until" | "foreach");
        if punct(Punct::LeftParen) && is_switch {
            return self.foreign_head(word);
        }
        let is_operand = super::stmt::starts_value(next) && !punct(Punct::LeftParen);
        let is_operand = is_operand && !punct(Punct::LeftBracket) && !punct(Punct::Minus);
        let is_sql = alias::is_sql(&word) && (is_operand || punct(Punct::Star));
        if !(is_operand || is_sql) || !on_one_line(self) {
            return None;
        }
        self.two_words(word, is_sql)
    }

    fn is_call(&self, ahead: u32) -> bool {
        self.kind_ahead(ahead) == TokenKind::Punct(Punct::LeftParen)
    }

    /// Reads a statement that begins with a name and something that cannot follow one.
    fn two_words(&mut self, word: String, is_sql: bool) -> Option<Parse<StmtKind>> {
        let span = self.here();
        let third = self.kind_ahead(2);
        let third_is = |punct: Punct| third == TokenKind::Punct(punct);
        match &*word {
            "foreach" | "forEach" => {
                self.read_as(Keyword::For, Foreign::ForEach(word));
                return Some(self.statement());
            }
            "throw" | "raise" | "assert" | "panic" | "abort" | "fail" | "ensure" => {
                return Some(Err(self.foreign_mistake(Foreign::Throw(word), span, Vec::new())));
            }
            "unless" | "until" | "switch" | "case" | "when" => {
                return Some(Err(self.foreign_mistake(Foreign::Switch(word), span, Vec::new())));
            }
            "delete" | "del" if third_is(Punct::Semicolon) => {
                let whole = Span { start: self.at, end: self.ahead(1) + 1 };
                let text = format!("{}.delete()", self.source.token_text(self.ahead(1)));
                let edits = vec![Edit { span: whole, text }];
                return Some(Err(self.foreign_mistake(Foreign::Delete(word), span, edits)));
            }
            "await" | "yield" | "async" => {
                self.await_word();
                return Some(self.statement());
            }
            _ if is_sql => {
                return Some(Err(self.foreign_mistake(Foreign::Sql(word), span, Vec::new())));
            }
            _ => {}
        }
        let declares = matches!(
            &*word,
            "const" | "final" | "auto" | "val" | "my" | "local" | "dim" | "mut" | "static" | "set"
        );
        let assigns = third_is(Punct::Assign) || third_is(Punct::Colon);
        if self.kind_ahead(1) == TokenKind::Ident && assigns {
            let is_type = alias::type_name(&word).is_some() || third_is(Punct::Assign);
            if declares {
                self.read_as(Keyword::Let, Foreign::Declares(word));
                return Some(self.statement());
            }
            let near = self.diagnostics.near_miss(&word, STATEMENT_WORDS);
            if let Some(means) = near.and_then(Keyword::from_text) {
                let foreign = Foreign::ItemWord { found: word, means: means.text() };
                self.read_as(means, foreign);
                return Some(self.statement());
            }
            if is_type {
                self.read_as(Keyword::Let, Foreign::TypeFirst);
                return Some(self.statement());
            }
        }
        let near = self.diagnostics.near_miss(&word, STATEMENT_WORDS);
        let means = near.and_then(Keyword::from_text)?;
        self.read_as(means, Foreign::ItemWord { found: word, means: means.text() });
        Some(self.statement())
    }

    /// Reports `await`, and passes over it.
    pub(super) fn await_word(&mut self) {
        let (word, span) = (self.text().to_owned(), self.here());
        let edits = vec![self.remove(span)];
        self.foreign(Foreign::Await(word), span, edits);
        self.advance();
    }

    /// Reads `x := value`.
    fn walrus(&mut self) -> Parse<StmtKind> {
        let start = self.at;
        let colon = Span { start: self.ahead(1), end: self.ahead(2) + 1 };
        let name = self.text().to_owned();
        let edits = vec![
            Edit { span: self.here(), text: format!("let {name}") },
            Edit { span: colon, text: "=".into() },
        ];
        self.foreign(Foreign::Declares(":=".into()), colon, edits);
        let name = self.ident("a name")?;
        self.advance();
        self.advance();
        let value = self.expr()?;
        self.close(Punct::Semicolon, "the value")?;
        let span = self.since(start);
        let written_type = None;
        Ok(StmtKind::Let(super::super::ast::Let { mutable: true, name, written_type, value, span }))
    }

    /// Reads `switch (…) { … }`.
    fn foreign_head(&mut self, word: String) -> Option<Parse<StmtKind>> {
        let close = self.matching(self.ahead(1))?;
        if self.kind_at(close + 1) != TokenKind::Punct(Punct::LeftBrace) {
            return None;
        }
        let span = self.here();
        let foreign = match &*word {
            "foreach" => Foreign::ForEach(word),
            "until" => Foreign::Loop(word),
            _ => Foreign::Switch(word),
        };
        self.foreign(foreign, span, Vec::new());
        while self.at <= close {
            self.advance();
        }
        self.advance();
        self.skip_braces();
        Some(Ok(StmtKind::Error))
    }

    /// Returns the bracket that closes the one at this token.
    fn matching(&self, open: u32) -> Option<u32> {
        let (mut depth, mut at) = (0, open);
        loop {
            match self.kind_at(at) {
                TokenKind::End => return None,
                TokenKind::Punct(Punct::LeftParen | Punct::LeftBracket | Punct::LeftBrace) => {
                    depth += 1;
                }
                TokenKind::Punct(Punct::RightParen | Punct::RightBracket | Punct::RightBrace) => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Reads braces that belong to no statement.
    fn bare_block(&mut self) -> Parse<StmtKind> {
        let span = self.here();
        if self.closing_braces_after(1) <= self.open_braces.len() {
            // One brace too many: its closing one is not there.
            let edits = vec![self.remove(span)];
            self.foreign(Foreign::Twice("{".into()), span, edits);
            self.advance();
            return self.statement_after();
        }
        let close = self.matching(self.at);
        let edits = close.map_or_else(Vec::new, |close| {
            vec![
                Edit { span, text: String::new() },
                Edit { span: Span::token(close), text: String::new() },
            ]
        });
        self.foreign(Foreign::Block, span, edits);
        self.block().map(|_| StmtKind::Error)
    }

    /// Reads a branch or loop without braces: `if a b;`, `if a: b;`, `if a then b;`.
    pub(super) fn unbraced_block(&mut self) -> Parse<Block> {
        let start = self.at;
        let is_colon = self.is(Punct::Colon);
        let is_word = (self.is_word("then") || self.is_word("do")) && !self.at_item();
        let mut edits = Vec::new();
        if is_colon || is_word {
            edits.push(self.replace_here(" {"));
            self.advance();
        } else {
            edits.push(self.insert_after(self.before(), " {"));
        }
        let is_end = self.is(Punct::RightBrace) || self.kind() == TokenKind::End;
        let starts = super::stmt::starts_value(self.kind()) || self.at_statement();
        if is_end || !starts || self.at_item() {
            return Err(self.expected("`{`".into()));
        }
        let span = Span::token(self.at);
        let statement = self.one_statement();
        edits.push(self.insert_after(self.before(), " }"));
        self.foreign(Foreign::Braces, span, edits);
        Ok(Block { statements: vec![statement], span: self.since(start) })
    }

    /// Reads the block of an arm, perhaps without braces.
    pub(super) fn arm_block(&mut self) -> Parse<Block> {
        if self.is(Punct::LeftBrace) || self.closing_braces() > self.open_braces.len() {
            return self.block();
        }
        let start = self.at;
        let place = self.expr()?;
        let assigns = matches!(
            self.kind(),
            TokenKind::Punct(Punct::Assign | Punct::PlusAssign | Punct::MinusAssign)
        );
        if assigns {
            self.advance();
            self.expr()?;
        }
        let span = self.since(start);
        let text = format!("{{ {}; }}", self.source.span_text(span));
        let mut edits = vec![Edit { span, text }];
        if self.is(Punct::Semicolon) {
            edits.push(Edit { span: self.here(), text: String::new() });
            self.advance();
        }
        self.foreign(Foreign::ArmBlock, span, edits);
        let kind = if assigns { StmtKind::Error } else { StmtKind::Expr(place) };
        let statements = vec![super::super::ast::Stmt { allows: Vec::new(), kind, span }];
        Ok(Block { statements, span })
    }

    /// Reads the word of an arm as the one that is meant.
    pub(super) fn foreign_arm(&mut self) {
        let keyword = match (self.kind(), self.kind_ahead(1)) {
            (TokenKind::Ident, TokenKind::Punct(Punct::LeftParen))
                if matches!(self.text(), "Some" | "Just" | "Ok") =>
            {
                Keyword::Some
            }
            (TokenKind::Ident, TokenKind::Punct(Punct::FatArrow | Punct::Arrow)) => Keyword::None,
            _ => return,
        };
        let found = self.text().to_owned();
        let means = keyword.text().to_owned();
        let is_rest = matches!(&*found, "_" | "default" | "otherwise");
        let foreign = if is_rest { Foreign::RestArm } else { Foreign::Sign { found, means } };
        self.read_as(keyword, foreign);
    }

    /// Reads `elif` as `else if`.
    pub(super) fn else_if(&mut self) -> bool {
        if !matches!(self.text(), "elif" | "elseif" | "elsif" | "elsIf" | "elseIf")
            || self.kind() != TokenKind::Ident
        {
            return false;
        }
        let (word, span) = (self.text().to_owned(), self.here());
        let edits = vec![Edit { span, text: "else if".into() }];
        self.foreign(Foreign::ElseIf(word), span, edits);
        true
    }

    /// Reads `for (…)`.
    pub(super) fn for_in_parentheses(&mut self) -> Parse<StmtKind> {
        let open = self.at;
        let Some(close) = self.matching(open) else {
            return Err(self.expected("the loop's variable".into()));
        };
        let counts =
            (open..close).any(|token| self.kind_at(token) == TokenKind::Punct(Punct::Semicolon));
        let span = Span { start: open, end: close + 1 };
        if counts {
            self.foreign(Foreign::CountingFor, span, Vec::new());
        } else {
            let edits = self.for_edits(open, close);
            self.foreign(Foreign::ForEach("( … )".into()), span, edits);
        }
        while self.at <= close {
            self.advance();
        }
        self.block().map(|_| StmtKind::Error)
    }

    /// Returns the edits that turn `(let x of xs)` into `x in xs`.
    fn for_edits(&self, open: u32, close: u32) -> Vec<Edit> {
        let inner = self.source.span_text(Span { start: open + 1, end: close });
        let mut words: Vec<&str> = inner.split_whitespace().collect();
        if matches!(words.first(), Some(&("let" | "const" | "var"))) {
            words.remove(0);
        }
        match words.get_mut(1) {
            Some(word) if matches!(*word, "of" | "in" | ":") => *word = "in",
            _ => return Vec::new(),
        }
        let span = Span { start: open, end: close + 1 };
        vec![Edit { span, text: words.join(" ") }]
    }

    /// Expects `in`, perhaps written `of`.
    pub(super) fn expect_in(&mut self) -> Parse<()> {
        if self.is_word("of") || self.is(Punct::Colon) {
            let found = self.text().to_owned();
            let edits = vec![self.replace_here(" in")];
            let sign = Foreign::Sign { found, means: "in".into() };
            self.foreign(sign, self.here(), edits);
            self.advance();
            return Ok(());
        }
        if self.eat_keyword(Keyword::In) {
            return Ok(());
        }
        if self.kind() == TokenKind::Ident && !self.on_new_line() {
            let edit = self.insert_after(self.before(), " in");
            self.miss("in", "the loop's variable", Some(edit));
            return Ok(());
        }
        Err(self.expected("`in`".into()))
    }

    /// True for `let mut`, which is reported.
    pub(super) fn let_mut(&mut self) -> bool {
        let next = self.ahead(1);
        let is_mut = self.kind_at(next) == TokenKind::Ident
            && self.source.token_text(next) == "mut"
            && self.kind_ahead(2) == TokenKind::Ident;
        if is_mut {
            let span = Span { start: self.at, end: next + 1 };
            self.foreign(Foreign::LetMut, span, vec![Edit { span, text: "var".into() }]);
        }
        is_mut
    }

    /// Reads the rest of a statement whose first word is missing: `a > b else "…";` and `a > b { … }`.
    pub(super) fn headless(&mut self, expr: &Expr) -> Option<Parse<StmtKind>> {
        let first = Span::token(expr.span.start);
        if self.is_keyword(Keyword::Else) && self.kind_ahead(1) == TokenKind::String {
            let text = format!("require {}", self.source.span_text(first));
            self.foreign(Foreign::NoRequire, first, vec![Edit { span: first, text }]);
            self.skip_statement(self.at);
            return Some(Ok(StmtKind::Expr(self.error_expr())));
        }
        let next = self.ahead(1);
        if self.is(Punct::LeftBrace) && self.is_first_of_line(next) {
            self.foreign(Foreign::NoHead, first, Vec::new());
            return Some(self.block().map(|_| StmtKind::Error));
        }
        None
    }

    /// Skips the rest of a broken head, up to its brace.
    pub(super) fn skip_head(&mut self) -> Parse<()> {
        loop {
            match self.kind() {
                TokenKind::Punct(Punct::LeftBrace) => return Ok(()),
                TokenKind::Punct(Punct::Semicolon | Punct::RightBrace) | TokenKind::End => {
                    return Err(Mistake);
                }
                _ if self.at_item() || self.at_statement() => return Err(Mistake),
                _ => self.advance(),
            }
        }
    }

    /// Reads the value of a function, and what other languages write there.
    pub(super) fn function_value(&mut self) -> Parse<Expr> {
        let start = self.at;
        let is_return = self.eat_keyword(Keyword::Return);
        if !is_return && self.at_statement() {
            return Err(self.foreign_mistake(Foreign::FunctionStatement, self.here(), Vec::new()));
        }
        let body = self.expr()?;
        let mut edits = Vec::new();
        let head = Span::token(start);
        if is_return {
            let first = Span { start, end: body.span.start + 1 };
            edits.push(Edit { span: first, text: self.source.token_text(body.span.start).into() });
        }
        let is_last =
            self.is(Punct::Semicolon) && self.kind_ahead(1) == TokenKind::Punct(Punct::RightBrace);
        if is_last {
            edits.push(Edit { span: self.here(), text: String::new() });
        }
        if is_return {
            self.foreign(Foreign::FunctionReturn, head, edits);
        } else if is_last {
            self.foreign(Foreign::FunctionSemicolon, self.here(), edits);
        } else if self.is(Punct::Semicolon) || self.is(Punct::Assign) {
            let span = Span { start, end: self.at };
            return Err(self.foreign_mistake(Foreign::FunctionStatement, span, Vec::new()));
        }
        if is_last {
            self.advance();
        }
        Ok(body)
    }

    /// Expects a closing bracket before `next`.
    pub(super) fn close_bracket_before(
        &mut self,
        open: u32,
        close: Punct,
        next: Punct,
    ) -> Parse<()> {
        if !self.is(close) && self.is(next) {
            let edit = self.insert_after(self.before(), close.text());
            self.miss(close.text(), "the name", Some(edit));
            return Ok(());
        }
        self.close_bracket(open, close)
    }
}
