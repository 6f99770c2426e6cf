//! Requests to scripts: words, lists of words, and the objects that they name by number.

use std::collections::BTreeMap;

use mingle_model::Ref;

/// One word.
pub type Word = Vec<u8>;

/// The words of one request.
#[derive(Clone, Debug, Default)]
pub struct Request(Vec<Word>);

impl Request {
    /// Adds a word.
    pub fn word(&mut self, word: impl Into<Word>) {
        self.0.push(word.into());
    }

    /// Adds a list: its length, and its words.
    pub fn list(&mut self, words: &[Word]) {
        self.word(words.len().to_string());
        self.0.extend_from_slice(words);
    }

    /// Adds a list of lists.
    pub fn lists(&mut self, lists: &[Vec<Word>]) {
        self.word(lists.len().to_string());
        for words in lists {
            self.list(words);
        }
    }

    /// Returns all words.
    pub fn words(&self) -> &[Word] {
        &self.0
    }

    /// Returns the total size in bytes.
    pub fn size(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }
}

/// Builds a list of words from values that convert to one word each.
macro_rules! words {
    ($($word:expr),* $(,)?) => {
        vec![$($crate::request::Word::from($word)),*]
    };
}
pub(crate) use words;

/// The objects that a transaction has named, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    numbers: BTreeMap<Ref, usize>,
    names: Vec<Vec<Word>>,
}

impl Objects {
    /// Returns the number of an object, from 1; `key` returns the stored form of its key.
    ///
    /// # Errors
    ///
    /// Those of `key`.
    pub fn number(
        &mut self,
        object: &Ref,
        key: impl FnOnce() -> Result<Word, String>,
    ) -> Result<String, String> {
        if let Some(number) = self.numbers.get(object) {
            return Ok(number.to_string());
        }
        self.names.push(words![&**object.kind(), key()?]);
        self.numbers.insert(object.clone(), self.names.len());
        Ok(self.names.len().to_string())
    }

    /// Returns their kinds and keys.
    pub fn names(&self) -> &[Vec<Word>] {
        &self.names
    }
}
