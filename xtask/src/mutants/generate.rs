//! Mistakes that a programmer could make in a file, each at one place.
//!
//! A mistake replaces a range of text by another text. The file is formatted by rustfmt, so a
//! binary operator has blanks beside it and an angle bracket has none. Types are not known; a
//! mistake that does not compile is dropped later.

use std::ops::Range;

use super::functions::{Function, attribute, names_fault, outline, planted, unobserved};
use super::lex::{Kind, Tokens, is_keyword};
use super::operands::{ADD, AND, COMPARE, OR, binds, left, right, unary};

/// The kind of text that a mistake replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The body of a function: the function returns at once, and no text is replaced.
    Body,
    /// Statements, with their semicolon.
    Statement,
    Expression,
}

/// A mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    pub place: Place,
    pub function: String,
    /// The replaced text, in bytes of the file.
    pub range: Range<usize>,
    pub becomes: String,
}

/// Returns all mistakes of a file, in order, and the names of test modules in other files.
///
/// # Errors
///
/// When the file cannot be split into tokens.
pub fn mutations(text: &str) -> Result<(Vec<Mutation>, Vec<String>), String> {
    let tokens = Tokens::read(text)?;
    let outline = outline(&tokens);
    let mut found = Vec::new();
    for (index, function) in outline.functions.iter().enumerate() {
        let inner: Vec<Range<usize>> = outline.functions[index + 1..]
            .iter()
            .take_while(|inner| inner.open < function.close)
            .map(|inner| inner.open..inner.close)
            .collect();
        of_function(&tokens, function, &inner, &mut found);
    }
    found.sort_by_key(|mutation| (mutation.range.start, mutation.range.end, mutation.place));
    let tests = outline.tests.into_iter().map(str::to_owned).collect();
    Ok((found, tests))
}

fn of_function(
    tokens: &Tokens<'_>,
    function: &Function<'_>,
    inner: &[Range<usize>],
    found: &mut Vec<Mutation>,
) {
    let Function { name, returns, open, close } = *function;
    if name == "main" || close == open + 1 {
        return;
    }
    let mut add = |place, range: Range<usize>, becomes: String| {
        found.push(Mutation { place, function: name.to_owned(), range, becomes });
    };
    let begin = tokens.all[open].end;
    for value in defaults(returns) {
        let is_so_already = tokens.between(open + 1, close) == value;
        if !is_so_already {
            add(Place::Body, begin..begin, value);
        }
    }
    let mut at = open + 1;
    while at < close {
        let skipped = inner.iter().find(|inner| inner.contains(&at)).map(|inner| inner.end);
        let skipped = skipped.or_else(|| attribute(tokens, at)).or_else(|| unobserved(tokens, at));
        let skipped = skipped.or_else(|| planted(tokens, at));
        if let Some(end) = skipped {
            at = end;
            continue;
        }
        for (place, range, becomes) in at_token(tokens, at) {
            let range = tokens.all[range.start].start..tokens.all[range.end - 1].end;
            add(place, range, becomes);
        }
        at += 1;
    }
}

/// Returns values of simple types, for the bodies of functions; the empty value means a return
/// without a value.
fn defaults(returns: &str) -> Vec<String> {
    const COLLECTIONS: [&str; 4] = ["Vec<", "BTreeMap<", "BTreeSet<", "HashMap<"];
    let list: &[&str] = match returns {
        "" | "()" => &[""],
        "bool" => &["true", "false"],
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "i128"
        | "isize" => &["0", "1"],
        "f64" => &["0.0"],
        "String" => &["String::new()"],
        "&str" | "&'static str" => &["\"\""],
        "Duration" => &["Duration::ZERO"],
        "Outcome" | "fmt::Result" => &["Ok(())"],
        _ if returns.starts_with("Option<") => &["None"],
        _ if COLLECTIONS.iter().any(|name| returns.starts_with(name)) => &["Default::default()"],
        _ => return of_result(returns),
    };
    list.iter().map(|value| (*value).to_owned()).collect()
}

fn of_result(returns: &str) -> Vec<String> {
    let inside = ["Result<", "io::Result<"].iter().find_map(|name| returns.strip_prefix(name));
    let first = inside.and_then(first_type).unwrap_or_default();
    if first == "()" {
        return vec!["Ok(())".into()];
    }
    let values = if first.is_empty() { Vec::new() } else { defaults(first) };
    values.into_iter().map(|value| format!("Ok({value})")).collect()
}

/// Returns the first of several types within angle brackets.
fn first_type(inside: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, letter) in inside.char_indices() {
        match letter {
            '<' | '(' | '[' => depth += 1,
            '>' | ',' if depth == 0 => return Some(&inside[..at]),
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
    }
    None
}

type Found = (Place, Range<usize>, String);

/// Returns the mistakes that begin at a token, with the tokens that they replace.
fn at_token(tokens: &Tokens<'_>, at: usize) -> Vec<Found> {
    let found = [operator(tokens, at), assigned(tokens, at), negation(tokens, at)];
    let more = [condition(tokens, at), statement(tokens, at)];
    found.into_iter().chain(more).flatten().collect()
}

/// `<` becomes `<=`, `&&` becomes `||`, `+` becomes `-`, and so on.
fn operator(tokens: &Tokens<'_>, at: usize) -> Option<Found> {
    let strength = binds(tokens, at)?;
    let other = match tokens.at(at) {
        "==" => "!=",
        "!=" => "==",
        "<" => "<=",
        "<=" => "<",
        ">" => ">=",
        ">=" => ">",
        "&&" => "||",
        "||" => "&&",
        "+" => "-",
        "-" => "+",
        _ => return None,
    };
    debug_assert!([OR, AND, COMPARE, ADD].contains(&strength));
    let range = left(tokens, at, strength)?..right(tokens, at, strength)?;
    if strength == COMPARE && range.clone().any(|index| names_fault(tokens, index)) {
        return None;
    }
    let becomes = replaced(tokens, &range, at, other);
    Some((Place::Expression, range, becomes))
}

/// `+=` becomes `-=`, and the other way round.
fn assigned(tokens: &Tokens<'_>, at: usize) -> Option<Found> {
    let other = match tokens.at(at) {
        "+=" => "-=",
        "-=" => "+=",
        _ => return None,
    };
    let range = left(tokens, at, 0)?..right(tokens, at, 0)?;
    let is_whole = matches!(tokens.before(range.start), ";" | "{" | "}");
    let becomes = replaced(tokens, &range, at, other);
    (is_whole && tokens.at(range.end) == ";")
        .then(|| (Place::Statement, range.start..range.end + 1, format!("{becomes};")))
}

/// Returns the text of tokens with one of them replaced.
fn replaced(tokens: &Tokens<'_>, range: &Range<usize>, at: usize, other: &str) -> String {
    let text = |from: usize, to: usize| &tokens.text[tokens.all[from].start..tokens.all[to].start];
    let before = text(range.start, at);
    let after = &tokens.text[tokens.all[at].end..tokens.all[range.end - 1].end];
    format!("{before}{other}{after}")
}

/// `!a` becomes `a`.
fn negation(tokens: &Tokens<'_>, at: usize) -> Option<Found> {
    let is_unary = tokens.at(at) == "!"
        && (at == 0 || !tokens.ends_operand(at - 1))
        && !matches!(tokens.before(at), "macro_rules" | "->");
    if !is_unary {
        return None;
    }
    let end = unary(tokens, at + 1)?;
    Some((Place::Expression, at..end, tokens.between(at + 1, end).to_owned()))
}

/// The condition of an `if` is negated, unless another mistake does the same.
fn condition(tokens: &Tokens<'_>, at: usize) -> Option<Found> {
    if tokens.at(at) != "if" {
        return None;
    }
    let (begin, mut end) = (at + 1, at + 1);
    loop {
        match tokens.at(end) {
            // `)` ends a guard within `matches!`.
            "{" | "=>" | ")" => break,
            "" | ";" | "}" | "let" | "match" | "unsafe" | "if" => return None,
            "(" | "[" => end = tokens.all[end].partner + 1,
            _ => end += 1,
        }
    }
    let is_done_already = (begin..end).any(|index| {
        let same = |(_, range, _): &Found| *range == (begin..end);
        operator(tokens, index).is_some_and(|found| same(&found) && flips(tokens.at(index)))
            || negation(tokens, index).is_some_and(|found| same(&found))
    });
    let text = tokens.between(begin, end);
    (!is_done_already).then(|| (Place::Expression, begin..end, format!("!({text})")))
}

fn flips(operator: &str) -> bool {
    matches!(operator, "==" | "!=")
}

/// A call whose result is not used, or an assignment, is left out.
fn statement(tokens: &Tokens<'_>, at: usize) -> Option<Found> {
    let begins = matches!(tokens.before(at), ";" | "{" | "}");
    let word = tokens.at(at);
    let is_target = tokens.kind(at) == Some(Kind::Word) && !is_keyword(word) || word == "*";
    if !begins || !is_target || tokens.at(at + 1) == "!" {
        return None;
    }
    let (mut end, mut is_assignment) = (at, false);
    loop {
        match tokens.at(end) {
            ";" => break,
            "" | "," | "=>" | "{" | "}" | ")" | "]" | ":" | "+=" | "-=" => return None,
            "!" if tokens.ends_operand(end - 1) => return None,
            "(" | "[" => end = tokens.all[end].partner + 1,
            sign => {
                is_assignment |= sign.ends_with('=') && !["==", "!=", "<=", ">="].contains(&sign);
                end += 1;
            }
        }
    }
    let is_call = matches!(tokens.before(end), ")" | "?" | "await");
    (is_call || is_assignment).then(|| (Place::Statement, at..end + 1, String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mistakes of a function with this body: each replaced text and its replacement.
    fn of(returns: &str, body: &str) -> Vec<String> {
        let text = format!("fn f(){returns} {{ {body} }}");
        let (found, _) = mutations(&text).expect("it is read");
        let shown = found.into_iter().map(|found| {
            assert_eq!(found.function, "f");
            let range = text[found.range.clone()].to_owned();
            if found.place == Place::Body {
                assert!(range.is_empty());
                return format!("return {}", found.becomes);
            }
            format!("{range} -> {}", found.becomes)
        });
        shown.collect()
    }

    fn check(body: &str, expected: &[&str]) {
        assert_eq!(of(" -> A", body), expected, "{body}");
    }

    #[test]
    fn bodies_return_simple_values() {
        assert_eq!(of("", "g().h"), ["return "]);
        assert_eq!(of(" -> bool", "g()"), ["return true", "return false"]);
        assert_eq!(of(" -> bool", "true"), ["return false"]);
        assert_eq!(of(" -> u64", "g()"), ["return 0", "return 1"]);
        assert_eq!(of(" -> Option<A>", "g()"), ["return None"]);
        assert_eq!(of(" -> Result<Vec<(A, B)>, C>", "g()"), ["return Ok(Default::default())"]);
        assert_eq!(of(" -> io::Result<bool>", "g()"), ["return Ok(true)", "return Ok(false)"]);
        assert_eq!(of(" -> Result<(), C>", "g()"), ["return Ok(())"]);
        assert_eq!(of(" -> Result<A, C>", "g()"), [""; 0]);
        assert_eq!(of(" -> &'static str", "g()"), ["return \"\""]);
    }

    #[test]
    fn comparisons_and_sums_change() {
        check(
            "a.b(c < d)?[1] < -e + 1",
            &[
                "a.b(c < d)?[1] < -e + 1 -> a.b(c < d)?[1] <= -e + 1",
                "c < d -> c <= d",
                "-e + 1 -> -e - 1",
            ],
        );
        check(
            "let x: Vec<A<B>> = a::<C>(b) as u8 - &c;",
            &["a::<C>(b) as u8 - &c -> a::<C>(b) as u8 + &c"],
        );
        check("g(|x| x.y == 1, move || a > b)", &["x.y == 1 -> x.y != 1", "a > b -> a >= b"]);
        check("S { a: b == c, d: e >= f }", &["b == c -> b != c", "e >= f -> e > f"]);
        check(
            "a = b - c - d;",
            &["a = b - c - d; -> ", "b - c -> b + c", "b - c - d -> b - c + d"],
        );
        check("let f: fn(A) -> B = &mut *g; [-1, *x]", &[]);
    }

    #[test]
    fn conditions_change() {
        check(
            "let x = a && b == c || d;",
            &[
                "a && b == c -> a || b == c",
                "a && b == c || d -> a && b == c && d",
                "b == c -> b != c",
            ],
        );
        check("if a == b { c }", &["a == b -> a != b"]);
        check("if a < b { c }", &["a < b -> !(a < b)", "a < b -> a <= b"]);
        check("if !a.b()? { c }", &["!a.b()? -> a.b()?"]);
        check("if f(x) { c }", &["f(x) -> !(f(x))"]);
        check("match a { B | C if d.e() => 1, _ => 2 }", &["d.e() -> !(d.e())"]);
        check("matches!(a, B if c(d))", &["c(d) -> !(c(d))"]);
        // A `let` cannot stand beside `||`, nor be negated.
        check("if let A(x) = b && c && !d { e }", &["!d -> d"]);
        check("if a && let B = c { d }", &[]);
        check(
            "!matches!(a, B) || !(c)",
            &[
                "!matches!(a, B) -> matches!(a, B)",
                "!matches!(a, B) || !(c) -> !matches!(a, B) && !(c)",
                "!(c) -> (c)",
            ],
        );
    }

    #[test]
    fn statements_are_left_out() {
        check(
            "a.b(c); self.d(e).await?; f = g; return h();",
            &["a.b(c); -> ", "self.d(e).await?; -> ", "f = g; -> "],
        );
        check("self.n += 1; let x = y(); z!(a); S { a }", &["self.n += 1; -> self.n -= 1;"]);
    }

    #[test]
    fn faults_that_can_be_planted_are_left_alone() {
        check("if self.planted == Planted::A { b(); } c();", &["c(); -> "]);
        check(
            "if a && self.planted != Planted::A { b(); }",
            &[
                "a && self.planted != Planted::A -> !(a && self.planted != Planted::A)",
                "a && self.planted != Planted::A -> a || self.planted != Planted::A",
                "b(); -> ",
            ],
        );
    }

    #[test]
    fn nothing_is_told_twice_and_nothing_changes_in_logs() {
        check("tracing::debug!(a = b + c); debug_assert!(a < b); h()", &[]);
        let (found, _) = mutations("fn f() -> A { fn g() -> A { a < b } }").expect("it is read");
        assert_eq!(found.len(), 1);
    }
}
