//! Names of items in the core: the mapping from objects, records and rows to items.
//!
//! | section | item | what it is |
//! | --- | --- | --- |
//! | `p` kind `{` object `}` | register | whether the object exists |
//! | `f` `{` object `}` field | as the field's type | a field |
//! | `w` `{` object `}` | set | the object's witness rows; of kind 0 those of the whole store |
//! | `i` transaction `{` object `}` | set | the same rows by transaction |
//! | `r` kind key | register | a record |
//! | `c` transaction | register | whether the commit of this id took effect |
//! | `b` transaction data center | register | no commit of this id takes effect there; where others are processes of their own |
//! | `g` | map | by data center and origin, the highest number of which the data center has removed a note |
//! | `x` kind fields | | the header of an index, for all values of its first field; followed by `{` value `}`, for one |
//! | `h` `{` store `}` number | | the mark of so many indexes; see [`super::agreed`] |
//! | `y` `{` number `}` | register | nothing; a read of one at each partition completes a snapshot there |
//! | `m` | map | the rows with the store's declarations, where they are not kept in a folder |
//!
//! The part in braces decides the partition, so all items of an object are in one partition. An
//! object is the durable id of its kind, and its key. Bytes are escaped so that no brace is among
//! them and their order stays: within a section, items are in the order of the objects or records
//! that they name.

use mingle_geo::{DcId, Key, Kind};
use mingle_model::{Name, Ref, TransactionId, Value};
use mingle_store::{RecordKey, RecordKind};

use crate::encoding::{key, order};
use crate::layout::{Layout, Shape};

/// An object's name in items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thing {
    kind: u32,
    key: Vec<u8>,
}

impl Thing {
    /// Returns the name of an object, or of the whole store if `object` is none.
    ///
    /// # Errors
    ///
    /// When no such kind lives in this store.
    pub fn of(layout: &Layout, object: Option<&Ref>) -> Result<Self, String> {
        let Some(object) = object else { return Ok(Self { kind: 0, key: Vec::new() }) };
        let kind = layout.kind(object.kind())?.id;
        let mut key = Vec::new();
        order::encode(object.key(), &mut key);
        Ok(Self { kind, key })
    }

    /// Returns the durable id of the kind.
    pub fn kind(&self) -> u32 {
        self.kind
    }

    fn tagged(&self, section: u8, before: &[u8]) -> Vec<u8> {
        let mut name = vec![section];
        escape(before, &mut name);
        name.push(b'{');
        escape(&self.kind.to_be_bytes(), &mut name);
        escape(&self.key, &mut name);
        name.push(b'}');
        name
    }

    /// Returns the item that says if the object exists.
    pub fn presence(&self) -> Key {
        Key::new(Kind::Register, self.tagged(b'p', &self.kind.to_be_bytes()))
    }

    /// Returns the item of a field, given by its durable id.
    pub fn field(&self, field: u16, shape: Shape) -> Key {
        let mut name = self.tagged(b'f', &[]);
        escape(&field.to_be_bytes(), &mut name);
        Key::new(kind_of(shape), name)
    }

    /// Returns the item of the object's witness rows.
    pub fn rows(&self) -> Key {
        Key::new(Kind::Set, self.tagged(b'w', &[]))
    }

    /// Returns the item of the object's witness rows of one transaction.
    pub fn rows_of(&self, id: TransactionId) -> Key {
        Key::new(Kind::Set, self.tagged(b'i', &key::transaction(id)))
    }
}

/// Returns the data type of the item that stores a field.
pub fn kind_of(shape: Shape) -> Kind {
    match shape {
        Shape::Register => Kind::Register,
        Shape::Counter => Kind::Counter,
        Shape::Set => Kind::Set,
        Shape::Map => Kind::Map,
        Shape::Log => Kind::Log,
    }
}

/// Returns the item of a record.
pub fn record(record: &RecordKey) -> Key {
    let mut name = records(record.kind);
    escape(&record.key, &mut name);
    Key::new(Kind::Register, name)
}

/// Returns the common prefix of the names of all records of a kind.
pub fn records(kind: RecordKind) -> Vec<u8> {
    vec![b'r', kind.code()]
}

/// Returns the key of the record that is stored in the item of this name.
pub fn record_key(name: &[u8]) -> Vec<u8> {
    unescape(name.get(2..).unwrap_or_default())
}

/// Returns the item of the outcome of the commit with this id.
pub fn outcome(id: TransactionId) -> Key {
    let mut name = vec![b'c'];
    escape(&key::transaction(id), &mut name);
    Key::new(Kind::Register, name)
}

/// Returns the item that says that no commit of this id will take effect at a data center, which alone writes it.
pub fn bar(id: TransactionId, dc: DcId) -> Key {
    let mut name = vec![b'b'];
    escape(&key::transaction(id), &mut name);
    name.push(dc.0);
    Key::new(Kind::Register, name)
}

/// Returns the id of the commit that an item of [`outcome`] or [`bar`] is about, from its name.
pub fn noted(name: &[u8]) -> Option<TransactionId> {
    let (section, rest) = name.split_first()?;
    let rest = if *section == b'b' { rest.split_last()?.1 } else { rest };
    key::transaction_of(&unescape(rest))
}

/// Returns the item with the numbers of commits up to which notes of outcomes were removed.
pub fn gone() -> Key {
    Key::new(Kind::Map, b"g".as_slice())
}

/// Returns the item of the rows with the store's declarations.
pub fn declarations() -> Key {
    Key::new(Kind::Map, b"m".as_slice())
}

/// Returns the common prefix of the names of witness rows by transaction: of one transaction, or of
/// all.
pub fn rows_by_transaction(id: Option<TransactionId>) -> Vec<u8> {
    let mut name = vec![b'i'];
    if let Some(id) = id {
        escape(&key::transaction(id), &mut name);
    }
    name
}

/// Returns the common prefix of the names of the presences of a kind.
pub fn presences(kind: u32) -> Vec<u8> {
    let mut name = vec![b'p'];
    escape(&kind.to_be_bytes(), &mut name);
    name.push(b'{');
    name
}

/// Returns a key for an element of a set or an entry of a map. No item has this name; strong
/// transactions use it to declare which elements they use.
pub fn element(item: &Key, element: &Value) -> Key {
    let mut name = item.name.to_vec();
    name.push(b'{');
    let mut encoded = Vec::new();
    order::encode(element, &mut encoded);
    escape(&encoded, &mut name);
    Key::new(item.kind, name)
}

/// Returns the header of an index, for all values of its first field or for one. No item has this name;
/// certified transactions use it to declare which part of an index they read or change.
pub fn index(kind: u32, fields: &[u16], first: Option<&Value>) -> Key {
    let mut name = vec![b'x'];
    escape(&kind.to_be_bytes(), &mut name);
    for field in fields {
        escape(&field.to_be_bytes(), &mut name);
    }
    if let Some(first) = first {
        name.push(b'{');
        let mut encoded = Vec::new();
        order::encode(first, &mut encoded);
        escape(&encoded, &mut name);
        name.push(b'}');
    }
    Key::new(Kind::Set, name)
}

/// Returns the mark of a number of indexes. No item has this name; it is in the partition of the store's witness rows,
/// which each commit uses.
pub fn mark(count: u32) -> Key {
    let mut name = Thing { kind: 0, key: Vec::new() }.tagged(b'h', &[]);
    escape(&count.to_be_bytes(), &mut name);
    Key::new(Kind::Set, name)
}

/// True if an item belongs to the program's data (or is a part, a list or an index of such data), false for
/// the runtime's own data such as witness rows and records.
pub fn is_data(item: &Key) -> bool {
    matches!(item.name.first(), Some(b'f' | b'p' | b'x'))
}

/// True if an item is a witness row, or all those of an object or a transaction.
pub fn is_row(item: &Key) -> bool {
    matches!(item.name.first(), Some(b'w' | b'i'))
}

/// Returns the suffix of a key that stands for an item and a pair of transactions. No item, element
/// or list has such a name: their names never have two braces in a row.
pub fn pair(one: &Name, other: &Name) -> Vec<u8> {
    let mut end = b"{{".to_vec();
    escape(one.as_bytes(), &mut end);
    end.push(b'{');
    escape(other.as_bytes(), &mut end);
    end
}

/// Returns the list that contains an item, for the two kinds of items that are listed: objects of a
/// kind by their presence, and the witness rows of a transaction.
pub fn list_of(item: &Key) -> Option<Key> {
    let is_listed = matches!(item.name.first(), Some(b'p' | b'i'));
    let end = item.name.iter().position(|byte| *byte == b'{').filter(|_| is_listed)?;
    let prefix = if item.name[0] == b'p' { &item.name[..=end] } else { &item.name[..end] };
    Some(list(prefix))
}

/// Returns the key of the list of all items whose names begin with `prefix`.
pub fn list(prefix: &[u8]) -> Key {
    Key::new(Kind::Set, prefix)
}

/// Returns the key of the object whose presence has this name; its first `prefix` bytes name the
/// kind.
pub fn object_key(name: &[u8], prefix: usize) -> Value {
    let tag = name.get(prefix..).unwrap_or_default();
    let tag = unescape(tag.strip_suffix(b"}").unwrap_or(tag));
    order::decode(&mut tag.get(4..).unwrap_or_default())
}

/// Replaces the bytes `{`, `|` and `}` by `|` followed by 0, 1 or 2.
pub fn escape(bytes: &[u8], name: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'{' | b'|' | b'}' => name.extend([b'|', byte - b'{']),
            other => name.push(*other),
        }
    }
}

/// Returns the bytes of which [`escape`] made `name`.
pub fn unescape(name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'|' => bytes.push(b'{' + rest.next().copied().unwrap_or_default()),
            other => bytes.push(*other),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_keep_the_order_and_come_back() {
        let mut texts: Vec<Vec<u8>> = Vec::new();
        for a in [0, b'z', b'{', b'|', b'}', b'~', 255] {
            texts.push(vec![a]);
            for b in [0, 1, 2, 3, b'{', b'|', b'}', 255] {
                texts.push(vec![a, b]);
            }
        }
        texts.sort();
        let escaped = |text: &Vec<u8>| {
            let mut name = Vec::new();
            escape(text, &mut name);
            name
        };
        assert!(texts.windows(2).all(|pair| escaped(&pair[0]) < escaped(&pair[1])));
        for text in &texts {
            let name = escaped(text);
            assert_eq!(unescape(&name), *text);
            assert!(!name.contains(&b'{') && !name.contains(&b'}'));
        }
    }

    #[test]
    fn all_of_an_object_is_in_one_partition() {
        let thing = Thing { kind: 3, key: b"a{b}c".to_vec() };
        let id = TransactionId { origin: mingle_model::Origin(1), sequence: 2 };
        let place = thing.presence().partition(64);
        for key in [thing.field(7, Shape::Log), thing.rows(), thing.rows_of(id)] {
            assert_eq!(key.partition(64), place, "{key:?}");
        }
    }

    #[test]
    fn marks_are_where_the_rows_of_the_store_are() {
        let rows = Thing { kind: 0, key: Vec::new() }.rows();
        let marks = [0, 1, u32::from(b'{')].map(mark);
        for (at, key) in marks.iter().enumerate() {
            assert_eq!(key.partition(64), rows.partition(64));
            assert!(!is_data(key) && !is_row(key) && list_of(key).is_none());
            assert!(marks[..at].iter().all(|other| other != key));
        }
    }
}
