//! The editors' TextMate grammar, compared with the lexer: both must agree on keywords, comments,
//! strings and numbers.

use fancy_regex::Regex;
use mingle_lang::syntax::token::{Keyword, Punct};
use mingle_lang::syntax::{Source, TokenKind, lex, parse};
use serde_json::Value;

const GRAMMAR: &str = include_str!("../../../../editors/vscode/syntaxes/mingle.tmLanguage.json");

const EXAMPLES: [&str; 10] = [
    include_str!("../../../../examples/bank.mingle"),
    include_str!("../../../../examples/cart.mingle"),
    include_str!("../../../../examples/contest.mingle"),
    include_str!("../../../../examples/contest_rejected.mingle"),
    include_str!("../../../../examples/contest_strong.mingle"),
    include_str!("../../../../examples/message_groups.mingle"),
    include_str!("../../../../examples/shop_feed/shop.mingle"),
    include_str!("../../../../examples/ticket_shop.mingle"),
    include_str!("../../../../examples/tickets.mingle"),
    EVERYTHING,
];

/// Constructs that the examples do not contain.
const EVERYTHING: &str = r#"
import "a.mingle"; import"b.mingle";
level near between causal and eventual; //// no doc comment
store ställe: near { query all(n: int) -> list<ref Ort>; command drop(); }
object Ort in ställe { key let_: string; m: map<int, bytes>; f: float = 1_0.5e-3; ü: int; index by ü; unique ü, let_ as beide; unique: int; }
/// "no string", 12
isolated transaction t(o: ref Ort, some_: int) -> option<int> {
    let s = "// no comment \" \\ \u{1F600}"; // "no string
    o.m.put(1_000, b"\x00\"b"); o.ü = -9223372036854775808;
    var x = if true { none } else { some(2e9) }; let b = bfalse; let in2 = 1.max;
    while x1 >= 3 || !y2 && z3 != 4.0 ?? 5 { return endorse(1) as near because "w"; }
    match x { some(v) => { new Ort { let_: "" }; } none => {} }
    allow W0502, W0503 because "é"
    require false else "é" as code; for a, b in o.m { put Ort { let_: "", }; }
}
"#;

/// A pattern of the grammar: all patterns are single matches.
struct Pattern {
    regex: Regex,
    /// The scope of the whole match.
    name: Option<String>,
    /// The scopes of its groups.
    captures: Vec<(usize, String)>,
}

fn patterns() -> Vec<Pattern> {
    let grammar: Value = serde_json::from_str(GRAMMAR).expect("the grammar is JSON");
    let mut found = Vec::new();
    for include in grammar["patterns"].as_array().expect("a list") {
        let name = include["include"].as_str().and_then(|name| name.strip_prefix('#'));
        let group = &grammar["repository"][name.expect("a name of the repository")];
        for pattern in group["patterns"].as_array().expect("a list") {
            let regex = pattern["match"].as_str().expect("every pattern is a single match");
            let captures = pattern["captures"].as_object().into_iter().flatten();
            found.push(Pattern {
                regex: Regex::new(regex).expect("the pattern is one"),
                name: pattern["name"].as_str().map(str::to_owned),
                captures: captures
                    .filter_map(|(group, found)| {
                        Some((group.parse().ok()?, found["name"].as_str()?.to_owned()))
                    })
                    .collect(),
            });
        }
    }
    found
}

/// Returns the scopes of a text as an editor assigns them: line by line, from left to right, the
/// first match; at one place, the first pattern wins.
fn scopes(patterns: &[Pattern], text: &str) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let mut at = 0;
        while let Some((pattern, captures)) = patterns
            .iter()
            .filter_map(|pattern| {
                let captures = pattern.regex.captures_from_pos(content, at).expect("it ends")?;
                Some((pattern, captures))
            })
            .min_by_key(|(_, captures)| captures.get(0).map(|whole| whole.start()))
        {
            let whole = captures.get(0).expect("the whole match");
            let names = pattern.captures.iter().map(|(group, name)| (*group, name));
            for (group, name) in pattern.name.iter().map(|name| (0, name)).chain(names) {
                if let Some(part) = captures.get(group) {
                    found.push((start + part.start(), start + part.end(), name.clone()));
                }
            }
            assert!(whole.end() > at || whole.end() > whole.start(), "a match of nothing");
            at = whole.end();
        }
        start += line.len();
    }
    found
}

/// Returns the beginnings of the scopes expected for a token, if the lexer distinguishes it from a
/// name.
fn expected(source: &Source, token: u32) -> Option<&'static [&'static str]> {
    let kind = |token: u32| source.tokens[token as usize].kind;
    // After a point `put` is an operation, as for the parser.
    let is_operation = token > 0 && kind(token - 1) == TokenKind::Punct(Punct::Dot);
    Some(match kind(token) {
        TokenKind::Keyword(Keyword::Put) if is_operation => &["entity.name.function.method."],
        TokenKind::Keyword(_) => &["keyword.", "constant.language.", "support.function."],
        TokenKind::String => &["string.quoted.double.mingle"],
        TokenKind::Bytes => &["string.quoted.double.bytes."],
        TokenKind::Int => &["constant.numeric.integer."],
        TokenKind::Float => &["constant.numeric.float."],
        TokenKind::Duration => &["constant.numeric.duration."],
        _ => return None,
    })
}

#[test]
fn keywords_comments_strings_and_numbers_are_those_of_the_lexer() {
    let patterns = patterns();
    let mut counted = 0;
    for text in EXAMPLES {
        let source = lex(text);
        assert!(source.tokens.iter().all(|token| !matches!(token.kind, TokenKind::Bad(_))));
        let scopes = scopes(&patterns, text);
        let scope = |start: u32, end: u32| {
            let exact =
                scopes.iter().find(|scope| (scope.0, scope.1) == (start as usize, end as usize));
            exact.map_or("", |(_, _, name)| name)
        };
        for (token, index) in source.tokens.iter().zip(0..) {
            let (found, shown) = (scope(token.start, token.end), source.token_text(index));
            match expected(&source, index) {
                Some(expected) => {
                    counted += 1;
                    let fits = expected.iter().any(|expected| found.starts_with(expected));
                    assert!(fits, "`{shown}` is `{found}`, not one of {expected:?}");
                }
                None => {
                    let is_name = token.kind == TokenKind::Ident;
                    let is_other = ["keyword.", "string.", "comment.", "constant.numeric."]
                        .iter()
                        .any(|other| found.starts_with(other));
                    assert!(!(is_name && is_other), "the name `{shown}` is `{found}`");
                }
            }
        }
        for comment in &source.trivia {
            let kind = if comment.is_doc {
                "comment.line.documentation."
            } else {
                "comment.line.double-slash."
            };
            let found = scope(comment.start, comment.end);
            assert!(found.starts_with(kind), "{} is `{found}`", source.trivia_text(*comment));
            counted += 1;
        }
        // No other text has these scopes.
        for (start, end, name) in &scopes {
            let is_token = source
                .tokens
                .iter()
                .any(|token| token.start as usize == *start && token.end as usize == *end);
            let is_comment = source.trivia.iter().any(|comment| comment.start as usize == *start);
            assert!(is_token || is_comment, "{name}: `{}`", &text[*start..*end]);
        }
    }
    assert!(counted > 250, "only {counted} tokens were looked at");
}

#[test]
fn every_reserved_word_is_a_keyword_and_no_other_name_is() {
    let patterns = patterns();
    for keyword in Keyword::ALL {
        let text = keyword.text();
        let scopes = scopes(&patterns, text);
        let fits = scopes.iter().any(|(start, end, name)| {
            (*start, *end) == (0, text.len()) && !name.starts_with("entity.")
        });
        assert!(fits, "`{text}` is {scopes:?}");
        for name in [format!("{text}_"), format!("_{text}"), format!("{text}1"), format!("ä{text}")]
        {
            assert_eq!(self::scopes(&patterns, &name), [], "{name}");
        }
    }
}

#[test]
fn what_declares_is_coloured_in_every_example() {
    let patterns = patterns();
    for text in EXAMPLES {
        let source = lex(text);
        let scopes = scopes(&patterns, text);
        for item in parse(&source).0.items {
            let word = source.tokens[item.span.start as usize];
            let found = scopes.iter().find(|scope| scope.0 == word.start as usize);
            let name = found.map_or("", |(_, _, name)| name);
            assert!(
                name.starts_with("storage."),
                "`{}`: `{name}`",
                source.token_text(item.span.start)
            );
        }
    }
}
