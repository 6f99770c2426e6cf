//! Characters and numbers that look like tokens, and the tokens that are meant.

use super::token::Punct;

/// Signs of other languages and of word processors.
const SIGNS: [(&str, Punct); 33] = [
    ("===", Punct::Equal),
    ("!==", Punct::NotEqual),
    ("；", Punct::Semicolon),
    ("\u{37e}", Punct::Semicolon),
    ("，", Punct::Comma),
    ("、", Punct::Comma),
    ("：", Punct::Colon),
    ("（", Punct::LeftParen),
    ("）", Punct::RightParen),
    ("｛", Punct::LeftBrace),
    ("｝", Punct::RightBrace),
    ("［", Punct::LeftBracket),
    ("］", Punct::RightBracket),
    ("．", Punct::Dot),
    ("。", Punct::Dot),
    ("＝", Punct::Assign),
    ("＋", Punct::Plus),
    ("－", Punct::Minus),
    ("–", Punct::Minus),
    ("—", Punct::Minus),
    ("−", Punct::Minus),
    ("×", Punct::Star),
    ("＊", Punct::Star),
    ("÷", Punct::Slash),
    ("／", Punct::Slash),
    ("＜", Punct::Less),
    ("＞", Punct::Greater),
    ("≤", Punct::LessEqual),
    ("≥", Punct::GreaterEqual),
    ("≠", Punct::NotEqual),
    ("！", Punct::Not),
    ("→", Punct::Arrow),
    ("⇒", Punct::FatArrow),
];

/// Returns the token that the text begins with in another spelling, and the length of that spelling
/// in bytes.
pub(super) fn punct(text: &str) -> Option<(Punct, usize)> {
    let first = text.as_bytes().first()?;
    if first.is_ascii() && !matches!(first, b'=' | b'!') {
        return None;
    }
    let found = SIGNS.iter().find(|(sign, _)| text.starts_with(sign));
    found.map(|(sign, punct)| (*punct, sign.len()))
}

/// Returns the characters that close a string which begins with this one; none if it is no quote.
pub(super) fn closing_quote(open: char) -> Option<&'static [char]> {
    Some(match open {
        '\'' => &['\''],
        '`' => &['`'],
        '“' | '”' | '„' | '‟' => &['”', '“', '"'],
        '‘' | '’' | '‚' => &['’', '‘'],
        '«' => &['»'],
        '»' => &['«'],
        '＂' => &['＂'],
        _ => return None,
    })
}

/// True if the character is invisible, and no blank of the language.
pub(super) fn is_blank(character: char) -> bool {
    let is_invisible = matches!(
        character,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{b}' | '\u{c}'
    );
    is_invisible || (!character.is_ascii() && character.is_whitespace())
}

/// Returns a string in other quotes as one in double quotes.
pub(super) fn in_double_quotes(literal: &str) -> String {
    let mut inner = literal.chars();
    inner.next();
    inner.next_back();
    let mut text = String::from("\"");
    let mut rest = inner.as_str().chars().peekable();
    while let Some(character) = rest.next() {
        match (character, rest.peek()) {
            ('"', _) => text.push_str("\\\""),
            ('\\', Some('\'' | '`' | '$')) => {}
            ('\\', Some('n' | 't' | 'r' | '"' | '\\' | 'u')) => {
                text.push('\\');
                text.extend(rest.next());
            }
            ('\\', _) => text.push_str("\\\\"),
            _ => text.push(character),
        }
    }
    text.push('"');
    text
}

/// Returns a string that has no closing quote with one: before the punctuation at its end, which
/// rarely belongs to it.
pub(super) fn closed(literal: &str) -> String {
    let text = literal.trim_end();
    let start = if text.starts_with('b') { 2 } else { 1 };
    let inner = text.get(start..).unwrap_or_default();
    let kept = inner.trim_end_matches([';', ')', ',', '}', ']', ' ', '{']);
    let backslashes = kept.len() - kept.trim_end_matches('\\').len();
    let escape = if backslashes % 2 == 1 { "\\" } else { "" };
    format!("{}{kept}{escape}\"{}", &text[..start.min(text.len())], &inner[kept.len()..])
}

/// Returns a number of another language as one of this language, if it has the value of one.
pub(super) fn number(text: &str) -> Option<String> {
    let plain = text.replace('_', "").to_ascii_lowercase();
    let radix = [("0x", 16), ("0b", 2), ("0o", 8)];
    for (prefix, radix) in radix {
        if let Some(digits) = plain.strip_prefix(prefix) {
            return i64::from_str_radix(digits, radix).ok().map(|value| value.to_string());
        }
    }
    let digits = plain.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffixes = ["", "u", "i", "n", "l", "ll", "ul", "f", "d", "m"];
    let sized = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64"];
    let bare = sized.iter().find_map(|suffix| plain.strip_suffix(suffix));
    let bare = bare.or_else(|| suffixes.contains(&&plain[digits.len()..]).then_some(digits))?;
    let is_number = bare.starts_with(|c: char| c.is_ascii_digit())
        && bare.chars().all(|c| c.is_ascii_digit() || c == '.');
    let fits = bare.contains('.') || bare.parse::<i64>().is_ok();
    (is_number && fits).then(|| bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_in_other_quotes_keep_their_text() {
        for (found, expected) in [
            ("'x'", r#""x""#),
            (r#"'say "x"'"#, r#""say \"x\"""#),
            (r"'it\'s'", r#""it's""#),
            (r"'a\nb\d'", r#""a\nb\\d""#),
            ("“x”", r#""x""#),
        ] {
            assert_eq!(in_double_quotes(found), expected);
        }
    }

    #[test]
    fn a_string_is_closed_before_punctuation() {
        assert_eq!(closed("\"x;"), "\"x\";");
        assert_eq!(closed("b\"x)"), "b\"x\")");
        assert_eq!(closed("\""), "\"\"");
        assert_eq!(closed("\"x\\"), "\"x\\\\\"");
    }

    #[test]
    fn numbers_of_other_languages_keep_their_value() {
        assert_eq!(number("0xFF").as_deref(), Some("255"));
        assert_eq!(number("5u64").as_deref(), Some("5"));
        assert_eq!(number("1_000L").as_deref(), Some("1000"));
        assert_eq!(number("1.5f").as_deref(), Some("1.5"));
        assert_eq!(number("99999999999999999999"), None);
        assert_eq!(number("5apples"), None);
    }
}
