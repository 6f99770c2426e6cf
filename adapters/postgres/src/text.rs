//! Texts of statements, with digests computed once, and a cache of generated texts.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::mem::Discriminant;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use mingle_model::Name;
use mingle_store::Read;
use rustc_hash::FxHashMap as HashMap;

use crate::limits::{MANY, TEXTS_MAX};
use crate::system::Demands;

/// The text of a statement.
#[derive(Clone)]
pub struct Sql {
    text: Arc<str>,
    digest: u64,
}

/// The hash key of the digests, the same for the whole process.
static DIGEST: LazyLock<std::hash::RandomState> = LazyLock::new(Default::default);

impl<T: Into<Arc<str>>> From<T> for Sql {
    fn from(text: T) -> Self {
        let text = text.into();
        let digest = DIGEST.hash_one(&*text);
        Self { text, digest }
    }
}

impl Deref for Sql {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Sql {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(formatter)
    }
}

impl PartialEq for Sql {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text)
            || (self.digest == other.digest && self.text == other.text)
    }
}

impl Eq for Sql {}

impl Hash for Sql {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.digest);
    }
}

/// True if a statement looks for many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Many(bool);

impl Many {
    /// Classifies a number of rows.
    pub fn of(count: usize) -> Self {
        Self(count > MANY)
    }

    /// Returns the condition that a column is among the values of `$1`. A hash index returns
    /// candidate rows, and PostgreSQL compares each with all values; for many values, separate
    /// lookups are faster.
    pub fn among(self, column: &str) -> String {
        if self.0 {
            return format!("{column} IN (SELECT unnest($1::bytea[]))");
        }
        format!("{column} = ANY($1::bytea[])")
    }
}

/// The identity of a statement whose text depends only on the layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Text {
    /// A slice of a map in an existing table, the field at this index; true for the last entries.
    MappedSlice(Name, u16, bool),
    /// Rows of a kind with these fields; few or many objects.
    Rows(Name, Vec<u16>, Many),
    /// The same, and witness rows.
    RowsAndWitnesses(Name, Vec<u16>, Many),
    /// A read of a mapped kind: the field, and the variant of the read.
    Mapped(Name, Option<u16>, Discriminant<Read>),
    /// Witness rows of few or many objects.
    Witnesses(Many),
    /// The first statement of a commit.
    Commit(Demands),
    /// The statement that records an id's outcome.
    Outcome,
    /// Records.
    Records,
    /// This many records that can only be new.
    NewRecords(usize),
    /// A witness row.
    Witness,
    /// A change of these fields of an object; the flag is true if the object is known to exist.
    Columns(Name, bool, Vec<u16>),
    /// Several statements as one.
    Together(Vec<Sql>),
}

/// The cache of generated texts.
#[derive(Default)]
pub struct Texts(RwLock<HashMap<Text, Sql>>);

impl Texts {
    /// Returns the text of a statement; generates it once.
    pub fn get(&self, text: Text, make: impl FnOnce() -> String) -> Sql {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&text).cloned();
        known.unwrap_or_else(|| {
            let made = Sql::from(make());
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() < TEXTS_MAX {
                known.insert(text, made.clone());
            }
            made
        })
    }
}
