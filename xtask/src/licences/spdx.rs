//! Licence expressions as SPDX defines them: `MIT OR (Apache-2.0 AND ISC)`.

use std::collections::BTreeSet;

/// A licence expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// One licence, with its exception if it has one: `Apache-2.0 WITH LLVM-exception`.
    Licence(String),
    /// All of these apply.
    All(Vec<Expression>),
    /// The user chooses one of these.
    Any(Vec<Expression>),
}

impl Expression {
    /// Parses an expression. `/` between two licences, as in old manifests, means `OR`.
    ///
    /// # Errors
    ///
    /// The expected word and the word found instead, if the text is not an expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Tokens { rest: words(text) };
        let expression = tokens.any()?;
        match tokens.next() {
            None => Ok(expression),
            Some(word) => Err(format!("expected the end or an operator, found `{word}`")),
        }
    }

    /// True if a user that accepts the `allowed` licences can satisfy the expression. `X+` means
    /// `X` or a later version of it, so that `X` satisfies it.
    pub fn allows(&self, allowed: &BTreeSet<String>) -> bool {
        match self {
            Self::Licence(name) => {
                let plain = name.strip_suffix('+').unwrap_or(name);
                allowed.contains(name) || allowed.contains(plain)
            }
            Self::All(parts) => parts.iter().all(|part| part.allows(allowed)),
            Self::Any(parts) => parts.iter().any(|part| part.allows(allowed)),
        }
    }

    /// Returns the licences that the expression names.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Licence(name) => vec![name.strip_suffix('+').unwrap_or(name)],
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::names).collect(),
        }
    }
}

/// Splits an expression into words; parentheses and `/` are words of their own.
fn words(text: &str) -> Vec<String> {
    let mut spaced = String::new();
    for char in text.chars() {
        match char {
            '(' | ')' | '/' => spaced.extend([' ', char, ' ']),
            _ => spaced.push(char),
        }
    }
    spaced.split_whitespace().rev().map(str::to_owned).collect()
}

/// The words that are left to parse, in reverse order.
struct Tokens {
    rest: Vec<String>,
}

impl Tokens {
    fn next(&mut self) -> Option<String> {
        self.rest.pop()
    }

    /// Takes the next word if it is one of these.
    fn take(&mut self, words: &[&str]) -> bool {
        let is_there = self.rest.last().is_some_and(|next| words.contains(&next.as_str()));
        if is_there {
            self.rest.pop();
        }
        is_there
    }

    fn any(&mut self) -> Result<Expression, String> {
        let mut parts = vec![self.all()?];
        while self.take(&["OR", "/"]) {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Any(parts) })
    }

    fn all(&mut self) -> Result<Expression, String> {
        let mut parts = vec![self.one()?];
        while self.take(&["AND"]) {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::All(parts) })
    }

    fn one(&mut self) -> Result<Expression, String> {
        if self.take(&["("]) {
            let inner = self.any()?;
            return self.take(&[")"]).then_some(inner).ok_or_else(|| "expected `)`".into());
        }
        let name = self.licence()?;
        if self.take(&["WITH"]) {
            let exception = self.licence()?;
            return Ok(Expression::Licence(format!("{name} WITH {exception}")));
        }
        Ok(Expression::Licence(name))
    }

    fn licence(&mut self) -> Result<String, String> {
        let is_name = |word: &str| {
            let is_operator = ["AND", "OR", "WITH"].contains(&word);
            !is_operator
                && word.chars().all(|char| char.is_ascii_alphanumeric() || "-.+".contains(char))
        };
        match self.next() {
            Some(word) if is_name(&word) => Ok(word),
            Some(word) => Err(format!("expected a licence, found `{word}`")),
            None => Err("expected a licence, found the end".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(text: &str, allowed: &[&str]) -> bool {
        let allowed = allowed.iter().map(|name| (*name).to_owned()).collect();
        Expression::parse(text).expect("it is an expression").allows(&allowed)
    }

    #[test]
    fn one_of_several_is_enough() {
        assert!(allows("MIT", &["MIT"]));
        assert!(!allows("GPL-3.0-only", &["MIT"]));
        assert!(allows("GPL-3.0-only OR MIT", &["MIT"]));
        assert!(allows("MIT/Apache-2.0", &["Apache-2.0"]));
        assert!(allows("MIT / Apache-2.0", &["MIT"]));
    }

    #[test]
    fn all_of_several_are_needed() {
        assert!(!allows("MIT AND BSD-3-Clause", &["MIT"]));
        assert!(allows("MIT AND BSD-3-Clause", &["MIT", "BSD-3-Clause"]));
    }

    #[test]
    fn and_binds_closer_than_or() {
        assert!(allows("MIT OR ISC AND GPL-2.0-only", &["MIT"]));
        assert!(!allows("(MIT OR ISC) AND GPL-2.0-only", &["MIT"]));
        assert!(allows("(MIT OR ISC) AND Unicode-3.0", &["ISC", "Unicode-3.0"]));
        assert!(allows("ISC AND ((MIT OR X) AND (Y OR Zlib))", &["ISC", "X", "Zlib"]));
    }

    #[test]
    fn an_exception_makes_another_licence() {
        assert!(!allows("Apache-2.0 WITH LLVM-exception", &["Apache-2.0"]));
        assert!(allows("Apache-2.0 WITH LLVM-exception", &["Apache-2.0 WITH LLVM-exception"]));
        assert!(allows("Apache-2.0 WITH LLVM-exception OR MIT", &["MIT"]));
    }

    #[test]
    fn a_plus_means_this_version_or_later() {
        assert!(allows("MPL-2.0+", &["MPL-2.0"]));
        assert!(!allows("MPL-2.0", &["MPL-2.0+"]));
        assert_eq!(
            Expression::parse("MPL-2.0+").map(|it| it.names().join(" ")),
            Ok("MPL-2.0".into())
        );
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT ISC", "MIT WITH", "a_b", "()"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }
}
