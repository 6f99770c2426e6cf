//! Random JSON texts that are hard to keep, for tests of stores and formats.

use std::fmt::Write as _;

use super::Random;

const TEXTS: [&str; 16] = [
    "",
    "a",
    "some",
    "null",
    "é",
    "e\u{301}",
    "😀",
    "\\\"",
    "\\\\",
    "\\/",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\u0001\\u001f\\u007f\u{7f}",
    "\\b\\f\\n\\r\\t",
    "\u{2028}\u{fffe}<>&'",
    "$serde_json::private::Number",
];

const NUMBERS: [&str; 16] = [
    "0",
    "-0",
    "-0.0e5",
    "1.50",
    "15e-1",
    "-1e2",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551616",
    "123456789012345678901234567890.10",
    "1e399",
    "-1e-400",
    "5e-324",
    "1.7976931348623157e308",
    "0.1000000000000000055511151231257827",
    "1E+21",
];

/// Returns a random JSON text, each of whose documents a `json` can hold: with other spellings of equal numbers
/// and texts, names that need escapes, members that differ in case or order, and white space.
///
/// # Examples
///
/// ```
/// use mingle_model::random::{Random, hostile_json};
///
/// let text = hostile_json(&mut Random::new(7));
/// assert!(mingle_model::Document::parse(&text).is_ok());
/// ```
pub fn hostile_json(random: &mut Random) -> String {
    let mut text = String::new();
    if random.one_in(20) {
        let depth = 1 + random.below(100);
        let is_list = random.one_in(2);
        text.push_str(&if is_list { "[" } else { "{\"a\":" }.repeat(depth));
        text.push_str("[]");
        text.truncate(text.len() - if depth == 100 { 2 } else { 0 });
        if depth == 100 {
            // The innermost list may be empty, but an object needs a value.
            text.push_str(if is_list { "" } else { "0" });
        }
        text.push_str(&if is_list { "]" } else { "}" }.repeat(depth));
        return text;
    }
    write(random, 4, &mut text);
    text
}

fn space(random: &mut Random) -> &'static str {
    random.pick::<&str>(&["", "", "", " ", "\n\t", "\r\n"])
}

fn write(random: &mut Random, depth: usize, text: &mut String) {
    text.push_str(space(random));
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => text.push_str("null"),
        1 => text.push_str(random.pick::<&str>(&["true", "false"])),
        2 | 3 => {
            text.push('"');
            text.push_str(random.pick::<&str>(&TEXTS));
            text.push('"');
        }
        4 => text.push_str(random.pick::<&str>(&NUMBERS)),
        5 => {
            let (whole, part) = (random.bits(), random.bits());
            let exponent = random.below(300) as i64 - 150;
            // Writing to a text cannot fail.
            let _ = write!(text, "-{whole}.{part}e{exponent}");
        }
        6 | 7 => {
            text.push('{');
            let mut names: Vec<usize> = (0..TEXTS.len()).filter(|_| random.one_in(6)).collect();
            // Two of the texts are spellings of others.
            names.retain(|at| !matches!(TEXTS[*at], "\\u00e9" | "\\ud83d\\ude00"));
            for at in (1..names.len()).rev() {
                names.swap(at, random.below(at + 1));
            }
            for (index, name) in names.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                let _ = write!(text, "{}\"{}\"{}:", space(random), TEXTS[*name], space(random));
                write(random, depth - 1, text);
            }
            text.push('}');
        }
        _ => {
            text.push('[');
            for index in 0..random.below(4) {
                if index > 0 {
                    text.push(',');
                }
                write(random, depth - 1, text);
            }
            text.push(']');
        }
    }
    text.push_str(space(random));
}
