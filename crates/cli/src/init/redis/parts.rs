//! The parts of a key: fixed words, separators, and parts that look like they vary.

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A separator.
    Separator(char),
    /// A word, which may be fixed or not.
    Word(String),
    /// A text that names one thing among many: a number, a UUID, a date, an address.
    Name(String),
}

/// The separators, the strongest first: a key is split at `:` and `/` if it has any, else at the first of the others
/// that it has.
const SEPARATORS: [&[char]; 4] = [&[':', '/'], &['.'], &['-'], &['_']];

/// The length of a UUID as text.
const UUID_CHARS: usize = 36;

/// The fewest characters of a hexadecimal number, and of a text of letters and digits, that names something.
const HEX_CHARS_MIN: usize = 8;
const MIXED_CHARS_MIN: usize = 16;

/// Splits a key into its parts.
pub fn parts(key: &str) -> Vec<Part> {
    let is_uuid = |segment: &str| segment.len() == UUID_CHARS && is_name(segment);
    let level = SEPARATORS.iter().position(|all| key.contains(*all));
    let mut found = Vec::new();
    match level {
        Some(level) if !is_uuid(key) => split(key, level, &mut found),
        _ => found.push(segment(key)),
    }
    found
}

fn segment(text: &str) -> Part {
    if is_name(text) { Part::Name(text.to_owned()) } else { Part::Word(text.to_owned()) }
}

/// Splits a text at separators. A segment is split further only if a part of it then names something.
fn split(text: &str, level: usize, into: &mut Vec<Part>) {
    let separators = SEPARATORS[level];
    let mut rest = text;
    loop {
        let end = next(rest, separators);
        let part = &rest[..end];
        if is_name(part) {
            into.push(Part::Name(part.to_owned()));
        } else {
            let mut finer = Vec::new();
            if let Some(next) =
                (level + 1..SEPARATORS.len()).find(|at| part.contains(SEPARATORS[*at]))
            {
                split(part, next, &mut finer);
            }
            if finer.iter().any(|part| matches!(part, Part::Name(_))) {
                into.extend(merged(finer));
            } else {
                into.push(Part::Word(part.to_owned()));
            }
        }
        let Some(separator) = rest[end..].chars().next() else { return };
        into.push(Part::Separator(separator));
        rest = &rest[end + separator.len_utf8()..];
    }
}

/// Returns the end of the first segment of a text. A UUID, which has hyphens, is one segment.
fn next(text: &str, separators: &[char]) -> usize {
    let uuid = text.get(..UUID_CHARS).filter(|start| is_uuid(start));
    let from = uuid.map_or(0, str::len);
    text[from..].find(separators).map_or(text.len(), |at| from + at)
}

/// Makes one name of names with a separator between them: `2026-01-31`, `10.0.0.1`.
fn merged(parts: Vec<Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        if let (Part::Name(last), [.., Part::Name(first), Part::Separator(between)]) =
            (&part, &all[..])
        {
            let whole = format!("{first}{between}{last}");
            all.truncate(all.len() - 2);
            all.push(Part::Name(whole));
        } else {
            all.push(part);
        }
    }
    all
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

/// True if a text names one thing among many, as far as can be seen from it alone.
pub fn is_name(text: &str) -> bool {
    let count = |is: fn(&char) -> bool| text.chars().filter(is).count();
    let digits = count(char::is_ascii_digit);
    let has_digits_alone = text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || "-.T:+".contains(c));
    let is_hex = text.len() >= HEX_CHARS_MIN && text.chars().all(|c| c.is_ascii_hexdigit());
    let is_mixed = text.len() >= MIXED_CHARS_MIN
        && digits > 1
        && text.chars().all(|c| c.is_ascii_alphanumeric());
    (digits > 0 && (has_digits_alone || is_hex || is_mixed)) || is_uuid(text) || text.contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts as text, with names in angle brackets and words in square ones.
    fn shown(key: &str) -> String {
        let shown = parts(key).into_iter().map(|part| match part {
            Part::Separator(separator) => separator.to_string(),
            Part::Word(word) => format!("[{word}]"),
            Part::Name(name) => format!("<{name}>"),
        });
        shown.collect()
    }

    #[test]
    fn a_key_is_split_into_words_and_names() {
        for (key, expected) in [
            ("user:7", "[user]:<7>"),
            ("user:-7:name", "[user]:<-7>:[name]"),
            ("user/ana/last-seen", "[user]/[ana]/[last-seen]"),
            (
                "user:0e37df36-f698-11e6-8dd4-cb9ced3df976:cart",
                "[user]:<0e37df36-f698-11e6-8dd4-cb9ced3df976>:[cart]",
            ),
            ("0e37df36-f698-11e6-8dd4-cb9ced3df976", "<0e37df36-f698-11e6-8dd4-cb9ced3df976>"),
            (
                "user-0e37df36-f698-11e6-8dd4-cb9ced3df976",
                "[user]-<0e37df36-f698-11e6-8dd4-cb9ced3df976>",
            ),
            ("visits:2026-01-31", "[visits]:<2026-01-31>"),
            ("limit:10.0.0.1", "[limit]:<10.0.0.1>"),
            ("user.7.name", "[user].<7>.[name]"),
            ("user-7", "[user]-<7>"),
            ("app:user_7", "[app]:[user]_<7>"),
            ("session:9f86d081884c7d65", "[session]:<9f86d081884c7d65>"),
            ("session:01ARZ3NDEKTSV4RRFFQ69G5FAV", "[session]:<01ARZ3NDEKTSV4RRFFQ69G5FAV>"),
            ("mail:ana@x.org", "[mail]:<ana@x.org>"),
            ("config", "[config]"),
            ("v1.2:x", "[v1].<2>:[x]"),
            ("a::b", "[a]:[]:[b]"),
            ("", "[]"),
            ("bücher:ä", "[bücher]:[ä]"),
            ("deadbeef:facade", "[deadbeef]:[facade]"),
        ] {
            assert_eq!(shown(key), expected, "{key}");
        }
    }
}
