//! Lines end with `\n`, `\r\n` or `\r` alone; a byte order mark is not part of the first line.

use mingle_lang::check;
use mingle_lang::diagnostic::{diagnostics_to_json, render_human, render_short};
use mingle_lang::format::format;
use mingle_lang::syntax::{lex, parse};

const RIGHT: &str = "store shop: linearizable; // near

/// 🙂 Größe 日本 of it
/// in two lines

object Item in shop { key name: string; left: int; }
transaction take(item: ref Item) { // all
    // of it
    item.left -= 1;


    item.left -= 1; }
";

const WRONG: &str = "store shop: linear; object Item in shop { key name: string; left: int; }
// a comment
transaction take(item: ref Item) {
    item.left -= \"🙂日本e\u{301}\"; item.left -= missing;
}
transaction other() -> int {
    // one
    return 1 +
        true;
}
";

const UNTERMINATED: &str = "store shop: causal;
transaction t() -> string { return \"never
    ended\\
    here; }
";

/// Returns the outcome of checking a program, which is the same for all line ends.
fn shown(text: &str) -> [String; 4] {
    let checked = check(text);
    let (source, found) = (&checked.source, &checked.diagnostics);
    let mut json = serde_json::Value::Array(diagnostics_to_json(source, "a.mingle", found));
    without_bytes(&mut json);
    let lexed = lex(text);
    let (tree, mistakes) = parse(&lexed);
    let laid_out = if mistakes.is_empty() { format(&lexed, &tree) } else { String::new() };
    [
        render_short(source, "a.mingle", found),
        render_human(source, "a.mingle", found, false),
        json.to_string(),
        laid_out,
    ]
}

/// Removes byte positions, which count from the start of the text: they differ with the line ends.
fn without_bytes(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::Object(members) => {
            members.retain(|name, _| !name.contains("byte"));
            members.values_mut().for_each(without_bytes);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(without_bytes),
        _ => {}
    }
}

#[test]
fn programs_are_the_same_whatever_ends_their_lines() {
    for (text, has_mistakes) in [(RIGHT, false), (WRONG, true), (UNTERMINATED, true)] {
        let expected = shown(text);
        assert_eq!(!expected[0].is_empty(), has_mistakes, "{}", expected[1]);
        assert_eq!(expected[3].is_empty(), text == UNTERMINATED, "it is laid out");
        for mark in ["", "\u{feff}"] {
            for end in ["\n", "\r\n", "\r"] {
                let other = format!("{mark}{}", text.replace('\n', end));
                for (found, expected) in shown(&other).iter().zip(&expected) {
                    assert_eq!(found, expected, "{end:?} {mark:?}");
                }
            }
        }
    }
    assert!(!shown(&RIGHT.replace('\n', "\r"))[3].contains('\r'), "lines end in one way");
}
