//! The tokens of a Rust file, with their places. Comments are not tokens.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or a keyword.
    Word,
    /// A number, a text or a letter.
    Literal,
    Lifetime,
    /// An operator or another sign; the longest match.
    Sign,
    Open,
    Close,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    /// The index of a bracket's partner; for other tokens their own index.
    pub partner: usize,
}

/// A file as tokens.
pub struct Tokens<'a> {
    pub text: &'a str,
    pub all: Vec<Token>,
}

/// Signs of more than one letter, the longest first.
const SIGNS: [&str; 25] = [
    "<<=", ">>=", "...", "..=", "&&", "||", "==", "!=", "<=", ">=", "->", "=>", "::", "..", "+=",
    "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<<", ">>", "#!",
];

impl<'a> Tokens<'a> {
    /// Reads the tokens of a file.
    ///
    /// # Errors
    ///
    /// When a text, a comment or a bracket does not end.
    pub fn read(text: &'a str) -> Result<Self, String> {
        let (mut all, mut open, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(letter) = text[at..].chars().next() {
            let (kind, length) = next(text, at, letter)?;
            let end = at + length;
            let Some(kind) = kind else {
                at = end;
                continue;
            };
            let index = all.len();
            let mut partner = index;
            if kind == Kind::Open {
                open.push(index);
            } else if kind == Kind::Close {
                partner = open.pop().ok_or_else(|| format!("a bracket too many at byte {at}"))?;
                let opened: &mut Token = &mut all[partner];
                opened.partner = index;
            }
            all.push(Token { kind, start: at, end, partner });
            at = end;
        }
        if open.is_empty() { Ok(Self { text, all }) } else { Err("a bracket does not end".into()) }
    }

    /// Returns the text of a token, empty beyond the last token.
    pub fn at(&self, index: usize) -> &'a str {
        self.all.get(index).map_or("", |token| &self.text[token.start..token.end])
    }

    /// Returns the text of the token before another, empty before the first token.
    pub fn before(&self, index: usize) -> &'a str {
        index.checked_sub(1).map_or("", |before| self.at(before))
    }

    pub fn kind(&self, index: usize) -> Option<Kind> {
        self.all.get(index).map(|token| token.kind)
    }

    /// Returns the text from one token up to another, which is not included.
    pub fn between(&self, from: usize, to: usize) -> &'a str {
        if from >= to { "" } else { &self.text[self.all[from].start..self.all[to - 1].end] }
    }

    /// True if blanks stand on both sides of a token, as rustfmt leaves them beside a binary operator.
    pub fn stands_apart(&self, index: usize) -> bool {
        let Token { start, end, .. } = self.all[index];
        let is_blank = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
        let bytes = self.text.as_bytes();
        is_blank(start.checked_sub(1).and_then(|before| bytes.get(before)))
            && is_blank(bytes.get(end))
    }

    /// True if an operand can end with this token.
    pub fn ends_operand(&self, index: usize) -> bool {
        match self.kind(index) {
            Some(Kind::Literal) => true,
            Some(Kind::Word) => !is_keyword(self.at(index)),
            Some(Kind::Close) => self.at(index) != "}",
            Some(Kind::Sign) => self.at(index) == "?",
            _ => false,
        }
    }
}

/// True for keywords that no operand ends with.
pub fn is_keyword(word: &str) -> bool {
    const KEYWORDS: [&str; 34] = [
        "as",
        "async",
        "break",
        "const",
        "continue",
        "dyn",
        "else",
        "enum",
        "extern",
        "fn",
        "for",
        "if",
        "impl",
        "in",
        "let",
        "loop",
        "macro_rules",
        "match",
        "mod",
        "move",
        "mut",
        "pub",
        "ref",
        "return",
        "static",
        "struct",
        "trait",
        "type",
        "union",
        "unsafe",
        "use",
        "where",
        "while",
        "yield",
    ];
    KEYWORDS.contains(&word)
}

/// Returns the token at a place and its length; no token for blanks and comments.
fn next(text: &str, at: usize, letter: char) -> Result<(Option<Kind>, usize), String> {
    let rest = &text[at..];
    if letter.is_whitespace() {
        return Ok((None, letter.len_utf8()));
    }
    if rest.starts_with("//") {
        return Ok((None, rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        return Ok((None, comment(rest)?));
    }
    if let Some(length) = literal(rest)? {
        return Ok((Some(Kind::Literal), length));
    }
    if letter == '\'' {
        return Ok(match character(rest) {
            Some(length) => (Some(Kind::Literal), length),
            None => (Some(Kind::Lifetime), 1 + word(&rest[1..])),
        });
    }
    if letter.is_ascii_digit() {
        return Ok((Some(Kind::Literal), number(rest)));
    }
    if letter == '_' || letter.is_alphabetic() {
        let raw = if rest.starts_with("r#") { 2 } else { 0 };
        return Ok((Some(Kind::Word), raw + word(&rest[raw..])));
    }
    if "([{".contains(letter) {
        return Ok((Some(Kind::Open), 1));
    }
    if ")]}".contains(letter) {
        return Ok((Some(Kind::Close), 1));
    }
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
    Ok((Some(Kind::Sign), sign.map_or(letter.len_utf8(), |sign| sign.len())))
}

fn word(rest: &str) -> usize {
    rest.find(|letter: char| letter != '_' && !letter.is_alphanumeric()).unwrap_or(rest.len())
}

/// Returns the length of a number: `1_000u64`, `0xff`, `1.5e3`, but `1` of `1..2` and of
/// `1.max(2)`.
fn number(rest: &str) -> usize {
    let whole = word(rest);
    let fraction = rest[whole..].strip_prefix('.');
    let is_fraction =
        fraction.is_some_and(|part| part.starts_with(|letter: char| letter.is_ascii_digit()));
    if is_fraction { whole + 1 + word(&rest[whole + 1..]) } else { whole }
}

/// Returns the length of a letter in quotes, unless it is a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut letters = rest.char_indices().skip(1);
    let (_, first) = letters.next()?;
    if first == '\\' {
        letters.next()?;
        return letters.find(|(_, letter)| *letter == '\'').map(|(at, _)| at + 1);
    }
    let (at, second) = letters.next()?;
    (second == '\'').then_some(at + 1)
}

/// Returns the length of a text in quotes, if one begins here.
fn literal(rest: &str) -> Result<Option<usize>, String> {
    let unmarked = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let marks = rest.len() - unmarked.len();
    if let Some(inside) = unmarked.strip_prefix('"') {
        let mut escaped = false;
        for (at, letter) in inside.char_indices() {
            match letter {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => return Ok(Some(marks + at + 2)),
                _ => {}
            }
        }
        return Err("a text does not end".into());
    }
    if rest.starts_with("b'") {
        return Ok(character(unmarked).map(|length| length + 1));
    }
    let Some(raw) = unmarked.strip_prefix('r') else { return Ok(None) };
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let Some(inside) = raw[hashes..].strip_prefix('"') else { return Ok(None) };
    let end = format!("\"{}", "#".repeat(hashes));
    let found = inside.find(&end).ok_or("a raw text does not end")?;
    Ok(Some(marks + 1 + hashes + 1 + found + end.len()))
}

fn comment(rest: &str) -> Result<usize, String> {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Ok(at);
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    Err("a comment does not end".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let tokens = Tokens::read(text).expect("it is read");
        (0..tokens.all.len()).map(|index| tokens.at(index)).collect()
    }

    #[test]
    fn a_file_is_read_as_tokens() {
        assert_eq!(words("a<=b && c..=d"), ["a", "<=", "b", "&&", "c", "..=", "d"]);
        assert_eq!(
            words("1..2 1.5e3 1.max(0xff_u8)"),
            ["1", "..", "2", "1.5e3", "1", ".", "max", "(", "0xff_u8", ")"]
        );
        assert_eq!(words("x // y \"\n/* a /* b */ \" */ z"), ["x", "z"]);
        assert_eq!(
            words(r##"b"\"" r#"""# 'a' '\'' '\u{1f}' b'x' 'static r#fn"##),
            [r#"b"\"""#, r##"r#"""#"##, "'a'", r"'\''", r"'\u{1f}'", "b'x'", "'static", "r#fn"]
        );
        for wrong in ["(", ")", "\"a", "/* a", "r#\"a\""] {
            assert!(Tokens::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn brackets_have_partners() {
        let tokens = Tokens::read("f(a[1], {})").expect("it is read");
        let partner = |index: usize| tokens.all[index].partner;
        assert_eq!((partner(1), partner(3), partner(2)), (9, 5, 2));
        assert_eq!(tokens.between(1, 6), "(a[1]");
    }
}
