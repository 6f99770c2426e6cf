//! The functions of a file that may be changed: all but tests, macros, `Debug` and constant
//! functions.

use super::lex::{Kind, Tokens};

/// A function with a body.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    pub name: &'a str,
    /// The type that it returns; empty if it returns no value.
    pub returns: &'a str,
    /// The tokens of its braces.
    pub open: usize,
    pub close: usize,
}

/// The parts of a file that can be changed.
pub struct Outline<'a> {
    pub functions: Vec<Function<'a>>,
    /// The names of test modules that are in other files.
    pub tests: Vec<&'a str>,
}

/// The macros whose arguments are messages for people, or are checked in tests only.
const UNOBSERVED: [&str; 12] = [
    "trace",
    "debug",
    "info",
    "warn",
    "error",
    "event",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "unreachable",
    "panic",
    "eprintln",
];

/// Finds the functions of a file.
pub fn outline<'a>(tokens: &Tokens<'a>) -> Outline<'a> {
    let (mut functions, mut tests, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.all.len() {
        if let Some(end) = attribute(tokens, at) {
            let is_inner = tokens.at(at) == "#!";
            if !is_test(tokens.between(at, end)) {
                at = end;
            } else if is_inner {
                break;
            } else {
                let item = item(tokens, end);
                tests.extend(module(tokens, end, item));
                at = item;
            }
        } else if let Some(end) = opaque(tokens, at) {
            at = end;
        } else {
            functions.extend(function(tokens, at));
            at += 1;
        }
    }
    Outline { functions, tests }
}

/// Returns the end of a macro that begins here and whose arguments no test observes.
pub fn unobserved(tokens: &Tokens<'_>, index: usize) -> Option<usize> {
    let is_macro = tokens.kind(index) == Some(Kind::Word)
        && tokens.at(index + 1) == "!"
        && tokens.kind(index + 2) == Some(Kind::Open)
        && UNOBSERVED.contains(&tokens.at(index));
    is_macro.then(|| tokens.all[index + 2].partner + 1)
}

/// Returns the end of an `if` that begins here and makes a planted fault: `if self.planted ==
/// Planted::A {`.
pub fn planted(tokens: &Tokens<'_>, index: usize) -> Option<usize> {
    if tokens.at(index) != "if" {
        return None;
    }
    let open = (index..tokens.all.len()).find(|at| tokens.at(*at) == "{")?;
    let is_planted = (index..open).any(|at| names_fault(tokens, at));
    let is_more = (index..open).any(|at| matches!(tokens.at(at), "&&" | "||" | "!" | "!=" | "=>"));
    (is_planted && !is_more).then(|| tokens.all[open].partner + 1)
}

/// True if a token names a fault that can be planted.
pub fn names_fault(tokens: &Tokens<'_>, index: usize) -> bool {
    matches!(tokens.at(index), "Planted" | "Flaw") && tokens.at(index + 1) == "::"
}

/// Returns the end of an attribute that begins here.
pub fn attribute(tokens: &Tokens<'_>, at: usize) -> Option<usize> {
    let begins = matches!(tokens.at(at), "#" | "#!") && tokens.at(at + 1) == "[";
    begins.then(|| tokens.all[at + 1].partner + 1)
}

fn is_test(attribute: &str) -> bool {
    let inside = attribute.trim_start_matches(['#', '!', '[']).trim_end_matches(']');
    let is_condition = inside.starts_with("cfg(") && !inside.contains("not(test");
    let mut words = inside.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    inside == "test"
        || inside.ends_with("::test")
        || is_condition && words.any(|word| word == "test")
}

/// Returns the end of the item that begins here, with its further attributes.
fn item(tokens: &Tokens<'_>, mut at: usize) -> usize {
    while let Some(end) = attribute(tokens, at) {
        at = end;
    }
    let has_semicolon = ["use", "const", "static", "let", "type"].contains(&tokens.at(at));
    while at < tokens.all.len() {
        match tokens.at(at) {
            ";" => return at + 1,
            "{" if !has_semicolon => return tokens.all[at].partner + 1,
            "(" | "[" | "{" => at = tokens.all[at].partner + 1,
            // The end of the block that contains the item.
            ")" | "]" | "}" => return at,
            _ => at += 1,
        }
    }
    at
}

/// Returns the name of a module in another file, if the item is one.
fn module<'a>(tokens: &Tokens<'a>, at: usize, end: usize) -> Option<&'a str> {
    let begin = (at..end).find(|index| tokens.at(*index) == "mod")?;
    (tokens.at(begin + 2) == ";").then(|| tokens.at(begin + 1))
}

/// Returns the end of a part in which nothing is changed: the rules of a macro, or a `Debug`
/// implementation.
fn opaque(tokens: &Tokens<'_>, at: usize) -> Option<usize> {
    match tokens.at(at) {
        "macro_rules" if tokens.at(at + 1) == "!" => Some(tokens.all.get(at + 3)?.partner + 1),
        "impl" => {
            let open = (at..tokens.all.len()).find(|index| tokens.at(*index) == "{")?;
            let head = at..open;
            let mut words = head.map(|index| (tokens.at(index), tokens.at(index + 1)));
            words.any(|pair| pair == ("Debug", "for")).then(|| tokens.all[open].partner + 1)
        }
        _ => unobserved(tokens, at),
    }
}

/// Returns the function whose `fn` is at this token.
fn function<'a>(tokens: &Tokens<'a>, at: usize) -> Option<Function<'a>> {
    if tokens.at(at) != "fn" || tokens.kind(at + 1) != Some(Kind::Word) || is_constant(tokens, at) {
        return None;
    }
    let parameters = after_generics(tokens, at + 2)?;
    if tokens.at(parameters) != "(" {
        return None;
    }
    let arrow = tokens.all[parameters].partner + 1;
    let begin = if tokens.at(arrow) == "->" { arrow + 1 } else { arrow };
    let (mut end, mut condition) = (begin, None);
    loop {
        match tokens.at(end) {
            "{" => break,
            ";" | "" | "}" => return None,
            "(" | "[" => end = tokens.all[end].partner + 1,
            word => {
                if word == "where" {
                    condition.get_or_insert(end);
                }
                end += 1;
            }
        }
    }
    let returns = tokens.between(begin, condition.unwrap_or(end));
    Some(Function { name: tokens.at(at + 1), returns, open: end, close: tokens.all[end].partner })
}

fn is_constant(tokens: &Tokens<'_>, function: usize) -> bool {
    let mut words = (0..function).rev().map(|index| tokens.at(index));
    let is_qualifier = |word: &str| ["const", "async", "unsafe", "extern"].contains(&word);
    words.by_ref().take_while(|word| is_qualifier(word)).any(|word| word == "const")
}

/// Returns the token after the generic parameters or arguments that begin here, if any do.
pub fn after_generics(tokens: &Tokens<'_>, mut at: usize) -> Option<usize> {
    if tokens.at(at) != "<" {
        return Some(at);
    }
    let mut depth = 0_i32;
    loop {
        match tokens.at(at) {
            "" => return None,
            "<" => depth += 1,
            ">" => depth -= 1,
            ">>" => depth -= 2,
            "(" | "[" | "{" => at = tokens.all[at].partner,
            _ => {}
        }
        at += 1;
        if depth <= 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let tokens = Tokens::read(text).expect("it is read");
        let found = outline(&tokens).functions;
        found.iter().map(|found| format!("{} {}", found.name, found.returns)).collect()
    }

    #[test]
    fn functions_are_found_with_what_they_return() {
        let text = "
            pub(crate) async fn one<F: Fn(u8) -> Vec<Vec<u8>>>(f: F) -> Option<u8> where F: Send { f(1); }
            impl fmt::Display for A { fn fmt(&self) -> [u8; 2] { fn inner() {} } }
            trait B { fn asked(&self) -> bool; fn given(&self) -> bool { true } }";
        assert_eq!(names(text), ["one Option<u8>", "fmt [u8; 2]", "inner ", "given bool"]);
    }

    #[test]
    fn tests_macros_constants_and_debug_are_left_alone() {
        let text = "
            #[cfg(test)] mod inline { fn a() {} }
            #[cfg(test)] mod elsewhere;
            #[cfg(all(test, unix))] use a::{b, c};
            #[test] #[should_panic] fn b() {}
            #[tokio::test] async fn c() {}
            macro_rules! d { () => { fn d() {} } }
            const fn e() -> u8 { 1 }
            impl fmt::Debug for F { fn f(&self) {} }
            #[cfg(not(test))] fn here() {}
            #[cfg(feature = \"test_x\")] fn there() {}";
        assert_eq!(names(text), ["here ", "there "]);
        let tokens = Tokens::read(text).expect("it is read");
        assert_eq!(outline(&tokens).tests, ["elsewhere"]);
        assert!(names("#![cfg(test)] fn a() {}").is_empty());
    }
}
