//! Rows of indexes: which objects hold which values, in order.
//!
//! Each replica derives them from its own registers: after a change, an object's rows are those of the values that
//! it then holds, whichever writer won. So they need no merge of their own, and cannot differ from the registers.
//! The layout has the indexes that the program declares; the catalog has those whose rows are there. At open, rows
//! of new indexes are made and rows of indexes that are no longer declared are removed, in the commit that
//! changes the catalog.
//!
//! A reader of a serializable store notes a header: that of the index for all values of its first field, or that of
//! one value. Each change of the rows below gives both a new version, so an object that comes or goes between the
//! read and the commit is a conflict (no phantoms).

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::index::indexed;
use mingle_model::{IndexQuestion, IndexRead, Name, Ref, Value};

use crate::encoding::row::{Header, Presence};
use crate::encoding::wire::Reader;
use crate::encoding::{key, order, row, value};
use crate::layout::Layout;
use crate::storage::overlay::Draft;
use crate::storage::{Bytes, Changes, Storage, StorageError, View};

/// The fields of an index, as the ids under which they are kept.
pub type Fields = Vec<u16>;

/// Indexes: the id of the kind, and the fields.
pub type Indexes = BTreeSet<(u32, Fields)>;

/// An index that a query reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// The query.
    pub read: IndexRead,
    fields: Fields,
}

/// The keys between which a query finds its objects.
pub struct Range {
    /// The header that its reader notes.
    pub header: Vec<u8>,
    /// The keys.
    pub span: order::Span,
}

impl Indexed {
    /// Creates the index of a query.
    ///
    /// # Errors
    ///
    /// When its object or one of its fields does not live here.
    pub fn new(read: &IndexRead, layout: &Layout) -> Result<Self, String> {
        let kind = layout.kind(&read.object)?;
        let field = |name: &Name| {
            let found = kind.fields.iter().find(|field| field.name == *name);
            found
                .map(|field| field.id)
                .ok_or_else(|| format!("object {} has no field {name}", read.object))
        };
        let fields = read.fields.iter().map(field).collect::<Result<Fields, String>>()?;
        Ok(Self { read: read.clone(), fields })
    }

    /// Returns the fields.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Returns the start of the keys of its rows; the values and the object's key follow.
    pub fn rows_prefix(&self, replica: u8, kind: u32) -> Vec<u8> {
        key::with(&key::values(replica, kind, &self.fields), &[ROWS])
    }

    /// Returns the keys of the rows that answer a question; if the first is not below the end, there is no such row.
    pub fn range(&self, replica: u8, kind: u32, question: &IndexQuestion<'_>) -> Range {
        let index = key::values(replica, kind, &self.fields);
        let header = header(&index, question.equal.first());
        let span = order::span(&key::with(&index, &[ROWS]), question);
        Range { header, span }
    }

    /// Returns the object of a row.
    pub fn object(&self, replica: u8, kind: u32, key: &[u8]) -> Ref {
        let mut rest = &key[key::values(replica, kind, &self.fields).len() + 1..];
        for _ in &self.fields {
            order::decode(&mut rest);
        }
        Ref::new(self.read.object.clone(), order::decode(&mut rest))
    }
}

/// After an index's prefix: its headers, and its rows.
const HEADERS: u8 = 0;
const ROWS: u8 = 1;

/// Returns the key of the header of an index, or of one value of its first field.
fn header(index: &[u8], first: Option<&Value>) -> Vec<u8> {
    let mut header = key::with(index, &[HEADERS]);
    if let Some(first) = first {
        order::encode(first, &mut header);
    }
    header
}

/// A row of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    first: Value,
    row: Vec<u8>,
}

/// The rows of the objects that a change touches, as they were before it.
pub struct Before {
    replica: u8,
    /// The rows of each object in each index of its kind, by the object's key after section and replica.
    objects: BTreeMap<Vec<u8>, Vec<Option<Entry>>>,
}

impl Before {
    /// Notes the rows of objects, given as keys of their rows after section and replica; other keys may be among them.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn note<'k>(
        layout: &Layout,
        draft: &Draft<'_>,
        replica: u8,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<Self, StorageError> {
        let mut objects = BTreeMap::new();
        if !layout.indexes.is_empty() {
            for key in keys {
                let Some((kind, object)) = object_of(layout, key) else { continue };
                if !objects.contains_key(object) {
                    let entries = entries(layout, draft, replica, kind, object)?;
                    objects.insert(object.to_vec(), entries);
                }
            }
        }
        Ok(Self { replica, objects })
    }

    /// Gives the objects the rows of their values now, under this version.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn settle(
        self,
        layout: &Layout,
        draft: &mut Draft<'_>,
        version: u64,
    ) -> Result<(), StorageError> {
        for (object, before) in self.objects {
            let (kind, _) = object_of(layout, &object).expect("it was noted");
            let after = entries(layout, draft, self.replica, kind, &object)?;
            for (fields, (before, after)) in
                layout.indexes[&kind].iter().zip(before.into_iter().zip(after))
            {
                if before == after {
                    continue;
                }
                let index = key::values(self.replica, kind, fields);
                if let Some(before) = before {
                    count(draft, &index, &before.first, (-1, version))?;
                    draft.remove(before.row);
                }
                if let Some(after) = after {
                    count(draft, &index, &after.first, (1, version))?;
                    draft.put(after.row, []);
                }
            }
        }
        Ok(())
    }
}

/// Splits a key after section and replica: the kind, and the part that names the object. None if the kind has no index.
fn object_of<'k>(layout: &Layout, key: &'k [u8]) -> Option<(u32, &'k [u8])> {
    let (kind, mut rest) = key.split_first_chunk()?;
    let kind = u32::from_be_bytes(*kind);
    layout.indexes.get(&kind)?;
    order::decode(&mut rest);
    Some((kind, &key[..key.len() - rest.len()]))
}

/// Returns an object's row in each index of its kind; `object` is its key after section and replica.
fn entries(
    layout: &Layout,
    view: &dyn View,
    replica: u8,
    kind: u32,
    object: &[u8],
) -> Result<Vec<Option<Entry>>, StorageError> {
    let indexes = &layout.indexes[&kind];
    let prefix = key::with(&[b'd', replica], object);
    let presence = view.get(&key::presence(&prefix))?;
    let exists = presence.is_some_and(|row| Presence::decode(&mut Reader(&row)).exists);
    let mut known: BTreeMap<u16, Option<Value>> = BTreeMap::new();
    let mut found = Vec::with_capacity(indexes.len());
    for fields in indexes {
        let mut first = None;
        let mut row = exists.then(|| key::with(&key::values(replica, kind, fields), &[ROWS]));
        for field in fields {
            let Some(so_far) = &mut row else { break };
            if !known.contains_key(field) {
                let kept: Option<Bytes> = view.get(&key::field(&prefix, *field))?;
                let kept = kept.map(|kept| value::decode(row::unit_value(&kept)));
                known.insert(*field, kept.as_ref().and_then(indexed).cloned());
            }
            match &known[field] {
                Some(value) => {
                    order::encode(value, so_far);
                    first.get_or_insert_with(|| value.clone());
                }
                None => row = None,
            }
        }
        let entry = row.zip(first).map(|(mut row, first)| {
            // After the kind, the key of the object.
            row.extend(&object[4..]);
            Entry { first, row }
        });
        found.push(entry);
    }
    Ok(found)
}

/// Changes the number of rows in the two headers above a row, and their version.
fn count(
    draft: &mut Draft<'_>,
    index: &[u8],
    first: &Value,
    (change, version): (i64, u64),
) -> Result<(), StorageError> {
    for key in [header(index, None), header(index, Some(first))] {
        let row = draft.get(&key)?;
        let mut header = row.as_deref().map(Header::decode).unwrap_or_default();
        header.version = version;
        header.count = header
            .count
            .checked_add_signed(change)
            .ok_or_else(|| StorageError::damaged("an index counts fewer rows than it has"))?;
        if header.count == 0 {
            // A header that is absent counts as one that never was, and the rows are the same.
            draft.remove(key);
        } else {
            draft.put(key, header.encode());
        }
    }
    Ok(())
}

/// Returns the changes that give the indexes of a store their rows at all its replicas: `old` are those that have
/// them, `new` those that shall.
///
/// # Errors
///
/// When the disk fails.
pub fn rows(
    storage: &dyn Storage,
    layout: &Layout,
    replicas: usize,
    (old, new): (&Indexes, &Indexes),
) -> Result<Changes, StorageError> {
    if old == new {
        return Ok(Changes::new());
    }
    let snapshot = storage.snapshot()?;
    let mut draft = Draft::new(&*snapshot, Changes::new());
    let draft = &mut draft;
    let replicas = u8::try_from(replicas).expect("replicas are bounded by REPLICAS_MAX");
    let added: BTreeSet<u32> = new.difference(old).map(|(kind, _)| *kind).collect();
    let gone = old.iter().filter(|(kind, _)| added.contains(kind)).chain(old.difference(new));
    let gone: BTreeSet<&(u32, Fields)> = gone.collect();
    for replica in 0..replicas {
        for (kind, fields) in &gone {
            for row in draft.keys(&key::values(replica, *kind, fields))? {
                draft.remove(row);
            }
        }
        for kind in &added {
            let mut objects: BTreeSet<Vec<u8>> = BTreeSet::new();
            for key in draft.keys(&key::objects(replica, *kind))? {
                if let Some((_, object)) = object_of(layout, &key[2..]) {
                    objects.insert(object.to_vec());
                }
            }
            let none = vec![None; layout.indexes[kind].len()];
            let objects = objects.into_iter().map(|object| (object, none.clone())).collect();
            // No transaction has read the index, so any version is a new one.
            Before { replica, objects }.settle(layout, draft, 0)?;
        }
    }
    Ok(std::mem::take(&mut draft.changes))
}
