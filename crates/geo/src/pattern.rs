//! Patterns of names, as in Redis.

/// True if a name matches a pattern: `*` stands for any bytes, `?` for one, `[a-c]` and `[^ab]` for
/// one of a class, and `\` takes the next byte literally.
///
/// # Examples
///
/// ```
/// use mingle_geo::pattern::matches;
///
/// assert!(matches(b"h[a-e]l*o", b"hello"));
/// assert!(!matches(b"h?llo", b"heello"));
/// ```
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    // The last `*`, and the name where it was tried; a later `*` makes an earlier one final.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            star = Some((rest, name));
            pattern = rest;
            continue;
        }
        if pattern.is_empty() && name.is_empty() {
            return true;
        }
        match name.split_first().zip(one(pattern, name.first().copied())) {
            Some(((_, after), rest)) => (pattern, name) = (rest, after),
            None => match star {
                Some((rest, [_, after @ ..])) => {
                    star = Some((rest, after));
                    (pattern, name) = (rest, after);
                }
                _ => return false,
            },
        }
    }
}

/// True if a pattern matches a name that begins with `beginning`, or may match one: a class without
/// members counts as one that matches.
///
/// # Examples
///
/// ```
/// use mingle_geo::pattern::may_match_from;
///
/// assert!(may_match_from(b"lock:*", b"lock:a"));
/// assert!(may_match_from(b"lock:*", b"lo"));
/// assert!(!may_match_from(b"lock:*", b"log"));
/// assert!(!may_match_from(b"lock", b"lock:"));
/// ```
pub fn may_match_from(pattern: &[u8], beginning: &[u8]) -> bool {
    let mut pattern = pattern;
    for byte in beginning {
        // A `*` takes the rest of the beginning, and the rest of the pattern comes after that.
        if let [b'*', ..] = pattern {
            return true;
        }
        match one(pattern, Some(*byte)) {
            Some(rest) => pattern = rest,
            None => return false,
        }
    }
    true
}

/// Returns the rest of a pattern whose beginning matches this byte.
fn one(pattern: &[u8], byte: Option<u8>) -> Option<&[u8]> {
    let byte = byte?;
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, byte),
        [b'\\', literal, rest @ ..] => (*literal == byte).then_some(rest),
        [literal, rest @ ..] => (*literal == byte).then_some(rest),
    }
}

fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (is_negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut is_in = false;
    loop {
        rest = match rest {
            // An open class ends with the pattern.
            [] => break,
            [b']', after @ ..] => {
                rest = after;
                break;
            }
            [b'\\', literal, after @ ..] => {
                is_in |= *literal == byte;
                after
            }
            [low, b'-', high, after @ ..] => {
                is_in |= (*low.min(high)..=*low.max(high)).contains(&byte);
                after
            }
            [literal, after @ ..] => {
                is_in |= *literal == byte;
                after
            }
        };
    }
    (is_in != is_negated).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_documented() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*c", "abbc", true),
            ("a*c*e", "abcde", true),
            ("a*c", "ab", false),
            ("h?llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hallo", true),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hbllo", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[\\]]", "]", true),
            ("[a", "a", true),
            ("a\\", "a\\", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
        for (pattern, beginning, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "ab", true),
            ("a*z", "abc", true),
            ("a?c*", "ab", true),
            ("a?c", "abd", false),
            ("[ab]c", "bc", true),
            ("[ab]c", "c", false),
            ("\\*c", "*", true),
            ("\\*c", "a", false),
        ] {
            let found = may_match_from(pattern.as_bytes(), beginning.as_bytes());
            assert_eq!(found, expected, "{pattern} {beginning}");
        }
        let (pattern, name) = ("a*".repeat(30) + "b", "a".repeat(5_000));
        assert!(!matches(pattern.as_bytes(), name.as_bytes()), "and it takes no exponential time");
    }
}
