//! Indexes of objects over data centers: the entries that replicas derive from registers.
//!
//! An entry is the values of the index's fields, in their order, and then the key of the object, each in the
//! form that keeps the order of values. [`mingle_geo::derive`] says why replicas derive entries instead of
//! merging them, and why those of any readable snapshot are there.
//!
//! A transaction reads an index on its own snapshot:
//!
//! 1. It reads one item of each partition, so that the snapshot is complete in its data center.
//! 2. It asks the replicas for a page of entries, in order.
//! 3. It reads the fields of the objects that the entries name, with its own writes, and drops each entry
//!    that is not the one of these fields, or whose object does not exist.
//! 4. If it lacks objects and the page was full, it continues after the page.
//!
//! Objects that it has written itself, and those that are loose, are read in any case. An object has one
//! entry on one snapshot, so none comes twice.
//!
//! **Conflicts.** A certified transaction that reads an index uses a *header*: that of the index for all
//! values of its first field, or that of one value. One that changes the entry of an object uses a part of the
//! headers above the earlier and the later entry, and reads the object's other fields in the index. So an object
//! that enters what was read, or leaves it, is a conflict (no phantoms).

use std::sync::Arc;

use mingle_geo::derive::{Derive, Span};
use mingle_geo::{Key, Kind};
use mingle_model::index::indexed;
use mingle_model::{IndexQuestion, Name, Ref, Value};

use super::name::{escape, unescape};
use super::space::Space;
use crate::encoding::order;
use crate::layout::Layout;

/// An index of a kind of object in one store.
#[derive(Clone, Debug)]
pub struct ObjectIndex {
    name: Vec<u8>,
    /// The beginning of the names of all fields of objects of the kind, with the beginning of the objects'
    /// names.
    prefix: Vec<u8>,
    /// The length of the part of `prefix` that the objects' names do not have.
    before: usize,
    /// The ends of the fields' names.
    fields: Vec<Vec<u8>>,
}

impl ObjectIndex {
    /// Creates the index of a kind over these fields, by their durable ids.
    pub fn new(space: &Space, kind: u32, fields: &[u16]) -> Self {
        let mut name = space.prefix().to_vec();
        name.push(b'x');
        name.extend(kind.to_be_bytes());
        name.extend(fields.iter().flat_map(|field| field.to_be_bytes()));
        let mut prefix = [space.prefix(), b"f{"].concat();
        let before = prefix.len();
        escape(&kind.to_be_bytes(), &mut prefix);
        let ends = fields.iter().map(|field| {
            let mut end = vec![b'}'];
            escape(&field.to_be_bytes(), &mut end);
            end
        });
        Self { name, prefix, before, fields: ends.collect() }
    }

    /// Returns all indexes of a store.
    pub fn all<'a>(
        space: &'a Space,
        layout: &'a Layout,
    ) -> impl Iterator<Item = Arc<dyn Derive>> + 'a {
        let all = layout.indexes.iter().flat_map(move |(kind, indexes)| {
            indexes.iter().map(move |fields| Self::new(space, *kind, fields))
        });
        all.map(|index| Arc::new(index) as Arc<dyn Derive>)
    }

    /// Returns the part of the index that answers a question, in pages of `most` entries.
    pub fn span(&self, question: &IndexQuestion<'_>, most: usize) -> Span {
        let order::Span { lower, upper } = order::span(&[], question);
        let (index, is_reversed) = (self.name.clone(), question.is_reversed);
        Span { index, lower, upper, is_reversed, most }
    }

    /// Returns the object of an entry.
    pub fn object(&self, kind: &Name, mut entry: &[u8]) -> Ref {
        for _ in &self.fields {
            order::decode(&mut entry);
        }
        Ref::new(kind.clone(), order::decode(&mut entry))
    }
}

/// Returns the object that is an owner of entries.
pub fn owner_object(kind: &Name, owner: &[u8]) -> Ref {
    Ref::new(kind.clone(), order::decode(&mut &*object_key(owner)))
}

/// Returns the entry of an object whose fields have these values, if each is there.
pub fn entry_of(object: &Ref, values: &[Option<&Value>]) -> Option<Vec<u8>> {
    let mut entry = Vec::new();
    for value in values {
        order::encode(indexed((*value)?)?, &mut entry);
    }
    order::encode(object.key(), &mut entry);
    Some(entry)
}

/// Returns the key of an object in the form of keys, from its name in the names of items.
fn object_key(owner: &[u8]) -> Vec<u8> {
    unescape(owner).split_off(size_of::<u32>())
}

impl Derive for ObjectIndex {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn owner<'k>(&self, key: &'k Key) -> Option<&'k [u8]> {
        if key.kind != Kind::Register || !key.name.starts_with(&self.prefix) {
            return None;
        }
        let name = &key.name[self.before..];
        let end = name.iter().position(|byte| *byte == b'}')?;
        let (owner, field) = name.split_at(end);
        self.fields.iter().any(|known| known == field).then_some(owner)
    }

    fn items(&self, owner: &[u8]) -> Vec<Key> {
        let name = |field: &Vec<u8>| [&self.prefix[..self.before], owner, field].concat();
        self.fields.iter().map(|field| Key::new(Kind::Register, name(field))).collect()
    }

    fn entry(&self, owner: &[u8], values: &[&Value]) -> Option<Vec<u8>> {
        let mut entry = Vec::new();
        for value in values {
            order::encode(indexed(value)?, &mut entry);
        }
        entry.extend(object_key(owner));
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::name::Thing;
    use crate::layout::{KindLayout, Shape};

    /// What a replica derives from an item's name is what the store knows of the object.
    #[test]
    fn entries_are_of_the_objects_that_own_the_fields() {
        // Ids with bytes that names escape.
        let (kind, fields) = (u32::from_be_bytes(*b"{|}x"), [0x7b7d_u16, 7]);
        let name = Name::from("Entry");
        let mut layout = Layout::default();
        let declared =
            KindLayout { id: kind, key_type: mingle_model::Type::String, fields: Vec::new() };
        layout.kinds.insert(name.clone(), declared);
        for space in [Space::first(), Space::of(&"feed".into())] {
            let index = ObjectIndex::new(&space, kind, &fields);
            for key in ["", "a{b}c|", "}"] {
                let object = Ref::new(name.clone(), Value::from(key));
                let thing = Thing::of(&layout, Some(&object)).expect("it is declared");
                let items = fields.map(|field| space.key(thing.field(field, Shape::Register)));
                let owners = items.each_ref().map(|item| index.owner(item));
                let owner = owners[0].expect("a field of the index");
                assert_eq!(owners[1], Some(owner));
                assert_eq!(index.items(owner), items);
                assert_eq!(owner_object(&name, owner), object);
                let values = [&Value::some("x".into()), &Value::Int(3)];
                let entry = index.entry(owner, &values).expect("both are there");
                assert_eq!(Some(&entry), entry_of(&object, &values.map(Some)).as_ref());
                assert_eq!(index.object(&name, &entry), object);
                assert_eq!(index.entry(owner, &[&Value::NONE, &Value::Int(3)]), None);
                for other in [
                    space.key(thing.field(8, Shape::Register)),
                    space.key(thing.field(7, Shape::Set)),
                    space.key(thing.presence()),
                    Space::of(&"other".into()).key(thing.field(7, Shape::Register)),
                ] {
                    assert_eq!(index.owner(&other), None, "{other:?}");
                }
            }
        }
    }
}
