//! Tokens that are wrong wherever they stand: invisible characters, comments of other languages,
//! other spellings, and tokens that stand twice. They are reported before the parser starts, which
//! then skips them or reads them as the token that is meant.

use super::super::lookalike;
use super::super::token::{BadToken, Keyword, Punct, Source, Span, TokenKind};
use crate::diagnostic::Edit;
use crate::diagnostic::m0001::{Foreign, Syntax};

/// The odd tokens of a program.
#[derive(Debug, Default)]
pub(super) struct Odd {
    /// Runs of tokens that the parser skips, in order.
    pub(super) skipped: Vec<Span>,
    /// The mistakes.
    pub(super) mistakes: Vec<(Syntax, Span)>,
    /// Lines with a string without an end and other strings before it: one of these may be the one
    /// that lacks a quote.
    pub(super) torn: Vec<Span>,
}

impl Odd {
    /// Finds the odd tokens.
    pub(super) fn find(source: &Source) -> Self {
        let mut odd = Self::default();
        let mut blanks: Vec<(char, usize)> = Vec::new();
        let mut at = 0;
        while at < source.tokens.len() as u32 {
            let span = Span::token(at);
            let kind = source.tokens[at as usize].kind;
            let length = match kind {
                TokenKind::Bad(bad) => odd.bad(source, bad, span, &mut blanks),
                TokenKind::Punct(Punct::Minus) => odd.dashes(source, at),
                _ if is_twice(source, at) => {
                    let text = source.token_text(at).to_owned();
                    odd.skip(Foreign::Twice(text), span, "");
                    1
                }
                _ => 1,
            };
            at += length;
        }
        odd
    }

    /// Reports a token that the parser skips; `text` takes its place.
    fn skip(&mut self, foreign: Foreign, span: Span, text: &str) {
        let edits = vec![Edit { span, text: text.to_owned() }];
        self.mistakes.push((Syntax::Foreign { foreign, edits }, span));
        self.skipped.push(span);
    }

    /// Reports a comment. All comments of one kind are one mistake.
    fn comment(&mut self, sign: &'static str, span: Span, text: &str) {
        let edit = Edit { span, text: text.to_owned() };
        self.skipped.push(span);
        let known = self.mistakes.iter_mut().find_map(|(known, _)| match known {
            Syntax::Foreign { foreign: Foreign::Comment(known), edits } if *known == sign => {
                Some(edits)
            }
            _ => None,
        });
        if let Some(edits) = known {
            edits.push(edit);
        } else {
            let foreign = Foreign::Comment(sign);
            self.mistakes.push((Syntax::Foreign { foreign, edits: vec![edit] }, span));
        }
    }

    /// Reports a token that is none of the language. Returns the number of tokens read.
    fn bad(
        &mut self,
        source: &Source,
        bad: BadToken,
        span: Span,
        blanks: &mut Vec<(char, usize)>,
    ) -> u32 {
        let text = source.span_text(span);
        let instead = |text: String| vec![Edit { span, text }];
        let foreign = |foreign, edits| Syntax::Foreign { foreign, edits };
        match bad {
            BadToken::Blank => self.blank(text, span, blanks),
            BadToken::HashComment => {
                let words = text.trim_start_matches('#').trim_start();
                self.comment("#", span, &format!("// {words}"));
            }
            BadToken::Attribute => self.skip(Foreign::Attribute, span, ""),
            BadToken::BlockComment if text.len() < 4 || !text.ends_with("*/") => {
                // The comment has swallowed the rest of the program.
                self.mistakes.push((foreign(Foreign::BlockComment, Vec::new()), span));
                self.skipped.push(span);
            }
            BadToken::BlockComment => {
                self.skip(Foreign::BlockComment, span, &line_comments(source, span));
            }
            BadToken::Lookalike(punct) => {
                let means = punct.text().to_owned();
                let sign = Foreign::Sign { found: text.to_owned(), means: means.clone() };
                self.mistakes.push((foreign(sign, instead(means)), span));
            }
            BadToken::Quotes if text.starts_with('`') && text.contains("${") => {
                let joined = template(text);
                let edits = joined.map(instead).unwrap_or_default();
                self.mistakes.push((foreign(Foreign::Template, edits), span));
            }
            BadToken::Quotes => {
                let edits = instead(lookalike::in_double_quotes(text));
                self.mistakes.push((foreign(Foreign::Quotes, edits), span));
            }
            BadToken::UnterminatedString => self.unterminated(source, text, span),
            BadToken::Escape => self.mistakes.push((Syntax::Escape, span)),
            BadToken::Number => {
                let mended = lookalike::number(text);
                self.mistakes.push((Syntax::Number { text: text.to_owned(), mended }, span));
            }
            BadToken::Character if text.is_ascii() => {}
            BadToken::Character => {
                self.mistakes.push((Syntax::Character { text: text.to_owned() }, span));
                self.skipped.push(span);
            }
        }
        1
    }

    /// Reports an invisible character. All of one kind are one mistake.
    fn blank(&mut self, text: &str, span: Span, blanks: &mut Vec<(char, usize)>) {
        let blank = text.chars().next().unwrap_or(' ');
        let wide = text.chars().filter(|found| found.is_whitespace());
        let edit = Edit { span, text: " ".repeat(wide.count()) };
        self.skipped.push(span);
        let known = blanks.iter().find(|(known, _)| *known == blank).map(|known| known.1);
        if let Some(known) = known {
            if let Syntax::Foreign { edits, .. } = &mut self.mistakes[known].0 {
                edits.push(edit);
            }
        } else {
            blanks.push((blank, self.mistakes.len()));
            let (foreign, edits) = (Foreign::Blank(blank), vec![edit]);
            self.mistakes.push((Syntax::Foreign { foreign, edits }, span));
        }
    }

    /// Reports a string without its closing quote.
    fn unterminated(&mut self, source: &Source, text: &str, span: Span) {
        let line = line_start(source, span.start);
        let is_string = |token: u32| {
            matches!(source.tokens[token as usize].kind, TokenKind::String | TokenKind::Bytes)
        };
        let is_torn = (line..span.start).any(is_string);
        if is_torn {
            self.torn.push(Span { start: line, end: span.end + 1 });
        }
        let mended = (!is_torn).then(|| lookalike::closed(text));
        self.mistakes.push((Syntax::UnterminatedString { mended }, span));
    }

    /// Reads a comment of SQL, if one begins here. Returns the number of tokens read.
    fn dashes(&mut self, source: &Source, at: u32) -> u32 {
        let token = source.tokens[at as usize];
        let next = source.tokens[(at as usize + 1).min(source.tokens.len() - 1)];
        let before = at.checked_sub(1).map(|before| source.tokens[before as usize]);
        let ends_something = before.is_none_or(|before| {
            let ends = matches!(
                before.kind,
                TokenKind::Punct(Punct::Semicolon | Punct::LeftBrace | Punct::RightBrace)
            );
            let comma = before.kind == TokenKind::Punct(Punct::Comma);
            let between = &source.text[before.end as usize..token.start as usize];
            // Among arguments two dashes negate twice.
            ends || (comma && !between.contains('\n') && is_in_braces(source, at))
        });
        if next.kind != TokenKind::Punct(Punct::Minus)
            || next.start != token.end
            || !ends_something
            || !is_comment(source, at)
        {
            return 1;
        }
        let rest = &source.text[token.start as usize..];
        let line = rest.split(['\n', '\r']).next().unwrap_or_default().trim_end();
        let end = token.start as usize + line.len();
        let count = source.tokens[at as usize..]
            .iter()
            .take_while(|token| token.kind != TokenKind::End && (token.start as usize) < end)
            .count() as u32;
        let words = line.trim_start_matches('-').trim_start();
        self.comment("--", Span { start: at, end: at + count }, &format!("// {words}"));
        count
    }
}

/// True if the innermost open bracket before a token is a brace.
fn is_in_braces(source: &Source, token: u32) -> bool {
    let mut closed = 0;
    for token in source.tokens[..token as usize].iter().rev() {
        let TokenKind::Punct(punct) = token.kind else { continue };
        match punct {
            Punct::RightBrace | Punct::RightParen | Punct::RightBracket => closed += 1,
            Punct::LeftBrace | Punct::LeftParen | Punct::LeftBracket if closed > 0 => closed -= 1,
            Punct::LeftBrace => return true,
            Punct::LeftParen | Punct::LeftBracket => return false,
            _ => {}
        }
    }
    false
}

/// Returns the first token of a token's line.
fn line_start(source: &Source, token: u32) -> u32 {
    let ends_line = |token: &u32| {
        let (before, next) =
            (source.tokens[*token as usize - 1].end, source.tokens[*token as usize].start);
        source.text[before as usize..next as usize].contains(['\n', '\r'])
    };
    (1..=token).rev().find(ends_line).unwrap_or(0)
}

/// True if two dashes begin a comment, not `--x;`.
fn is_comment(source: &Source, at: u32) -> bool {
    let token = source.tokens[at as usize];
    let after = source.text[token.end as usize + 1..].chars().next();
    after.is_none_or(|after| after.is_whitespace() || after == '-')
}

/// True if the token before this one is the same, and no program has both.
fn is_twice(source: &Source, at: u32) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    let (first, second) = (source.tokens[before as usize], source.tokens[at as usize]);
    if first.kind != second.kind {
        return false;
    }
    let is_apart = first.end != second.start;
    match second.kind {
        TokenKind::Punct(punct) => match punct {
            Punct::Semicolon | Punct::Comma => true,
            // Side by side these are operators of other languages.
            Punct::Dot
            | Punct::Colon
            | Punct::Plus
            | Punct::Star
            | Punct::Assign
            | Punct::Slash
            | Punct::Less => is_apart,
            Punct::Arrow
            | Punct::FatArrow
            | Punct::PlusAssign
            | Punct::MinusAssign
            | Punct::Percent
            | Punct::Equal
            | Punct::NotEqual
            | Punct::LessEqual
            | Punct::GreaterEqual
            | Punct::And
            | Punct::Or
            | Punct::Coalesce => true,
            _ => false,
        },
        TokenKind::Keyword(keyword) => keyword != Keyword::Some,
        TokenKind::Int
        | TokenKind::Float
        | TokenKind::Duration
        | TokenKind::String
        | TokenKind::Bytes => source.token_text(before) == source.token_text(at),
        TokenKind::Ident => {
            let text = source.token_text(at);
            let is_field = before.checked_sub(1).is_some_and(|before| {
                let kind = source.tokens[before as usize].kind;
                matches!(kind, TokenKind::Punct(Punct::LeftBrace | Punct::Comma))
            });
            let next = source.tokens.get(at as usize + 1).map(|next| next.kind);
            // A field and its value may lack the colon.
            let ends = [Punct::Comma, Punct::RightBrace].map(TokenKind::Punct);
            let lacks_colon = is_field && next.is_some_and(|next| ends.contains(&next));
            text == source.token_text(before) && !may_name(text) && !lacks_colon
        }
        TokenKind::Bad(_) | TokenKind::End => false,
    }
}

/// True if a word of the language may also name the thing that it declares, as in `key key: int`.
fn may_name(word: &str) -> bool {
    super::ITEM_WORDS.contains(&word)
        || matches!(word, "query" | "command" | "key" | "ref" | "between" | "and")
}

/// Returns a block comment as comments that end with their lines.
fn line_comments(source: &Source, span: Span) -> String {
    let bytes = source.bytes(span);
    let text = &source.text[bytes.clone()];
    let line_start = source.text[..bytes.start].rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let before = &source.text[line_start..bytes.start];
    let indent = &before[..before.len() - before.trim_start().len()];
    let inner = text.trim_start_matches("/*").trim_end_matches("*/");
    let lines = inner.lines().map(|line| line.trim().trim_start_matches('*').trim());
    let lines: Vec<String> =
        lines.filter(|line| !line.is_empty()).map(|line| format!("// {line}")).collect();
    let rest = source.text[bytes.end..].split(['\n', '\r']).next().unwrap_or_default();
    let mut comments = lines.join(&format!("\n{indent}"));
    if !rest.trim().is_empty() {
        comments.push('\n');
        comments.push_str(indent);
    }
    comments
}

/// Returns a template as a sum of strings, or none if it is not that simple.
fn template(literal: &str) -> Option<String> {
    let mut rest = literal.strip_prefix('`')?.strip_suffix('`')?;
    let mut parts = Vec::new();
    while let Some(at) = rest.find("${") {
        let close = at + rest[at..].find('}')?;
        let value = rest[at + 2..close].trim();
        if at > 0 {
            parts.push(lookalike::in_double_quotes(&format!("`{}`", &rest[..at])));
        }
        parts.push(format!("string({value})"));
        rest = &rest[close + 1..];
    }
    if !rest.is_empty() {
        parts.push(lookalike::in_double_quotes(&format!("`{rest}`")));
    }
    Some(parts.join(" + "))
}
