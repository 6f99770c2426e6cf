//! The reasons of failed calls.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use mingle::Error;

/// The number of reasons shown.
const SHOWN: usize = 5;

/// The number of failed calls by error text.
#[derive(Default)]
pub struct Reasons(Mutex<BTreeMap<String, u64>>);

impl Reasons {
    /// Records one failed call with this reason.
    #[cfg(test)]
    pub fn of(reason: &str) -> Self {
        Self(Mutex::new(BTreeMap::from([(reason.to_owned(), 1)])))
    }

    /// Counts a call that failed.
    pub fn note(&self, error: &Error) {
        let reason = alike(&error.to_string());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
    }

    /// Returns the most frequent reasons with their counts.
    pub fn most(&self) -> Vec<(String, u64)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> =
            known.iter().map(|(reason, count)| (reason.clone(), *count)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all.truncate(SHOWN);
        all
    }
}

/// Returns an error text without the parts that vary: numbers, and names with numbers in them.
fn alike(text: &str) -> String {
    let word = |word: &str| {
        let has_digit = word.contains(|c: char| c.is_ascii_digit());
        if has_digit { "…".to_owned() } else { word.to_owned() }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_differ_in_numbers_are_one() {
        let reasons = Reasons::default();
        for waits in [1_001, 1_002] {
            reasons.note(&Error::Limit(format!("it would wait for {waits} others")));
        }
        reasons.note(&Error::Limit("it is too long".into()));
        let most = reasons.most();
        assert_eq!(most.len(), 2, "{most:?}");
        assert!(most[0].0.contains("wait for … others"), "{most:?}");
        assert_eq!(most[0].1, 2);
    }
}
