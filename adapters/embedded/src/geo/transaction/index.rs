//! Reads of indexes, and the headers that writers use; see [`super::super::index`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_geo::Key;
use mingle_geo::derive::Entries;
use mingle_model::index::indexed;
use mingle_model::{Ref, Value};
use mingle_store::{Data, StoreError, Write};

use super::super::answer;
use super::super::fetch::{Fetch, Found};
use super::super::index::{ObjectIndex, entry_of, owner_object};
use super::super::name::{self, Thing};
use super::super::touch::Use;
use super::{GeoTransaction, SCAN_ITEMS};
use crate::encoding::order;
use crate::index::Indexed;
use crate::layout::Shape;

/// The least number of entries that a page has.
const PAGE_MIN: usize = 16;

impl GeoTransaction {
    /// Answers a read of an index on this transaction's snapshot, with its own writes.
    pub(super) async fn index(
        &mut self,
        index: &Indexed,
        arguments: &[Value],
    ) -> Result<(Data, u64), StoreError> {
        let shared = Arc::clone(&self.shared);
        let refused = |why| shared.core.refused(why);
        let question = index.read.question(arguments).map_err(refused)?;
        let kind = shared.core.layout.kind(&index.read.object).map_err(refused)?.id;
        let first = question.equal.first();
        self.uses.add(name::index(kind, index.fields(), first), Use::Read);
        let place = ObjectIndex::new(&shared.space, kind, index.fields());
        let mut span = place.span(&question, 0);
        let (lower, upper) = (span.lower.clone(), span.upper.clone());
        let is_inside =
            |entry: &[u8]| *entry >= *lower && upper.as_ref().is_none_or(|upper| *entry < **upper);
        // The objects found so far, by their entries.
        let mut found: BTreeMap<Vec<u8>, Ref> = BTreeMap::new();
        let mut apart = self.written(&index.read.object);
        let mut is_first = true;
        loop {
            span.most = question.most.saturating_sub(found.len()).clamp(PAGE_MIN, SCAN_ITEMS);
            let Entries { found: entries, loose } = self.entries(&span).await?;
            if std::mem::take(&mut is_first) {
                let loose = loose.iter().map(|owner| owner_object(&index.read.object, owner));
                apart.extend(loose);
            }
            let is_last = entries.len() < span.most;
            let named = entries.iter().map(|entry| {
                let entry: &[u8] = entry;
                (place.object(&index.read.object, entry), Some(entry))
            });
            let named = named.filter(|(object, _)| !apart.contains(object));
            let named: Vec<(Ref, Option<&[u8]>)> = named.collect();
            found.extend(self.verified(index, &named).await?);
            match entries.last() {
                Some(last) if !is_last && found.len() < question.most => {
                    if question.is_reversed {
                        span.upper = Some(last.to_vec());
                    } else {
                        span.lower = order::next(last);
                    }
                }
                _ => break,
            }
        }
        let apart: Vec<(Ref, Option<&[u8]>)> =
            apart.into_iter().map(|object| (object, None)).collect();
        let own = self.verified(index, &apart).await?;
        found.extend(own.into_iter().filter(|(entry, _)| is_inside(entry)));
        let objects: Vec<Ref> = if question.is_reversed {
            found.into_values().rev().take(question.most).collect()
        } else {
            found.into_values().take(question.most).collect()
        };
        Ok((Data::Result(index.read.answer(objects)), 0))
    }

    /// Returns the objects of a kind that the flushed writes change.
    fn written(&self, kind: &str) -> BTreeSet<Ref> {
        let objects = self.flushed.iter().filter_map(Write::object);
        objects.filter(|object| **object.kind() == *kind).cloned().collect()
    }

    /// Returns a page of entries, among which are all that hold at the transaction's snapshot.
    async fn entries(&mut self, span: &mingle_geo::derive::Span) -> Result<Entries, StoreError> {
        let shared = Arc::clone(&self.shared);
        let dc = self.dc;
        let client = self.settle().await?;
        // With an item of each partition, the snapshot is complete at all of them.
        let read = client.read(shared.probes.clone()).await;
        read.map_err(|trouble| shared.trouble(trouble, None))?;
        let snapshot = client.snapshot().ok_or(StoreError::Conflict)?;
        if !shared.net.with(|inner| inner.is_up(dc)) {
            return Err(shared.down(dc));
        }
        // If the snapshot is too old, its items cannot be read either.
        shared.net.with(|inner| inner.entries(dc, span, &snapshot)).ok_or(StoreError::Conflict)
    }

    /// Returns the existing objects among these with the entries that their fields have, if these are the entries
    /// that are named.
    async fn verified(
        &mut self,
        index: &Indexed,
        named: &[(Ref, Option<&[u8]>)],
    ) -> Result<Vec<(Vec<u8>, Ref)>, StoreError> {
        let shared = Arc::clone(&self.shared);
        let (mut fetch, mut items) = (Fetch::default(), Vec::with_capacity(named.len()));
        for (object, _) in named {
            let thing = Thing::of(&shared.core.layout, Some(object));
            let thing = thing.map_err(|why| shared.core.refused(why))?;
            let field = |field: &u16| thing.field(*field, Shape::Register);
            let fields: Vec<Key> = index.fields().iter().map(field).collect();
            let presence = thing.presence();
            fields.iter().chain([&presence]).for_each(|key| fetch.add(key.clone()));
            items.push((presence, fields));
        }
        let found = self.read(fetch).await?;
        let mut verified = Vec::new();
        for ((object, entry), (presence, fields)) in named.iter().zip(items) {
            if !answer::exists(found.get(&presence)) {
                continue;
            }
            let values: Vec<Option<&Value>> =
                fields.iter().map(|field| register(&found, field)).collect();
            let of_fields = entry_of(object, &values);
            verified.extend(
                of_fields
                    .filter(|of_fields| entry.is_none_or(|entry| *entry == **of_fields))
                    .map(|entry| (entry, object.clone())),
            );
        }
        Ok(verified)
    }

    /// Notes the headers of indexes that these writes use.
    pub(in super::super) async fn use_headers(
        &mut self,
        writes: &[Write],
    ) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let layout = &shared.core.layout;
        let refused = |why| shared.core.refused(why);
        if !writes.iter().any(|write| matches!(write, Write::Assign(..) | Write::Delete(_))) {
            return Ok(());
        }
        let agreed = self.agreed().await?;
        if agreed.indexes.is_empty() {
            return Ok(());
        }
        let mut changes: BTreeMap<&Ref, Change<'_>> = BTreeMap::new();
        for write in writes {
            let Some(object) = write.object() else { continue };
            match write {
                Write::Assign(address, value) => {
                    let field = layout.field(address, &[Shape::Register]).map_err(refused)?.id;
                    changes.entry(object).or_default().fields.insert(field, value);
                }
                Write::Delete(_) => {
                    changes.insert(object, Change { is_new: true, ..Change::default() });
                }
                _ => {}
            }
        }
        for (object, change) in changes {
            let thing = Thing::of(layout, Some(object)).map_err(refused)?;
            let indexes = agreed.indexes.get(&thing.kind()).into_iter().flatten();
            for fields in indexes.filter(|fields| change.concerns(fields)) {
                let items: Vec<Key> =
                    fields.iter().map(|field| thing.field(*field, Shape::Register)).collect();
                let mut fetch = Fetch::default();
                for item in &items {
                    fetch.add(item.clone());
                }
                let found = self.read(fetch).await?;
                let before = items.iter().map(|item| register(&found, item).and_then(indexed));
                let before: Vec<Option<&Value>> = before.collect();
                let after = change.after(fields, &before);
                for (item, field) in items.iter().zip(fields) {
                    if !change.fields.contains_key(field) {
                        self.uses.add(item.clone(), Use::Read);
                    }
                }
                let is_in = |values: &[Option<&Value>]| values.iter().all(Option::is_some);
                if before == after || !is_in(&before) && !is_in(&after) {
                    continue;
                }
                self.uses.add(name::index(thing.kind(), fields, None), Use::WritePart);
                for values in [&before, &after].into_iter().filter(|values| is_in(values)) {
                    let header = name::index(thing.kind(), fields, values[0]);
                    self.uses.add(header, Use::WritePart);
                }
            }
        }
        Ok(())
    }
}

/// The registers of an object that writes change.
#[derive(Default)]
struct Change<'w> {
    /// True if the other fields have no value any more.
    is_new: bool,
    fields: BTreeMap<u16, &'w Value>,
}

impl<'w> Change<'w> {
    fn concerns(&self, fields: &[u16]) -> bool {
        self.is_new || fields.iter().any(|field| self.fields.contains_key(field))
    }

    /// Returns the values of these fields by which an index finds them, after the change.
    fn after<'v>(&self, fields: &[u16], before: &[Option<&'v Value>]) -> Vec<Option<&'v Value>>
    where
        'w: 'v,
    {
        let after = fields.iter().zip(before).map(|(field, before)| match self.fields.get(field) {
            Some(value) => indexed(value),
            None if self.is_new => None,
            None => *before,
        });
        after.collect()
    }
}

fn register<'f>(found: &'f Found, key: &Key) -> Option<&'f Value> {
    found.get(key).as_register().and_then(mingle_geo::types::Register::value)
}
