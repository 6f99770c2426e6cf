//! Reads of indexes with the transaction's own writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_model::{IndexRead, Name, Ref, Value};
use mingle_store::{Address, Answer, Data, Read, StoreError};

use super::RedisTransaction;
use crate::index::{Indexes, Shown};
use crate::limits::READS_MAX;

/// The objects of a kind that the transaction has written, with the fields that its indexes have.
struct Own {
    objects: Vec<Ref>,
    fields: Vec<u16>,
    /// The place of the first answer about them.
    first: usize,
}

impl Own {
    fn reads(&self) -> impl Iterator<Item = Read> {
        self.objects.iter().flat_map(|object| {
            let field =
                |field: &u16| Read::Register(Address { object: object.clone(), field: *field });
            [Read::Exists(object.clone())].into_iter().chain(self.fields.iter().map(field))
        })
    }

    /// Returns the objects with their values of these fields, from the answers to all reads.
    fn shown(&self, fields: &[u16], answers: &[Answer]) -> Vec<Shown> {
        let each = 1 + self.fields.len();
        let shown = self.objects.iter().enumerate().map(|(at, object)| {
            let first = self.first + at * each;
            let exists = answers[first].data == Data::Bool(true);
            let value = |field: &u16| {
                let place = self.fields.iter().position(|known| known == field)?;
                match &answers[first + 1 + place].data {
                    Data::Register(value) if exists => value.clone(),
                    _ => None,
                }
            };
            (object.clone(), fields.iter().map(value).collect())
        });
        shown.collect()
    }
}

impl RedisTransaction {
    /// Answers reads, those of indexes too.
    pub(super) async fn read_all(&mut self, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let core = Arc::clone(&self.core);
        let indexes = &core.layout.indexes;
        let indexed = |read: &Read| match read {
            Read::Query { operation, .. } => indexes.query(operation).cloned(),
            _ => None,
        };
        let kinds: BTreeSet<Name> =
            reads.iter().filter_map(indexed).map(|read| read.object).collect();
        if kinds.is_empty() || reads.len() > READS_MAX {
            return self.read_plain(reads).await;
        }
        let (mut all, mut own) = (reads.to_vec(), BTreeMap::new());
        for kind in kinds {
            let written = self.overlay.objects().map(|(object, _)| object);
            let objects = written.filter(|object| *object.kind() == kind).cloned().collect();
            let fields: BTreeSet<u16> =
                indexes.of(&kind).iter().flat_map(|index| index.fields.clone()).collect();
            let of = Own { objects, fields: fields.into_iter().collect(), first: all.len() };
            all.extend(of.reads());
            own.insert(kind, of);
        }
        let mut answers = Vec::with_capacity(all.len());
        for batch in all.chunks(READS_MAX) {
            answers.extend(self.read_plain(batch).await?);
        }
        for (at, read) in reads.iter().enumerate() {
            let (Some(index), Read::Query { arguments, .. }) = (indexed(read), read) else {
                continue;
            };
            let result = self.result(&index, arguments, &own[&index.object], (at, &answers));
            answers[at].data = Data::Result(result.map_err(|why| core.refused(why))?);
        }
        answers.truncate(reads.len());
        Ok(answers)
    }

    /// Returns the result of a read of an index from the answer at a place.
    fn result(
        &self,
        read: &IndexRead,
        arguments: &[Value],
        own: &Own,
        (at, answers): (usize, &[Answer]),
    ) -> Result<Value, String> {
        match &answers[at].data {
            Data::Count(found) => Indexes::count(read, arguments, *found),
            Data::Values(entries) => {
                let fields = self.core.layout.fields_of(read)?;
                let entries = entries.iter().filter_map(|entry| match entry {
                    Value::Bytes(entry) => Some(entry.to_vec()),
                    _ => None,
                });
                let own = own.shown(&fields, answers);
                Indexes::result(read, arguments, &entries.collect::<Vec<_>>(), &own)
            }
            other => Err(format!("a read of an index was answered with {other:?}")),
        }
    }
}
