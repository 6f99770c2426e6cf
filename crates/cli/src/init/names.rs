//! Names in a program, made from the names in a database.

use std::collections::BTreeSet;

use mingle_lang::syntax::token::Keyword;

/// Returns a valid name for a program: the name itself if it is valid.
pub fn identifier(name: &str, otherwise: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if found.chars().all(|c| c == '_') {
        otherwise.clone_into(&mut found);
    }
    if found.starts_with(|c: char| c.is_ascii_digit()) {
        found.insert(0, '_');
    }
    if Keyword::from_text(&found).is_some() {
        found.push('_');
    }
    found
}

/// Returns the name of an object for the rows of a table: `order_items` gives `OrderItem`.
pub fn of_object(table: &str) -> String {
    let words: Vec<&str> = table.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let words = words.iter().filter(|word| !word.is_empty());
    let mut words: Vec<String> = words.map(|word| capitalized(word)).collect();
    if let Some(last) = words.last_mut() {
        *last = singular(last);
    }
    identifier(&words.concat(), "Row")
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_uppercase() + rest
}

/// Returns the singular of a plural, by the common rules of English.
fn singular(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 1) {
        return format!("{stem}y");
    }
    for ending in ["sses", "xes", "ches", "shes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    let is_plural = word.len() > 2
        && word.ends_with('s')
        && !["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    if is_plural { word[..word.len() - 1].to_owned() } else { word.to_owned() }
}

/// Returns the name of a variable for an object: `OrderItem` gives `order_item`.
pub fn of_variable(object: &str) -> String {
    let mut name = String::new();
    for (index, c) in object.chars().enumerate() {
        if c.is_ascii_uppercase() && index > 0 {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    identifier(&name, "row")
}

/// The names that are used in one scope.
#[derive(Clone, Debug, Default)]
pub struct Taken(BTreeSet<String>);

impl Taken {
    /// True if a name is used already.
    #[cfg(feature = "redis")]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Reserves a name; adds a number to it if it is used already.
    pub fn take(&mut self, name: String) -> String {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut candidates = std::iter::once(name.clone()).chain(numbered);
        let free = candidates.find(|candidate| !self.0.contains(candidate));
        let free = free.expect("there is always another number");
        self.0.insert(free.clone());
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_become_names_of_objects() {
        for (table, object) in [
            ("customers", "Customer"),
            ("order_items", "OrderItem"),
            ("categories", "Category"),
            ("addresses", "Address"),
            ("boxes", "Box"),
            ("status", "Status"),
            ("news-letters", "NewsLetter"),
            ("2nd", "_2nd"),
            ("ä", "Row"),
        ] {
            assert_eq!(of_object(table), object, "{table}");
        }
        assert_eq!(of_variable("OrderItem"), "order_item");
        assert_eq!(of_variable("In"), "in_");
        assert_eq!(identifier("full name", "f"), "full_name");
        let mut taken = Taken::default();
        assert_eq!([(); 3].map(|()| taken.take("a".into())), ["a", "a_2", "a_3"]);
    }
}
