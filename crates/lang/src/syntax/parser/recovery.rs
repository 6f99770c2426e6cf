//! Recovery: punctuation that is missing, braces that do not match, and the parts that are skipped
//! after a mistake.

use super::super::token::{BadToken, Keyword, Punct, Span, TokenKind};
use super::{Mistake, Parse, Parser};
use crate::diagnostic::Edit;
use crate::diagnostic::m0001::{Foreign, Syntax};

/// Punctuation that is missing in an item, at one place or many.
pub(super) struct Missing {
    item: u32,
    token: &'static str,
    after: String,
    found: String,
    span: Span,
    edits: Vec<Edit>,
    /// The punctuation that stands in its place.
    instead: Option<&'static str>,
}

impl Parser<'_> {
    /// Returns the token before the current one; odd tokens do not count.
    pub(super) fn before(&self) -> u32 {
        let mut before = self.at.saturating_sub(1);
        for span in self.skipped[..self.next_skipped].iter().rev() {
            if span.start <= before && before < span.end {
                before = span.start.saturating_sub(1);
            }
        }
        before
    }

    /// True if the token before this one may have swallowed the punctuation that is missing: it is
    /// a string or comment without an end.
    pub(super) fn is_swallowed(&self) -> bool {
        let before = self.at.checked_sub(1).map(|before| self.source.tokens[before as usize].kind);
        match before {
            Some(TokenKind::Bad(BadToken::UnterminatedString)) => true,
            Some(TokenKind::Bad(BadToken::BlockComment)) => {
                let text = self.source.token_text(self.at - 1);
                self.kind() == TokenKind::End && (text.len() < 4 || !text.ends_with("*/"))
            }
            Some(TokenKind::Bad(BadToken::Character)) => {
                !self.source.token_text(self.at - 1).is_ascii()
            }
            _ => false,
        }
    }

    /// True if a line ends before the current token.
    pub(super) fn on_new_line(&self) -> bool {
        self.is_first_of_line(self.at)
    }

    pub(super) fn is_first_of_line(&self, token: u32) -> bool {
        let start = self.source.tokens[token as usize].start as usize;
        let before =
            token.checked_sub(1).map_or(0, |before| self.source.tokens[before as usize].end);
        token == 0 || self.source.text[before as usize..start].contains(['\n', '\r'])
    }

    /// True if an opening brace follows on this line.
    pub(super) fn brace_on_line(&self) -> bool {
        let rest = self.at..self.end + 1;
        rest.take_while(|at| *at == self.at || !self.is_first_of_line(*at))
            .any(|at| self.kind_at(at) == TokenKind::Punct(Punct::LeftBrace))
    }

    /// Returns the blanks before the line of a token.
    pub(super) fn indent_of(&self, token: u32) -> &str {
        let start = self.source.tokens[token as usize].start as usize;
        let line = self.source.text[..start].rfind(['\n', '\r']).map_or(0, |end| end + 1);
        let before = &self.source.text[line..];
        &before[..before.len() - before.trim_start_matches([' ', '\t']).len()]
    }

    /// True if two tokens stand side by side.
    pub(super) fn is_adjacent(&self, token: u32) -> bool {
        let next = self.source.tokens.get(token as usize + 1);
        next.is_some_and(|next| next.start == self.source.tokens[token as usize].end)
    }

    /// Returns the edit that writes `text` after a token.
    pub(super) fn insert_after(&self, token: u32, text: &str) -> Edit {
        let span = Span::token(token);
        Edit { span, text: format!("{}{text}", self.source.token_text(token)) }
    }

    /// Returns the edit that removes these tokens, and the blanks after them.
    pub(super) fn remove(&self, span: Span) -> Edit {
        let (from, to) = (self.source.bytes(span).end, span.end);
        let next = self.source.tokens.get(to as usize).map_or(from, |next| next.start as usize);
        let is_same_line = next > from && !self.source.text[from..next].contains(['\n', '\r', '/']);
        if is_same_line && self.kind_at(to) != TokenKind::End {
            let text = self.source.token_text(to).to_owned();
            return Edit { span: Span { start: span.start, end: to + 1 }, text };
        }
        Edit { span, text: String::new() }
    }

    pub(super) fn foreign(&mut self, foreign: Foreign, span: Span, edits: Vec<Edit>) {
        self.report(Syntax::Foreign { foreign, edits }, span);
    }

    /// Reports syntax of another language that is not read further.
    pub(super) fn foreign_mistake(
        &mut self,
        foreign: Foreign,
        span: Span,
        edits: Vec<Edit>,
    ) -> Mistake {
        self.foreign(foreign, span, edits);
        Mistake
    }

    /// Remembers that punctuation is missing after the token before this one.
    pub(super) fn miss(&mut self, token: &'static str, after: &str, edit: Option<Edit>) {
        let before = self.before();
        if self.is_swallowed() || self.last_mistake == Some(self.at) {
            return;
        }
        self.last_mistake = Some(self.at);
        let (item, found) = (self.item_start, self.found());
        let known = |missing: &&mut Missing| {
            missing.item == item && missing.token == token && missing.instead.is_none()
        };
        // The same punctuation is often missing in all of an item.
        if let Some(missing) = self.missing.iter_mut().rev().find(known)
            && let Some(edit) = &edit
            && !missing.edits.is_empty()
        {
            missing.edits.push(edit.clone());
            return;
        }
        let (after, span) = (after.to_owned(), Span::token(before));
        let edits = edit.into_iter().collect();
        self.missing.push(Missing { item, token, after, found, span, edits, instead: None });
    }

    /// Reads other punctuation than is expected here. Returns true if it stands here.
    pub(super) fn eat_instead(&mut self, wrong: Punct, right: Punct) -> bool {
        let (span, item) = (self.here(), self.item_start);
        if !self.eat(wrong) {
            return false;
        }
        let (found, token) = (wrong.text(), right.text());
        let edit = Edit { span, text: token.to_owned() };
        let known = |missing: &&mut Missing| {
            missing.item == item && missing.token == token && missing.instead == Some(found)
        };
        if let Some(missing) = self.missing.iter_mut().rev().find(known) {
            missing.edits.push(edit);
        } else {
            let (after, found_text) = (String::new(), String::new());
            let (edits, instead) = (vec![edit], Some(found));
            self.missing.push(Missing {
                item,
                token,
                after,
                found: found_text,
                span,
                edits,
                instead,
            });
        }
        true
    }

    /// Reports odd tokens, except those in parts that were skipped after another mistake.
    pub(super) fn report_odd(&mut self, mistakes: Vec<(Syntax, Span)>) {
        self.torn.clear();
        if self.mistakes == 0
            && let Some((syntax, span)) = mistakes.first()
        {
            // Mistakes that follow from this one were left out.
            self.last_mistake = None;
            self.report(syntax.clone(), *span);
        }
        for (syntax, span) in mistakes {
            if !self.given_up.iter().any(|part| part.contains(span)) {
                self.last_mistake = None;
                self.report(syntax, span);
            }
        }
    }

    pub(super) fn report_missing(&mut self) {
        for missing in std::mem::take(&mut self.missing) {
            let Missing { token, after, found, span, edits, instead, .. } = missing;
            self.last_mistake = None;
            if let Some(found) = instead {
                self.foreign(Foreign::Separator { found, means: token }, span, edits);
            } else {
                self.report(Syntax::Missing { token, after, found, edits }, span);
            }
        }
    }

    /// Expects closing or separating punctuation. If it is missing where something else starts,
    /// reports that and continues as if it were there.
    pub(super) fn close(&mut self, punct: Punct, after: &str) -> Parse<()> {
        self.pass_strays();
        if self.is(Punct::RightBrace)
            && self.kind_ahead(1) == TokenKind::Punct(punct)
            && !self.at_line_end()
        {
            self.pass_stray(punct);
        }
        if self.eat(punct) || self.is_swallowed() {
            return Ok(());
        }
        let is_new = self.on_new_line() || self.starts_anew();
        if is_new || self.starts_assignment() {
            let edit = self.insert_after(self.before(), punct.text());
            self.miss(punct.text(), after, Some(edit));
            return Ok(());
        }
        Err(self.expected(format!("`{}` after {after}", punct.text())))
    }

    /// True if the current token cannot continue an expression or a type.
    pub(super) fn starts_anew(&self) -> bool {
        let ends = self.is(Punct::RightBrace) || self.kind() == TokenKind::End;
        let is_if = self.is_keyword(Keyword::If) || self.is_keyword(Keyword::Match);
        ends || is_if || self.at_item() || self.at_statement()
    }

    /// True if a field or operation of a variable stands here: `a.b = …`.
    fn starts_assignment(&self) -> bool {
        let follows = matches!(
            self.kind_at(self.before()),
            TokenKind::Punct(Punct::RightParen | Punct::RightBracket)
        );
        self.kind() == TokenKind::Ident
            && !follows
            && matches!(
                self.kind_ahead(1),
                TokenKind::Punct(
                    Punct::Dot | Punct::Assign | Punct::PlusAssign | Punct::MinusAssign
                )
            )
    }

    /// Expects punctuation; if it is missing before something that may follow it, reports that and
    /// continues as if it were there.
    pub(super) fn expect_before(
        &mut self,
        punct: Punct,
        after: &str,
        follows: impl FnOnce(TokenKind) -> bool,
    ) -> Parse<()> {
        if self.eat(punct) {
            return Ok(());
        }
        if follows(self.kind()) {
            let gap = if punct == Punct::Colon { "" } else { " " };
            let edit = self.insert_after(self.before(), &format!("{gap}{}", punct.text()));
            self.miss(punct.text(), after, Some(edit));
            return Ok(());
        }
        Err(self.expected(format!("`{}`", punct.text())))
    }

    /// Expects the bracket that closes the one at `open`.
    pub(super) fn close_bracket(&mut self, open: u32, close: Punct) -> Parse<()> {
        self.pass_stray(close);
        if self.eat(close) || self.is_swallowed() {
            return Ok(());
        }
        let ends = matches!(
            self.kind(),
            TokenKind::Punct(
                Punct::Semicolon
                    | Punct::RightBrace
                    | Punct::RightParen
                    | Punct::RightBracket
                    | Punct::Arrow
                    | Punct::FatArrow
                    | Punct::Assign
            ) | TokenKind::Keyword(Keyword::As | Keyword::Else | Keyword::In | Keyword::Because)
        );
        let opens_block = self.is(Punct::LeftBrace) && self.at_line_end();
        if ends || opens_block || self.starts_anew() || self.on_new_line() {
            self.is_doubtful = true;
            let open_text = if close == Punct::RightParen { "(" } else { "[" };
            self.unclosed((open, open_text), (self.before(), close.text()), close.text());
            return Ok(());
        }
        Err(self.expected(format!("`,` or `{}`", close.text())))
    }

    /// Passes over closing brackets where none can stand.
    pub(super) fn pass_strays(&mut self) {
        while let TokenKind::Punct(stray @ (Punct::RightParen | Punct::RightBracket)) = self.kind()
        {
            let span = self.here();
            let edits = vec![Edit { span, text: String::new() }];
            self.foreign(Foreign::Stray(stray.text()), span, edits);
            self.is_doubtful = true;
            self.advance();
        }
    }

    /// Passes over a closing bracket that stands before the one that is expected.
    fn pass_stray(&mut self, close: Punct) {
        let TokenKind::Punct(found @ (Punct::RightParen | Punct::RightBracket | Punct::RightBrace)) =
            self.kind()
        else {
            return;
        };
        if found == close || self.kind_ahead(1) != TokenKind::Punct(close) {
            return;
        }
        if close == Punct::RightBrace && self.at_line_end() {
            return;
        }
        let span = self.here();
        self.foreign(Foreign::Stray(found.text()), span, vec![Edit { span, text: String::new() }]);
        self.advance();
    }

    /// True if the next token stands on another line.
    fn at_line_end(&self) -> bool {
        self.is_first_of_line(self.ahead(1))
    }

    /// Reports a bracket that is open, and the token after which `text` closes it.
    fn unclosed(
        &mut self,
        (open, open_text): (u32, &'static str),
        (place, close): (u32, &'static str),
        text: &str,
    ) {
        if self.last_mistake == Some(self.at) {
            return;
        }
        let edits = vec![self.insert_after(place, text)];
        let place = Span::token(place);
        self.report(Syntax::Unclosed { open: open_text, close, place, edits }, Span::token(open));
        // A complaint about the token that stands here instead is about the same mistake.
        self.last_mistake = Some(self.at);
    }

    /// Expects an opening brace. If it is missing although its closing one is there, continues as if
    /// it were there.
    pub(super) fn open_brace(&mut self, after: &str) -> Parse<()> {
        let at = self.at;
        if self.eat(Punct::LeftBrace) {
            self.open_braces.push(at);
            self.pass_second_brace();
            return Ok(());
        }
        if self.closing_braces() > self.open_braces.len() {
            let edit = self.insert_after(self.before(), " {");
            self.miss("{", after, Some(edit));
            self.open_braces.push(self.before());
            return Ok(());
        }
        Err(self.expected("`{`".into()))
    }

    /// Passes over an opening brace that stands twice.
    fn pass_second_brace(&mut self) {
        while self.is(Punct::LeftBrace) && self.closing_braces_after(1) <= self.open_braces.len() {
            let span = self.here();
            self.foreign(Foreign::Twice("{".into()), span, vec![self.remove(span)]);
            self.advance();
        }
    }

    /// Passes over a word that stands twice before a name.
    pub(super) fn pass_second_word(&mut self, word: &str) {
        if self.is_word(word) && self.kind_ahead(1) == TokenKind::Ident {
            let span = self.here();
            self.foreign(Foreign::Twice(word.to_owned()), span, vec![self.remove(span)]);
            self.advance();
        }
    }

    /// Returns the number of closing braces up to the next item that belong to no opening one after
    /// the current token.
    pub(super) fn closing_braces(&self) -> usize {
        self.closing_braces_after(0)
    }

    pub(super) fn closing_braces_after(&self, ahead: u32) -> usize {
        let (mut open, mut closing, mut at) = (0, 0, self.at + ahead);
        while self.kind_at(at) != TokenKind::End && !(at > self.at && self.item_at(at)) {
            match self.kind_at(at) {
                TokenKind::Punct(Punct::LeftBrace) => open += 1,
                TokenKind::Punct(Punct::RightBrace) if open > 0 => open -= 1,
                TokenKind::Punct(Punct::RightBrace) => closing += 1,
                _ => {}
            }
            at += 1;
        }
        closing
    }

    /// Expects the closing brace of the innermost open one. If it is missing, points at the brace
    /// that is open, and continues as if it were closed.
    pub(super) fn close_brace(&mut self) {
        let open = self.open_braces.pop();
        if self.eat(Punct::RightBrace) || self.is_swallowed() {
            return;
        }
        let Some(open) = open else { return };
        let (open, place) = self.blamed_brace(open);
        let close = format!("\n{}}}", self.indent_of(open));
        self.is_unbalanced = true;
        self.unclosed((open, "{"), (place, "}"), &close);
    }

    /// Returns the opening brace that lacks its closing one, and the last token inside it, judged by
    /// the layout: a line that is less indented than the brace's line closes some other brace.
    fn blamed_brace(&self, open: u32) -> (u32, u32) {
        let (mut stack, mut blamed) = (Vec::new(), None);
        for at in self.item_start..self.at {
            match self.kind_at(at) {
                TokenKind::Punct(Punct::LeftBrace) => stack.push(at),
                TokenKind::Punct(Punct::RightBrace) => {
                    let Some(opened) = stack.pop() else { continue };
                    let is_outside = self.indent_of(at).len() < self.indent_of(opened).len();
                    if is_outside && self.is_first_of_line(at) && blamed.is_none() {
                        blamed = Some(opened);
                    }
                }
                _ => {}
            }
        }
        let open = blamed.unwrap_or(open);
        let indent = self.indent_of(open).len();
        let outside = (open + 1..self.at)
            .find(|at| self.is_first_of_line(*at) && self.indent_of(*at).len() <= indent);
        (open, outside.map_or_else(|| self.before(), |at| at - 1).max(open))
    }
}
