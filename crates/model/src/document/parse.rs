//! The parser of JSON (RFC 8259) that loses nothing.

use std::collections::BTreeSet;
use std::fmt;

use super::tree::Tree;
use crate::limits::DECODED_DEPTH_MAX;

/// An error for a text that is not JSON, or has a member twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeError {
    /// The expected and the found text.
    pub message: String,
    /// The line of the error, from 1.
    pub line: usize,
    /// The column of the error, in bytes from 1.
    pub column: usize,
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {} column {}", self.message, self.line, self.column)
    }
}

impl std::error::Error for TreeError {}

impl Tree {
    /// Reads a JSON text.
    ///
    /// # Errors
    ///
    /// If the text is not JSON, an object in it has two members of one name, or it nests more than 256 deep.
    pub fn parse(text: &[u8]) -> Result<Self, TreeError> {
        let found = match std::str::from_utf8(text) {
            Ok(text) => {
                let mut parser = Parser { text, at: 0 };
                parser.whole().map_err(|message| (parser.at, message))
            }
            Err(error) => Err((error.valid_up_to(), "expected UTF-8, found other bytes".into())),
        };
        found.map_err(|(at, message)| {
            let before = &text[..at];
            let line = before.split(|byte| *byte == b'\n').count();
            let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            TreeError { message, line, column: at - start + 1 }
        })
    }
}

/// The longest member name that an error shows whole, in characters.
const SHOWN_CHARS_MAX: usize = 40;

struct Parser<'a> {
    text: &'a str,
    /// The number of bytes that are read.
    at: usize,
}

impl Parser<'_> {
    fn whole(&mut self) -> Result<Tree, String> {
        let tree = self.value(0)?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.wrong("the end"));
        }
        Ok(tree)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn wrong(&self, expected: &str) -> String {
        // The place may be within a character only after an error of an escape, which is ASCII.
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(found) => format!("expected {expected}, found {found:?}"),
            None => format!("expected {expected}, found the end"),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Tree, String> {
        self.skip_space();
        match self.peek() {
            Some(b'{' | b'[') if depth == DECODED_DEPTH_MAX => {
                Err(format!("JSON nests at most {DECODED_DEPTH_MAX} deep"))
            }
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Tree::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.word("null", Tree::Null),
            Some(b't') => self.word("true", Tree::Bool(true)),
            Some(b'f') => self.word("false", Tree::Bool(false)),
            _ => Err(self.wrong("a JSON value")),
        }
    }

    fn word(&mut self, word: &str, tree: Tree) -> Result<Tree, String> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.wrong("a JSON value"));
        }
        self.at += word.len();
        Ok(tree)
    }

    fn list(&mut self, depth: usize) -> Result<Tree, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.eat(b']') {
            return Ok(Tree::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.eat(b']') {
                return Ok(Tree::List(items));
            }
            if !self.eat(b',') {
                return Err(self.wrong("`,` or `]`"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Tree, String> {
        self.at += 1;
        let mut members = Vec::new();
        let mut names = BTreeSet::new();
        self.skip_space();
        if self.eat(b'}') {
            return Ok(Tree::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a member's name in quotes"));
            }
            let name = self.string()?;
            if is_known(&members, &mut names, &name) {
                return Err(format!("the member `{}` is there twice", cut(&name)));
            }
            self.skip_space();
            if !self.eat(b':') {
                return Err(self.wrong("`:`"));
            }
            let value = self.value(depth + 1)?;
            members.push((name, value));
            self.skip_space();
            if self.eat(b'}') {
                return Ok(Tree::Object(members));
            }
            if !self.eat(b',') {
                return Err(self.wrong("`,` or `}`"));
            }
        }
    }

    fn digits(&mut self) -> Result<(), String> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.wrong("a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Tree, String> {
        let start = self.at;
        self.eat(b'-');
        if self.eat(b'0') {
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err("a number begins with no 0 but that before its point".into());
            }
        } else {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        Ok(Tree::Number(self.text[start..self.at].into()))
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut found = String::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
                self.at += 1;
            }
            found.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(found);
                }
                Some(b'\\') => {
                    self.at += 1;
                    found.push(self.escape()?);
                }
                _ => return Err(self.wrong("`\"` or a character that needs no escape")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let found = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.wrong("an escape of JSON")),
        };
        self.at += 1;
        Ok(found)
    }

    /// Reads what follows `\u`, and a second escape if the first is one half of a character.
    fn unicode(&mut self) -> Result<char, String> {
        let lone = || "an escape is one half of a surrogate pair, without the other".to_owned();
        let first = self.hex()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).ok_or_else(lone);
        }
        if first >= 0xdc00 || !self.eat(b'\\') || !self.eat(b'u') {
            return Err(lone());
        }
        let second = self.hex()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(lone());
        }
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or_else(lone)
    }

    fn hex(&mut self) -> Result<u32, String> {
        let mut number = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let digit = digit.ok_or_else(|| self.wrong("four hexadecimal digits"))?;
            number = number * 16 + digit;
            self.at += 1;
        }
        Ok(number)
    }
}

/// Objects with more members than this have a set of their names while they are read.
const MEMBERS_FEW: usize = 16;

/// True if an object has a member of this name; else notes the name.
fn is_known(members: &[(String, Tree)], names: &mut BTreeSet<String>, name: &str) -> bool {
    if members.len() < MEMBERS_FEW {
        return members.iter().any(|(known, _)| known == name);
    }
    if names.is_empty() {
        names.extend(members.iter().map(|(known, _)| known.clone()));
    }
    !names.insert(name.to_owned())
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
