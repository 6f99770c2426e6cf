//! Indexes of objects that are kept in keys of our own.
//!
//! Each index is a sorted set whose members all have the score 0, so they are in the order of their bytes: an entry is
//! the values of the index's fields, and then the object's key, in a form that keeps the order of values. The script of a
//! commit changes the entries with the objects. A read of an index is validated as a query is: the commit asks
//! again, and what it finds must be the same, so an object that enters or leaves what was read is a conflict.
//!
//! Another program may have other indexes of the same objects, and would leave entries behind. So the hash
//! `!indexes` holds, for each kind, the indexes that its objects have; a commit that writes such an object and a
//! read of an index are refused if their program has others. When a store is opened with other indexes, they are made
//! anew ([`crate::building`]).
//!
//! The server does not know the transaction's own writes: objects that it has written are taken out of the entries, and
//! come back with the values that they then have.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::index::indexed;
use mingle_model::{IndexRead, Name, ObjectType, Ref, Value};
use mingle_store::{StoreSchema, order};

use crate::request::{Word, words};

/// The words of a state after an index that is a `unique`, and between two indexes.
const UNIQUE: &str = " unique";
const BETWEEN: &str = "; ";

/// The indexes of a store.
#[derive(Clone, Debug, Default)]
pub struct Indexes {
    kinds: BTreeMap<Name, Vec<Index>>,
    queries: BTreeMap<Name, IndexRead>,
}

/// One index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Index {
    /// Its name in keys: `Order:customer,placed`.
    pub name: String,
    /// Its fields, by their places in the object's declaration.
    pub fields: Vec<u16>,
    /// True if no two objects have the same values.
    pub is_unique: bool,
}

/// An object with the values of an index's fields.
pub type Shown = (Ref, Vec<Option<Value>>);

impl Index {
    fn new(declared: &ObjectType, read: &IndexRead) -> Result<Self, String> {
        let fields = places(declared, read.fields.iter().map(|name| &**name))?;
        Ok(Self { name: name_of(read), fields, is_unique: read.is_unique })
    }
}

/// Returns the places of fields in an object's declaration.
///
/// # Errors
///
/// When it has no such field.
pub fn places<'a>(
    declared: &ObjectType,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<u16>, String> {
    let place = |name| {
        let place = declared.field_index(name).and_then(|place| u16::try_from(place).ok());
        place.ok_or_else(|| format!("object {} has no field {name}", declared.name))
    };
    names.map(place).collect()
}

/// Returns the name of an index in keys.
pub fn name_of(read: &IndexRead) -> String {
    let names: Vec<&str> = read.fields.iter().map(|name| &**name).collect();
    format!("{}:{}", read.object, names.join(","))
}

/// Returns the state of a kind whose objects have these indexes; empty if they have none.
pub fn state(indexes: &[Index]) -> String {
    let shown =
        |index: &Index| format!("{}{}", index.name, if index.is_unique { UNIQUE } else { "" });
    indexes.iter().map(shown).collect::<Vec<_>>().join(BETWEEN)
}

/// Returns the indexes of a state, as far as the declaration still has their fields.
pub fn of_state(state: &str, declared: &ObjectType) -> Vec<Index> {
    let parse = |text: &str| {
        let name = text.strip_suffix(UNIQUE).unwrap_or(text);
        let (_, fields) = name.split_once(':')?;
        let fields = places(declared, fields.split(',')).ok()?;
        Some(Index { name: name.to_owned(), fields, is_unique: name != text })
    };
    state.split(BETWEEN).filter_map(parse).collect()
}

impl Indexes {
    /// Collects the indexes that a program declares; `is_mapped` says which objects are in keys of other applications.
    ///
    /// # Errors
    ///
    /// When one is of an object in keys of another application.
    pub fn new(schema: &StoreSchema, is_mapped: impl Fn(&str) -> bool) -> Result<Self, String> {
        let mut kinds: BTreeMap<Name, BTreeSet<Index>> = BTreeMap::new();
        let mut queries = BTreeMap::new();
        let operations = schema.operations.iter();
        for (name, read) in operations.filter_map(|(name, of)| Some((name, of.index()?))) {
            let lacking = || format!("no object {} lives here", read.object);
            let declared = schema.schema.objects.get(&read.object).ok_or_else(lacking)?;
            if is_mapped(&read.object) {
                return Err(format!(
                    "object {} has the index {}, and its keys are another application's, which keeps none: keep the \
                     refs in a `set` of another object",
                    read.object, read.index
                ));
            }
            let index = Index::new(declared, read)?;
            kinds.entry(read.object.clone()).or_default().insert(index);
            queries.insert(name.clone(), read.clone());
        }
        let sorted = kinds.into_iter().map(|(kind, all)| (kind, all.into_iter().collect()));
        Ok(Self { kinds: sorted.collect(), queries })
    }

    /// Returns the indexes of a kind.
    pub fn of(&self, kind: &str) -> &[Index] {
        self.kinds.get(kind).map_or(&[], Vec::as_slice)
    }

    /// Returns the state of a kind, by its name.
    pub fn state(&self, kind: &str) -> String {
        state(self.of(kind))
    }

    /// Returns the read of an index that a query is.
    pub fn query(&self, operation: &str) -> Option<&IndexRead> {
        self.queries.get(operation)
    }

    /// True if an index has this field.
    pub fn has(&self, kind: &str, field: u16) -> bool {
        self.of(kind).iter().any(|index| index.fields.contains(&field))
    }

    /// Returns the question for a read of an index; `more` says by how many entries it exceeds what was asked for, since
    /// these may be the transaction's own. A count of which none is asks for the number alone.
    ///
    /// # Errors
    ///
    /// When the arguments do not fit.
    pub fn question(
        &self,
        read: &IndexRead,
        arguments: &[Value],
        more: usize,
    ) -> Result<Vec<Word>, String> {
        let question = read.question(arguments)?;
        let order::Span { lower, upper } = order::span(&[], &question);
        let bound = |mark: u8, bytes: Vec<u8>| [&[mark], &*bytes].concat();
        let lower = bound(b'[', lower);
        let upper = upper.map_or_else(|| b"+".to_vec(), |upper| bound(b'(', upper));
        let head = words![
            "i",
            &*read.object,
            self.state(&read.object),
            if read.counts && more == 0 {
                "ZLEXCOUNT"
            } else if question.is_reversed {
                "ZREVRANGEBYLEX"
            } else {
                "ZRANGEBYLEX"
            },
            name_of(read),
        ];
        let (first, last) = if question.is_reversed { (upper, lower) } else { (lower, upper) };
        let mut question_words = [head, vec![first, last]].concat();
        if !(read.counts && more == 0) {
            question_words.extend(words!["LIMIT", "0", (question.most + more).to_string()]);
        }
        Ok(question_words)
    }

    /// Returns the result of a read of an index from the server's entries; `own` has the objects that the transaction
    /// has written, with their values then.
    ///
    /// # Errors
    ///
    /// When the arguments do not fit, or an entry is no such thing.
    pub fn result(
        read: &IndexRead,
        arguments: &[Value],
        found: &[Word],
        own: &[Shown],
    ) -> Result<Value, String> {
        let question = read.question(arguments)?;
        let mut entries: BTreeMap<Word, Ref> = BTreeMap::new();
        for entry in found {
            let object = object_of(read, entry)?;
            if !own.iter().any(|(own, _)| *own == object) {
                entries.insert(entry.clone(), object);
            }
        }
        for (object, values) in own {
            let values: Option<Vec<&Value>> =
                values.iter().map(|value| value.as_ref().and_then(indexed)).collect();
            if let Some(values) = values.filter(|values| question.asks_for(object, values)) {
                entries.insert(entry(&values, object), object.clone());
            }
        }
        let found: Vec<Ref> = if question.is_reversed {
            entries.into_values().rev().take(question.most).collect()
        } else {
            entries.into_values().take(question.most).collect()
        };
        Ok(read.answer(found))
    }

    /// Returns the result of a count from the server's number.
    ///
    /// # Errors
    ///
    /// When the arguments do not fit.
    pub fn count(read: &IndexRead, arguments: &[Value], found: u64) -> Result<Value, String> {
        let most = u64::try_from(read.question(arguments)?.most).unwrap_or(u64::MAX);
        Ok(Value::Int(i64::try_from(found.min(most)).unwrap_or(i64::MAX)))
    }
}

/// Returns the form of a value by which its entries are ordered; empty if no index has an object with this value.
pub fn ordered(value: Option<&Value>) -> Word {
    let mut bytes = Word::new();
    if let Some(value) = value.and_then(indexed) {
        order::encode(value, &mut bytes);
    }
    bytes
}

/// Returns the entry of an object with these values.
fn entry(values: &[&Value], object: &Ref) -> Word {
    let mut entry = Word::new();
    for value in values {
        order::encode(value, &mut entry);
    }
    order::encode(object.key(), &mut entry);
    entry
}

/// Splits an entry into its values and the object's key.
///
/// # Errors
///
/// When it is no entry of so many fields.
pub fn split(fields: usize, entry: &[u8]) -> Result<(Vec<Value>, Value), String> {
    let mut rest = entry;
    let mut next = || order::decode(&mut rest);
    let values: Option<Vec<Value>> = (0..fields).map(|_| next()).collect();
    let split = values.zip(next()).filter(|_| rest.is_empty());
    split.ok_or_else(|| format!("the entry {} of an index cannot be read", entry.escape_ascii()))
}

fn object_of(read: &IndexRead, entry: &[u8]) -> Result<Ref, String> {
    let (_, key) = split(read.fields.len(), entry)?;
    Ok(Ref::new(read.object.clone(), key))
}

/// Returns the words that give an object, given by its number, the entries of its values.
pub fn settle(number: &str, object: &Ref, indexes: &[Index], declared: &ObjectType) -> Vec<Word> {
    let mut key = Word::new();
    order::encode(object.key(), &mut key);
    let mut words = words!["X", number, key];
    for index in indexes {
        words.extend(words![&*index.name, index.fields.len().to_string()]);
        let names = index.fields.iter().map(|place| &declared.fields[usize::from(*place)].name);
        words.extend(names.map(|name| Word::from(&**name)));
    }
    words
}
