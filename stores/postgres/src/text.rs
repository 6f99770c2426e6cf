//! Texts of statements, with a digest that is computed once, and those that are made once.

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

/// Under which texts have their digests, the same in a process.
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

/// Whether a statement looks for many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Many(bool);

impl Many {
    /// Of so many.
    pub fn of(count: usize) -> Self {
        Self(count > MANY)
    }

    /// The condition that a column is among the values of `$1`. A hash index gives rows that may be among
    /// them, and each is compared with all: with so many, each value is better looked for by itself.
    pub fn among(self, column: &str) -> String {
        if self.0 {
            return format!("{column} IN (SELECT unnest($1::bytea[]))");
        }
        format!("{column} = ANY($1::bytea[])")
    }
}

/// Which statement a text is of, where the layout says all that it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Text {
    /// Rows of a kind with these fields, of so many objects.
    Rows(Name, Vec<u16>, Many),
    /// The same, and witness rows.
    RowsAndWitnesses(Name, Vec<u16>, Many),
    /// Reads of a sort, of a mapped kind, and of which field.
    Mapped(Name, Option<u16>, Discriminant<Read>),
    /// Witness rows of so many objects.
    Witnesses(Many),
    /// What a commit begins with.
    Commit(Demands),
    /// That an id has taken effect.
    Outcome,
    /// Records.
    Records,
    /// So many records that can only be new.
    NewRecords(usize),
    /// A witness row.
    Witness,
    /// A change of these fields of an object, and whether that is known to exist.
    Columns(Name, bool, Vec<u16>),
    /// Several statements as one.
    Together(Vec<Sql>),
}

/// The texts that were made.
#[derive(Default)]
pub struct Texts(RwLock<HashMap<Text, Sql>>);

impl Texts {
    /// The text of a statement, which is made once.
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
