//! Reading a file of tests: from tokens to steps.
//!
//! Only the steps are read here. Expressions stay runs of tokens, which the compiler reads as parts
//! of the program under test.

use std::ops::Range;
use std::time::Duration;

use mingle_lang::diagnostic::{Code, Diagnostic};
use mingle_lang::syntax::token::{Keyword, Punct};
use mingle_lang::syntax::{Source, Span, TokenKind};

/// A test.
pub struct Test {
    /// Its name.
    pub name: String,
    /// True if it also runs once for each step at which the process can crash.
    pub crashes: bool,
    /// The number of seeds that the test asks for.
    pub seeds: Option<u64>,
    /// Its statements.
    pub body: Vec<Statement>,
}

/// A statement of a test.
pub enum Statement {
    /// `client NAME at REPLICA;`
    Client {
        /// The client's name.
        name: String,
        /// The replica at which it stays, with its span.
        at: Option<(String, Span)>,
        /// The span of the name.
        span: Span,
    },
    /// A step by itself.
    Step(Step),
    /// Steps that run at the same time.
    Together(Vec<Step>),
    /// A wait in virtual time.
    Wait(Duration),
    /// A wait until all transactions are finished and every replica has every write.
    Settle(Span),
}

/// A call, or an expectation.
pub struct Step {
    /// The client that acts; none for the client that every test has.
    pub client: Option<(String, Span)>,
    /// The action.
    pub action: Action,
    /// The span of the step, without the client.
    pub span: Span,
}

/// The action of a step.
pub enum Action {
    /// A call, whose result or success may get a name.
    Call {
        /// The name for the result, or, with `try`, for its success.
        bound: Option<(String, Span)>,
        /// True if the call may fail.
        attempt: bool,
        /// The call.
        call: CallText,
    },
    /// A call with an expected end.
    ExpectCall {
        /// The call.
        call: CallText,
        /// The expected end.
        wanted: Wanted,
        /// All of it as an expression, in case the call is one of a function.
        whole: Expression,
    },
    /// An expression that must be true.
    Expect(Expression),
}

/// The expected end of a call.
pub enum Wanted {
    /// It succeeds.
    Succeeds,
    /// It succeeds with this result.
    Equal(Expression),
    /// It fails by a `require` with this code; by any, if none.
    Fails(Option<(String, Span)>),
}

/// A call of a transaction.
pub struct CallText {
    /// The transaction's name.
    pub transaction: String,
    /// The span of the name.
    pub span: Span,
    /// Its arguments, with their names where they are given.
    pub arguments: Vec<(Option<(String, Span)>, Expression)>,
}

/// The tokens of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// The indices of the tokens.
    pub tokens: Range<usize>,
}

impl Expression {
    /// Returns the span of the tokens.
    pub fn span(&self) -> Span {
        Span { start: self.tokens.start as u32, end: self.tokens.end as u32 }
    }
}

/// Reads the tests of a file.
pub fn read(source: &Source) -> Result<Vec<Test>, Diagnostic> {
    let mut reader = Reader { source, at: 0 };
    let mut tests = Vec::new();
    while reader.kind() != TokenKind::End {
        tests.push(reader.test()?);
    }
    Ok(tests)
}

struct Reader<'a> {
    source: &'a Source,
    at: usize,
}

type Read<T> = Result<T, Diagnostic>;

impl Reader<'_> {
    fn kind(&self) -> TokenKind {
        self.kind_at(self.at)
    }

    fn kind_at(&self, index: usize) -> TokenKind {
        self.source.tokens.get(index).map_or(TokenKind::End, |token| token.kind)
    }

    fn text_at(&self, index: usize) -> &str {
        let token = self.source.tokens.get(index);
        token.map_or("", |token| &self.source.text[token.start as usize..token.end as usize])
    }

    fn text(&self) -> &str {
        self.text_at(self.at)
    }

    fn here(&self) -> Span {
        Span::token(self.at as u32)
    }

    fn since(&self, start: usize) -> Span {
        Span { start: start as u32, end: self.at as u32 }
    }

    /// An error at the next token.
    fn wrong(&self, expected: &str) -> Diagnostic {
        let found = match self.kind() {
            TokenKind::End => "the end of the file".to_owned(),
            _ => format!("`{}`", self.text()),
        };
        let title = format!("expected {expected}, found {found}");
        Diagnostic::new(Code::M0001, title, self.here(), "")
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.kind(), TokenKind::Ident | TokenKind::Keyword(_)) && self.text() == word
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn take(&mut self, punct: Punct) -> bool {
        let found = self.kind() == TokenKind::Punct(punct);
        self.at += usize::from(found);
        found
    }

    fn want(&mut self, punct: Punct) -> Read<()> {
        if self.take(punct) {
            return Ok(());
        }
        Err(self.wrong(&format!("`{}`", punct.text())))
    }

    fn name(&mut self, expected: &str) -> Read<(String, Span)> {
        if self.kind() != TokenKind::Ident {
            return Err(self.wrong(expected));
        }
        let named = (self.text().to_owned(), self.here());
        self.at += 1;
        Ok(named)
    }

    fn string(&mut self, expected: &str) -> Read<(String, Span)> {
        if self.kind() != TokenKind::String {
            return Err(self.wrong(expected));
        }
        let text = mingle_model::parse_json(self.text().as_bytes()).ok();
        let text = text.and_then(|json| json.as_str().map(str::to_owned));
        let text = text.ok_or_else(|| self.wrong("a text without special escapes"))?;
        let span = self.here();
        self.at += 1;
        Ok((text, span))
    }

    fn test(&mut self) -> Read<Test> {
        if !self.take_word("test") {
            return Err(self.wrong("`test \"NAME\" { … }`"));
        }
        let (name, _) = self.string("the name of the test, in quotes")?;
        let (mut crashes, mut seeds) = (false, None);
        loop {
            if self.take_word("crash") {
                if !self.take_word("everywhere") {
                    return Err(self.wrong("`everywhere`"));
                }
                crashes = true;
            } else if self.take_word("seeds") {
                let number = self.text().replace('_', "").parse::<u64>().ok();
                let number = number.filter(|number| (1..=100_000).contains(number));
                seeds = Some(number.ok_or_else(|| self.wrong("a number of seeds, 1 to 100000"))?);
                self.at += 1;
            } else {
                break;
            }
        }
        self.want(Punct::LeftBrace)?;
        let mut body = Vec::new();
        while !self.take(Punct::RightBrace) {
            body.push(self.statement()?);
        }
        Ok(Test { name, crashes, seeds, body })
    }

    fn statement(&mut self) -> Read<Statement> {
        let is_call = self.kind_at(self.at + 1) == TokenKind::Punct(Punct::LeftParen);
        if is_call {
            return Ok(Statement::Step(self.step()?));
        }
        if self.take_word("client") {
            let (name, span) = self.name("the name of the client")?;
            let at =
                if self.take_word("at") { Some(self.name("the name of a replica")?) } else { None };
            self.want(Punct::Semicolon)?;
            return Ok(Statement::Client { name, at, span });
        }
        if self.take_word("together") {
            self.want(Punct::LeftBrace)?;
            let mut steps = Vec::new();
            while !self.take(Punct::RightBrace) {
                let step = self.step()?;
                if !matches!(step.action, Action::Call { .. }) {
                    let title = "only calls run together";
                    let label = "an expectation belongs after the block; `let a = try f();` keeps how a call ended";
                    return Err(Diagnostic::new(Code::M0001, title, step.span, label));
                }
                steps.push(step);
            }
            return Ok(Statement::Together(steps));
        }
        if self.take_word("wait") {
            let time = self.duration()?;
            self.want(Punct::Semicolon)?;
            return Ok(Statement::Wait(time));
        }
        let span = self.here();
        if self.take_word("settle") {
            self.want(Punct::Semicolon)?;
            return Ok(Statement::Settle(span));
        }
        Ok(Statement::Step(self.step()?))
    }

    /// Reads a duration, such as `5min` or `100 ms`.
    fn duration(&mut self) -> Read<Duration> {
        let mut text = self.text().to_owned();
        let has_unit = text.ends_with(|last: char| last.is_alphabetic());
        let taken = if has_unit { 1 } else { 2 };
        if !has_unit {
            text.push_str(self.text_at(self.at + 1));
        }
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
        let number = text[..digits].replace('_', "").parse::<u64>().ok();
        let millis = match &text[digits..] {
            "ms" => Some(1),
            "s" => Some(1_000),
            "min" => Some(60_000),
            "h" => Some(3_600_000),
            _ => None,
        };
        let total = number.zip(millis).and_then(|(number, unit)| number.checked_mul(unit));
        // A hundred days: sweeps and leases pass in virtual time too.
        let total = total.filter(|millis| *millis <= 8_640_000_000);
        let total =
            total.ok_or_else(|| self.wrong("a time such as `100ms`, `5s`, `2min` or `1h`"))?;
        self.at += taken;
        Ok(Duration::from_millis(total))
    }

    fn step(&mut self) -> Read<Step> {
        let client = if self.take_word("as") {
            let client = self.name("the name of a client")?;
            self.want(Punct::Colon)?;
            Some(client)
        } else {
            None
        };
        let start = self.at;
        let action = self.action()?;
        let span = self.since(start);
        self.want(Punct::Semicolon)?;
        Ok(Step { client, action, span })
    }

    fn action(&mut self) -> Read<Action> {
        let is_call = |reader: &Self, at: usize| {
            reader.kind_at(at) == TokenKind::Ident
                && reader.kind_at(at + 1) == TokenKind::Punct(Punct::LeftParen)
        };
        if self.kind() == TokenKind::Keyword(Keyword::Let) {
            self.at += 1;
            let bound = self.name("a name for the result")?;
            self.want(Punct::Assign)?;
            let attempt = self.take_try();
            return Ok(Action::Call { bound: Some(bound), attempt, call: self.call()? });
        }
        if self.take_word("expect") {
            if !is_call(self, self.at) {
                return Ok(Action::Expect(self.expression(&[])?));
            }
            return self.expected_call();
        }
        let attempt = self.take_try();
        if attempt || is_call(self, self.at) {
            return Ok(Action::Call { bound: None, attempt, call: self.call()? });
        }
        Err(self.wrong(
            "a call, `let`, `try`, `expect`, `together`, `client`, `as`, `wait` or `settle`",
        ))
    }

    /// Reads `CALL`, `CALL fails CODE` or `CALL == VALUE`, or an expression that begins like a call.
    fn expected_call(&mut self) -> Read<Action> {
        let start = self.at;
        let call = self.call()?;
        let wanted = if self.take_word("fails") {
            let code = match self.kind() {
                TokenKind::Ident => Some(self.name("a code")?),
                TokenKind::String => Some(self.string("a code")?),
                _ => None,
            };
            Wanted::Fails(code)
        } else if self.take(Punct::Equal) {
            Wanted::Equal(self.expression(&[])?)
        } else if self.kind() == TokenKind::Punct(Punct::Semicolon) {
            Wanted::Succeeds
        } else {
            self.at = start;
            return Ok(Action::Expect(self.expression(&[])?));
        };
        let whole = Expression { tokens: start..self.at };
        Ok(Action::ExpectCall { call, wanted, whole })
    }

    fn take_try(&mut self) -> bool {
        let is_name = self.kind_at(self.at + 1) == TokenKind::Punct(Punct::LeftParen);
        !is_name && self.take_word("try")
    }

    fn call(&mut self) -> Read<CallText> {
        let (transaction, span) = self.name("the name of a transaction")?;
        self.want(Punct::LeftParen)?;
        let mut arguments = Vec::new();
        while !self.take(Punct::RightParen) {
            let is_named = self.kind() == TokenKind::Ident
                && self.kind_at(self.at + 1) == TokenKind::Punct(Punct::Colon);
            let name = if is_named {
                let name = self.name("the name of a parameter")?;
                self.at += 1;
                Some(name)
            } else {
                None
            };
            arguments.push((name, self.expression(&[Punct::Comma, Punct::RightParen])?));
            if !self.take(Punct::Comma) && self.kind() != TokenKind::Punct(Punct::RightParen) {
                return Err(self.wrong("`,` or `)`"));
            }
        }
        Ok(CallText { transaction, span, arguments })
    }

    /// Takes the tokens up to a `;`, or one of `ends`, outside brackets.
    fn expression(&mut self, ends: &[Punct]) -> Read<Expression> {
        let (start, mut open) = (self.at, Vec::new());
        loop {
            match self.kind() {
                TokenKind::End => break,
                TokenKind::Punct(punct) => {
                    if open.is_empty() && ends.contains(&punct) {
                        break;
                    }
                    // Within braces it may be a part of the expression.
                    if punct == Punct::Semicolon && open.last() != Some(&Punct::RightBrace) {
                        break;
                    }
                    match punct {
                        Punct::LeftBrace => open.push(Punct::RightBrace),
                        Punct::LeftParen => open.push(Punct::RightParen),
                        Punct::LeftBracket => open.push(Punct::RightBracket),
                        Punct::RightBrace | Punct::RightParen | Punct::RightBracket => {
                            let opened = open.pop();
                            if opened != Some(punct) {
                                break;
                            }
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        if self.at == start {
            return Err(self.wrong("an expression"));
        }
        if let Some(missing) = open.last() {
            return Err(self.wrong(&format!("`{}`", missing.text())));
        }
        Ok(Expression { tokens: start..self.at })
    }
}
