//! The extent of an operator's operands, found by precedence alone.

use super::functions::after_generics;
use super::lex::{Kind, Tokens, is_keyword};

/// The precedence of a binary operator; a smaller number binds less tightly.
pub const OR: u8 = 1;
pub const AND: u8 = 2;
pub const COMPARE: u8 = 3;
pub const ADD: u8 = 8;

/// Returns the precedence of the binary operator at a token, if it is one.
pub fn binds(tokens: &Tokens<'_>, index: usize) -> Option<u8> {
    if index == 0 || !tokens.ends_operand(index - 1) && tokens.before(index) != "}" {
        return None;
    }
    let strength = match tokens.at(index) {
        "||" => OR,
        "&&" => AND,
        "==" | "!=" | "<=" | ">=" | "<" | ">" => COMPARE,
        "|" => 4,
        "^" => 5,
        "&" => 6,
        "<<" | ">>" => 7,
        "+" | "-" => ADD,
        "*" | "/" | "%" => 9,
        _ => return None,
    };
    tokens.stands_apart(index).then_some(strength)
}

/// True for signs and words at which an operand ends.
fn is_boundary(tokens: &Tokens<'_>, index: usize) -> bool {
    const SIGNS: [&str; 21] = [
        ",", ";", "=", "=>", "->", "..", "..=", "...", ":", "@", "#", "+=", "-=", "*=", "/=", "%=",
        "^=", "&=", "|=", "<<=", ">>=",
    ];
    match tokens.kind(index) {
        None | Some(Kind::Lifetime) => true,
        Some(Kind::Word) => {
            let word = tokens.at(index);
            is_keyword(word) && !["as", "mut", "dyn"].contains(&word)
        }
        Some(Kind::Sign) => {
            let sign = tokens.at(index);
            // The parameters of a closure have no blank on the inside.
            let is_closure = matches!(sign, "|" | "||") && binds(tokens, index).is_none();
            SIGNS.contains(&sign) || is_closure
        }
        _ => false,
    }
}

/// Returns the first token of the left operand of an operator of this precedence.
pub fn left(tokens: &Tokens<'_>, operator: usize, strength: u8) -> Option<usize> {
    let mut start = operator;
    while let Some(before) = start.checked_sub(1) {
        match tokens.kind(before)? {
            Kind::Open => break,
            Kind::Close if tokens.at(before) == "}" => break,
            Kind::Close => start = tokens.all[before].partner,
            _ if is_boundary(tokens, before) => break,
            _ if binds(tokens, before).is_some_and(|found| found < strength) => break,
            _ => start = before,
        }
    }
    // In `let A = b && c`, `A = b` is not an operand.
    let chained = strength <= AND && start > 0 && tokens.before(start) == "=" && {
        let mut back = (0..start).rev().take_while(|index| !matches!(tokens.at(*index), ";" | "}"));
        back.any(|index| {
            tokens.at(index) == "let" && matches!(tokens.before(index), "if" | "while" | "&&")
        })
    };
    (start < operator && !chained).then_some(start)
}

/// Returns the token after the right operand of an operator of this precedence.
pub fn right(tokens: &Tokens<'_>, operator: usize, strength: u8) -> Option<usize> {
    let begin = operator + 1;
    let mut end = begin;
    loop {
        match tokens.kind(end) {
            None | Some(Kind::Close) => break,
            Some(Kind::Open) if tokens.at(end) == "{" => break,
            Some(Kind::Open) => end = tokens.all[end].partner + 1,
            _ if is_boundary(tokens, end) => break,
            _ if binds(tokens, end).is_some_and(|found| found <= strength) => break,
            _ => end += 1,
        }
    }
    // A keyword begins an operand with braces, or no operand.
    let is_cut = end == begin || matches!(tokens.at(end), "let" | "match" | "if" | "unsafe" | "|");
    (!is_cut).then_some(end)
}

/// Returns the token after an operand that begins here and has no binary operator: `*a.b(c)?.d`.
pub fn unary(tokens: &Tokens<'_>, begin: usize) -> Option<usize> {
    let mut at = begin;
    while matches!(tokens.at(at), "&" | "*" | "!" | "-") {
        at += 1;
    }
    match tokens.kind(at)? {
        Kind::Open if tokens.at(at) != "{" => at = tokens.all[at].partner + 1,
        Kind::Literal => at += 1,
        Kind::Word if !is_keyword(tokens.at(at)) => at += 1,
        _ => return None,
    }
    loop {
        match tokens.at(at) {
            "." | "::" if tokens.at(at + 1) == "<" => {
                at = after_generics(tokens, at + 1)?;
            }
            "." | "::" => at += 2,
            "?" => at += 1,
            "!" if tokens.kind(at + 1) == Some(Kind::Open) => at += 1,
            "(" | "[" => at = tokens.all[at].partner + 1,
            _ => return Some(at),
        }
    }
}
