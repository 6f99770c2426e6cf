//! Conversion of a program's names to names of another language.
//!
//! A name is converted to the language's case, unless two names would then be equal. A name that
//! the language or the generated code reserves gets an underscore.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Name;

/// Names of one namespace.
pub(crate) struct Names(BTreeMap<Name, String>);

/// The naming rules of a language.
pub(crate) struct Style<'a> {
    /// Converts a name to the case of its kind.
    pub convert: fn(&str) -> String,
    /// Turns a text into a valid name of the language.
    pub valid: fn(String) -> String,
    /// True for names that are reserved.
    pub reserved: &'a dyn Fn(&str) -> bool,
}

impl Names {
    /// Assigns each name a distinct name of the language.
    pub(crate) fn assign<'a>(names: impl Iterator<Item = &'a Name>, style: &Style<'_>) -> Self {
        let names: Vec<&Name> = names.collect();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for name in &names {
            *counts.entry((style.convert)(name)).or_default() += 1;
        }
        let converted = names.iter().map(|name| {
            let converted = (style.convert)(name);
            // Two names that would become equal stay unconverted.
            let kept = if counts[&converted] > 1 { name.to_string() } else { converted };
            ((*name).clone(), (style.valid)(kept))
        });
        let mut converted: Vec<(Name, String)> = converted.collect();
        // A name already in the language's form keeps it, even if another name is converted to it.
        converted.sort_by_key(|(name, kept)| **name != **kept || (style.reserved)(kept));
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let mut assigned = BTreeMap::new();
        for (name, mut converted) in converted {
            while (style.reserved)(&converted) || !taken.insert(converted.clone()) {
                converted.push('_');
            }
            assigned.insert(name, converted);
        }
        Self(assigned)
    }

    /// Returns the assigned name.
    pub(crate) fn of(&self, name: &Name) -> &str {
        &self.0[name]
    }

    /// True if some name was assigned this text.
    #[cfg(feature = "text")]
    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.values().any(|name| name == text)
    }
}

/// Replaces each character that a name may not contain by an underscore, and adds one if the first
/// character may not start a name.
pub(crate) fn of_identifier_characters(name: &str) -> String {
    let continues = |c| if unicode_ident::is_xid_continue(c) { c } else { '_' };
    let mut name: String = name.chars().map(continues).collect();
    let starts = |c| c == '_' || unicode_ident::is_xid_start(c);
    if !name.starts_with(starts) {
        name.insert(0, '_');
    }
    name
}

/// `HTTPServer_id` becomes `http_server_id`.
pub(crate) fn snake_case(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, c) in characters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| characters[before]);
        let ends_word = before.is_some_and(|c| c.is_lowercase() || c.is_numeric());
        let begins_word = before.is_some_and(char::is_uppercase)
            && characters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (ends_word || begins_word) {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// `http_server` becomes `HttpServer`; in a name without underscores only the first letter changes.
pub(crate) fn pascal_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let pascal: String = words.flat_map(capitalized).collect();
    if pascal.is_empty() { name.to_owned() } else { pascal }
}

/// `HTTPServer_id` becomes `httpServerId`.
#[cfg(feature = "text")]
pub(crate) fn camel_case(name: &str) -> String {
    let snake = snake_case(name);
    let mut words = snake.split('_').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or(name).to_owned();
    words.fold(first, |camel, word| camel + &capitalized(word).collect::<String>())
}

fn capitalized(word: &str) -> impl Iterator<Item = char> {
    let mut characters = word.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters)
}
