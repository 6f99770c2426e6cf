//! From text to tokens. The lexer never fails: text that is no token becomes [`TokenKind::Bad`].

use super::token::{BadToken, Keyword, Punct, Source, Token, TokenKind, Trivia};

/// True if a line ends at this byte: at `\n`, at `\r\n`, and at `\r` alone.
fn ends_line(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Cuts `text` into tokens.
///
/// # Examples
///
/// ```
/// use mingle_lang::syntax::{TokenKind, lex};
///
/// let source = lex("let x = 1; // one");
/// assert_eq!(source.tokens.len(), 6);
/// assert_eq!(source.tokens[1].kind, TokenKind::Ident);
/// assert_eq!(source.trivia.len(), 1);
/// ```
///
/// # Panics
///
/// When the text is longer than 4 GiB.
pub fn lex(text: impl Into<String>) -> Source {
    let text = text.into();
    u32::try_from(text.len()).expect("a program is shorter than 4 GiB");
    let mut lexer = Lexer {
        bytes: text.as_bytes(),
        text: &text,
        at: 0,
        tokens: Vec::with_capacity(text.len() / 5 + 1),
        trivia: Vec::new(),
    };
    lexer.run();
    let (tokens, trivia) = (lexer.tokens, lexer.trivia);
    Source { text, tokens, trivia, files: Vec::new() }
}

struct Lexer<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
    trivia: Vec<Trivia>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        loop {
            self.skip_blanks();
            let start = self.at;
            let Some(&byte) = self.bytes.get(self.at) else {
                self.push(TokenKind::End, start);
                return;
            };
            let kind = match byte {
                b'b' if self.peek(1) == Some(b'"') => {
                    self.at += 1;
                    self.string(TokenKind::Bytes)
                }
                b'"' => self.string(TokenKind::String),
                b'0'..=b'9' => self.number(),
                b'_' | b'a'..=b'z' | b'A'..=b'Z' => self.word(),
                b'/' if self.peek(1) == Some(b'*') => self.block_comment(),
                b'#' => self.hash(),
                _ if !byte.is_ascii() && self.starts_name() => self.word(),
                _ => self.punct(),
            };
            self.push(kind, start);
        }
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        // A run of characters that are no tokens is one mistake, not a mistake for each character.
        if let (TokenKind::Bad(BadToken::Character), Some(last)) = (kind, self.tokens.last_mut())
            && last.kind == kind
            && last.end as usize == start
        {
            last.end = self.at as u32;
            return;
        }
        self.tokens.push(Token { kind, start: start as u32, end: self.at as u32 });
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek(0) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'/') if self.peek(1) == Some(b'/') => self.comment(),
                Some(0xEF) if self.at == 0 && self.text.starts_with('\u{feff}') => self.at = 3,
                _ => return,
            }
        }
    }

    fn comment(&mut self) {
        let start = self.at;
        let rest = &self.bytes[start..];
        let length = rest.iter().position(|byte| ends_line(*byte)).unwrap_or(rest.len());
        self.at = start + length;
        let end = start + self.text[start..self.at].trim_end().len();
        let is_doc = rest.starts_with(b"///") && rest.get(3) != Some(&b'/');
        let before = self.tokens.len() as u32;
        self.trivia.push(Trivia { before, is_doc, start: start as u32, end: end as u32 });
    }

    fn block_comment(&mut self) -> TokenKind {
        let close = self.text[self.at + 2..].find("*/");
        self.at = close.map_or(self.bytes.len(), |offset| self.at + 2 + offset + 2);
        TokenKind::Bad(BadToken::BlockComment)
    }

    fn starts_name(&self) -> bool {
        self.text[self.at..].chars().next().is_some_and(char::is_alphabetic)
    }

    fn word(&mut self) -> TokenKind {
        let rest = &self.text[self.at..];
        let ascii = rest.bytes().position(|byte| !(byte.is_ascii_alphanumeric() || byte == b'_'));
        let length = match ascii {
            Some(at) if rest.as_bytes()[at].is_ascii() => at,
            None => rest.len(),
            Some(_) => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
            }
        };
        self.at += length;
        Keyword::from_text(&rest[..length]).map_or(TokenKind::Ident, TokenKind::Keyword)
    }

    fn digits(&mut self) {
        while matches!(self.peek(0), Some(b'0'..=b'9' | b'_')) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> TokenKind {
        let start = self.at;
        self.digits();
        let mut kind = TokenKind::Int;
        if self.peek(0) == Some(b'.') && matches!(self.peek(1), Some(b'0'..=b'9')) {
            kind = TokenKind::Float;
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
            if matches!(self.peek(1 + sign), Some(b'0'..=b'9')) {
                kind = TokenKind::Float;
                self.at += 1 + sign;
                self.digits();
            }
        }
        let suffix = self.at;
        while matches!(self.peek(0), Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        if kind == TokenKind::Int && matches!(&self.text[suffix..self.at], "ms" | "s") {
            return TokenKind::Duration;
        }
        let digits: String = self.text[start..suffix].replace('_', "");
        // 2^63 itself is accepted here because it may be negated; the parser checks that it is.
        let fits =
            kind == TokenKind::Float || digits.parse::<u64>().is_ok_and(|value| value <= 1 << 63);
        if suffix != self.at || !fits {
            return TokenKind::Bad(BadToken::Number);
        }
        kind
    }

    fn string(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        let mut good = true;
        loop {
            match self.peek(0) {
                None => return TokenKind::Bad(BadToken::UnterminatedString),
                // Cut at the line's end, so that the next line is lexed on its own.
                Some(byte) if ends_line(byte) => {
                    return TokenKind::Bad(BadToken::UnterminatedString);
                }
                Some(b'"') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => good &= self.escape(kind),
                Some(byte) => {
                    good &= byte != 0 && (kind == TokenKind::String || byte.is_ascii());
                    self.at += 1;
                }
            }
        }
        if good { kind } else { TokenKind::Bad(BadToken::Escape) }
    }

    /// Skips an escape. Returns true if it is a valid one.
    fn escape(&mut self, kind: TokenKind) -> bool {
        let escape = self.peek(1);
        self.at += 1 + usize::from(escape.is_some_and(|byte| !ends_line(byte)));
        match escape {
            Some(b'n' | b't' | b'r' | b'\\' | b'"') => true,
            Some(b'0') => kind == TokenKind::Bytes,
            Some(b'x') if kind == TokenKind::Bytes => {
                let digits = &self.bytes[self.at..self.bytes.len().min(self.at + 2)];
                let good = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
                self.at += if good { 2 } else { 0 };
                good
            }
            Some(b'u') if kind == TokenKind::String => {
                let rest = &self.text[self.at..];
                // A brace and six digits: looking further would read some texts many times.
                let mut near = rest.bytes().take(8);
                let Some(close) =
                    near.position(|byte| byte == b'}').filter(|_| rest.starts_with('{'))
                else {
                    return false;
                };
                self.at += close + 1;
                unicode_escape(&rest[1..close]).is_some()
            }
            Some(byte) if !byte.is_ascii() => {
                // Skip the rest of the character.
                while self.peek(0).is_some_and(|byte| byte & 0xC0 == 0x80) {
                    self.at += 1;
                }
                false
            }
            _ => false,
        }
    }

    /// Reads a comment or an attribute of another language.
    fn hash(&mut self) -> TokenKind {
        let rest = &self.text[self.at..];
        let line = rest.split(['\n', '\r']).next().unwrap_or_default();
        let is_attribute = line.starts_with("#[") || line.starts_with("#![");
        let close = line.rfind(']').filter(|_| is_attribute);
        self.at += close.map_or(line.trim_end().len(), |close| close + 1);
        TokenKind::Bad(if close.is_some() { BadToken::Attribute } else { BadToken::HashComment })
    }

    /// Reads a string in quotes of another kind. Returns none unless it ends on its line.
    fn other_quotes(&mut self, open: char) -> Option<TokenKind> {
        let close = super::lookalike::closing_quote(open)?;
        let rest = &self.text[self.at + open.len_utf8()..];
        let line = rest.split(['\n', '\r']).next().unwrap_or_default();
        let mut escaped = false;
        let end = line.char_indices().find(|(_, found)| {
            let is_end = close.contains(found) && !escaped;
            escaped = *found == '\\' && !escaped;
            is_end
        });
        let (end, found) = end?;
        self.at += open.len_utf8() + end + found.len_utf8();
        Some(TokenKind::Bad(BadToken::Quotes))
    }

    fn punct(&mut self) -> TokenKind {
        if let Some((punct, length)) = super::lookalike::punct(&self.text[self.at..]) {
            self.at += length;
            return TokenKind::Bad(BadToken::Lookalike(punct));
        }
        for length in [2, 1] {
            if let Some(text) = self.text.get(self.at..self.at + length)
                && let Some(punct) = Punct::from_text(text)
            {
                self.at += length;
                return TokenKind::Punct(punct);
            }
        }
        let character = self.text[self.at..].chars().next().expect("not at the end");
        if let Some(quotes) = self.other_quotes(character) {
            return quotes;
        }
        let rest = &self.text[self.at..];
        let blanks = rest.find(|c| !super::lookalike::is_blank(c)).unwrap_or(rest.len());
        if blanks > 0 {
            self.at += blanks;
            return TokenKind::Bad(BadToken::Blank);
        }
        self.at += character.len_utf8();
        TokenKind::Bad(BadToken::Character)
    }
}

fn unicode_escape(digits: &str) -> Option<char> {
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    char::from_u32(code).filter(|c| *c != '\0')
}

/// Returns the text of a string literal, whose token must be valid.
pub fn string_value(literal: &str) -> String {
    let inner = &literal[1..literal.len() - 1];
    let mut value = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        value.push_str(&rest[..at]);
        let escape = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        match escape {
            b'n' => value.push('\n'),
            b't' => value.push('\t'),
            b'r' => value.push('\r'),
            b'u' => {
                let close = rest.find('}').expect("the lexer saw the brace");
                value.push(unicode_escape(&rest[1..close]).expect("the lexer saw the digits"));
                rest = &rest[close + 1..];
            }
            other => value.push(char::from(other)),
        }
    }
    value.push_str(rest);
    value
}

/// Returns the bytes of a bytes literal, whose token must be valid.
pub fn bytes_value(literal: &str) -> Vec<u8> {
    let mut bytes = literal[2..literal.len() - 1].bytes();
    let mut value = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            value.push(byte);
            continue;
        }
        let mut next = || bytes.next().expect("the lexer saw the escape");
        value.push(match next() {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'0' => 0,
            b'x' => {
                let mut digit =
                    || char::from(next()).to_digit(16).expect("the lexer saw the digits");
                (digit() * 16 + digit()) as u8
            }
            other => other,
        });
    }
    value
}
